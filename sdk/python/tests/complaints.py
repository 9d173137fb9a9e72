"""What holds for everything that the SDK refuses: one sentence that helps, and nothing left behind."""

import contextlib

from ringfence import SandboxClient

LONGEST = 601
"""Characters that can be read at a glance."""

NOISE = ("Traceback", "grpc_status", "debug_error_string", "os error", "ipv4:127", "TSI_", "OPENSSL")
"""Words of the machinery."""


def assert_helpful(error):
    """Its message is a sentence for people."""
    message = error.message
    assert message and message == message.strip() and message.isprintable(), message
    assert not message.endswith(".") and ". " not in message, message
    assert len(message) <= LONGEST and " " in message, message
    assert not [word for word in NOISE if word in str(error)], str(error)
    assert str(error).startswith(message)


def everything(client):
    """The ids of all that a server has."""
    return ({codebase.id for codebase in client.list_codebases()},
            {sandbox.id for sandbox in client.list_sandboxes()})


@contextlib.contextmanager
def nothing_made(where):
    """What is done in the block leaves no codebase and no sandbox."""
    with SandboxClient(**where.options) as client:
        before = everything(client)
        yield
        assert everything(client) == before
