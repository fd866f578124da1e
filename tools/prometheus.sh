#!/usr/bin/env bash
# Fetches Debian's Prometheus and promtool, which the tests run, into build/prometheus. They are not installed, so no server is started.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=build/prometheus
[ ! -x $folder/usr/bin/promtool ] || exit 0
rm -rf $folder
mkdir -p $folder
cd $folder
# Without root the lists of apt are enough.
apt-get -q -o APT::Sandbox::User=root download prometheus >/dev/null
dpkg-deb -x prometheus_*.deb .
rm prometheus_*.deb
