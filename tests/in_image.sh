#!/bin/sh
# Runs suites of Python tests again, with all their sandboxes in containers: `in_image.sh`.
#
# One engine serves them all; it is the tests' own. Left out is what hardly depends on what a sandbox runs
# in; `RINGFENCE_TEST_IMAGE` runs that too.
set -u

here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${RINGFENCE_TEST_IMAGE:-}" ]; then
    exec python3 "$here/common/apart.py" python3 "$here/docker/engine.py" env RINGFENCE_TEST_IMAGE=ringfence-test-full:1 sh "$0"
fi

failed=0
sh "$here/run.sh" agentfense || failed=1
sh "$here/run.sh" server test_errors.py test_killed.py test_record.py test_rest_streams.py test_starts.py \
    test_terminals_ws.py || failed=1
sh "$here/run.sh" sdk test_calls.py test_guide_commands.py test_guide_examples.py test_guide_limits.py \
    test_guide_overview.py test_guide_session_uses.py test_guide_sessions.py test_results.py || failed=1
exit $failed
