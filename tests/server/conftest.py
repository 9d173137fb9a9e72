"""One server for tests that get along with each other."""

import pytest

from server import Server

pytest_plugins = ["in_image"]


@pytest.fixture(scope="session")
def server():
    with Server() as running:
        yield running


@pytest.fixture
def client(server):
    with server.client() as connected:
        yield connected


@pytest.fixture
def sandbox(client):
    """A running sandbox in which everything may be written."""
    made = client.new_sandbox(client.new_codebase(hello_txt=b"hello\n"))
    yield made
    from wire import v1
    client.sandbox.DestroySandbox(v1.DestroySandboxRequest(sandbox_id=made))
