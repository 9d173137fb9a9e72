#!/bin/sh
# Installs what the filesystem benchmarks compare against and need to run.
# Only what is missing; says what it cannot install and leaves the rest to run.py,
# which skips the variants whose programs are not there.
set -eu

missing=""
need() { # COMMAND PACKAGE
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}

PATH="$PATH:/usr/sbin:/sbin"
need fuse-overlayfs fuse-overlayfs
need bindfs bindfs
need fusermount3 fuse3
need mkfs.ext4 e2fsprogs
need gcc "gcc libc6-dev"
need make make
need git git

[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null 2>&1; then
    echo "missing and no apt-get to install them:$missing" >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "missing, and installing them needs root:$missing" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# shellcheck disable=SC2086 # the list is meant to be split
apt-get install -y -q --no-install-recommends $missing
