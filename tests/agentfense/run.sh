#!/bin/sh
# Runs the published Python client against a server: `run.sh [PYTEST ARGUMENTS]`.
#
# RINGFENCE names the program; without it the debug build of this repository is taken. Nothing is
# printed on success, unless arguments were given: then pytest speaks as it likes.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
venv=$root/target/venv-agentfense
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
if [ $# -gt 0 ]; then
    exec "$venv/bin/python" -m pytest "$@"
fi
said=$(mktemp)
trap 'rm -f "$said"' EXIT
status=0
"$venv/bin/python" -m pytest >"$said" 2>&1 || status=$?
[ "$status" = 0 ] || cat "$said"
exit "$status"
