"""Made-up requests: whatever is asked, the answer is one that is documented, and the server lives."""

import random

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance, response_schema_conformance, status_code_conformance)

from rest import Rest
from server import Server
from wire import API, refused, v1

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance,
          response_schema_conformance]


@pytest.fixture(scope="module")
def fuzzed():
    """A server of its own: what is made up is in it."""
    with Server("--max-sandboxes", 40) as running:
        yield running


@pytest.fixture(scope="module")
def real(fuzzed):
    """Things that exist: with made-up ids nothing would get beyond them."""
    with fuzzed.client() as client:
        codebase = client.new_codebase(hello_txt=b"hello\n")
        sandbox = client.new_sandbox(codebase)
        made = client.sandbox.CreateSession(v1.CreateSessionRequest(sandbox_id=sandbox)).id
    return {"codebase_id": codebase, "sandbox_id": sandbox, "session_id": made}


# A test of the server compares the file with what it serves.
schema = schemathesis.openapi.from_path(str(API / "openapi.json"))
# These go on for as long as the caller does; the tests of streams look at them.
GOES_ON = [r".*/lease$", r".*/log$", r".*/audit$", r".*/attach$"]
chance = random.Random(1)


@(schema.exclude(path_regex="|".join(GOES_ON)).parametrize())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@pytest.mark.timeout(300)
def test_every_route_answers_as_it_is_described(case, fuzzed, real):
    for name in case.path_parameters or ():
        if name in real and chance.random() < 0.5:
            case.path_parameters[name] = real[name]
    if case.body and isinstance(case.body, dict) and "command" in case.body:
        # What a command does is not what is tested here; it must end.
        case.body["timeout"] = "1s"
    response = case.call(base_url=f"http://{fuzzed.endpoint}", timeout=30)
    case.validate_response(response, checks=CHECKS)


def test_the_server_lives_on(fuzzed):
    assert Rest(fuzzed.endpoint).raw("GET", "/healthz")[0] == 200
    assert fuzzed.process.poll() is None
    assert "panicked" not in fuzzed.log.read_text()


HOSTILE = ["..", "../x", "/../x", "a/../../x", "./../x", "a//../../x", "\\..\\x", "..\\x", "", "/", ".",
           "a\0b", "\0", "x" * 300, "/".join(["d"] * 3000), "a\nb", "..\u2044x", "%2e%2e/x",
           "a/./b/../../../x", "~root", "/etc/passwd", "/proc/self/root/etc/passwd"]


@pytest.mark.parametrize("path", HOSTILE, ids=range(len(HOSTILE)))
def test_names_of_uploads_never_leave_the_codebase(fuzzed, path, tmp_path):
    """Each is refused or is a file of the codebase, and of nothing else."""
    with fuzzed.client() as client:
        codebase = client.new_codebase()
        try:
            done = client.upload(codebase, path, b"hostile")
        except Exception as refusal:
            assert "INVALID_ARGUMENT" in str(refusal), refusal
            files = client.codebase.ListFiles(
                v1.ListFilesRequest(codebase_id=codebase, recursive=True)).files
            assert not files
        else:
            assert client.download(codebase, path) == b"hostile"
            assert done.size == 7
        assert not (fuzzed.state / "x").exists() and not (fuzzed.state / "server" / "x").exists()


def test_uploads_in_the_wrong_order(fuzzed):
    with fuzzed.client() as client:
        codebase = client.new_codebase()
        begin = v1.UploadChunk(
            metadata=v1.UploadChunk.Metadata(codebase_id=codebase, file_path="a"))
        data = v1.UploadChunk(data=b"x")
        for order in ([data], [data, begin], [begin, begin], [begin, data, begin], [],
                      [v1.UploadChunk()]):
            with refused() as how:
                client.codebase.UploadFiles(iter(order))
            assert how.code == "INVALID_ARGUMENT", order
        assert not client.codebase.ListFiles(v1.ListFilesRequest(codebase_id=codebase)).files


def test_random_bytes_as_an_upload(fuzzed):
    with fuzzed.client() as client:
        call = client.channel.stream_unary("/sandbox.v1.CodebaseService/UploadFiles")
        for _ in range(200):
            pieces = [chance.randbytes(chance.randrange(60)) for _ in range(chance.randrange(4))]
            with refused():
                call(iter(pieces), timeout=10)
    assert Rest(fuzzed.endpoint).raw("GET", "/healthz")[0] == 200
