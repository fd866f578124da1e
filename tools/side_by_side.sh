#!/usr/bin/env bash
# Two `make test` in two clones at the same time; both must pass. The clones are made in build/side_by_side.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$PWD/build/side_by_side
rm -rf "$folder"
mkdir -p "$folder"
runs=()
for clone in first second; do
    git clone --quiet . "$folder/$clone"
    make -C "$folder/$clone" test >"$folder/$clone.log" 2>&1 &
    runs+=($!)
done
trap 'kill "${runs[@]}" 2>/dev/null || true; wait' EXIT
result=0
for run in "${runs[@]}"; do wait "$run" || result=1; done
trap - EXIT
tail -n 3 "$folder"/*.log
exit $result
