#!/bin/sh
# Runs a suite of this directory against a real server: `run.sh SUITE [PYTEST ARGUMENTS]`.
#
#   agentfense   the published Python client, unchanged
#   server       gRPC and REST: errors, owners, bounds, kills, made-up requests
#
# RINGFENCE names the program; without it the debug build of this repository is taken. What a suite
# needs is installed into a virtual environment of its own, below `target`.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
suite=${1:-}
here=$root/tests/$suite
if [ -z "$suite" ] || [ ! -f "$here/requirements.txt" ]; then
    echo "usage: run.sh agentfense|server [PYTEST ARGUMENTS]" >&2
    exit 2
fi
shift
venv=$root/target/venv-$suite
python=${PYTHON:-python3}

if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "error: Python cannot make virtual environments here; install Debian's python3-venv" >&2
    exit 2
fi

if [ -z "${RINGFENCE:-}" ]; then
    host=$(rustc -vV 2>/dev/null | sed -n 's/^host: //p')
    RINGFENCE=$root/target/${host:-$(uname -m)-unknown-linux-gnu}/debug/ringfence
fi
if [ ! -x "$RINGFENCE" ]; then
    echo "error: there is no program $RINGFENCE; build it or set RINGFENCE" >&2
    exit 2
fi
export RINGFENCE

# The list that was installed is put into the environment last, so that one that was left half
# made is made again.
if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
    rm -rf "$venv"
    "$python" -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$venv/installed.txt"
fi

cd "$here"
export PYTHONDONTWRITEBYTECODE=1
exec "$venv/bin/python" -m pytest "$@"
