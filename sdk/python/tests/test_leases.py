"""Forks on a server that ends what nobody holds."""

import time

import pytest

import servers
from ringfence import Sandbox, SandboxClient

LEASE = 2


@pytest.fixture(scope="module")
def server(own_state):
    with servers.served("--lease-seconds", LEASE) as where:
        yield where


def test_a_fork_of_a_held_sandbox_is_held_before_it_is_entered(server, project):
    with Sandbox.from_local(project, preset="read-only", **server.options) as sandbox:
        fork = sandbox.fork()
        # Longer than anything lives here that nobody holds.
        time.sleep(3 * LEASE)
        assert fork.run("cat hello.txt").stdout == "hello\n"
        fork.destroy()


def test_a_fork_that_is_let_go_of_ends_by_itself(server, project):
    with SandboxClient(**server.options) as client, Sandbox.from_local(
            project, preset="read-only", **server.options) as sandbox:
        fork = sandbox.fork(labels={"kind": "fork"})
        fork.close()
        servers.wait_until(lambda: not client.list_sandboxes(labels={"kind": "fork"}))
        assert sandbox.run("true").success


def test_a_bare_sandbox_is_nobody_s_and_stays(server, project):
    sandbox = Sandbox.from_local(project, preset="read-only", **server.options)
    fork = sandbox.fork()
    fork.close()
    time.sleep(3 * LEASE)
    with SandboxClient(**server.options) as client:
        assert {info.id for info in client.list_sandboxes()} >= {sandbox.id, fork.id}
        client.destroy_sandbox(fork.id)
    sandbox.destroy()
