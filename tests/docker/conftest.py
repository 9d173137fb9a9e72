"""An engine for all tests, and a server that uses it."""

import os

import pytest

from engine import IMAGES, Engine
from server import Server
from wire import Client


@pytest.fixture(scope="session")
def engine():
    with Engine() as running:
        for image in IMAGES:
            running.load(image)
        os.environ["DOCKER_HOST"] = running.host
        yield running


@pytest.fixture(scope="session")
def server(engine):
    with Server() as running:
        yield running


@pytest.fixture
def client(server, engine):
    """Leaves no sandbox, and then there is no container either."""
    with Client(server.unix) as connected:
        yield connected
        connected.destroy_all()
    assert engine.containers() == {}


@pytest.fixture
def codebase(client):
    return client.new_codebase(hello_txt=b"hello\n")
