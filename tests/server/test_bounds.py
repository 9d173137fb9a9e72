"""Callers that ask for too much, too slowly or for nothing at all."""

import contextlib
import socket
import threading

import grpc
import pytest

from rest import Rest
from server import Server
from wire import refused, v1

CODE = grpc.StatusCode
MIB = 1 << 20


@pytest.fixture(scope="module")
def strained():
    """A server of its own: what it holds is measured."""
    with Server() as running:
        yield running


def healthy(server):
    status, _, said = Rest(server.endpoint).raw("GET", "/healthz")
    return (status, said) == (200, b"ok\n")


def test_a_thousand_idle_connections(strained):
    before = strained.memory()
    host, port = strained.endpoint.split(":")
    idle = [socket.create_connection((host, int(port))) for _ in range(1000)]
    try:
        # Some say a little, and then nothing.
        for number, connection in enumerate(idle):
            connection.sendall([b"", b"GET /v1/", b"PRI * HTTP/2.0\r\n"][number % 3])
        assert healthy(strained)
        with strained.client() as client:
            client.sandbox.ListSandboxes(v1.ListSandboxesRequest())
        assert strained.memory() - before < 40 * MIB
    finally:
        for connection in idle:
            connection.close()


def test_messages_that_are_too_large(strained):
    huge = "x" * (17 * MIB)
    with strained.client() as client, refused() as how:
        client.codebase.CreateCodebase(v1.CreateCodebaseRequest(name=huge, owner_id="x"))
    assert how.status in (CODE.RESOURCE_EXHAUSTED, CODE.OUT_OF_RANGE)
    # The server answers and hangs up, and who still sends may hear of the second first.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        status, said = Rest(strained.endpoint)("POST", "/v1/codebases", name=huge, ownerId="x")
        assert (status, said["code"]) == (429, "RESOURCE_LIMIT_EXCEEDED")
    assert healthy(strained)


def test_headers_that_are_too_large(strained):
    status, _, _ = Rest(strained.endpoint).raw("GET", "/v1/sandboxes", headers={"x": "y" * 500_000})
    assert status in (400, 431)
    assert healthy(strained)


def test_readers_that_do_not_read(strained):
    """Ten streams of endless output that nobody takes: the commands wait, the server stays small."""
    with strained.client() as client:
        sandbox = client.new_sandbox(client.new_codebase())
        before = strained.memory()
        asked = v1.ExecRequest(sandbox_id=sandbox, command="yes ringfence | tee /tmp/written")
        calls = [client.sandbox.ExecStream(asked, timeout=None) for _ in range(10)]
        for call in calls:
            next(call)
        waited = threading.Event()
        sizes = []
        # What is under way on the connections comes to an end sooner or later.
        for _ in range(1000):
            sizes.append(int(client.run(sandbox, "stat -c %s /tmp/written").stdout))
            if len(sizes) > 3 and len(set(sizes[-4:])) == 1:
                break
            waited.wait(0.05)
        assert len(set(sizes[-4:])) == 1, "the commands do not wait for their readers"
        assert strained.memory() - before < 60 * MIB
        for call in calls:
            call.cancel()
        # Nobody waits for them any more: they end.
        for _ in range(200):
            if client.run(sandbox, "pgrep -c yes || true").stdout.strip() == "0":
                break
            waited.wait(0.05)
        else:
            raise AssertionError("commands outlived their callers")
        client.destroy_all()


def test_output_above_the_cap_is_cut_for_the_published_client(strained):
    with strained.client() as client:
        sandbox = client.new_sandbox(client.new_codebase())
        result = client.run(sandbox, "seq 3000000; seq 1000000 >&2")
        assert len(result.SerializeToString()) < 4 * MIB
        assert "left out" in result.stdout and result.stdout.endswith("3000000\n")
        assert result.bill.stdout_cut and result.bill.stdout_total == len(
            "".join(f"{n}\n" for n in range(1, 3_000_001)))
        asked = v1.ExecRequest(sandbox_id=sandbox, command="head -c 20000000 /dev/zero")
        asked.options.bytes = True
        result = client.sandbox.Exec(asked)
        assert len(result.stdout_bytes) == 16 * MIB and result.bill.stdout_total == 20_000_000
        client.destroy_all()


def test_bytes_that_are_no_text(strained):
    with strained.client() as client:
        sandbox = client.new_sandbox(client.new_codebase())
        command = r"printf 'a\0b\377c'"
        assert client.run(sandbox, command).stdout == "a\0b\ufffdc"
        asked = v1.ExecRequest(sandbox_id=sandbox, command=command)
        asked.options.bytes = True
        assert client.sandbox.Exec(asked).stdout_bytes == b"a\0b\xffc"
        client.destroy_all()


def test_a_file_whose_sender_leaves_is_not_stored_as_if_it_were_whole(strained):
    """In the middle is not the end, at whichever moment the server hears of it."""
    with strained.client() as client:
        codebase = client.new_codebase(hello_txt=b"hello\n")
        sandbox = client.new_sandbox(codebase)

        def half(first, rest, ready):
            yield first
            yield rest
            ready.set()
            threading.Event().wait(2)

        for number in range(60):
            ready = threading.Event(), threading.Event()
            uploaded = client.codebase.UploadFiles.future(half(
                v1.UploadChunk(metadata=v1.UploadChunk.Metadata(codebase_id=codebase, file_path=f"half-{number}")),
                v1.UploadChunk(data=b"x" * 1000), ready[0]))
            written = client.workspace.WriteFile.future(half(
                v1.WriteFileChunk(begin=v1.WriteFileChunk.Begin(sandbox_id=sandbox, path=f"half-{number}")),
                v1.WriteFileChunk(data=b"x" * 1000), ready[1]))
            for call, begun in zip((uploaded, written), ready):
                assert begun.wait(30)
                threading.Event().wait(number / 10_000)
                call.cancel()
        stored = client.codebase.ListFiles(v1.ListFilesRequest(codebase_id=codebase)).files
        shown = client.workspace.ListDirectory(v1.ListDirectoryRequest(sandbox_id=sandbox)).files
        client.destroy_all()
        assert [[each.name for each in files] for files in (stored, shown)] == [["hello.txt"]] * 2


def test_an_upload_that_never_ends_costs_nothing(strained):
    """Cut off in the middle: nothing is there, and nothing is kept."""
    with strained.client() as client:
        codebase = client.new_codebase()
        begin = v1.UploadChunk.Metadata(codebase_id=codebase, file_path="never")
        sent = threading.Event()

        def forever():
            yield v1.UploadChunk(metadata=begin)
            for _ in range(100):
                yield v1.UploadChunk(data=b"x" * MIB)
            sent.set()
            threading.Event().wait(30)

        call = client.codebase.UploadFiles.future(forever())
        assert sent.wait(30)
        call.cancel()
        assert not client.codebase.ListFiles(v1.ListFilesRequest(codebase_id=codebase)).files
        place = strained.state / "server" / "codebases" / codebase
        for _ in range(1200):
            left = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
            if left == 0:
                break
            threading.Event().wait(0.05)
        assert left == 0, "an upload that was given up is still stored"
