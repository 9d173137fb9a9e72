#!/bin/sh
# Shows what Ringfence is for, with real commands on a small project: `demo.sh RINGFENCE`.
set -eu

ringfence=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
export RINGFENCE_STATE="$work/state"

if [ -t 1 ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); else bold= plain=; fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
# Prints a command that calls ringfence, runs it in the project and goes on whatever it answers.
# Paths of this run are shown short.
show() {
    printf '$ ringfence %s\n' "$1"
    (cd "$project" && eval "\"$ringfence\" $1" 2>&1) | sed "s#$work/##g" || true
}

project=$work/project
sh "$(dirname "$0")/project.sh" "$project"
(
    cd "$project"
    git init -q .
    git -c user.name=demo -c user.email=demo@example.org add -A
    git -c user.name=demo -c user.email=demo@example.org commit -qm "first"
)

say "A project on the host, with secrets in it:"
(cd "$project" && find . -path './.git/*' -prune -o -type f -print | sort)

say "Run its tests in a sandbox (the preset is agent-safe unless another is named):"
show 'run . -- python3 -m unittest tests/test_app.py'

say "What exists inside:"
show "run . -- find . -not -name '*.pyc'"
show "run . -- sh -c 'id -un; hostname; ls /home; ls /root /etc/shadow; cat /proc/1/environ'"

say "A curious agent:"
show "run . -- sh -c 'cat .env config/secrets/db.txt; git log; python3 -c \"import urllib.request as u; u.urlopen(\\\"http://example.org\\\", timeout=3)\" 2>&1 | tail -n 1'"

say "Changes land in a layer, and are the owner's to decide about:"
show "run --keep . -- sh -c 'mkdir -p output && echo \"42 tests passed\" > output/report.txt; echo x >> src/app.py'"
layer=$(echo "$work"/state/sandboxes/*/layer)
show "layer diff $layer"
show "layer apply $layer"
show "run --preset development --apply . -- sh -c 'echo \"# sorted\" >> src/app.py'"
printf '$ tail -n 1 src/app.py\n'
tail -n 1 "$project/src/app.py"

say "Limits end a command, with the reason:"
show 'run --timeout 300ms . -- sleep 60'
show "run --memory 64M . -- python3 -c 'bytearray(1 << 30)'"
show "run --pids 16 . -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do sleep 5 & done'"

say "And everything is on a record that cannot be changed unnoticed:"
show "run --discard . -- sh -c 'cat .env; echo done'"
show 'audit last'
show 'audit verify last'
