#!/usr/bin/env bash
# Fetches into build/kernel32 what the tests of the driver use of 32-bit Debian 12 (i386): its kernel, headers to build modules against,
# busybox, and the C library for static programs. 72 MB; nothing is installed on the computer, and its lists of packages stay as they are.
set -euo pipefail
cd "$(dirname "$0")/.."

tree=$PWD/build/kernel32
[ ! -e "$tree/ready" ] || exit 0
rm -rf "$tree"
mkdir -p "$tree"/{lists/partial,cache/archives/partial,debs,root}
touch "$tree/status"

# Debian's own repository as it was released: there the versions of a kernel and its headers always agree.
cat >"$tree/sources.list" <<END
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main
END
cat >"$tree/apt.conf" <<END
APT::Architecture "i386";
APT::Architectures { "i386"; };
APT::Sandbox::User "";
Dir::State::status "$tree/status";
Dir::State::lists "$tree/lists";
Dir::Cache "$tree/cache";
Dir::Etc::sourcelist "$tree/sources.list";
Dir::Etc::sourceparts "/dev/null";
Acquire::Languages "none";
END
export APT_CONFIG=$tree/apt.conf
apt-get update -q
version=$(apt-cache show linux-headers-686 | sed -n 's/^Depends:.*linux-headers-\([0-9][0-9.]*-[0-9]*\)-686 .*/\1/p' | head -n 1)
[ -n "$version" ] || { echo "kernel32: linux-headers-686 names no version" >&2; exit 1; }
(cd "$tree/debs" && apt-get download -q linux-image-"$version"-686 linux-headers-"$version"-686 linux-headers-"$version"-common \
    busybox-static libc6-dev libgcc-12-dev linux-libc-dev)
for deb in "$tree"/debs/*.deb; do dpkg-deb -x "$deb" "$tree/root"; done

# The headers name places on a computer where they are installed; the tools are those of this one.
sources=$tree/root/usr/src
sed -i "s|/usr/src/|../|" "$sources/linux-headers-$version-686/Makefile"
for package in "$sources"/linux-headers-*; do
    for part in scripts tools; do ln -sfn "/usr/lib/linux-kbuild-6.1/$part" "$package/$part"; done
done
rm -rf "$tree"/{lists,cache,debs}
echo "$version-686" >"$tree/ready"
