#!/usr/bin/env bash
# Format and lints of the Rust workspace; the same profile as the build, so that dependencies are compiled once.
set -euo pipefail
cd "$(dirname "$0")/../host"
cargo fmt --check
if cargo clippy --version >/dev/null 2>&1; then
    cargo --color=never clippy-all --release --locked --workspace --all-targets --quiet -- -D warnings
    # The small command, without the libraries that are cargo features.
    cargo --color=never clippy --release --locked -p fadelink --no-default-features --quiet -- -D warnings
else
    echo "lint: this Rust toolchain has no clippy: its lints were NOT checked"
fi
