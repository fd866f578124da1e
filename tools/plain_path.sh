#!/usr/bin/env bash
# Runs a program. Where the path of the tree has a space or the like, the tree is at /mnt for it, in a mount namespace: Kbuild, and the
# makefiles of libbpf and librdkafka, take a space for the end of a path.
#
# Usage: tools/plain_path.sh PROGRAM [ARGUMENT ...]     in a folder of the tree
set -euo pipefail
top=$(realpath "$(dirname "$0")/..")
case $top in *[!A-Za-z0-9/._+-]*) ;; *) exec "$@" ;; esac
here=$(realpath --relative-to="$top" .)
root=()
[ "$(id -u)" = 0 ] || root=(--map-root-user)
exec unshare "${root[@]}" --mount bash -ec 'mount --rbind "$1" /mnt; cd "/mnt/$2"; shift 2; exec "$@"' bash "$top" "$here" "$@"
