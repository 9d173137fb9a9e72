#!/bin/sh
# Builds the wheels of the Python package: `wheels.sh PROFILE OUT`.
#
# The one for this platform carries the program, as cargo builds it with that profile (dev, release);
# what is in `target` already is not built again. The other has no program and is for all platforms.
set -eu

profile=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
venv=$root/target/venv-wheels
sh "$root/scripts/venv.sh" "$venv" "$root/sdk/python/build-requirements.txt"

cd "$root/sdk/python"
"$venv/bin/maturin" build --quiet --profile "$profile" --out "$out"
"$venv/bin/python" build_client.py "$out"
