#!/usr/bin/env bash
# What checkpatch looks for first, in the C sources: licence, white space, line length, comments.
# (The compiler's warnings are errors in the build of the driver tests.)
set -euo pipefail
cd "$(dirname "$0")/.."
status=0
complain() { echo "lint: $1"; status=1; }
for file in driver/*.[ch] tests/support/*.c driver/examples/*.c host/c/*/*.[ch] host/receiver/xdp/*.c bench/tools/*.c tests/driver/*.c; do
    head -1 "$file" | grep -q 'SPDX-License-Identifier' || complain "$file: no SPDX licence in line 1"
    grep -nP '[ \t]+$' "$file" && complain "$file: white space at the end of a line"
    grep -nP '^ {8}' "$file" && complain "$file: spaces where a tab belongs"
    expand "$file" | grep -nP '^.{121,}' && complain "$file: line over 120 columns"
    tail -n +2 "$file" | grep -nP '(^|\s)//' && complain "$file: // comment"
    grep -nP '\b(if|for|while|switch)\(' "$file" && complain "$file: no space before the parenthesis"
    grep -nP '^\s*(if|for|while|switch)\b.*\)\{' "$file" && complain "$file: no space before the brace"
done
exit $status
