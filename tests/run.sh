#!/bin/sh
# Runs a suite of Python tests against a real server: `run.sh SUITE [PYTEST ARGUMENTS]`.
#
#   agentfense   the published Python client, unchanged
#   server       gRPC and REST: errors, owners, bounds, kills, made-up requests
#   sdk          the Python SDK, in sdk/python/tests
#
# RINGFENCE names the program; without it the debug build of this repository is taken. What a suite
# needs is installed into a virtual environment of its own, below `target`.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
suite=${1:-}
case $suite in
agentfense | server) here=$root/tests/$suite ;;
sdk) here=$root/sdk/python/tests ;;
*)
    echo "usage: run.sh agentfense|server|sdk [PYTEST ARGUMENTS]" >&2
    exit 2
    ;;
esac
shift

if [ -z "${RINGFENCE:-}" ]; then
    host=$(rustc -vV 2>/dev/null | sed -n 's/^host: //p')
    RINGFENCE=$root/target/${host:-$(uname -m)-unknown-linux-gnu}/debug/ringfence
fi
if [ ! -x "$RINGFENCE" ]; then
    echo "error: there is no program $RINGFENCE; build it or set RINGFENCE" >&2
    exit 2
fi
# A copy: another suite builds wheels, and then the program is not there for a moment.
mkdir -p "$root/target/tmp/$suite"
cp -f "$RINGFENCE" "$root/target/tmp/$suite/ringfence"
RINGFENCE=$root/target/tmp/$suite/ringfence
export RINGFENCE
if [ "$suite" = sdk ]; then
    export RINGFENCE_BINARY="$RINGFENCE" PYTHONPATH="$root/sdk/python"
fi

venv=$root/target/venv-$suite
sh "$root/scripts/venv.sh" "$venv" "$here/requirements.txt"

cd "$here"
export PYTHONDONTWRITEBYTECODE=1
exec "$venv/bin/python" -m pytest "$@"
