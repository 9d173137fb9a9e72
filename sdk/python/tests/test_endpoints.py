"""Which server is meant, and what is said when none, another program or the wrong one answers."""

import builtins
import time

import pytest
import ringfence
from ringfence import InvalidConfigurationError, Sandbox, SandboxClient, _endpoint
from ringfence._async import _connection as async_connection
from ringfence._sync import _connection as connection
from ringfence._version import API, VERSION

import complaints
import impostors
import servers

AT_ONCE = 5.0
"""Seconds: far more than a refusal takes on a busy machine, and less than the patience with silence."""


@pytest.fixture
def hasty(monkeypatch):
    """Waits less for those who say nothing."""
    for module in (connection, async_connection):
        monkeypatch.setattr(module, "_ANSWER_SECONDS", 1.0)
        monkeypatch.setattr(module, "_USUAL_ANSWER_SECONDS", 1.0)


@pytest.fixture(scope="module")
def plain_server():
    """TCP without TLS, and without tokens."""
    with servers.served() as where:
        yield where


@pytest.fixture(scope="module")
def strangers_certificate(tmp_path_factory):
    return str(servers.self_signed(tmp_path_factory.mktemp("stranger"))[0])


def unreachable(api, match, kind=ringfence.ConnectionError, **options):
    """What a caller is told."""
    begun = time.monotonic()
    with pytest.raises(builtins.ConnectionError, match=match) as caught:
        api.SandboxClient(**options).info()
    assert time.monotonic() - begun < AT_ONCE
    assert type(caught.value) is kind
    assert caught.value.endpoint == options["endpoint"] and options["endpoint"] in str(caught.value)
    complaints.assert_helpful(caught.value)
    return caught.value


def test_no_server_is_said_at_once_and_by_name(api):
    with impostors.nobody() as address:
        unreachable(api, "nobody listens there", endpoint=address)
        unreachable(api, "nobody listens there", endpoint=address, secure=True)


def test_no_socket_is_said_at_once_and_by_name(api, tmp_path):
    unreachable(api, "ringfence serve", endpoint=f"unix://{tmp_path}/none.sock")


def test_a_host_that_does_not_exist_is_named(api):
    unreachable(api, "no.such.host.invalid", endpoint="no.such.host.invalid:9000")


@pytest.mark.parametrize("program", [impostors.http_server, impostors.silent],
                         ids=["a web server", "one that is silent"])
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_another_program_is_no_server(api, hasty, program, secure):
    with program() as address:
        unreachable(api, "cannot reach a Ringfence server", endpoint=address, secure=secure)


def test_a_grpc_server_that_is_another_one_is_no_server(api):
    with impostors.server_that_says(server="something") as address:
        unreachable(api, "no Ringfence server", endpoint=address)


@pytest.mark.parametrize("answer, match", [
    ({"version": "0.0.1", "api": 0}, f"0.0.1.* is too old for ringfence {VERSION}.* the server"),
    ({"version": "9.0.0", "api": API + 9, "oldest_api": API + 1},
     f"9.0.0.* is too new for ringfence {VERSION}.*pip install"),
], ids=["old", "new"])
def test_a_server_of_another_time_says_who_must_be_upgraded(api, answer, match):
    with impostors.server_that_says(server="ringfence", **answer) as address:
        error = unreachable(api, match, ringfence.IncompatibleServerError, endpoint=address)
    assert error.server_version == answer["version"]


def test_a_newer_server_that_still_speaks_to_us_is_fine(api):
    with impostors.server_that_says(
            server="ringfence", version="9.0.0", api=API + 9, oldest_api=API) as address:
        assert api.SandboxClient(address).info().version == "9.0.0"


def test_tls_and_no_tls_do_not_understand_each_other(api, tls_server, plain_server):
    secret = tls_server.options["endpoint"]
    unreachable(api, "secure=True", endpoint=secret)
    unreachable(api, "does not speak TLS", endpoint=plain_server.options["endpoint"], secure=True)


def test_a_certificate_that_is_not_trusted_is_not_trusted(api, tls_server, strangers_certificate):
    given = {**tls_server.options, "ca_certificate": None}
    unreachable(api, "certificate is not trusted", **given)
    given["ca_certificate"] = strangers_certificate
    unreachable(api, "certificate is not trusted", **given)


def test_who_has_no_token_or_another_one_is_not_let_in(api, tls_server):
    kind = ringfence.AuthenticationError
    unreachable(api, "RINGFENCE_TOKEN", kind, **{**tls_server.options, "token": None})
    unreachable(api, "not known", kind, **{**tls_server.options, "token": "rf_someone"})


def test_a_token_comes_from_the_environment_with_or_without_a_newline(api, tls_server, monkeypatch):
    given = dict(tls_server.options)
    monkeypatch.setenv("RINGFENCE_TOKEN", given.pop("token") + "\n")
    assert api.SandboxClient(**given).info().account == "tests"


@pytest.mark.parametrize("options", [
    *({"endpoint": name} for name in (
        "localhost", "localhost:", "localhost:0", "localhost:65536", "localhost:nine", ":9000",
        "::1:9000", "[::1]:", "[::1]", "a b:9000", "user@host:9000", "host:9000/path", "http://",
        "https://host", "ftp://host:9000", "unix:", "unix://", "unix:relative", "unix:///a\0b",
        "\udc80:9000", "x" * 1_000_000)),
    {"endpoint": "localhost:9000", "token": "two words"},
    {"endpoint": "localhost:9000", "token": "\udc80"},
    {"endpoint": "localhost:9000", "token": "x" * 1_000_000},
    {"endpoint": "team.example:9000", "token": "rf_x"},
    {"endpoint": "http://10.0.0.1:9000", "token": "rf_x"},
    {"endpoint": "127.0.0.1.example:9000", "token": "rf_x"},
    {"endpoint": "localhost:9000", "ca_certificate": __file__},
    {"endpoint": "localhost:9000", "secure": True, "ca_certificate": __file__},
    {"endpoint": "localhost:9000", "secure": True, "ca_certificate": "/no/such.pem"},
], ids=lambda options: ",".join(f"{key}={str(value)[:20]!r}" for key, value in options.items()))
def test_what_is_malformed_is_refused_before_anybody_is_asked(options):
    with pytest.raises(InvalidConfigurationError) as caught:
        SandboxClient(**options)
    complaints.assert_helpful(caught.value)
    assert "two words" not in str(caught.value), "tokens are secrets"


@pytest.mark.parametrize("name, target", [
    ("localhost:9000", "localhost:9000"), ("https://my-host.example:1", "my-host.example:1"),
    ("[::1]:65535", "[::1]:65535"), ("http://127.0.0.1:80/", "127.0.0.1:80"),
    ("unix:///run/a.sock", "unix:/run/a.sock"), ("unix:/run/a.sock", "unix:/run/a.sock"),
])
def test_what_is_well_formed_is_understood(name, target):
    # All of them may be sent a token: they are on this machine, or have TLS.
    found = _endpoint.parsed(name, False, "rf_x", None)
    assert (found.target, found.secure) == (target, name.startswith("https"))


@pytest.fixture
def usual(monkeypatch):
    """Moves the usual port to where something else is, which nobody may do with the real one."""
    def moved(address):
        monkeypatch.setattr(_endpoint, "USUAL_PORT", int(address.rpartition(":")[2]))
    return moved


@pytest.mark.parametrize("program", [
    impostors.nobody, impostors.http_server, impostors.silent,
    lambda: impostors.server_that_says(server="something"),
    lambda: impostors.server_that_says(server="ringfence", version="0.0.1", api=0),
], ids=["nobody", "a web server", "one that is silent", "another gRPC server", "an old server"])
def test_what_answers_on_the_usual_port_and_is_no_server_does_no_harm(
        api, hasty, usual, program, project):
    with program() as address:
        usual(address)
        with api.Sandbox.from_local(project, preset="read-only") as sandbox:
            assert sandbox.run("cat hello.txt").stdout == "hello\n"
        assert api.SandboxClient().info().embedded


def test_a_server_on_the_usual_port_that_is_not_for_us_is_left_alone(hasty, usual, tls_server):
    usual(tls_server.options["endpoint"])
    assert SandboxClient().info().embedded


def test_a_server_on_the_usual_port_is_used(api, usual, plain_server):
    usual(plain_server.options["endpoint"])
    assert not api.SandboxClient().info().embedded


def test_the_environment_names_a_server_and_the_caller_knows_better(
        usual, plain_server, tls_server, monkeypatch):
    usual(tls_server.options["endpoint"])
    monkeypatch.setenv("RINGFENCE_ENDPOINT", plain_server.options["endpoint"])
    assert SandboxClient().info().endpoint == plain_server.options["endpoint"]
    assert SandboxClient(**tls_server.options).info().account == "tests"


def test_a_named_server_that_is_not_there_is_never_replaced_by_another(project, monkeypatch):
    with complaints.nothing_made(servers.EMBEDDED), impostors.nobody() as address:
        monkeypatch.setenv("RINGFENCE_ENDPOINT", address)
        with pytest.raises(ringfence.ConnectionError, match=address):
            Sandbox.from_local(project)
