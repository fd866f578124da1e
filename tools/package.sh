#!/usr/bin/env bash
# `make package`: Debian packages of command, library, driver and cores, and the Python wheel, in build/package.
# The command, the library and the simulator are built before (make sim host).
set -euo pipefail
cd "$(dirname "$0")/.."
package=build/package
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' host/Cargo.toml)
release=host/target/release

rm -rf $package
root=$package/source/root
mkdir -p $root/{examples,man} $root/usr/{bin,include,lib/pkgconfig,lib/systemd/system} \
    $root/usr/share/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d,fadelink/monitoring,fadelink/rtl}
cp -r packaging/debian $package/source/debian

# The commands: they describe themselves.
install $release/fadelink build/sim/fadelink-sim $root/usr/bin
$release/fadelink generate --man $root/man --completions $package
build/sim/fadelink-sim --man >$root/man/fadelink-sim.1
mv $package/fadelink.bash $root/usr/share/bash-completion/completions/fadelink
mv $package/_fadelink $root/usr/share/zsh/vendor-completions
mv $package/fadelink.fish $root/usr/share/fish/vendor_completions.d
rm $package/_fadelink.ps1 $package/fadelink.elv
cp packaging/systemd/*.service $root/usr/lib/systemd/system
cp monitoring/*.yml monitoring/grafana.json $root/usr/share/fadelink/monitoring

# The library, with the name by which programs find it.
(cd host && cargo rustc --release --locked --quiet -p fadelink-c --crate-type cdylib --target-dir target/package -- \
    -C link-arg=-Wl,-soname,libfadelink.so.0)
cp host/target/package/release/libfadelink.so $root/usr/lib/libfadelink.so.$version
ln -s libfadelink.so.$version $root/usr/lib/libfadelink.so.0
ln -s libfadelink.so.0 $root/usr/lib/libfadelink.so
cp $release/libfadelink.a $root/usr/lib
cp host/c/include/*.h $root/usr/include
cp host/c/examples/receive.c $root/examples
sed "s/@VERSION@/$version/; s/@MULTIARCH@/$(dpkg-architecture -q DEB_HOST_MULTIARCH)/" packaging/fadelink.pc >$root/usr/lib/pkgconfig/fadelink.pc

# The cores: their sources alone.
git ls-files -z rtl fusesoc.conf | xargs -0 cp --parents -t $package/source
mv $package/source/rtl/* $root/usr/share/fadelink/rtl
cp $package/source/fusesoc.conf $root/usr/share/fadelink/rtl

(cd $package/source && dpkg-buildpackage -b -us -uc >../fadelink.log 2>&1) || { tail -n 20 $package/fadelink.log >&2; exit 1; }
cp -r driver $package/driver
(cd $package/driver && dpkg-buildpackage -b -us -uc >../driver.log 2>&1) || { tail -n 20 $package/driver.log >&2; exit 1; }
.venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir $package ./host/python
rm -rf $package/{source,driver} $package/*.{buildinfo,changes,log}
ls $package
