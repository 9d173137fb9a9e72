"""Which server is meant when nobody says."""

import contextlib
import os
import socket
import subprocess
import sys

import servers
from needs import needs_root
from ringfence import AsyncSandboxClient, SandboxClient, _endpoint

LISTEN = """
import os, socket, sys
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen()
os.setuid(int(sys.argv[1]))
# The owner of a socket is who made it.
theirs = socket.socket()
theirs.bind(("127.0.0.1", 0))
theirs.listen()
print(theirs.getsockname()[1], flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def listener(uid):
    program = subprocess.Popen(
        [sys.executable, "-c", LISTEN, str(uid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield int(program.stdout.readline())
    finally:
        program.stdin.close()
        program.wait()
        program.stdout.close()


def test_a_server_on_the_usual_port_is_asked(monkeypatch):
    with servers.served() as where:
        port = int(where.options["endpoint"].rpartition(":")[2])
        monkeypatch.setattr(_endpoint, "USUAL_PORT", port)
        with SandboxClient() as client:
            info = client.info()
            assert (info.endpoint, info.embedded) == (f"localhost:{port}", False)


def test_the_environment_comes_before_it_and_an_argument_before_that(monkeypatch):
    with servers.served() as one, servers.served() as other:
        monkeypatch.setenv("RINGFENCE_ENDPOINT", one.options["endpoint"])
        with SandboxClient() as client:
            assert client.info().endpoint == one.options["endpoint"]
        with SandboxClient(other.options["endpoint"]) as client:
            assert client.info().endpoint == other.options["endpoint"]


def test_with_nobody_there_the_process_has_a_server_of_its_own(monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setattr(_endpoint, "USUAL_PORT", unused.getsockname()[1])
        with SandboxClient() as client:
            assert client.info().embedded and client.info().local


def test_a_program_that_says_nothing_there_is_not_waited_for_long(monkeypatch):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setattr(_endpoint, "USUAL_PORT", silent.getsockname()[1])
        with SandboxClient() as client:
            assert client.info().embedded


@needs_root
def test_another_user_who_listens_there_is_not_sent_anything(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    with listener(4712) as port:
        monkeypatch.setattr(_endpoint, "USUAL_PORT", port)
        assert _endpoint.usual() is None
    with listener(4711) as port:
        monkeypatch.setattr(_endpoint, "USUAL_PORT", port)
        assert _endpoint.usual() is not None


def test_who_hangs_up_before_being_looked_at_is_not_sent_anything(monkeypatch):
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        monkeypatch.setattr(_endpoint, "USUAL_PORT", port)
        assert _endpoint.usual() is not None
        look = _endpoint._listeners

        def late(port):
            listening.close()
            return look(port)

        monkeypatch.setattr(_endpoint, "_listeners", late)
        assert _endpoint.usual() is None


def test_asyncio_finds_the_same(monkeypatch):
    import asyncio

    async def endpoint():
        async with AsyncSandboxClient() as client:
            return (await client.info()).endpoint

    with servers.served() as where:
        port = int(where.options["endpoint"].rpartition(":")[2])
        monkeypatch.setattr(_endpoint, "USUAL_PORT", port)
        assert asyncio.run(endpoint()) == f"localhost:{port}"
