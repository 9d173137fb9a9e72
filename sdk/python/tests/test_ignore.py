"""What is left out of a directory, and that git agrees where git has a say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from git_oracle import Git, ignored_by_us, paths_of
from needs import needs
from ignore_cases import CASES, Case

from ringfence import InvalidConfigurationError
from ringfence._ignore import LARGEST_IGNORE_FILE, Ignores, compile_text

CLASSES = "alnum alpha blank cntrl digit graph lower print punct space upper xdigit".split()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_table_holds(case: Case, tmp_path: Path) -> None:
    case.build(tmp_path)
    ignores = Ignores(case.ignore_patterns, default_ignores=case.default_ignores)
    left_out = ignored_by_us(tmp_path, ignores)
    assert case.problems(lambda path: _bytes(path) not in left_out) == []


@needs("git")
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.is_gits], ids=lambda case: case.name
)
def test_the_table_is_what_git_says(case: Case, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    case.build(tree)
    ignored = Git(tmp_path).ignored(tree, paths_of(tree))
    assert case.problems(lambda path: _bytes(path) not in ignored) == []


def test_the_names_in_the_table_are_unique() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)


@needs("git")
@pytest.mark.parametrize("named", CLASSES)
def test_a_named_class_has_the_bytes_it_has_for_git(named: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".gitignore").write_text(f"x[[:{named}:]]\n")
    names = [b"x" + bytes([byte]) for byte in range(1, 256) if byte != ord("/")]
    rules = compile_text(f"x[[:{named}:]]\n".encode())
    ours = {name for name in names if rules.verdict(name, name, False)}
    assert ours == Git(tmp_path).ignored(tree, names)
    assert ours


@pytest.mark.parametrize(
    "pattern, path",
    [
        ("*a" * 60 + "b", "a" * 250),
        ("/" + "*a" * 60 + "b", "a" * 250),
        ("*?" * 60 + "[b]", "a" * 250),
        ("**/a/" * 30 + "b", "a/" * 1000 + "c"),
        ("x/" + "**/*a*a/" * 30 + "b", "x/" + "aaaa/" * 500 + "c"),
    ],
)
def test_no_pattern_takes_forever(pattern: str, path: str) -> None:
    """Run elsewhere, since nothing interrupts a regular expression."""
    program = (
        "import sys; from ringfence._ignore import compile_text;"
        "pattern, path = sys.argv[1].encode(), sys.argv[2].encode();"
        "print(compile_text(pattern).verdict(path.rpartition(b'/')[2], path, False))"
    )
    arguments = [sys.executable, "-c", program, pattern, path]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("None\n", "")


def test_excludes_of_the_repository_do_not_count(tmp_path: Path) -> None:
    exclude = tmp_path / ".git" / "info" / "exclude"
    exclude.parent.mkdir(parents=True)
    exclude.write_text("a\n")
    (tmp_path / "a").touch()
    assert ignored_by_us(tmp_path) == set()


def test_an_ignore_file_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("a\n")
    (tmp_path / "a").touch()
    (tmp_path / ".gitignore").symlink_to("list")
    assert ignored_by_us(tmp_path) == set()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_an_ignore_file_that_is_no_file_is_not_read(make: object, tmp_path: Path) -> None:
    assert callable(make)
    make(tmp_path / ".gitignore")
    (tmp_path / "a").touch()
    assert ignored_by_us(tmp_path) == set()


def test_an_ignore_file_is_read_up_to_a_bound(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_bytes(b"a\n" + b"#" * LARGEST_IGNORE_FILE + b"\nb\n")
    (tmp_path / "a").touch()
    (tmp_path / "b").touch()
    assert ignored_by_us(tmp_path) == {b"a"}


def test_gitignore_can_be_turned_off_alone(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("a\n")
    (tmp_path / ".sandboxignore").write_text("b\n")
    (tmp_path / "a").touch()
    (tmp_path / "b").touch()
    assert ignored_by_us(tmp_path, Ignores(gitignore=False)) == {b"b"}


def test_a_single_pattern_is_not_taken_for_a_list_of_letters() -> None:
    with pytest.raises(TypeError, match="list of patterns"):
        Ignores("*.log")


@pytest.mark.parametrize("pattern", ["a[", "a\\", "x/[/]", "[[:word:]]", "a\n[b"])
def test_a_given_pattern_that_can_match_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidConfigurationError, match="matches nothing"):
        Ignores(["b", pattern])


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")
