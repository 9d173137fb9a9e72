"""What a scan finds in a directory, and what it says about the rest."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from blake3 import blake3

from needs import needs_root
from ringfence._walk import (
    CHANGED,
    MAX_FILE_SIZE,
    NAME_NOT_UTF8,
    TARGET_NOT_UTF8,
    TOO_LARGE,
    Entry,
    Scan,
    Skipped,
    SkippedFilesWarning,
    scan,
    walk_directory,
    warn_skipped,
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A directory of somebody from whom modes can keep things, and who we are meanwhile."""
    with tempfile.TemporaryDirectory() as directory:
        root = os.geteuid() == 0
        if root:
            os.chown(directory, 65534, 65534)
            os.seteuid(65534)
        try:
            yield Path(directory)
        finally:
            if root:
                os.seteuid(0)


def paths(found: Scan) -> list[str]:
    return [entry.path for entry in found.entries]


def only(found: Scan, path: str) -> Entry:
    return next(entry for entry in found.entries if entry.path == path)


def test_paths_are_relative_sorted_and_directories_are_there_when_empty(project: Path) -> None:
    for path in ["b/z", "b.txt", "b/a/c", "a"]:
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(path)
    (project / "empty" / "too").mkdir(parents=True)
    found = scan(project)
    expected = ["a", "b", "b.txt", "b/a", "b/a/c", "b/z", "empty", "empty/too"]
    assert (found.root, paths(found), found.skipped) == (str(project), expected, [])
    assert {entry.path for entry in found.entries if entry.kind == "directory"} == {
        *("b", "b/a", "empty", "empty/too")
    }


def test_files_have_size_digest_and_permission_bits(project: Path) -> None:
    (project / "run").write_bytes(b"#!/bin/sh\n")
    (project / "run").chmod(0o4750)
    (project / "data").write_bytes(b"")
    (project / "data").chmod(0o600)
    (project / "dir").mkdir()
    (project / "dir").chmod(0o2710)
    digest = blake3(b"#!/bin/sh\n").hexdigest()
    assert scan(project).entries == [
        Entry("data", "file", 0o600, 0, blake3=blake3(b"").hexdigest()),
        Entry("dir", "directory", 0o710, 0),
        Entry("run", "file", 0o750, 10, blake3=digest),
    ]


def test_links_are_entries_and_are_never_followed(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (project / "inside").mkdir()
    (project / "inside" / "f").touch()
    links = {
        "out-file": str(outside / "secret"),
        "out-dir": str(outside),
        "up": "..",
        "in-dir": "inside",
        "broken": "nowhere",
        "self": "self",
    }
    for name, target in links.items():
        (project / name).symlink_to(target)
    found = scan(project)
    targets = {entry.path: entry.target for entry in found.entries if entry.kind == "symlink"}
    assert targets == links
    assert sorted(set(paths(found)) - set(links)) == ["inside", "inside/f"]
    assert [path for path, _ in walk_directory(project)] == ["inside/f"]


def test_a_directory_that_is_given_as_a_link_is_scanned(project: Path, tmp_path: Path) -> None:
    (project / "f").touch()
    (tmp_path / "link").symlink_to(project)
    found = scan(tmp_path / "link")
    assert (found.root, paths(found)) == (str(project), ["f"])


def test_a_directory_that_cannot_be_listed_is_an_error(project: Path) -> None:
    (project / "f").touch()
    with pytest.raises(NotADirectoryError):
        scan(project / "f")
    with pytest.raises(FileNotFoundError):
        scan(project / "g")


def test_ignored_directories_are_not_even_opened(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "node_modules" / "x").mkdir(parents=True)
    (project / "out").mkdir()
    (project / ".gitignore").write_text("out/\n")
    listed: list[bytes] = []
    real = os.scandir

    def listing(path: bytes) -> object:
        listed.append(path)
        return real(path)

    monkeypatch.setattr(os, "scandir", listing)
    assert paths(scan(project, cache=False)) == [".gitignore"]
    assert listed == [os.fsencode(project)]


def test_options_reach_the_patterns(project: Path) -> None:
    (project / ".gitignore").write_text("a\n")
    (project / ".sandboxignore").write_text("b\n")
    for name in ["a", "b", "c", ".env"]:
        (project / name).touch()
    files = [".gitignore", ".sandboxignore"]
    assert paths(scan(project)) == [*files, "c"]
    assert paths(scan(project, gitignore=False)) == [*files, "a", "c"]
    assert paths(scan(project, default_ignores=False)) == [".env", *files, "c"]
    assert paths(scan(project, ignore_patterns=["!a", "c", "!.env"])) == [".env", *files, "a"]


def test_a_file_over_the_limit_is_skipped_and_named(project: Path) -> None:
    for name, size in [("just", MAX_FILE_SIZE), ("over", MAX_FILE_SIZE + 1)]:
        (project / name).touch()
        os.truncate(project / name, size)
    found = scan(project, digests=False)
    assert paths(found) == ["just"]
    assert found.skipped == [Skipped("over", TOO_LARGE, 52_428_801)]
    with pytest.warns(SkippedFilesWarning, match=r"over \(.*52,428,801 bytes\).*max_file_size="):
        warn_skipped(found)


def test_the_limit_can_be_changed_and_lifted(project: Path) -> None:
    (project / "f").write_bytes(b"12345")
    assert scan(project, max_file_size=4).skipped == [Skipped("f", TOO_LARGE, 5)]
    assert paths(scan(project, max_file_size=5)) == ["f"]
    os.truncate(project / "f", MAX_FILE_SIZE + 1)
    assert only(scan(project, max_file_size=None), "f").size == MAX_FILE_SIZE + 1


def test_what_is_no_file_is_skipped_with_its_kind(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(project / "fifo")
    monkeypatch.chdir(project)
    with socket.socket(socket.AF_UNIX) as listener:
        # The whole path may be longer than an address of a socket can be.
        listener.bind("sock")
        found = scan(project)
    assert found.entries == []
    assert found.skipped == [Skipped("fifo", "a FIFO"), Skipped("sock", "a socket")]


@needs_root
def test_a_device_is_skipped(project: Path) -> None:
    os.mknod(project / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    assert scan(project).skipped == [Skipped("null", "a device")]


def test_names_and_targets_that_are_no_text_are_skipped(project: Path) -> None:
    root = os.fsencode(project)
    os.mkdir(root + b"/d\xff")
    open(root + b"/d\xff/f", "wb").close()
    open(root + b"/f\xfe", "wb").close()
    os.symlink(b"\xfd", root + b"/link")
    open(root + "/é\n".encode(), "wb").close()
    found = scan(project)
    assert paths(found) == ["é\n"]
    assert found.skipped == [
        Skipped("d\\xff", NAME_NOT_UTF8),
        Skipped("f\\xfe", NAME_NOT_UTF8),
        Skipped("link", TARGET_NOT_UTF8),
    ]


@pytest.mark.parametrize("digests", [True, False])
def test_what_cannot_be_read_is_skipped_with_a_reason(unprivileged: Path, digests: bool) -> None:
    for name in ["closed/f", "file", "other"]:
        (unprivileged / name).parent.mkdir(exist_ok=True)
        (unprivileged / name).touch()
    (unprivileged / "closed").chmod(0)
    (unprivileged / "file").chmod(0)
    found = scan(unprivileged, digests=digests)
    (unprivileged / "closed").chmod(0o700)
    assert paths(found) == ["other"]
    reason = "permission denied"
    assert found.skipped == [Skipped("closed", reason), Skipped("file", reason)]


def during_open(monkeypatch: pytest.MonkeyPatch, name: bytes, change: Callable[[], object]) -> None:
    """Has `change` happen once, after the file `name` was listed and just before it is opened."""
    real = os.open

    def opening(path: bytes, flags: int, mode: int = 0o777) -> int:
        if os.fsencode(path).endswith(b"/" + name):
            monkeypatch.setattr(os, "open", real)
            change()
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", opening)


def test_a_file_that_becomes_a_link_is_not_followed(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("secret")
    (project / "f").touch()

    def swap() -> None:
        (project / "f").unlink()
        (project / "f").symlink_to(tmp_path / "secret")

    during_open(monkeypatch, b"f", swap)
    found = scan(project, cache=False)
    assert (found.entries, found.skipped) == ([], [Skipped("f", CHANGED)])


def test_a_file_that_becomes_a_fifo_is_not_waited_for(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "f").touch()

    def swap() -> None:
        (project / "f").unlink()
        os.mkfifo(project / "f")

    during_open(monkeypatch, b"f", swap)
    assert scan(project, cache=False).skipped == [Skipped("f", CHANGED)]


def test_a_file_that_becomes_a_directory_is_not_taken_past_its_pattern(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / ".gitignore").write_text("f/\n")
    (project / "f").touch()
    real = os.scandir

    def listing(path: bytes) -> AbstractContextManager[list[os.DirEntry[bytes]]]:
        with real(path) as found:
            entries = list(found)
        (project / "f").unlink()
        (project / "f").mkdir()
        monkeypatch.setattr(os, "scandir", real)
        return nullcontext(entries)

    monkeypatch.setattr(os, "scandir", listing)
    found = scan(project, cache=False)
    assert (paths(found), found.skipped) == ([".gitignore"], [Skipped("f", CHANGED)])


def test_a_file_that_is_gone_when_it_is_read_is_not_there(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "f").touch()
    (project / "g").touch()
    during_open(monkeypatch, b"f", (project / "f").unlink)
    found = scan(project, cache=False)
    assert (paths(found), found.skipped) == (["g"], [])


@pytest.mark.parametrize("size", [0, 3, 4_000_000])
def test_a_file_that_changes_its_size_has_the_size_that_was_read(
    project: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    (project / "f").write_bytes(bytes(3_000_000))
    real = os.read

    def reading(descriptor: int, length: int) -> bytes:
        os.truncate(project / "f", size)
        return real(descriptor, length)

    monkeypatch.setattr(os, "read", reading)
    entry = only(scan(project), "f")
    # What is added after the file was opened is not waited for.
    assert entry.size == min(size, 3_000_000)
    assert entry.blake3 == blake3(bytes(entry.size)).hexdigest()


def test_a_file_that_grows_over_the_limit_is_skipped(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "f").write_bytes(b"1")
    during_open(monkeypatch, b"f", lambda: (project / "f").write_bytes(b"123"))
    assert scan(project, max_file_size=2).skipped == [Skipped("f", TOO_LARGE, 3)]
    (project / "f").write_bytes(b"1")
    during_open(monkeypatch, b"f", lambda: (project / "f").write_bytes(b"123"))
    with pytest.warns(SkippedFilesWarning, match="f .*3 bytes"):
        assert list(walk_directory(project, max_file_size=2)) == []


def test_many_files_in_threads_keep_their_digests(project: Path) -> None:
    contents = {f"{number % 7}/{number}": str(number).encode() for number in range(500)}
    for path, content in contents.items():
        (project / path).parent.mkdir(exist_ok=True)
        (project / path).write_bytes(content)
    files = {entry.path: entry.blake3 for entry in scan(project).entries if entry.kind == "file"}
    assert files == {path: blake3(content).hexdigest() for path, content in contents.items()}


def test_a_tree_deeper_than_a_path_can_say_does_no_harm(project: Path) -> None:
    name = "d" * 200
    here = os.open(project, os.O_DIRECTORY)
    for _ in range(30):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    found = scan(project)
    assert 10 < len(found.entries) < 30
    assert [skipped.reason for skipped in found.skipped] == ["file name too long"]


def test_nothing_skipped_is_no_warning(project: Path) -> None:
    (project / "f").touch()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_skipped(scan(project))


def test_one_warning_names_ten_and_counts_the_rest() -> None:
    skipped = [Skipped(f"f{number:02}", "a FIFO") for number in range(13)]
    with pytest.warns(SkippedFilesWarning) as caught:
        warn_skipped(Scan("/", [], skipped))
    assert len(caught) == 1
    text = str(caught[0].message)
    assert "f09 (a FIFO) and 3 more" in text
    assert "f10" not in text and "max_file_size" not in text


def test_a_warning_shows_no_control_characters() -> None:
    with pytest.warns(SkippedFilesWarning, match=r"a\\x1b\[31m\\nb \(a FIFO\)"):
        warn_skipped(Scan("/", [], [Skipped("a\x1b[31m\nb", "a FIFO")]))


def test_walk_directory_yields_paths_and_contents_by_the_same_rules(project: Path) -> None:
    for path in ["b/c.txt", "a.txt", ".env", "x.log", "big"]:
        (project / path).parent.mkdir(exist_ok=True)
        (project / path).write_bytes(path.encode())
    (project / "big").write_bytes(b"12345678")
    (project / ".gitignore").write_text("*.log\n")
    (project / "link").symlink_to("a.txt")
    with pytest.warns(SkippedFilesWarning, match="big") as caught:
        found = dict(walk_directory(str(project), ["b/"], False, 7))
    assert found == {".env": b".env", ".gitignore": b"*.log\n", "a.txt": b"a.txt"}
    assert [warning.filename for warning in caught] == [__file__]
    everything = dict(walk_directory(project, max_file_size=None, gitignore=False))
    assert sorted(everything) == [".gitignore", "a.txt", "b/c.txt", "big", "x.log"]
