#!/usr/bin/env bash
# Runs commands side by side. If one fails, or a signal comes, the others are ended with all that they have started.
#
# Usage: tools/together.sh COMMAND ...     each a line for the shell
set -euo pipefail
# Each in a process group of its own.
set -m
jobs=()
end() {
    trap '' HUP INT TERM
    # The shell says of each that it is terminated.
    exec 2>/dev/null
    for job in "${jobs[@]}"; do kill -TERM -- "-$job" || true; done
    wait
}
trap end EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
for command in "$@"; do
    bash -c "exec $command" </dev/null &
    jobs+=($!)
done
for _ in "$@"; do wait -n; done
