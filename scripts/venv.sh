#!/bin/sh
# Makes a virtual environment with what a list names, unless it is there: `venv.sh DIR REQUIREMENTS`.
#
# PYTHON names the interpreter.
set -eu

venv=$1
list=$2
python=${PYTHON:-python3}

# Several suites may want the same one at the same time.
mkdir -p "$(dirname "$venv")"
exec 9>"$venv.lock"
flock 9

# The list that was installed is put into the environment last, so that one that was left half
# made is made again.
if cmp -s "$list" "$venv/installed.txt"; then
    exit 0
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "error: Python cannot make virtual environments here; install Debian's python3-venv" >&2
    exit 2
fi
rm -rf "$venv"
"$python" -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check -r "$list"
cp "$list" "$venv/installed.txt"
