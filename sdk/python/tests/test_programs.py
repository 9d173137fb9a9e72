"""One program, two clients, one server: what the published client can express, ours does alike.

What that one cannot is in `test_programs_differ.py`.
"""

import agentfense
import pytest
import ringfence

import both_clients as programs
import session_programs  # noqa: F401  It adds to the same list.


def test_both_are_in_one_process_and_their_messages_do_not_collide():
    from agentfense._gen import sandbox_pb2
    from ringfence._wire import v1

    theirs, ours = sandbox_pb2.ExecRequest.DESCRIPTOR, v1.ExecRequest.DESCRIPTOR
    assert theirs.full_name != ours.full_name
    assert theirs.file.pool is ours.file.pool, "or this proves nothing"


@pytest.mark.parametrize("sdk", [ringfence, agentfense], ids=lambda sdk: sdk.__name__)
@pytest.mark.parametrize("program", programs.ALL, ids=lambda program: program.__name__)
def test_a_program_gives_the_same_with(program, sdk, at):
    assert program(sdk, at) == program.expected
