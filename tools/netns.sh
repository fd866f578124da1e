#!/usr/bin/env bash
# Two network namespaces joined by a cable (veth) with jumbo frames; sourced, not run.
# Makes: namespaces $board_ns (interface feb0) and $pc_ns (interface eth0), gone when the shell ends.
board_ns=fadelink-board-$$
pc_ns=fadelink-pc-$$

netns_down() {
    ip netns pids "$board_ns" 2>/dev/null | xargs -r kill 2>/dev/null || true
    ip netns pids "$pc_ns" 2>/dev/null | xargs -r kill 2>/dev/null || true
    ip netns delete "$board_ns" 2>/dev/null || true
    ip netns delete "$pc_ns" 2>/dev/null || true
}

netns_up() {
    trap netns_down EXIT
    ip netns add "$board_ns"
    ip netns add "$pc_ns"
    ip link add feb0 netns "$board_ns" type veth peer name eth0 netns "$pc_ns"
    for side in "$board_ns feb0" "$pc_ns eth0"; do
        set -- $side
        # A detector link carries nothing but FADE.
        ip netns exec "$1" sysctl -q -w "net.ipv6.conf.$2.disable_ipv6=1" 2>/dev/null || true
        ip -n "$1" link set "$2" mtu 9000 up
    done
}
on_board() { ip netns exec "$board_ns" "$@"; }
on_pc() { ip netns exec "$pc_ns" "$@"; }
