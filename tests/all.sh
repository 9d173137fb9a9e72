#!/bin/sh
# Runs all suites of Python tests, two beside each other: mostly they wait. What a suite says is shown
# when it has ended; the exit code is 1 if one of them failed.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT
trap 'exit 1' INT TERM

# lane SUITE...: one after the other, all of them.
lane() {
    for suite; do
        code=0
        sh "$here/run.sh" "$suite" >"$said/$suite" 2>&1 || code=1
        printf '\n--- %s\n' "$suite"
        cat "$said/$suite"
        [ $code = 0 ] || touch "$said/failed"
    done
}

lane sdk &
lane agentfense server
wait
if [ -e "$said/failed" ]; then
    echo "some of these tests failed" >&2
    exit 1
fi
