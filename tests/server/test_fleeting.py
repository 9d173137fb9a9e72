"""What was made for a sandbox goes with it, and a client that dies leaves nothing."""

import pathlib
import signal
import subprocess
import sys

import grpc
import pytest

from rest import Rest
from server import Server
from waiting import until
from wire import Client, refused, v1

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def hasty():
    """A server on which leases last two seconds."""
    with Server("--lease-seconds", 2) as running:
        yield running


def destroy(client, sandbox, **fields):
    client.sandbox.DestroySandbox(v1.DestroySandboxRequest(sandbox_id=sandbox, **fields))


def is_there(client, codebase):
    try:
        client.codebase.GetCodebase(v1.GetCodebaseRequest(codebase_id=codebase))
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.NOT_FOUND
        return False
    return True


def has_files(server, codebase):
    return (server.state / "server" / "codebases" / codebase).exists()


def assert_gone(server, client, codebase):
    assert not is_there(client, codebase) and not has_files(server, codebase)


def test_it_goes_with_the_last_of_its_sandboxes(server, client):
    codebase = client.new_codebase(fleeting=True, a_txt=b"a\n")
    shown = client.codebase.GetCodebase(v1.GetCodebaseRequest(codebase_id=codebase))
    assert shown.fleeting
    first = client.new_sandbox(codebase)
    fork = client.workspace.ForkSandbox(v1.ForkSandboxRequest(sandbox_id=first)).id
    destroy(client, first)
    client.sandbox.StartSandbox(v1.StartSandboxRequest(sandbox_id=fork))
    assert client.run(fork, "cat a.txt").stdout == "a\n", "a fork stands on it too"
    destroy(client, fork)
    assert_gone(server, client, codebase)
    destroy(client, fork)
    with refused() as how:
        client.new_sandbox(codebase)
    assert how.code == "CODEBASE_NOT_FOUND"


def test_others_stay(client):
    codebase = client.new_codebase()
    destroy(client, client.new_sandbox(codebase))
    assert is_there(client, codebase)


def test_a_snapshot_keeps_it_until_it_is_deleted(server, client):
    codebase = client.new_codebase(fleeting=True, a_txt=b"a\n")
    sandbox = client.new_sandbox(codebase)
    client.run(sandbox, "echo b > a.txt")
    snapshot = client.workspace.CreateSnapshot(v1.CreateSnapshotRequest(sandbox_id=sandbox)).id
    destroy(client, sandbox)
    again = client.new_sandbox(codebase, snapshot_id=snapshot)
    assert client.run(again, "cat a.txt").stdout == "b\n"
    destroy(client, again)
    assert is_there(client, codebase)
    client.workspace.DeleteSnapshot(v1.DeleteSnapshotRequest(snapshot_id=snapshot))
    assert_gone(server, client, codebase)


def test_one_that_is_kept_is_like_any_other(server, client):
    codebase = client.new_codebase(fleeting=True, a_txt=b"a\n")
    destroy(client, client.new_sandbox(codebase), keep_codebase=True)
    assert not client.codebase.GetCodebase(v1.GetCodebaseRequest(codebase_id=codebase)).fleeting
    destroy(client, client.new_sandbox(codebase))
    assert client.download(codebase, "a.txt") == b"a\n"


def test_it_is_kept_over_rest(server, client):
    rest = Rest(server.endpoint)
    for query, kept in [("", False), ("?keepCodebase=true", True), ("?keep_codebase=true", True)]:
        _, made = rest("POST", "/v1/codebases", name="n", ownerId="o", fleeting=True)
        assert made["fleeting"] is True
        _, sandbox = rest("POST", "/v1/sandboxes", codebaseId=made["id"])
        status, _ = rest("DELETE", f"/v1/sandboxes/{sandbox['id']}{query}")
        assert (status, is_there(client, made["id"])) == (200, kept)


def test_a_directory_of_the_host_is_not_touched(server, tmp_path):
    (tmp_path / "precious").write_text("precious")
    with Client(server.unix) as client:
        made = client.codebase.CreateCodebase(v1.CreateCodebaseRequest(
            name="n", owner_id="o", local_path=str(tmp_path), fleeting=True))
        sandbox = client.new_sandbox(made.id)
        assert client.run(sandbox, "cat precious; rm precious").stdout == "precious"
        destroy(client, sandbox)
        assert not is_there(client, made.id)
    assert (tmp_path / "precious").read_text() == "precious"


@pytest.mark.bwrap
def test_what_cannot_start_takes_it_along(monkeypatch, tmp_path):
    monkeypatch.setenv("RINGFENCE_BWRAP", str(tmp_path / "bwrap"))
    with Server() as server, server.client() as client:
        codebase = client.new_codebase(fleeting=True)
        with refused() as how:
            client.new_sandbox(codebase)
        assert how.code == "UNSUPPORTED"
        assert_gone(server, client, codebase)


def test_it_goes_when_the_time_of_its_sandbox_is_over(hasty):
    with hasty.client() as client:
        codebase = client.new_codebase(fleeting=True)
        asked = v1.CreateSandboxRequest(codebase_id=codebase)
        asked.expires_in.FromSeconds(1)
        client.sandbox.CreateSandbox(asked)
        until(lambda: not is_there(client, codebase))
        until(lambda: not has_files(hasty, codebase))


def dying(server, how):
    """A client that has got that far, and what it has made."""
    client = subprocess.Popen([sys.executable, HERE / "dying.py", server.endpoint, how],
                              stdout=subprocess.PIPE, text=True)
    line = client.stdout.readline().split()
    assert line[:1] == ["far"]
    return client, line[1:]


def kill(client):
    client.kill()
    client.wait()
    client.stdout.close()


def test_a_client_that_dies_in_its_lease_leaves_nothing(hasty):
    process, (codebase, sandbox) = dying(hasty, "held")
    try:
        with hasty.client() as client:
            other = client.new_sandbox(client.new_codebase())
            # As many signs as are given in twice the time of a lease; these hold another sandbox.
            signs = client.sandbox.LeaseSandbox(v1.LeaseSandboxRequest(sandbox_id=other))
            for _ in range(9):
                next(signs)
            assert client.run(sandbox, "cat whole.txt").stdout == "whole\n", "its holder lives"
            kill(process)
            until(lambda: not is_there(client, codebase) and not has_files(hasty, codebase))
            with refused() as how:
                client.sandbox.GetSandbox(v1.GetSandboxRequest(sandbox_id=sandbox))
            assert how.code == "SANDBOX_NOT_FOUND"
            assert client.run(other, "echo lives").stdout == "lives\n"
    finally:
        kill(process)


def test_a_client_that_dies_while_it_uploads_leaves_nothing():
    with Server("--abandoned-seconds", 8) as server, server.client() as client:
        process, (codebase,) = dying(server, "uploading")
        try:
            assert is_there(client, codebase) and has_files(server, codebase)
        finally:
            kill(process)
        until(lambda: not is_there(client, codebase) and not has_files(server, codebase))


def test_a_server_that_slept_gives_holders_another_chance(hasty):
    """Nobody can renew a lease while the server's host sleeps, which is longer than a lease here."""
    with hasty.client() as client:
        sandbox = client.new_sandbox(client.new_codebase())
        asked = v1.LeaseSandboxRequest(sandbox_id=sandbox, bind=True)
        client.sandbox.RenewLease(asked)
        hasty.process.send_signal(signal.SIGSTOP)
        try:
            subprocess.run(["sleep", "6"], check=True)
        finally:
            hasty.process.send_signal(signal.SIGCONT)
        client.sandbox.RenewLease(asked)
        signs = client.sandbox.LeaseSandbox(asked)
        for _ in range(5):
            next(signs)
        assert client.run(sandbox, "echo lives").stdout == "lives\n"
        signs.cancel()


def test_a_sandbox_that_was_bound_later_is_leased_over_a_restart():
    """One that was only given a sign stays."""
    with Server("--lease-seconds", 2) as server:
        with server.client() as client:
            codebase = client.new_codebase(fleeting=True)
            bound, free = client.new_sandbox(codebase), client.new_sandbox(client.new_codebase())
            for sandbox, bind in [(bound, True), (free, False)]:
                client.sandbox.RenewLease(v1.LeaseSandboxRequest(sandbox_id=sandbox, bind=bind))
        server.kill()
        server.start()
        with server.client() as client:
            until(lambda: not is_there(client, codebase))
            listed = client.sandbox.ListSandboxes(v1.ListSandboxesRequest()).sandboxes
            assert [each.id for each in listed] == [free]
            *_, last = client.audit.Audit(v1.AuditRequest(sandbox_id=bound))
            assert "its lease has lapsed" in last.json
