#!/bin/sh
# Installs what a task needs beside the sources: `install-deps.sh [demo|test|bench]`.
#
# Looks first and does nothing if all is there. Missing Debian packages are installed with apt-get,
# as root or through sudo; where neither is possible it says what to run and ends with code 1.
set -eu

task=${1:-test}
missing=
wished=
PATH=$PATH:/usr/sbin:/sbin

# needs COMMAND PACKAGE...: the packages are missing if the command is.
needs() {
    command=$1
    shift
    command -v "$command" >/dev/null 2>&1 || missing="$missing $*"
}

# wants COMMAND PACKAGE...: the same for what the task can do without, and then says so.
wants() {
    command=$1
    shift
    command -v "$command" >/dev/null 2>&1 || wished="$wished $*"
}

# needs_module MODULES PACKAGE...: the same for modules of Python's own library, which Debian splits.
needs_module() {
    modules=$1
    shift
    python3 -c "import $modules" >/dev/null 2>&1 || missing="$missing $*"
}

for_demo() {
    needs fusermount3 fuse3
    needs bwrap bubblewrap
    needs cc gcc libc6-dev
    # A compiler can be there without the headers and start files it links with.
    echo '#include <stdio.h>' | cc -E - >/dev/null 2>&1 || missing="$missing libc6-dev"
    needs git git
    needs python3 python3
    needs_module 'ensurepip, venv' python3-venv
    needs curl curl
}

for_test() {
    for_demo
    needs_module 'sqlite3, zipfile, ctypes' python3
    needs node nodejs
    needs npm npm
    needs make make
    needs rsync rsync
    needs patch patch
    needs tar tar
    needs find findutils
    needs perl perl-base
    needs strace strace
    needs busybox busybox
    needs dash dash
    needs bash bash
    needs zsh zsh
    needs setpriv util-linux
    needs setfattr attr
    needs script bsdutils
    needs unshare util-linux
    needs nsenter util-linux
    needs prlimit util-linux
    needs mount mount
    needs mkfs.ext4 e2fsprogs
    needs openssl openssl
    needs pgrep procps
    needs dockerd docker.io
    needs musl-gcc musl-tools
}

for_bench() {
    for_demo
    needs mkfs.ext4 e2fsprogs
    needs losetup mount
    needs make make
    # What is compared with.
    wants fuse-overlayfs fuse-overlayfs
    wants bindfs bindfs
    wants dockerd docker.io
}

look() {
    missing=
    wished=
    case $task in
    demo) for_demo ;;
    test) for_test ;;
    bench) for_bench ;;
    *)
        echo "usage: install-deps.sh [demo|test|bench]" >&2
        exit 2
        ;;
    esac
    # Without repetitions, in the order given.
    unique=
    for package in $missing; do
        case " $unique " in
        *" $package "*) ;;
        *) unique="$unique${unique:+ }$package" ;;
        esac
    done
    missing=$unique
}

# as_root COMMAND...: with the environment that keeps apt from asking questions.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo -n env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

may_be_root() {
    [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; }
}

install_missing() {
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "error: missing, and this is not a Debian system: $missing" >&2
        echo "hint: install what your system calls these packages" >&2
        exit 1
    fi
    if ! may_be_root; then
        echo "error: missing packages: $missing" >&2
        echo "hint: as root, run: apt-get update && apt-get install -y --no-install-recommends $missing" >&2
        exit 1
    fi
    echo "installing $missing"
    # shellcheck disable=SC2086 # a list of package names
    if ! { as_root apt-get update -qq &&
        as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null; }; then
        echo "error: apt-get could not install: $missing" >&2
        exit 1
    fi
    look
    if [ -n "$missing" ]; then
        echo "error: still missing after the installation: $missing" >&2
        exit 1
    fi
}

# Each by itself: one that cannot be had here must not keep the others away.
install_wished() {
    for package in $wished; do
        echo "installing $package"
        if ! { command -v apt-get && may_be_root; } >/dev/null 2>&1 ||
            ! { as_root apt-get update -qq &&
                as_root apt-get install -y -qq --no-install-recommends "$package" >/dev/null; }; then
            echo "note: could not install $package; what needs it is left out" >&2
        fi
    done
}

look
[ -z "$missing" ] || install_missing
[ -z "$wished" ] || install_wished

if ! command -v cargo >/dev/null 2>&1; then
    echo "error: cargo is not installed" >&2
    echo "hint: get Rust from https://rustup.rs" >&2
    exit 1
fi
