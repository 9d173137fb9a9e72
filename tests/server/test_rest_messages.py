"""Messages of REST: proto3 JSON in bodies, texts in queries and paths."""

import base64
import json
import re

import pytest

from rest import Rest
from wire import v1

DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")


@pytest.fixture
def rest(server):
    return Rest(server.endpoint)


@pytest.fixture
def good(rest):
    """Calls that must be answered well."""
    def call(verb, path, /, **fields):
        status, said = rest(verb, path, **fields)
        assert status == 200, said
        return said

    return call


def test_messages_are_proto3_json(good, client):
    """Numbers of 64 bits are texts, enums names, times and durations texts, names camelCase."""
    codebase = client.new_codebase(hello_txt=b"hello\n")
    said = good("GET", f"/v1/codebases/{codebase}")
    assert (said["size"], said["fileCount"], said["ownerId"]) == ("6", 1, "tests")
    assert DATE.fullmatch(said["createdAt"])
    made = good("POST", "/v1/sandboxes", codebaseId=codebase, preset="full-access", start=True,
                expiresIn="900.5s", network="NETWORK_MODE_NONE",
                resources={"memoryBytes": "2000000000", "pidsLimit": 500})
    assert made["status"] == "SANDBOX_STATUS_RUNNING" and made["network"] == "NETWORK_MODE_NONE"
    assert made["resources"]["memoryBytes"] == "2000000000"
    assert made["resources"]["pidsLimit"] == "500" and DATE.fullmatch(made["expiresAt"])
    one = f"/v1/sandboxes/{made['id']}"
    argv = [base64.b64encode(each).decode() for each in (b"printf", b"%s-", b"a b", b"\xff")]
    result = good("POST", f"{one}/exec", argv=argv, options={"bytes": True})
    assert base64.b64decode(result["stdoutBytes"]) == b"a b-\xff-"
    assert re.fullmatch(r"\d+(\.\d+)?s", result["duration"]) and result["bill"]["stdoutTotal"] == "6"
    stdin = base64.b64encode(b"\0\xfe").decode()
    result = good("POST", f"{one}/exec", command="od -An -tx1", stdinBytes=stdin)
    assert result["stdout"].split() == ["00", "fe"] and result["exitCode"] == 0
    good("DELETE", one)


def test_other_spellings_of_the_same(good, client):
    """Names as they are in the proto files, numbers of enums, numbers as numbers, no padding."""
    made = good("POST", "/v1/codebases", name="x", owner_id="snake")
    assert made["ownerId"] == "snake"
    sandbox = good("POST", "/v1/sandboxes", codebase_id=made["id"], network=1, start=True,
                   preset="full-access", resources={"memory_bytes": 2_000_000_000})
    assert sandbox["network"] == "NETWORK_MODE_NONE"
    assert sandbox["resources"]["memoryBytes"] == "2000000000"
    one = f"/v1/sandboxes/{sandbox['id']}"
    for stdin in ("_-8=", "/+8=", "/+8"):
        result = good("POST", f"{one}/exec", command="od -An -tx1", stdin_bytes=stdin)
        assert result["stdout"].split() == ["ff", "ef"], stdin
    good("DELETE", one)


@pytest.mark.parametrize("field", ["timeout", "options", "stdin", "env", "argv", "workdir"])
def test_null_is_a_field_that_is_not_there(good, sandbox, field):
    """As proto3 JSON has it."""
    assert good("POST", f"/v1/sandboxes/{sandbox}/exec", command="echo x", **{field: None})


@pytest.mark.parametrize("fields", [
    {"timeout": "soon"}, {"timeout": "-1s"}, {"timeout": 1.5}, {"stdinBytes": "***"},
    {"command": ["true"]}, {"env": {"A": 1}}, {"env": []}, {"options": {"maxOutputBytes": "many"}},
    {"options": {"bytes": "yes"}}, {"unknown": 1}, {"argv": ["dHJ1ZQ=="]},
    {"options": {"maxOutputBytes": "99999999999999999999"}}], ids=json.dumps)
def test_values_that_are_none(rest, sandbox, fields):
    status, said = rest("POST", f"/v1/sandboxes/{sandbox}/exec", **{"command": "true", **fields})
    assert (status, said["code"]) == (400, "INVALID_ARGUMENT")


@pytest.fixture
def three(client):
    """Three sandboxes of one codebase that differ in their labels."""
    codebase = client.new_codebase(a__b_txt=b"", c_txt=b"")
    labels = [{"env": "x", "team": "a b"}, {"env": "x", "team": "ü&="}, {"env": "y"}]
    made = [client.sandbox.CreateSandbox(v1.CreateSandboxRequest(
        codebase_id=codebase, labels=each)).id for each in labels]
    yield codebase, made
    for each in made:
        client.sandbox.DestroySandbox(v1.DestroySandboxRequest(sandbox_id=each))


@pytest.mark.parametrize("query, found", [
    ("", [0, 1, 2]), ("labels[env]=x", [0, 1]), ("labels%5Benv%5D=x&labels%5Bteam%5D=a+b", [0]),
    ("labels[team]=a%20b", [0]), ("labels[team]=%C3%BC%26%3D", [1]), ("labels[env]=", []),
    ("labels[env]=x&labels[team]=none", []), ("status=SANDBOX_STATUS_PENDING", [0, 1, 2]),
    ("status=1", [0, 1, 2]), ("status=SANDBOX_STATUS_RUNNING", []), ("owner_id=tests", [0, 1, 2]),
    ("ownerId=nobody", [])])
def test_lists_are_filtered_by_the_query(good, three, query, found):
    codebase, made = three
    listed = good("GET", f"/v1/sandboxes?codebase_id={codebase}&{query}")["sandboxes"]
    assert {each["id"] for each in listed} == {made[number] for number in found}


def test_pages(good, three):
    codebase, made = three
    seen, token = [], ""
    while True:
        page = good("GET", f"/v1/sandboxes?codebaseId={codebase}&page_size=2&pageToken={token}")
        seen += [each["id"] for each in page["sandboxes"]]
        token = page["nextPageToken"]
        if not token:
            break
        assert len(page["sandboxes"]) == 2
    assert sorted(seen) == sorted(made)


@pytest.mark.parametrize("query, recursive", [
    ("recursive=true", True), ("recursive=1", True), ("recursive", True), ("recursive=false", False),
    ("recursive=0", False), ("", False)])
def test_booleans(good, three, query, recursive):
    files = good("GET", f"/v1/codebases/{three[0]}/files?{query}")["files"]
    assert [each["path"] for each in files] == (["a/b.txt", "c.txt"] if recursive else ["a", "c.txt"])


@pytest.mark.parametrize("query", [
    "nonsense=1", "labels=x", "labels[env=x", "codebase_id[x]=y", "page_size=two", "page_size=1.5",
    "status=RUNNING", "status=99", "owner_id=%ff", "owner_id=%", "page_size=99999999999", "[]=1", "=1"])
def test_queries_that_are_refused(rest, query):
    status, said = rest("GET", f"/v1/sandboxes?{query}")
    assert (status, said["code"]) == (400, "INVALID_ARGUMENT"), said


def test_what_contradicts_the_path_is_refused(rest, sandbox):
    one = f"/v1/sandboxes/{sandbox}"
    for spelling in ("sandboxId", "sandbox_id"):
        assert rest("POST", f"{one}/exec", command="true", **{spelling: sandbox})[0] == 200
        for verb, path, fields in [
                ("POST", f"{one}/exec", {"command": "true", spelling: "sb_other"}),
                ("POST", f"{one}/stop", {spelling: "sb_other"}),
                ("GET", f"{one}?{spelling}=sb_other", {}),
                ("DELETE", f"{one}?{spelling}=sb_other", {}),
                ("GET", f"{one}/files/hello.txt?path=/other", {})]:
            status, said = rest(verb, path, **fields)
            assert (status, said["code"]) == (400, "INVALID_ARGUMENT"), (verb, path)
    assert rest("GET", one)[1]["status"] == "SANDBOX_STATUS_RUNNING"


def test_what_contradicts_the_query_is_refused(rest):
    status, said = rest("POST", "/v1/codebases?name=one", name="another", ownerId="tests")
    assert (status, said.get("code")) == (400, "INVALID_ARGUMENT")


def test_methods_a_route_does_not_have(rest, sandbox):
    one = f"/v1/sandboxes/{sandbox}"
    for verb, path in [("PUT", one), ("PATCH", one), ("DELETE", "/v1/sandboxes"), ("GET", f"{one}/exec"),
                       ("POST", f"{one}/policy"), ("OPTIONS", one), ("TRACE", one), ("ODD", one)]:
        status, headers, said = rest.raw(verb, path)
        assert status in (404, 405) and json.loads(said)["code"] == "ROUTE_NOT_FOUND", (verb, path)
        # A browser must not be told that pages of other sites may call.
        assert not [name for name in headers if name.lower().startswith("access-control-")]


def test_heads(rest, sandbox):
    for path, status in [(f"/v1/sandboxes/{sandbox}", 200), ("/v1/sandboxes/sb_none", 404),
                         (f"/v1/sandboxes/{sandbox}/files/hello.txt", 200), ("/healthz", 200),
                         (f"/v1/sandboxes/{sandbox}/audit?follow=true", 200)]:
        answered, _, body = rest.raw("HEAD", path)
        assert (answered, body) == (status, b""), path
