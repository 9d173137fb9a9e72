"""Many files in one stream, for a tree that is put in place at once."""

import random
import threading

import grpc
import pytest

from rest import Rest
from server import Server
from waiting import until
from wire import refused, v1

CODE = grpc.StatusCode
MIB = 1 << 20


@pytest.fixture(scope="module")
def staged():
    """A server of its own, with limits that are soon met."""
    with Server("--max-file-size", 4 * MIB, "--max-codebase-size", 64 * MIB) as running:
        yield running


@pytest.fixture
def asking(staged):
    with staged.client() as client:
        yield client


def piece(data=b"", end=True):
    return v1.StageChunk.Piece(data=data, end=end)


def chunk(*pieces, codebase=""):
    return v1.StageChunk(codebase_id=codebase, pieces=pieces)


def digest(client, content):
    """As the call for one file has it."""
    begin = v1.UploadChunk.Metadata(codebase_id=client.new_codebase(), staged=True)
    return client.codebase.UploadFiles(
        iter([v1.UploadChunk(metadata=begin), v1.UploadChunk(data=content)])).blake3


def missing(client, codebase, contents):
    entries = [v1.ManifestEntry(path=f"f{number}", size=len(content), blake3=digest(client, content))
               for number, content in enumerate(contents)]
    # `digest` has staged them in other codebases, which count for those alone.
    asked = v1.NegotiateUploadRequest(codebase_id=codebase, entries=entries)
    lacks = set(client.codebase.NegotiateUpload(asked).missing)
    return [content for entry, content in zip(entries, contents) if entry.blake3 in lacks]


def test_a_tree_of_files_of_all_kinds(asking):
    codebase = asking.new_codebase()
    contents = [b"one", b"", b"x" * (3 * MIB), b"#!/bin/sh\n", b"last"]
    middle = contents[2]
    parts = [piece(middle[at:at + MIB], end=False) for at in range(0, len(middle), MIB)]
    done = asking.codebase.StageFiles(iter([
        chunk(piece(b"o", end=False), codebase=codebase),
        chunk(piece(b"ne"), piece(), parts[0]),
        chunk(*parts[1:]), chunk(),
        chunk(piece(), piece(contents[3]), piece(b"last"), codebase=codebase)]))
    assert list(done.blake3) == [digest(asking, content) for content in contents]
    assert done.bytes == sum(map(len, contents))
    entries = [v1.ManifestEntry(path=f"d/{number}", mode=0o640, size=len(content), blake3=name)
               for number, (content, name) in enumerate(zip(contents, done.blake3))]
    asking.codebase.CommitUpload(v1.CommitUploadRequest(codebase_id=codebase, entries=entries))
    for number, content in enumerate(contents):
        assert asking.download(codebase, f"d/{number}") == content


def test_streams_that_make_no_sense(asking):
    codebase, other = asking.new_codebase(), asking.new_codebase()
    begin = chunk(piece(b"x"), codebase=codebase)
    for order in ([], [chunk()], [chunk(piece(b"x"))], [chunk(), begin],
                  [begin, chunk(piece(b"y"), codebase=other)],
                  [begin, chunk(piece(b"half", end=False))]):
        with refused() as how:
            asking.codebase.StageFiles(iter(order))
        assert (how.code, how.status) == ("INVALID_ARGUMENT", CODE.INVALID_ARGUMENT), order
        assert how.message
    assert not list(asking.codebase.StageFiles(iter([chunk(codebase=codebase)])).blake3)
    with refused() as how:
        asking.codebase.StageFiles(iter([chunk(piece(b"x"), codebase="cb_0123456789abcdef")]))
    assert (how.code, how.status) == ("CODEBASE_NOT_FOUND", CODE.NOT_FOUND)


def test_what_was_complete_need_not_be_sent_again(asking):
    codebase = asking.new_codebase()
    contents = [b"complete one", b"complete two", b"half"]
    with refused():
        asking.codebase.StageFiles(iter([
            chunk(piece(contents[0]), codebase=codebase),
            chunk(piece(contents[1]), piece(contents[2], end=False))]))
    assert missing(asking, codebase, contents) == contents[2:]


def test_a_limit_is_named_and_what_came_before_stays(staged, asking):
    codebase = asking.new_codebase()
    small, huge = b"before the limit", b"h" * (4 * MIB + 1)
    with refused() as how:
        asking.codebase.StageFiles(iter([chunk(piece(small), piece(huge), codebase=codebase)]))
    assert (how.code, how.status) == ("RESOURCE_LIMIT_EXCEEDED", CODE.RESOURCE_EXHAUSTED)
    assert how.details["limit"] == "max_file_size"
    assert not missing(asking, codebase, [small])

    def more_than_fits():
        yield chunk(codebase=codebase)
        for number in range(80):
            yield chunk(piece(bytes([number]) * MIB))

    with refused() as how:
        asking.codebase.StageFiles(more_than_fits())
    assert how.details["limit"] == "max_codebase_size"
    place = staged.state / "server" / "codebases" / codebase
    assert sum(path.stat().st_size for path in place.rglob("*") if path.is_file()) <= 64 * MIB


def test_a_stream_that_never_ends_costs_nothing(staged, asking):
    """Cut off in the middle of a file: the files before stay, and nothing else."""
    codebase = asking.new_codebase()
    place = staged.state / "server" / "codebases" / codebase
    over = threading.Event()

    def forever():
        yield chunk(piece(b"complete"), piece(b"x" * MIB, end=False), codebase=codebase)
        yield chunk(piece(b"x" * MIB, end=False))
        over.wait(60)

    call = asking.codebase.StageFiles.future(forever())
    until(lambda: any((place / "tmp").iterdir()) and any((place / "stage").iterdir()))
    call.cancel()
    over.set()
    until(lambda: not any((place / "tmp").iterdir()))
    assert [path.read_bytes() for path in (place / "stage").iterdir()] == [b"complete"]


def test_a_long_stream_is_not_kept_in_memory(staged, asking):
    codebase = asking.new_codebase()
    before = staged.memory()
    content = random.Random(1).randbytes(MIB)

    def long():
        yield chunk(codebase=codebase)
        for number in range(300):
            # The same few files again and again: what is staged is kept once.
            yield chunk(piece(content[number % 3:]))

    done = asking.codebase.StageFiles(long())
    assert len(done.blake3) == 300
    assert staged.memory() - before < 40 * MIB


def test_random_bytes_as_a_stream(staged, asking):
    chance = random.Random(2)
    call = asking.channel.stream_unary("/sandbox.v1.CodebaseService/StageFiles")
    for _ in range(200):
        pieces = [chance.randbytes(chance.randrange(60)) for _ in range(chance.randrange(4))]
        with refused():
            call(iter(pieces), timeout=10)
    assert Rest(staged.endpoint).raw("GET", "/healthz")[0] == 200
