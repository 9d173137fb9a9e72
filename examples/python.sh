#!/bin/sh
# The Python package, as somebody who installed it uses it: `python.sh WHEEL`.
#
# What it answers is compared with what it should be, and anything else ends this with code 1, so that
# it is a test too. The virtual environment is below `target`; nothing else is left behind.
set -eu

wheel=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
venv=$here/../target/venv-demo
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# The package is to start a server of its own, with the program that it brought.
unset RINGFENCE_ENDPOINT RINGFENCE_TOKEN RINGFENCE_BINARY PYTHONPATH
export RINGFENCE_STATE="$work/state"

printf '\nThe same from Python:\n$ pip install %s\n' "$(basename "$wheel")"
"$python" -m venv --clear "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check "$wheel"

sh "$here/project.sh" "$work/project"
cat >"$work/try.py" <<'PY'
from ringfence import Sandbox

with Sandbox.from_local(".", preset="agent-safe") as sandbox:
    print(sandbox.run("python3 -m unittest tests/test_app.py; cat .env").output)
PY
printf '$ cat try.py\n'
cat "$work/try.py"
printf '$ python try.py\n'
# Not through a pipe, which would forget how it ended.
(cd "$work/project" && "$venv/bin/python" "$work/try.py") >"$work/said"
cat "$work/said"

for expected in "Ran 1 test" "cat: .env: No such file or directory"; do
    grep -qF "$expected" "$work/said" || {
        echo "surprise: it did not say '$expected'" >&2
        exit 1
    }
done
