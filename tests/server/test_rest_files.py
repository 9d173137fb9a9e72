"""Files as bodies of requests: exactly the bytes, all of them or nothing."""

import json
import os
import socket

import pytest

from rest import Rest
from wire import v1

MIB = 1 << 20


@pytest.fixture
def rest(server):
    return Rest(server.endpoint)


@pytest.fixture(params=["codebase", "sandbox"])
def place(request, client):
    """Where files can be put: a stored codebase, and the workspace of a sandbox."""
    codebase = client.new_codebase()
    if request.param == "codebase":
        yield f"/v1/codebases/{codebase}"
    else:
        sandbox = client.new_sandbox(codebase)
        yield f"/v1/sandboxes/{sandbox}"
        client.sandbox.DestroySandbox(v1.DestroySandboxRequest(sandbox_id=sandbox))


def names(rest, place):
    status, said = rest("GET", f"{place}/files?recursive=true")
    assert status == 200
    return [each["fullPath"] for each in said["files"]]


@pytest.mark.parametrize("content", [
    b"", b"\0", bytes(range(256)) * 7, b"no newline", b"\r\n\r\n--edge--\r\n", b"\xff\xfe"],
    ids=range(6))
def test_every_byte_comes_back(rest, place, content):
    status, _, said = rest.raw("PUT", f"{place}/files/some.bin", content)
    assert status == 200 and json.loads(said)["size"] == str(len(content))
    status, headers, said = rest.raw("GET", f"{place}/files/some.bin")
    assert (status, said) == (200, content)
    headers = {name.lower(): value for name, value in headers.items()}
    assert headers["content-type"] == "application/octet-stream"
    assert headers["x-content-type-options"] == "nosniff"


def test_twenty_megabytes(rest, place):
    content = os.urandom(20 * MIB)
    assert rest.raw("PUT", f"{place}/files/large.bin", content)[0] == 200
    assert rest.raw("GET", f"{place}/files/large.bin")[2] == content
    middle = rest.raw("GET", f"{place}/files/large.bin?offset={7 * MIB + 3}&length=1000")[2]
    assert middle == content[7 * MIB + 3:][:1000]


def test_a_body_in_pieces_without_a_length(rest, place):
    pieces = [b"one ", b"two ", b"x" * 200_000, b"end"]
    assert rest.raw("PUT", f"{place}/files/pieces", iter(pieces))[0] == 200
    assert rest.raw("GET", f"{place}/files/pieces")[2] == b"".join(pieces)


@pytest.mark.parametrize("written, meant", [
    ("with%20space.txt", "/with space.txt"), ("gr%C3%BC%C3%9Fe.txt", "/grüße.txt"),
    ("a%2Fb.txt", "/a/b.txt"), ("a/b/c.txt", "/a/b/c.txt"), ("a//b.txt", "/a/b.txt"),
    ("./a.txt", "/a.txt"), ("a%5Cb", "/a\\b"), ("100%25", "/100%"), ("q%3Fx=1", "/q?x=1"),
    ("plus+plus", "/plus+plus"), ("%23hash", "/#hash"), ("a%0Ab", "/a\nb"), ("/workspace/x", "/x"),
    ("workspace/x", "/workspace/workspace/x"),
    ("...", "/..."), ("..x", "/..x"), ("%E2%80%AEx", "/\u202ex")])
def test_names_are_what_they_are(rest, place, written, meant):
    parents = "?parents=true" if "sandboxes" in place else ""
    status, _, said = rest.raw("PUT", f"{place}/files/{written}{parents}", b"named")
    assert status == 200, said
    assert names(rest, place) == [meant]
    assert rest.raw("GET", f"{place}/files/{written}")[2] == b"named"


@pytest.mark.parametrize("written", [
    "..", "../x", "a/../../x", "%2e%2e/x", "..%2fx", "%2e%2e%2fx", "a/%2e%2e/%2e%2e/x",
    "/workspace/../../x", "a%00b", "%00", "%ff", "%FF%FE", "x" * 300, "%252e%252e/%00"])
def test_names_that_lead_out_are_refused(rest, place, server, written):
    for verb, body in [("PUT", b"hostile"), ("GET", None)]:
        status, _, said = rest.raw(verb, f"{place}/files/{written}", body)
        assert (status, json.loads(said)["code"]) == (400, "INVALID_ARGUMENT"), (verb, said)
    assert names(rest, place) == []


def cut_off(server, head, body):
    """Sends less than was promised, and waits until the server is done with it."""
    host, port = server.endpoint.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(head.encode() + b"\r\n\r\n" + body)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("framing, body", [
    ("content-length: 100000", b"x" * 50_000), ("content-length: 1", b""),
    ("transfer-encoding: chunked", b"c350\r\n" + b"x" * 50_000 + b"\r\n"),
    ("transfer-encoding: chunked", b"c350\r\n" + b"x" * 1000)])
def test_a_body_that_is_cut_off_changes_nothing(rest, place, server, framing, body):
    rest.raw("PUT", f"{place}/files/old.txt", b"old")
    for name in ("old.txt", "new.txt"):
        head = f"PUT {place}/files/{name} HTTP/1.1\r\nhost: localhost\r\n{framing}"
        said = cut_off(server, head, body)
        assert b" 200 " not in said
    assert names(rest, place) == ["/old.txt"]
    assert rest.raw("GET", f"{place}/files/old.txt")[2] == b"old"


@pytest.fixture
def codebase(client):
    return f"/v1/codebases/{client.new_codebase()}"


FORM = {"content-type": "multipart/form-data; boundary=edge"}


def part(name, content, field="f"):
    head = f'--edge\r\ncontent-disposition: form-data; name="{field}"'
    head += "" if name is None else f'; filename="{name}"'
    return head.encode() + b"\r\ncontent-type: text/plain\r\n\r\n" + content + b"\r\n"


def test_a_form_with_several_files(rest, codebase):
    files = {"one.txt": b"1", "dir/two.bin": bytes(range(256)), "leer.txt": b"", "grüße.txt": b"4"}
    body = b"".join(part(name, content) for name, content in files.items()) + b"--edge--\r\n"
    status, _, said = rest.raw("POST", f"{codebase}/files", body, FORM)
    assert status == 200, said
    assert [(each["filePath"], each["size"]) for each in json.loads(said)["files"]] == [
        (name, str(len(content))) for name, content in files.items()]
    assert names(rest, codebase) == sorted(f"/{name}" for name in files)
    for name, content in files.items():
        path = name.replace("ü", "%C3%BC").replace("ß", "%C3%9F")
        assert rest.raw("GET", f"{codebase}/files/{path}")[2] == content


def test_a_form_may_be_as_large_as_its_files(rest, codebase):
    files = {f"large-{number}": os.urandom(3 * MIB) for number in range(3)}
    body = b"".join(part(name, content) for name, content in files.items()) + b"--edge--\r\n"
    status, _, said = rest.raw("POST", f"{codebase}/files", body, FORM)
    assert status == 200, said
    for name, content in files.items():
        assert rest.raw("GET", f"{codebase}/files/{name}")[2] == content


@pytest.mark.parametrize("body", [
    b"", b"--edge--\r\n", b"nonsense", part(None, b"x") + b"--edge--\r\n",
    part("../x", b"x") + b"--edge--\r\n", part("", b"x") + b"--edge--\r\n"], ids=range(6))
def test_forms_that_make_no_sense(rest, codebase, body):
    status, _, said = rest.raw("POST", f"{codebase}/files", body, FORM)
    assert (status, json.loads(said)["code"]) == (400, "INVALID_ARGUMENT"), said
    assert names(rest, codebase) == []


@pytest.mark.parametrize("kind", [None, "multipart/form-data", "application/json", "text/plain"])
def test_a_form_that_is_none(rest, codebase, kind):
    headers = {"content-type": kind} if kind else {}
    status, _, said = rest.raw("POST", f"{codebase}/files", part("x", b"x") + b"--edge--\r\n", headers)
    assert (status, json.loads(said)["code"]) == (400, "INVALID_ARGUMENT")


@pytest.mark.parametrize("promised", [0, 1000])
def test_a_form_that_is_cut_off_leaves_only_whole_files(rest, codebase, server, promised):
    """Its end is missing, whether or not all bytes that were promised have come."""
    body = part("whole.txt", b"whole") + part("half.txt", b"half" * 1000)[:-3]
    head = (f"POST {codebase}/files HTTP/1.1\r\nhost: localhost\r\n"
            f"content-type: {FORM['content-type']}\r\ncontent-length: {len(body) + promised}")
    assert b" 200 " not in cut_off(server, head, body)
    assert names(rest, codebase) in ([], ["/whole.txt"])
