#!/usr/bin/env bash
# Makes a bare Debian 12 in build/bare/tree, with all that the packages of build/package need in the cache of its apt: the test of
# the packages has no network. As root.
set -euo pipefail
cd "$(dirname "$0")/.."
bare=build/bare
tree=$bare/tree
# The libraries that the command links are among the packages.
[ ! $bare/ready -nt packaging/debian/control ] || [ ! $bare/ready -nt host/Cargo.lock ] || exit 0
! findmnt -R "$tree" >/dev/null || { echo "bare: something is mounted in $tree" >&2; exit 1; }
rm -rf --one-file-system $bare
mkdir -p $bare

debootstrap --variant=minbase bookworm $tree http://deb.debian.org/debian >$bare/log 2>&1 || { tail -n 5 $bare/log >&2; exit 1; }
# The way to the packages is this computer's.
cp /etc/resolv.conf /etc/hosts $tree/etc
cp -r $tree/etc/apt/apt.conf.d $bare/apt.conf.d
cp -r /etc/apt/apt.conf.d/. $tree/etc/apt/apt.conf.d
mkdir -p $tree/etc/ssl/certs
cp -r /etc/ssl/certs/. $tree/etc/ssl/certs
mkdir $tree/packages
cp build/package/*.deb $tree/packages
in_tree() { chroot $tree env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@" >>$bare/log 2>&1 || { tail -n 5 $bare/log >&2; exit 1; }; }
in_tree apt-get update -q
in_tree sh -c 'apt-get install -y -q --no-install-recommends --download-only /packages/*.deb gcc libc6-dev pkg-config linux-headers-amd64 python3-pip python3-venv'
rm -r $tree/packages $tree/etc/ssl/certs $tree/etc/apt/apt.conf.d
mv $bare/apt.conf.d $tree/etc/apt
.venv/bin/python -m pip download --quiet --only-binary :all: --python-version 3.11 --dest $bare/wheels "numpy>=1.26"
touch $bare/ready
