"""A server on the port that the client uses when it is told none."""

import socket

import pytest
from agentfense import Sandbox

from server import Server


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


@pytest.mark.skipif(not is_free(9000), reason="something else listens on port 9000")
def test_the_client_finds_the_server_without_being_told_where(make_project):
    path = make_project({"a.txt": "a\n"})
    with Server(listen="127.0.0.1:9000"), Sandbox.from_local(path) as sandbox:
        assert sandbox.run("ls").stdout == "a.txt\n"
