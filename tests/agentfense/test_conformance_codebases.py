"""The published server's own tests of its codebases, as far as they can be seen over the wire.

Left out, and why:

| case                                            | why                                      |
|-------------------------------------------------|------------------------------------------|
| nil requests and records                        | there is no nil on the wire              |
| delete file: gone, nested, missing, unknown     | the published API has no call for it     |
| path of a codebase exists, unknown is an error  | places on the host are never told        |
| Manager makes `files/`, Store makes `metadata/` | internal places                          |
| empty base directory is an error                | an argument of the program, tested there |
| store: duplicate id                             | ids are the server's own                 |
| store: update, exists                           | the published API has no call for it     |
| memory store                                    | there is one store                       |
"""

import concurrent.futures
import uuid

import grpc
import pytest
from agentfense._gen import codebase_pb2 as pb

from wire import refused

NOT_FOUND = grpc.StatusCode.NOT_FOUND
INVALID = grpc.StatusCode.INVALID_ARGUMENT
UNKNOWN = "cb_0123456789abcdef"

TREE = {
    "file1.txt": b"1",
    "file2.txt": b"22",
    "dir1/nested1.txt": b"333",
    "dir1/subdir/deep.txt": b"4444",
}


@pytest.fixture
def calls(stubs):
    return stubs.codebases


@pytest.fixture
def owner():
    """An owner that nobody else has."""
    return f"owner-{uuid.uuid4().hex}"


@pytest.fixture
def five(calls, owner):
    """Five codebases, three of them of `owner`; the others belong to `owner` + `-2`."""
    made = [
        calls.CreateCodebase(
            pb.CreateCodebaseRequest(name=f"n{n}", owner_id=owner if n < 3 else f"{owner}-2")
        )
        for n in range(5)
    ]
    yield made
    for each in made:
        calls.DeleteCodebase(pb.DeleteCodebaseRequest(codebase_id=each.id))


def upload(calls, id, path, *pieces):
    meta = pb.UploadChunk.Metadata(codebase_id=id, file_path=path, total_size=sum(map(len, pieces)))
    chunks = [pb.UploadChunk(metadata=meta), *(pb.UploadChunk(data=piece) for piece in pieces)]
    return calls.UploadFiles(iter(chunks))


def download(calls, id, path):
    request = pb.DownloadFileRequest(codebase_id=id, file_path=path)
    return b"".join(chunk.data for chunk in calls.DownloadFile(request))


def listing(calls, id, path="", recursive=False):
    request = pb.ListFilesRequest(codebase_id=id, path=path, recursive=recursive)
    return [file.path for file in calls.ListFiles(request).files]


def page(calls, **fields):
    return calls.ListCodebases(pb.ListCodebasesRequest(**fields))


def get(calls, id):
    return calls.GetCodebase(pb.GetCodebaseRequest(codebase_id=id))


# ---- create, get, list, delete -----------------------------------------------------------------


def test_create_keeps_name_and_owner(calls, five, owner):
    made = five[0]
    assert made.id and (made.name, made.owner_id) == ("n0", owner)
    assert made.created_at.seconds > 0
    assert listing(calls, made.id) == []


@pytest.mark.parametrize("fields", [{"owner_id": "o"}, {"name": "n"}, {}])
def test_create_without_name_or_owner_is_refused(calls, fields):
    with refused(INVALID, "INVALID_ARGUMENT", "is required"):
        calls.CreateCodebase(pb.CreateCodebaseRequest(**fields))


def test_ten_codebases_have_ten_ids(calls, owner):
    made = [
        calls.CreateCodebase(pb.CreateCodebaseRequest(name="same", owner_id=owner)).id
        for _ in range(10)
    ]
    assert len(set(made)) == 10
    for id in made:
        calls.DeleteCodebase(pb.DeleteCodebaseRequest(codebase_id=id))


def test_get_finds_what_was_made(calls, five):
    assert get(calls, five[1].id) == five[1]


@pytest.mark.parametrize(
    ("id", "code"),
    [(UNKNOWN, NOT_FOUND), ("../../victim", NOT_FOUND), ("x\0y", NOT_FOUND), ("", INVALID)],
)
def test_get_of_what_is_not_there_is_refused(calls, id, code):
    with refused(code):
        get(calls, id)


def test_list_by_owner(calls, five, owner):
    found = page(calls, owner_id=owner).codebases
    assert sorted(each.id for each in found) == sorted(each.id for each in five[:3])


def test_list_all(calls, five):
    assert {each.id for each in five} <= {each.id for each in page(calls).codebases}


def test_list_with_a_limit(calls, five, owner):
    assert len(page(calls, owner_id=owner, page_size=2).codebases) == 2


def test_list_goes_on_where_a_page_ended(calls, five, owner):
    first = page(calls, owner_id=owner, page_size=2)
    second = page(calls, owner_id=owner, page_size=2, page_token=first.next_page_token)
    ids = [each.id for each in [*first.codebases, *second.codebases]]
    assert sorted(ids) == sorted(each.id for each in five[:3])
    assert second.next_page_token == "", "there is nothing beyond the end"


def test_list_of_an_unknown_owner_is_empty(calls, owner):
    assert not page(calls, owner_id=owner).codebases


def test_list_returns_more_than_a_hundred_to_who_never_pages(calls, owner):
    made = [
        calls.CreateCodebase(pb.CreateCodebaseRequest(name="many", owner_id=owner)).id
        for _ in range(120)
    ]
    assert len(page(calls, owner_id=owner).codebases) == 120
    for id in made:
        calls.DeleteCodebase(pb.DeleteCodebaseRequest(codebase_id=id))


def test_delete_takes_the_record_and_the_files(calls, owner):
    made = calls.CreateCodebase(pb.CreateCodebaseRequest(name="n", owner_id=owner))
    upload(calls, made.id, "a", b"a")
    calls.DeleteCodebase(pb.DeleteCodebaseRequest(codebase_id=made.id))
    for gone in (get, listing):
        with refused(NOT_FOUND, "CODEBASE_NOT_FOUND"):
            gone(calls, made.id)


@pytest.mark.parametrize(
    ("id", "code"), [(UNKNOWN, NOT_FOUND), ("../../victim", NOT_FOUND), ("", INVALID)]
)
def test_delete_of_what_is_not_there_is_refused(calls, id, code):
    with refused(code):
        calls.DeleteCodebase(pb.DeleteCodebaseRequest(codebase_id=id))


# ---- write and read ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["plain.txt", "deep/er/nested.txt", "..legal", "a/..b", "name with space", "ü.txt"]
)
def test_write_and_read(calls, codebase, path):
    upload(calls, codebase.id, path, b"con", b"tent")
    assert download(calls, codebase.id, path) == b"content"


def test_write_replaces_what_was_there(calls, codebase):
    upload(calls, codebase.id, "a", b"a longer text")
    upload(calls, codebase.id, "a", b"short")
    assert download(calls, codebase.id, "a") == b"short"


def test_size_and_count_follow_the_files(calls, codebase):
    assert (codebase.size, codebase.file_count) == (0, 0)
    upload(calls, codebase.id, "a", b"12345")
    now = get(calls, codebase.id)
    assert (now.size, now.file_count) == (5, 1)
    assert now.updated_at.ToNanoseconds() >= now.created_at.ToNanoseconds()
    upload(calls, codebase.id, "a", b"123")
    upload(calls, codebase.id, "d/b", b"1")
    now = get(calls, codebase.id)
    assert (now.size, now.file_count) == (4, 2)


def test_write_to_an_unknown_codebase_is_refused(calls):
    with refused(NOT_FOUND, "CODEBASE_NOT_FOUND"):
        upload(calls, UNKNOWN, "a", b"a")


@pytest.mark.parametrize("path", ["../escape.txt", "dir/../../escape.txt", "", "..", "/", "a\0b"])
def test_write_to_an_illegal_path_is_refused(calls, codebase, path):
    with refused(INVALID, "INVALID_ARGUMENT"):
        upload(calls, codebase.id, path, b"a")
    assert listing(calls, codebase.id, recursive=True) == []


def test_write_below_a_file_is_refused(calls, codebase):
    upload(calls, codebase.id, "file", b"a")
    with refused(INVALID):
        upload(calls, codebase.id, "file/below", b"b")
    assert download(calls, codebase.id, "file") == b"a"


def test_read_of_a_missing_file_is_refused(calls, codebase):
    with refused(NOT_FOUND, "FILE_NOT_FOUND", "no/such.txt"):
        download(calls, codebase.id, "no/such.txt")


def test_read_from_an_unknown_codebase_is_refused(calls):
    with refused(NOT_FOUND, "CODEBASE_NOT_FOUND"):
        download(calls, UNKNOWN, "a")


@pytest.mark.parametrize("path", ["../../etc/passwd", "dir/../../etc/passwd", ""])
def test_read_of_an_illegal_path_is_refused(calls, codebase, path):
    with refused(INVALID, "INVALID_ARGUMENT"):
        download(calls, codebase.id, path)


def test_read_of_a_directory_is_refused(calls, codebase):
    upload(calls, codebase.id, "dir/a", b"a")
    with refused(INVALID):
        download(calls, codebase.id, "dir")


@pytest.mark.parametrize("path", ["/workspace/dir/a", "/dir/a", "dir/a", "./dir//a"])
def test_all_spellings_of_a_path_name_one_file(calls, codebase, path):
    upload(calls, codebase.id, path, b"a")
    assert listing(calls, codebase.id, recursive=True) == ["dir/a"]
    assert download(calls, codebase.id, path) == b"a"


# ---- list files --------------------------------------------------------------------------------


@pytest.fixture
def tree(calls, codebase):
    for path, content in TREE.items():
        upload(calls, codebase.id, path, content)
    return codebase.id


@pytest.mark.parametrize("root", ["", "/", ".", "/workspace"])
def test_list_of_the_root(calls, tree, root):
    assert listing(calls, tree, root) == ["dir1", "file1.txt", "file2.txt"]


def test_list_of_the_whole_tree_has_files_only(calls, tree):
    request = pb.ListFilesRequest(codebase_id=tree, recursive=True)
    files = calls.ListFiles(request).files
    assert [file.path for file in files] == sorted(TREE)
    assert {file.path: file.size for file in files} == {
        path: len(text) for path, text in TREE.items()
    }
    assert not any(file.is_dir for file in files)


@pytest.mark.parametrize("path", ["dir1", "/dir1", "dir1/", "/workspace/dir1"])
def test_list_of_a_directory_is_relative_to_it(calls, tree, path):
    assert listing(calls, tree, path) == ["nested1.txt", "subdir"]
    assert listing(calls, tree, path, recursive=True) == ["nested1.txt", "subdir/deep.txt"]


def test_list_of_an_unknown_codebase_is_refused(calls):
    with refused(NOT_FOUND, "CODEBASE_NOT_FOUND"):
        listing(calls, UNKNOWN)


@pytest.mark.parametrize("path", ["..", "dir1/../.."])
def test_list_of_an_illegal_path_is_refused(calls, tree, path):
    with refused(INVALID, "INVALID_ARGUMENT"):
        listing(calls, tree, path)


@pytest.mark.parametrize("recursive", [False, True])
def test_list_of_a_missing_directory_is_refused(calls, tree, recursive):
    with refused(NOT_FOUND, "FILE_NOT_FOUND"):
        listing(calls, tree, "nowhere", recursive)


# ---- many at once ------------------------------------------------------------------------------


def test_writers_and_readers_at_once_see_whole_files(calls, codebase):
    def write(writer):
        for n in range(10):
            upload(calls, codebase.id, f"w{writer}/f{n}", b"x" * 1000, b"y" * 1000)
        return []

    def read(_):
        seen = []
        for _ in range(10):
            get(calls, codebase.id)
            request = pb.ListFilesRequest(codebase_id=codebase.id, recursive=True)
            seen += [file.size for file in calls.ListFiles(request).files]
        return seen

    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        seen = [*pool.map(read, range(5)), *pool.map(write, range(5))]
    assert {size for sizes in seen for size in sizes} <= {2000}
    now = get(calls, codebase.id)
    assert (now.file_count, now.size) == (50, 100_000)
