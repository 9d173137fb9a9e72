"""Processes that end before what was waited for comes."""

import pytest

from ringfence import ProcessExitedError, Sandbox


def test_a_process_that_ends_first_says_how(where, project):
    with Sandbox.from_local(project, preset="read-only", **where.options) as sandbox:
        exited = sandbox.start_process("exit 7")
        with pytest.raises(ProcessExitedError) as raised:
            exited.wait_for_port(9999)
        assert raised.value.exit_code == 7
        assert exited.exit_code == 7
        killed = sandbox.start_process("kill -9 $$")
        with pytest.raises(ProcessExitedError) as raised:
            killed.wait_for_log("never")
        assert raised.value.exit_code == 137
