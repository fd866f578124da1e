#!/usr/bin/env bash
# `make demo`: two simulated boards over a link with 1 % loss in both directions; every word of both
# is received and verified, while user commands are sent to them.
set -euo pipefail
cd "$(dirname "$0")/.."
# In a sandbox: whatever becomes of the demo, nothing of it stays on the machine.
[ -n "${FADELINK_SANDBOX:-}" ] || exec python3 tests/support/sandbox.py --root -- "$PWD/tools/demo.sh" "$@"

seconds=${1:-30}
fadelink=host/target/release/fadelink
first=02:fa:de:00:00:01
second=02:fa:de:00:00:02
work=$(mktemp -d)
clean_up() {
    jobs -p | xargs -r kill 2>/dev/null || true
    wait
    ip netns delete board
    ip netns delete pc
    rm -rf "$work"
}
trap clean_up EXIT

# Two network namespaces joined by a cable (veth) with jumbo frames.
ip netns add board
ip netns add pc
ip link add feb0 netns board type veth peer name eth0 netns pc
for side in "board feb0" "pc eth0"; do
    set -- $side
    # A detector link carries nothing but FADE.
    ip netns exec "$1" sysctl -q -w "net.ipv6.conf.$2.disable_ipv6=1" 2>/dev/null || true
    ip -n "$1" link set "$2" mtu 9000 up
done
on_pc() { ip netns exec pc "$@"; }

echo "demo: two simulated 10 Gb/s boards (the RTL, cycle by cycle), 1 % loss in both directions"
# Not through a function: its process number is that of the program itself.
ip netns exec board build/sim/fadelink-sim --iface feb0 --boards 2 --link loss=0.01 --seed 1 --json --pcap "$work/demo.pcap" \
    >"$work/sim.json" 2>"$work/sim.log" &
simulator=$!
on_pc "$fadelink" discover --iface eth0 --timeout 1

# The second board sends its pseudo-random pattern.
on_pc "$fadelink" cmd --iface eth0 --feb $second 0x0202 1 >/dev/null
on_pc "$fadelink" cmd --iface eth0 --feb $second 0x0203 0xFADE >/dev/null

on_pc "$fadelink" receive --iface eth0 --feb $first --feb $second --out "$work/first.bin" --out "$work/second.bin" \
    --verify counter --verify random:0xFADE --duration "$seconds" &
receiver=$!

# Exactly once, over the same lossy link and beside the data: each write adds 1 and answers the sum.
commands=0
sleep 1
deadline=$((SECONDS + seconds - 3))
while [ $SECONDS -lt $deadline ]; do
    for feb in $first $second; do
        on_pc "$fadelink" cmd --iface eth0 --feb $feb 0x0207 1 --repeat 20 >"$work/sums"
    done
    commands=$((commands + 20))
done
wait $receiver && result=0 || result=$?
wrong=0
for feb in $first $second; do
    executed=$(on_pc "$fadelink" cmd --iface eth0 --feb $feb 0x0107 | cut -d' ' -f2)
    echo "$feb: $commands user commands sent, $executed executed"
    [ "$executed" = "$commands" ] || wrong=1
done
kill -TERM $simulator
wait $simulator || true

ls -l "$work/first.bin" "$work/second.bin" | awk '{ print "file of " $5 " bytes" }'
"$fadelink" dissect --summary "$work/demo.pcap"
if [ $result = 0 ] && [ $wrong = 0 ]; then
    echo "demo: PASSED: every word of both boards arrived, every command was executed exactly once"
else
    echo "demo: FAILED (receiver $result, commands $wrong)"
    exit 1
fi
