#!/bin/sh
# A server with one small project, asked over REST and from the command line: `server.sh RINGFENCE`.
#
# Every answer is compared with what it should be, and anything else ends this with code 1, so that
# it is a test too. Needs curl and python3. Nothing is left behind.
set -eu

ringfence=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
server=
trap clean_up EXIT
trap 'exit 1' INT TERM

# The one server that is meant is the one below `work`, whatever this shell usually asks.
unset RINGFENCE_ENDPOINT RINGFENCE_TOKEN RINGFENCE_CONFIG RINGFENCE_UNIX RINGFENCE_REQUIRE_TOKEN
export RINGFENCE_STATE="$work/state"

# Runs when the script ends, however that happens.
clean_up() {
    status=$?
    trap - EXIT
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" || { [ "$status" != 0 ] || status=1; }
    fi
    [ "$status" = 0 ] || sed 's/^/server: /' "$work/log" >&2 || true
    if grep -q "$work" /proc/self/mountinfo; then
        echo "surprise: something below $work is still mounted" >&2
        exit 1
    fi
    rm -rf "$work"
    exit "$status"
}

say() { printf '\n%s\n' "$*"; }
surprise() {
    echo "surprise: $*" >&2
    exit 1
}
# same WHAT EXPECTED FOUND
same() { [ "$2" = "$3" ] || surprise "$1 is not '$2' but '$3'"; }
# has WHAT PART FOUND
has() { case $3 in *"$2"*) ;; *) surprise "$1 has no '$2': $3" ;; esac; }

# The part of a JSON text that a Python expression says, of `it`.
of() { python3 -c 'import json, sys; it = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }
# post PATH JSON, get PATH: the body, whatever the status.
post() { curl -sS "http://$address$1" -H 'content-type: application/json' -d "$2"; }
get() { curl -sS "http://$address$1"; }
# A command of the CLI, shown.
cli() {
    printf '$ ringfence %s\n' "$*" >&2
    "$ringfence" "$@"
}

say "A server on a free port:"
mkfifo "$work/ready"
"$ringfence" serve --listen 127.0.0.1:0 --stop-sandboxes >"$work/ready" 2>"$work/log" &
server=$!
read -r word address <"$work/ready" || surprise "the server did not start"
same "the first word" ready "$word"
echo "$word $address"
same "/healthz" ok "$(get /healthz)"
same "/readyz" ready "$(get /readyz)"
same "the name of the server" ringfence "$(get /v1/info | of 'it["server"]')"

say "A project is stored, and what it has already is not sent again:"
sh "$here/project.sh" "$work/project"
codebase=$(cli codebase push "$work/project")
again=$(cli codebase push --codebase "$codebase" "$work/project" 2>&1)
has "a second push" "0 sent" "$again"

say "A sandbox on it, over REST:"
sandbox=$(post /v1/sandboxes "{\"codebaseId\": \"$codebase\", \"preset\": \"agent-safe\",
    \"start\": true, \"labels\": {\"example\": \"server\"}}" | of 'it["id"]')
echo "$sandbox"
same "its status" SANDBOX_STATUS_RUNNING \
    "$(get "/v1/sandboxes?labels%5Bexample%5D=server" | of 'it["sandboxes"][0]["status"]')"

say "Its tests, from the command line:"
cli sandbox exec "$sandbox" -- python3 -m unittest tests/test_app.py

say "A curious command, over REST: what is hidden does not exist, and who asked is on record."
answer=$(post "/v1/sandboxes/$sandbox/exec" '{"command": "ls; cat .env; exit 3"}')
printf '%s' "$answer" | of 'it["stdout"] + it["stderr"]'
same "the exit code" 3 "$(printf '%s' "$answer" | of 'it["exitCode"]')"
same "the refused path" /.env "$(printf '%s' "$answer" | of 'it["bill"]["denied"][0]["path"]')"
same "the owner's view" API_KEY=do-not-leak "$(get "/v1/sandboxes/$sandbox/files/.env")"
same "the agent's view" FILE_NOT_FOUND \
    "$(get "/v1/sandboxes/$sandbox/files/.env?view=VIEW_AGENT" | of 'it["code"]')"

say "Output as it comes:"
streamed=$(post "/v1/sandboxes/$sandbox/exec/stream" '{"command": "echo one; echo two; exit 4"}')
same "the end of a stream" 4 \
    "$(printf '%s\n' "$streamed" | tail -n 1 | of 'it["result"]["exitCode"]')"
printf '%s\n' "$streamed" | cut -c 1-60

say "What it changes is in a layer, until the owner says otherwise:"
write='mkdir -p output && echo "42 tests passed" > output/report.txt'
cli sandbox exec "$sandbox" -- sh -c "$write"
cli sandbox diff "$sandbox" | tee "$work/diff"
has "the diff" "+42 tests passed" "$(cat "$work/diff")"
[ ! -e "$work/project/output" ] || surprise "the directory itself was changed"
applied=$(post "/v1/sandboxes/$sandbox/apply" '{}')
same "applied" "True" "$(printf '%s' "$applied" | of 'it["written"]')"

say "A request that is repeated does nothing twice:"
fork() { post "/v1/sandboxes/$sandbox/fork" '{"requestId": "fork-1"}' | of 'it["id"]'; }
copy=$(fork)
same "the second answer" "$copy" "$(fork)"
cli sandbox ls

say "What does not exist is an error with a code:"
get /v1/sandboxes/sb_0123456789abcdef
echo
same "the code" SANDBOX_NOT_FOUND "$(get /v1/sandboxes/sb_0123456789abcdef | of 'it["code"]')"

say "The record, also after the end:"
cli sandbox rm "$sandbox" "$copy"
cli sandbox audit "$sandbox" --denied | tee "$work/denied"
has "the record" "/.env" "$(cat "$work/denied")"
verdict=$(get "/v1/sandboxes/$sandbox/audit/verify")
echo "$verdict"
same "the record" True "$(printf '%s' "$verdict" | of 'it["intact"]')"

cli codebase rm "$codebase"
same "what is left" 0 "$(get /v1/codebases | of 'len(it["codebases"])')"
say "Done."
