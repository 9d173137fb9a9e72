"""Who gets in, and starts that are refused."""

import pathlib
import socket
import sqlite3
import subprocess

import grpc
import pytest

from rest import Rest
from server import Server, program
from wire import Client, refused, v1

CODE = grpc.StatusCode


@pytest.fixture(scope="module")
def two():
    """A server with two accounts, where everybody needs a token."""
    with Server("--require-token", tokens=["one", "two"]) as running:
        yield running


def info(client):
    return client.server.Info(v1.InfoRequest())


def test_a_token_says_who_asks(two):
    for account, token in two.tokens.items():
        with two.client(token) as client:
            said = info(client)
            assert (said.server, said.account, said.local) == ("ringfence", account, False)
        assert Rest(two.endpoint, token)("GET", "/v1/info")[1]["account"] == account


@pytest.mark.parametrize("token", [None, "", "rf_0000", "x" * 4000])
def test_without_a_good_one_nothing_is_said(two, token):
    with two.client(token) as client, refused() as how:
        client.sandbox.ListSandboxes(v1.ListSandboxesRequest())
    assert (how.status, how.code) == (CODE.UNAUTHENTICATED, "UNAUTHENTICATED")
    status, said = Rest(two.endpoint, token)("GET", "/v1/sandboxes")
    assert (status, said["code"]) == (401, "UNAUTHENTICATED")
    status, said = Rest(two.endpoint, token)("GET", "/v1/nothing")
    assert status == 401


def test_whoever_watches_needs_none(two):
    for path in ("/healthz", "/readyz", "/openapi.json"):
        assert Rest(two.endpoint).raw("GET", path)[0] == 200


def test_metrics_are_for_the_account_of_the_host(two):
    assert Rest(two.endpoint).raw("GET", "/metrics")[0] == 401
    assert Rest(two.endpoint, two.tokens["one"]).raw("GET", "/metrics")[0] == 403
    status, _, said = Rest(two.unix).raw("GET", "/metrics")
    assert status == 200 and b"ringfence_sandboxes" in said


def test_a_revoked_token_is_refused_at_once(two):
    token = two.new_token("gone")
    with two.client(token) as client, Client(two.unix) as local:
        assert info(client).account == "gone"
        listed = local.token.ListTokens(v1.ListTokensRequest(account="gone")).tokens
        local.token.RevokeToken(v1.RevokeTokenRequest(token_id=listed[0].id))
        with refused() as how:
            info(client)
        assert how.status == CODE.UNAUTHENTICATED


def test_secrets_of_tokens_are_not_stored(two):
    secret = two.tokens["one"].encode()
    for path in (two.state / "server").glob("records.db*"):
        assert secret not in path.read_bytes()


def test_tokens_are_made_on_the_socket_alone(two, server):
    for endpoint, token in [(two.endpoint, two.tokens["one"]), (server.endpoint, None)]:
        with Client(endpoint, token) as client, refused() as how:
            client.token.CreateToken(v1.CreateTokenRequest(account="me"))
        assert how.code == "PERMISSION_DENIED"


def test_directories_of_the_host_are_named_on_the_socket_alone(two, server, tmp_path):
    asked = v1.CreateCodebaseRequest(name="x", owner_id="x", local_path=str(tmp_path))
    for endpoint, token in [(two.endpoint, two.tokens["one"]), (server.endpoint, None)]:
        with Client(endpoint, token) as client:
            with refused() as how:
                client.codebase.CreateCodebase(asked)
            assert how.code == "INVALID_ARGUMENT"
            stored = client.new_codebase()
            with refused() as how:
                client.new_sandbox(stored, read_only_paths=["/root"])
            assert how.code == "INVALID_ARGUMENT"
    with Client(server.unix) as client:
        assert client.codebase.CreateCodebase(asked).local_path == str(tmp_path)


@pytest.mark.parametrize("headers", [
    {"host": "evil.example"}, {"origin": "https://evil.example"}, {"origin": "null"}])
def test_a_page_of_another_site_does_not_get_in(server, headers):
    status, said = Rest(server.endpoint, headers=headers)("GET", "/v1/sandboxes")
    assert (status, said["code"]) == (401, "UNAUTHENTICATED")


def certificate(place):
    cert, key = place / "cert.pem", place / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True, capture_output=True)
    return cert, key


def test_tls(tmp_path):
    cert, key = certificate(tmp_path)
    with Server("--tls-cert", cert, "--tls-key", key) as running:
        with Client(running.endpoint, roots=cert.read_bytes()) as client:
            assert info(client).server == "ringfence"
        with Client(running.endpoint) as plain, refused() as how:
            plain.server.Info(v1.InfoRequest(), timeout=5)
        assert how.status == CODE.UNAVAILABLE
        other, _ = certificate(pathlib.Path(tmp_path))
        with Client(running.endpoint, roots=other.read_bytes()) as client, refused() as how:
            client.server.Info(v1.InfoRequest(), timeout=5)
        assert how.status == CODE.UNAVAILABLE


def refused_start(*arguments, state):
    """A start that is refused: one sentence, exit code 2."""
    ended = subprocess.run(
        [program(), "serve", "--state", state, *map(str, arguments)],
        stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
    said = ended.stderr.decode()
    assert ended.returncode == 2 and ended.stdout == b"", said
    lines = [line for line in said.splitlines() if not line.startswith("hint: ")]
    assert len(lines) == 1 and lines[0].startswith("error: "), said
    return said


def test_a_port_that_is_taken(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        assert place in refused_start("--listen", place, state=tmp_path)


def test_other_machines_need_tls_and_a_token(tmp_path):
    cert, key = certificate(tmp_path)
    said = refused_start("--listen", "0.0.0.0:0", state=tmp_path / "s")
    assert "TLS" in said and "token" in said
    refused_start("--listen", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key, state=tmp_path / "s")


def test_state_of_another_server(server):
    assert "another server" in refused_start("--listen", "127.0.0.1:0", state=server.state)


def test_state_of_a_newer_version(tmp_path):
    with Server() as running:
        running.stop()
        records = sqlite3.connect(running.state / "server" / "records.db")
        records.execute("PRAGMA user_version = 9999")
        records.close()
        assert "newer" in refused_start("--listen", "127.0.0.1:0", state=running.state)


def test_bad_certificates_and_configurations(tmp_path):
    cert, key = certificate(tmp_path)
    bad = tmp_path / "bad"
    bad.write_text("nonsense")
    listen = ["--listen", "127.0.0.1:0"]
    state = tmp_path / "s"
    assert "certificate" in refused_start(*listen, "--tls-cert", bad, "--tls-key", key, state=state)
    assert "key" in refused_start(*listen, "--tls-cert", cert, "--tls-key", bad, state=state)
    assert "both" in refused_start(*listen, "--tls-cert", cert, state=state)
    assert "absent" in refused_start(*listen, "--config", tmp_path / "absent", state=state)
    bad.write_text('listen = "127.0.0.1:0"\nlissten = 3\n')
    said = refused_start("--config", bad, state=state)
    assert "lissten" in said and "line 2" in said


def test_a_file_and_the_environment_are_read(tmp_path, monkeypatch):
    file = tmp_path / "ringfence.toml"
    file.write_text('max_sandboxes = 1\nlog_format = "json"\n')
    monkeypatch.setenv("RINGFENCE_REQUIRE_TOKEN", "true")
    with Server("--config", file, tokens=["me"]) as running:
        with running.client() as client, refused() as how:
            info(client)
        assert how.status == CODE.UNAUTHENTICATED
        with running.client(running.tokens["me"]) as client:
            codebase = client.new_codebase()
            client.sandbox.CreateSandbox(v1.CreateSandboxRequest(codebase_id=codebase))
            with refused() as how:
                client.sandbox.CreateSandbox(v1.CreateSandboxRequest(codebase_id=codebase))
            assert (how.code, how.details["most"]) == ("RESOURCE_LIMIT_EXCEEDED", "1")
