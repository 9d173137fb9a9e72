#!/bin/sh
# Runs a suite of Python tests against a real server: `run.sh SUITE [PYTEST ARGUMENTS]`.
#
#   agentfense   the published Python client, unchanged
#   server       gRPC and REST: errors, owners, bounds, kills, made-up requests
#   docker       sandboxes in containers, with an engine of the suite's own
#   sdk          the Python SDK, in sdk/python/tests
#
# RINGFENCE names the program; without it the debug build of this repository is taken. What a suite
# needs is installed into a virtual environment of its own, below `target`.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
suite=${1:-}
case $suite in
agentfense | server | docker) here=$root/tests/$suite ;;
sdk) here=$root/sdk/python/tests ;;
*)
    echo "usage: run.sh agentfense|server|docker|sdk [PYTEST ARGUMENTS]" >&2
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
place=$root/target/tmp/$suite${RINGFENCE_TEST_IMAGE:+-in-image}
mkdir -p "$place"
cp -f "$RINGFENCE" "$place/ringfence"
RINGFENCE=$place/ringfence
export RINGFENCE
# Engines are used by the suite that brings one, or by all in an image.
if [ -z "${RINGFENCE_TEST_IMAGE:-}" ]; then
    export DOCKER_HOST=unix:///nonexistent/docker.sock
fi
if [ "$suite" = sdk ]; then
    export RINGFENCE_BINARY="$RINGFENCE" PYTHONPATH="$root/sdk/python"
fi

# The suite of containers needs what that of the server needs.
needs=$here
[ "$suite" != docker ] || needs=$root/tests/server
venv=$root/target/venv-$(basename "${needs%/python/tests}")
sh "$root/scripts/venv.sh" "$venv" "$needs/requirements.txt"

# That of the SDK installs packages; the others need no network but their own.
network=
[ "$suite" != sdk ] || network=--with-network

# Not where others clear away what they think is old.
PYTEST_DEBUG_TEMPROOT=$(mktemp -d "${TMPDIR:-/tmp}/rf-$suite.XXXXXX")
trap 'rm -rf "$PYTEST_DEBUG_TEMPROOT"' EXIT
export PYTEST_DEBUG_TEMPROOT PYTHONDONTWRITEBYTECODE=1
cd "$here"
"$venv/bin/python" "$root/tests/common/apart.py" $network "$venv/bin/python" -m pytest "$@"
