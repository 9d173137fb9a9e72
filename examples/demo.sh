#!/bin/sh
# Shows what a guarded workspace is, with real commands on a small project.
set -eu

ringfence=$(realpath "$1")
work=$(mktemp -d)
server=

cleanup() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap cleanup EXIT INT TERM

if [ -t 1 ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); else bold= plain=; fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
# Prints a command, runs it in the workspace and goes on whatever it answers.
show() {
    printf '$ %s\n' "$1"
    (cd "$work/workspace" && sh -c "$1" 2>&1) || true
}

project=$work/project
mkdir -p "$project/src" "$project/config/secrets" "$work/workspace"
cat >"$project/src/app.py" <<'PY'
import os

print("hello from", os.path.basename(__file__))
PY
printf 'API_KEY=do-not-leak\n' >"$project/.env"
printf 'db-password\n' >"$project/config/secrets/db.txt"
printf -- '-----BEGIN PRIVATE KEY-----\n' >"$project/deploy.key"
printf '# The project\n' >"$project/README.md"
(
    cd "$project"
    git init -q .
    git -c user.name=demo -c user.email=demo@example.org add -A
    git -c user.name=demo -c user.email=demo@example.org commit -qm "first"
)

say "A project on the host, with secrets in it:"
(cd "$project" && find . -path './.git/*' ! -name config -prune -o -type f -print | sort)

say "Mounted under the preset agent-safe:"
"$ringfence" mount --base "$project" --layer "$work/layer" --preset agent-safe \
    --events "$work/events" "$work/workspace" >"$work/ready" &
server=$!
until [ -s "$work/ready" ]; do
    kill -0 "$server"
    sleep 0.05
done
cut -d' ' -f1 "$work/ready"

say "What exists:"
show 'find . | sort'
show 'python3 src/app.py'

say "What is denied:"
show 'cat .env'
show 'cat config/secrets/db.txt'
show 'git log'
show 'echo x >> README.md'
show 'mkdir config/secrets'

say "What may be written:"
show 'mkdir -p output && echo "42 tests passed" > output/report.txt && cat output/report.txt'

kill "$server"
wait "$server" || true
server=

say "What changed, as the owner sees it (the project itself is untouched):"
printf '$ ringfence layer changes LAYER\n'
"$ringfence" layer changes "$work/layer"
printf '$ ringfence layer diff LAYER\n'
"$ringfence" layer diff "$work/layer"
printf '$ ringfence layer apply LAYER\n'
"$ringfence" layer apply "$work/layer"
printf '$ cat project/output/report.txt\n'
cat "$project/output/report.txt"

say "And why:"
printf '$ ringfence policy explain --preset agent-safe /.env /output/report.txt /src/app.py\n'
"$ringfence" policy explain --preset agent-safe /.env /output/report.txt /src/app.py

say "Every denied access is on record:"
grep '"denied"' "$work/events" | head -n 4
