"""Starts that fail, of sandboxes and of servers; and leases."""

import json
import sqlite3

import pytest

from server import Server
from test_door import refused_start
from wire import Client, refused, v1


@pytest.fixture
def without_isolation(monkeypatch, tmp_path):
    """A server whose sandboxes cannot start."""
    monkeypatch.setenv("RINGFENCE_BWRAP", str(tmp_path / "secret-place" / "bwrap"))
    with Server() as running:
        yield running


@pytest.mark.bwrap
def test_what_cannot_start_is_not_there(without_isolation):
    with without_isolation.client() as client:
        codebase = client.new_codebase()
        with refused() as how:
            client.new_sandbox(codebase)
        assert how.code == "UNSUPPORTED"
        assert "secret-place" not in how.message + str(how.details)
        assert not client.sandbox.ListSandboxes(v1.ListSandboxesRequest()).sandboxes


@pytest.mark.bwrap
def test_what_cannot_start_later_says_why(without_isolation):
    with without_isolation.client() as client:
        asked = v1.CreateSandboxRequest(codebase_id=client.new_codebase())
        sandbox = client.sandbox.CreateSandbox(asked).id
        with refused() as how:
            client.sandbox.StartSandbox(v1.StartSandboxRequest(sandbox_id=sandbox))
        assert how.code == "UNSUPPORTED"
        shown = client.sandbox.GetSandbox(v1.GetSandboxRequest(sandbox_id=sandbox))
        assert shown.status == v1.SANDBOX_STATUS_ERROR and shown.reason
        assert "secret-place" not in shown.reason


def test_a_file_in_the_place_of_the_socket_stays(tmp_path):
    file = tmp_path / "precious"
    file.write_text("precious")
    refused_start("--listen", "off", "--unix", file, state=tmp_path / "s")
    assert file.read_text() == "precious"


def test_leases_hold_while_there_is_no_server():
    """A holder cannot renew what nobody answers for."""
    with Server() as server:
        with server.client() as client:
            sandbox = client.new_sandbox(client.new_codebase(), leased=True)
        server.stop()
        records = sqlite3.connect(server.state / "server" / "records.db")
        records.execute("UPDATE sandboxes SET lease_until_ms = 1")
        records.commit()
        records.close()
        server.start()
        with server.client() as client:
            # Lapsed ones are looked for every second; a command that takes longer would not end.
            assert client.run(sandbox, "sleep 2.5; echo lives").stdout == "lives\n"


def test_the_network_of_the_host_needs_tokens_on_it(server):
    with server.client() as client:
        with refused() as how:
            client.new_sandbox(client.new_codebase(), network=v1.NETWORK_MODE_HOST)
        assert (how.code, how.details["network"]) == ("UNSUPPORTED", "host")
    with Server("--listen", "off", listen=None) as apart, Client(apart.unix) as client:
        sandbox = client.new_sandbox(client.new_codebase(), network=v1.NETWORK_MODE_HOST)
        assert client.run(sandbox, "true").exit_code == 0


def test_a_lease_that_nobody_renewed_ends_its_sandbox():
    """The minute is taken off on record, so that nobody has to wait for it."""
    with Server() as server, server.client() as client:
        codebase = client.new_codebase()
        leased = client.new_sandbox(codebase, leased=True)
        free = client.new_sandbox(codebase)
        records = sqlite3.connect(server.state / "server" / "records.db", timeout=10)
        records.execute("UPDATE sandboxes SET lease_until_ms = 1")
        records.commit()
        records.close()
        # Its record goes on to its very end.
        events = client.audit.Audit(v1.AuditRequest(sandbox_id=leased, follow=True))
        *_, last = [json.loads(event.json) for event in events]
        assert (last["kind"], last["reason"]) == ("sandbox_ended", "its lease has lapsed")
        listed = client.sandbox.ListSandboxes(v1.ListSandboxesRequest()).sandboxes
        assert [each.id for each in listed] == [free]
