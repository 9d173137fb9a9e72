"""Digests that are remembered: when they are trusted, and that a cache is never needed."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from blake3 import blake3

from needs import needs_root
from ringfence import _digest_cache
from ringfence._walk import scan

Opened = Callable[[], "list[str]"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "f").write_bytes(b"one")
    return root


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves the clock, so that nothing has to wait for files to settle."""

    def move(seconds: float) -> None:
        now = time.time_ns() + int(seconds * 1e9)
        monkeypatch.setattr(time, "time_ns", lambda: now)

    return move


@pytest.fixture
def opened(project: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Which files of the project were opened since the last question."""
    names: list[str] = []
    real = os.open

    def opening(path: bytes, flags: int, mode: int = 0o777) -> int:
        if os.path.dirname(os.fsencode(path)) == os.fsencode(project):
            names.append(os.path.basename(os.fsdecode(path)))
        return real(path, flags, mode)

    def asked() -> list[str]:
        answer = sorted(names)
        names.clear()
        return answer

    monkeypatch.setattr(os, "open", opening)
    return asked


def digest(project: Path, name: str = "f") -> str | None:
    return next(entry.blake3 for entry in scan(project).entries if entry.path == name)


ONE = blake3(b"one").hexdigest()
TWO = blake3(b"two").hexdigest()


def test_an_unchanged_file_is_not_opened_again(
    project: Path, later: Callable[[float], None], opened: Opened
) -> None:
    later(10)
    assert (digest(project), opened()) == (ONE, ["f"])
    assert (digest(project), opened()) == (ONE, [])


def test_only_what_changed_is_opened(
    project: Path, later: Callable[[float], None], opened: Opened
) -> None:
    (project / "g").write_bytes(b"g")
    later(10)
    scan(project)
    opened()
    (project / "f").write_bytes(b"two")
    assert (digest(project), opened()) == (TWO, ["f"])
    assert (digest(project, "g"), opened()) == (blake3(b"g").hexdigest(), [])


def test_a_change_that_keeps_size_and_time_is_noticed(
    project: Path, later: Callable[[float], None]
) -> None:
    later(10)
    assert digest(project) == ONE
    status = os.stat(project / "f")
    (project / "f").write_bytes(b"two")
    os.utime(project / "f", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert digest(project) == TWO


def test_a_file_that_was_replaced_is_noticed(project: Path, later: Callable[[float], None]) -> None:
    later(10)
    assert digest(project) == ONE
    status = os.stat(project / "f")
    (project / "new").write_bytes(b"two")
    os.utime(project / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(project / "new", project / "f")
    assert digest(project) == TWO


@pytest.mark.parametrize("field", ["st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns"])
def test_files_that_differ_in_anything_are_told_apart(project: Path, field: str) -> None:
    status = os.stat(project / "f")
    changed = SimpleNamespace(**{name: getattr(status, name) for name in dir(status)})
    setattr(changed, field, getattr(status, field) + 1)
    key = _digest_cache.key_of(status)
    assert _digest_cache.key_of(cast(os.stat_result, changed)) != key


@pytest.mark.parametrize("seconds, trusted", [(1.5, False), (0, False), (-60, False), (2.5, True)])
def test_a_file_that_changed_just_before_is_not_trusted(
    project: Path,
    later: Callable[[float], None],
    opened: Opened,
    seconds: float,
    trusted: bool,
) -> None:
    status = os.stat(project / "f")
    moved = (status.st_mtime_ns - time.time_ns()) / 1e9 + seconds
    later(moved)
    scan(project)
    opened()
    scan(project)
    assert opened() == ([] if trusted else ["f"])


def test_setting_the_time_back_does_not_make_a_file_trusted(project: Path, opened: Opened) -> None:
    os.utime(project / "f", (1, 1))
    scan(project)
    opened()
    scan(project)
    assert opened() == ["f"]


def test_a_file_that_changes_while_it_is_read_is_not_remembered(
    project: Path, later: Callable[[float], None], opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    later(10)
    real = os.read

    def reading(descriptor: int, length: int) -> bytes:
        read = real(descriptor, length)
        if read == b"one":
            (project / "f").write_bytes(b"two")
        return read

    with monkeypatch.context() as patched:
        patched.setattr(os, "read", reading)
        assert digest(project) == ONE
    opened()
    assert (digest(project), opened()) == (TWO, ["f"])


@pytest.mark.parametrize("off", ["option", "environment"])
def test_the_cache_can_be_turned_off(
    project: Path,
    caches: Path,
    later: Callable[[float], None],
    opened: Opened,
    monkeypatch: pytest.MonkeyPatch,
    off: str,
) -> None:
    later(10)
    scan(project)
    opened()
    if off == "environment":
        monkeypatch.setenv("RINGFENCE_NO_CACHE", "1")
    scan(project, cache=off != "option")
    assert opened() == ["f"]


def test_the_cache_is_private(project: Path, caches: Path, later: Callable[[float], None]) -> None:
    later(10)
    scan(project)
    assert stat.S_IMODE(caches.stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in caches.iterdir()] == [0o600]


def forged(content: bytes) -> bytes:
    """The content with every digest in it replaced, and a sum that fits."""
    start = len(_digest_cache._MAGIC) + 32
    body = content[start:].replace(bytes.fromhex(ONE), bytes(32))
    return _digest_cache._header(body) + body


def spoil(file: Path, how: str) -> None:
    content = file.read_bytes()
    if how == "cut":
        file.write_bytes(content[:-1])
    elif how == "bit":
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "noise":
        file.write_bytes(os.urandom(1000))
    elif how == "directory":
        file.unlink()
        file.mkdir()
    elif how == "link":
        file.rename(file.parent.parent / "moved")
        (file.parent.parent / "moved").write_bytes(forged(content))
        file.symlink_to("../moved")


@pytest.mark.parametrize("how", ["cut", "bit", "empty", "noise", "directory", "link"])
def test_a_broken_cache_is_ignored(
    project: Path, caches: Path, later: Callable[[float], None], opened: Opened, how: str
) -> None:
    later(10)
    scan(project)
    spoil(next(caches.iterdir()), how)
    opened()
    assert (digest(project), opened()) == (ONE, ["f"])


def test_a_cache_is_believed_so_that_the_tests_of_forged_ones_mean_something(
    project: Path, caches: Path, later: Callable[[float], None]
) -> None:
    later(10)
    scan(project)
    file = next(caches.iterdir())
    file.write_bytes(forged(file.read_bytes()))
    assert digest(project) == bytes(32).hex()


@pytest.mark.parametrize("whose", [
    "others may write",
    pytest.param("another user's file", marks=needs_root),
    pytest.param("another user's", marks=needs_root),
])
def test_a_cache_of_somebody_else_is_neither_believed_nor_written(
    project: Path, caches: Path, later: Callable[[float], None], whose: str
) -> None:
    later(10)
    scan(project)
    file = next(caches.iterdir())
    file.write_bytes(forged(file.read_bytes()))
    if whose == "others may write":
        caches.chmod(0o770)
    else:
        os.chown(file if "file" in whose else caches, 65534, -1)
    before = file.read_bytes()
    assert digest(project) == ONE
    if whose != "another user's file":
        assert file.read_bytes() == before


@pytest.mark.parametrize("home", ["file", "relative"])
def test_a_cache_that_cannot_be_made_is_ignored(
    project: Path,
    tmp_path: Path,
    later: Callable[[float], None],
    monkeypatch: pytest.MonkeyPatch,
    home: str,
) -> None:
    later(10)
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file") if home == "file" else "here")
    monkeypatch.chdir(tmp_path)
    assert digest(project) == ONE
    assert not (tmp_path / "here").exists()


def test_a_cache_that_cannot_be_written_leaves_nothing_behind(
    project: Path, caches: Path, later: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    later(10)

    def failing(source: str, target: str) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", failing)
    assert digest(project) == ONE
    assert list(caches.iterdir()) == []


def test_every_directory_has_a_cache_of_its_own(
    project: Path, tmp_path: Path, caches: Path, later: Callable[[float], None], opened: Opened
) -> None:
    later(10)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "f").touch()
    scan(project)
    scan(tmp_path / "other")
    assert len(list(caches.iterdir())) == 2
    opened()
    scan(project)
    assert opened() == []


def test_caches_that_nobody_used_for_long_are_forgotten(
    project: Path, tmp_path: Path, caches: Path, later: Callable[[float], None]
) -> None:
    later(10)
    scan(project)
    old = next(caches.iterdir())
    os.utime(old, (1, 1))
    scan(project)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "f").touch()
    scan(tmp_path / "other")
    assert old.exists(), "it was used by the second scan"
    os.utime(old, (1, 1))
    (tmp_path / "other" / "g").touch()
    scan(tmp_path / "other")
    assert not old.exists()


def test_absurd_times_of_a_file_do_no_harm(project: Path, later: Callable[[float], None]) -> None:
    later(10)
    os.utime(project / "f", ns=(0, -(2**60)))
    assert digest(project) == ONE
    os.utime(project / "f", ns=(0, 2**62))
    assert digest(project) == ONE
