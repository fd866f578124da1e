#!/usr/bin/env bash
# Builds, from Debian's linux-source, the small self-watching kernel of tests/driver/debug.config
# (KASAN, lockdep, kmemleak) in build/debug-kernel. Takes some ten minutes on two cores, once.
set -euo pipefail
cd "$(dirname "$0")/.."

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
source_of_debian() { find /usr/src -maxdepth 1 -name 'linux-source-6.1.tar.xz'; }
if [ -z "$(source_of_debian)" ] || ! dpkg-query -s libelf-dev >/dev/null 2>&1; then
    as_root apt-get update -q
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        linux-source-6.1 libelf-dev libssl-dev bc bison flex xz-utils
fi

tree=build/debug-kernel
if [ ! -d $tree/source ]; then
    mkdir -p $tree/source
    tar -C $tree/source --strip-components=1 -xf "$(source_of_debian)"
fi
config=$tree/config-used
if ! cmp -s tests/driver/debug.config $config || [ ! -e $tree/source/arch/x86/boot/bzImage ]; then
    tools/plain_path.sh make -s -C $tree/source KCONFIG_ALLCONFIG=../../../tests/driver/debug.config allnoconfig
    for option in KASAN PROVE_LOCKING DEBUG_KMEMLEAK VIRTIO_NET SERIAL_8250_CONSOLE MODULES; do
        grep -q "^CONFIG_$option=y" $tree/source/.config || { echo "debug kernel: CONFIG_$option is not set" >&2; exit 1; }
    done
    tools/plain_path.sh make -s -C $tree/source -j"$(nproc)" bzImage modules
    cp tests/driver/debug.config $config
fi
echo "debug kernel: $tree/source/arch/x86/boot/bzImage"
