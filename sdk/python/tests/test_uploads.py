"""A directory that is sent is in the sandbox as it is here, and is sent no more than once."""

import os
import pty
import subprocess
import sys
import threading
import warnings

import pytest
import ringfence
from ringfence import Sandbox, SandboxClient, SkippedFilesWarning, UploadError
from ringfence._sync._push import Push
from ringfence._walk import scan
from ringfence._wire import methods

import complaints

MANY = 3000
LINKS = ["inside", "outside", "system", "above", "nowhere"]


@pytest.fixture(scope="module")
def client(tls_server):
    with SandboxClient(**tls_server.options) as made:
        yield made


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """One of everything that is hard to get across."""
    root = tmp_path_factory.mktemp("tree")
    secret = tmp_path_factory.mktemp("outside") / "secret.txt"
    secret.write_text("hunter2\n")
    (root / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (root / "run.sh").chmod(0o755)
    (root / "plain.txt").write_text("plain\n")
    (root / "plain.txt").chmod(0o640)
    (root / "nothing.bin").touch()
    (root / "large.bin").write_bytes(os.urandom(5 << 20))
    (root / "empty" / "below").mkdir(parents=True)
    (root / "ünï cödé ☃").mkdir()
    (root / "ünï cödé ☃" / "with\nnewline \\ and 'quotes'").write_text("unicode\n")
    (root / "inside").symlink_to("plain.txt")
    (root / "outside").symlink_to(secret)
    (root / "system").symlink_to("/etc/passwd")
    (root / "above").symlink_to("../../..")
    (root / "nowhere").symlink_to("not/there")
    (root / "many").mkdir()
    for number in range(MANY):
        (root / "many" / f"{number}.txt").write_text(f"{number}\n")
    return root


@pytest.fixture(scope="module")
def sent(client, tree):
    with Sandbox.from_local(tree, preset="full-access", client=client) as sandbox:
        yield sandbox


def sends(client, codebase_id, root):
    """Pushes a directory; how many files were sent for it."""
    push = Push(client._open(), codebase_id, scan(root), False)
    push.all()
    return push.files_sent


@pytest.fixture
def codebase(client):
    made = client.create_codebase("push", "tests")
    yield made
    client.delete_codebase(made.id)


def test_all_of_it_is_there_and_nothing_else(sent, tree):
    here = {os.path.relpath(os.path.join(where, name), tree)
            for where, _, names in os.walk(tree) for name in names}
    # Links to directories are links.
    assert set(sent.list_files(recursive=True)) == here | {"above"}
    assert sent.codebase.file_count == MANY + 5 + len(LINKS)


def test_contents_are_the_same_byte_for_byte(sent, tree):
    for name in ("large.bin", "nothing.bin", "many/2999.txt"):
        assert sent.read_file_bytes(name) == (tree / name).read_bytes()
    assert sent.read_file("ünï cödé ☃/with\nnewline \\ and 'quotes'") == "unicode\n"
    numbers = "".join(f"{number}\n" for number in range(MANY))
    assert sent.run("cat many/*.txt | sort -n").stdout == numbers


def test_what_can_be_executed_can_be_executed(sent):
    assert sent.run("./run.sh").stdout == "ran\n"
    assert sent.stat("run.sh").mode & 0o777 == 0o755
    assert sent.stat("plain.txt").mode & 0o111 == 0
    assert sent.run("./plain.txt").exit_code == 126


def test_empty_directories_are_there(sent):
    assert sent.list_files("empty") == ["below/"] and sent.list_files("empty/below") == []


def test_links_are_links_and_lead_to_nothing_of_this_machine(sent, tree):
    for name in LINKS:
        found = sent.stat(name)
        assert (found.kind, found.target) == ("symlink", os.readlink(tree / name))
    assert sent.run("cat inside").stdout == "plain\n"
    assert (tree / "outside").read_text() == "hunter2\n"
    assert "hunter2" not in sent.run("cat outside; cat above/*").output
    for name in ("outside", "system", "nowhere"):
        with pytest.raises(ringfence.SandboxError):
            sent.read_file(name)


def test_an_unchanged_directory_is_not_sent_again(sent, tree, tls_server):
    with SandboxClient(**tls_server.options) as other:
        with Sandbox.from_local(tree, auto_start=False, client=other) as again:
            assert again.codebase_id != sent.codebase_id
            assert again.codebase.file_count == sent.codebase.file_count
            assert again.read_file("many/17.txt") == "17\n"
        called = set(other._channel._callables)
    assert methods.NegotiateUpload.path in called and methods.StageFiles.path not in called


def test_only_what_has_changed_is_sent(client, codebase, tmp_path):
    for name in "abc":
        (tmp_path / name).write_bytes(os.urandom(100))
    assert sends(client, codebase.id, tmp_path) == 3
    assert sends(client, codebase.id, tmp_path) == 0
    (tmp_path / "b").write_bytes(os.urandom(100))
    (tmp_path / "a").rename(tmp_path / "d")
    (tmp_path / "e").write_bytes((tmp_path / "c").read_bytes())
    assert sends(client, codebase.id, tmp_path) == 1, "a name is not a content"
    assert [file.path for file in client.list_files(codebase.id)] == ["b", "c", "d", "e"]


@pytest.mark.parametrize("change, match", [
    (lambda file: file.write_bytes(os.urandom(100)), "b was changed while it was sent"),
    (lambda file: file.write_bytes(b"short"), "b was changed while it was sent"),
    (lambda file: file.unlink(), "cannot read b: No such file"),
    (lambda file: (file.unlink(), file.symlink_to("/etc/passwd")), "cannot read b"),
    (lambda file: (file.unlink(), file.mkdir()), "cannot read b"),
], ids=["other content", "shorter", "gone", "a link", "a directory"])
def test_a_file_that_changes_while_it_is_sent_is_named_and_nothing_is_stored(
        client, codebase, tmp_path, change, match):
    for name in "abc":
        (tmp_path / name).write_bytes(os.urandom(100))
    assert sends(client, codebase.id, tmp_path) == 3
    (tmp_path / "b").write_bytes(os.urandom(100))
    (tmp_path / "new").write_bytes(os.urandom(100))
    seen = scan(tmp_path)
    change(tmp_path / "b")
    with pytest.raises(UploadError, match=match) as caught:
        Push(client._open(), codebase.id, seen, False).all()
    assert (caught.value.file_path, caught.value.codebase_id) == ("b", codebase.id)
    complaints.assert_helpful(caught.value)
    assert [file.path for file in client.list_files(codebase.id)] == ["a", "b", "c"]


def test_a_file_that_grows_is_sent_as_it_was_seen(client, codebase, tmp_path):
    (tmp_path / "log").write_text("first\n")
    seen = scan(tmp_path)
    with open(tmp_path / "log", "a") as log:
        log.write("second\n")
    Push(client._open(), codebase.id, seen, False).all()
    assert client.download_file(codebase.id, "log") == b"first\n"


def test_a_directory_that_never_rests_is_sent_whole_or_not_at_all(client, tmp_path):
    """Each version of both files is one letter, over and over."""
    over, size = threading.Event(), 1 << 20
    names = [tmp_path / "a", tmp_path / "b"]

    def replace():
        for letter in "abcdefghijklmnop" * 1000:
            for name in names:
                (tmp_path / ".new").write_text(letter * size)
                os.replace(tmp_path / ".new", name)
            if over.is_set():
                return

    for name in names:
        name.write_text("z" * size)
    writer = threading.Thread(target=replace)
    writer.start()
    try:
        for _ in range(5):
            try:
                with Sandbox.from_local(
                        tmp_path, ignore_patterns=[".new"], auto_start=False, client=client) as made:
                    texts = [made.read_file(name.name) for name in names]
            except UploadError as error:
                assert "try again" in str(error)
            else:
                assert [(len(text), len(set(text))) for text in texts] == [(size, 1)] * 2
    finally:
        over.set()
        writer.join()


def test_a_file_over_the_limit_is_left_out_and_named(client, tmp_path):
    (tmp_path / "small").touch()
    for name, size in (("exact.bin", 52_428_800), ("large.bin", 52_428_801)):
        with open(tmp_path / name, "wb") as sparse:
            sparse.truncate(size)
    with pytest.warns(SkippedFilesWarning, match=r"large\.bin.*52,428,801 bytes.*max_file_size"):
        with Sandbox.from_local(tmp_path, auto_start=False, client=client) as made:
            assert made.list_files() == ["exact.bin", "small"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with Sandbox.from_local(
                tmp_path, auto_start=False, max_file_size=None, client=client) as made:
            assert made.stat("large.bin").size == 52_428_801


PROGRAM = """
import sys
from ringfence import Sandbox, _progress
_progress._PATIENCE, _progress._STEP = float(sys.argv[2]), 0
with Sandbox.from_local(sys.argv[1], auto_start=False, upload=True) as sandbox:
    print(sandbox.stat("file").size, flush=True)
"""


def uploading(tmp_path, stderr, patience):
    root = tmp_path / "to send"
    root.mkdir()
    (root / "file").write_bytes(os.urandom(3 << 20))
    program = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(root), str(patience)], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=stderr, timeout=100)
    assert program.stdout == b"%d\n" % (3 << 20)
    return program


@pytest.mark.parametrize("patience", [0, 3600], ids=["long", "short"])
def test_a_long_upload_shows_how_far_it_is_on_a_terminal(tmp_path, patience):
    screen, terminal = pty.openpty()
    try:
        uploading(tmp_path, terminal, patience)
        os.set_blocking(screen, False)
        try:
            shown = os.read(screen, 1 << 16).decode()
        except BlockingIOError:
            shown = ""
    finally:
        os.close(screen)
        os.close(terminal)
    if patience:
        assert shown == ""
    else:
        assert "uploading [" in shown and "3.0 MB, 1 files" in shown
        assert shown.endswith("\r\x1b[K"), "nothing of it stays"


def test_nothing_is_shown_where_there_is_no_terminal(tmp_path):
    assert uploading(tmp_path, subprocess.PIPE, 0).stderr == b""
