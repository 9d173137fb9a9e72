#!/bin/sh
# Builds the wheels of the Python package: `wheels.sh PROFILE OUT [MATURIN OPTIONS]`.
#
# The one for this platform carries the program, as cargo builds it with that profile (dev, release);
# with `--strip false` what is in `target` already is not built again. The other wheel has no program and
# is for all platforms. OUT has no wheels but these afterwards.
set -eu

profile=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
shift 2
root=$(cd "$(dirname "$0")/.." && pwd)
venv=$root/target/venv-wheels
sh "$root/scripts/venv.sh" "$venv" "$root/sdk/python/build-requirements.txt"

cd "$root/sdk/python"
# The build backend looks for its program on the PATH.
PATH=$venv/bin:$PATH
rm -f "$out"/ringfence-*.whl
maturin build --quiet --profile "$profile" --out "$out" "$@"
python build_client.py "$out"
