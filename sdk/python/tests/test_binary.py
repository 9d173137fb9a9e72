"""Which program is taken for the server, and what is said when there is none."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys

import pytest

from ringfence import _binary
from ringfence._binary import BinaryNotFound, find_binary


def program(path: pathlib.Path, says: str = "ringfence 9.8.7", code: int = 0) -> str:
    """A script that answers whatever it is asked with one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\nexit {code}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """An environment in which there is no program until a test makes one."""
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.delenv("RINGFENCE_BINARY", raising=False)
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.setattr(sys, "prefix", str(empty))
    monkeypatch.setattr(_binary, "__file__", str(empty / "package" / "ringfence" / "_binary.py"))
    monkeypatch.setattr(_binary.sysconfig, "get_path", lambda *_: str(empty / "scripts"))


def package_in(monkeypatch: pytest.MonkeyPatch, site: pathlib.Path) -> None:
    monkeypatch.setattr(_binary, "__file__", str(site / "ringfence" / "_binary.py"))


def test_the_variable_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    named = program(tmp_path / "mine", says="something else")
    package_in(monkeypatch, tmp_path)
    program(tmp_path / "bin" / "ringfence")
    monkeypatch.setenv("RINGFENCE_BINARY", named)
    assert find_binary() == named


def test_the_variable_may_be_relative(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    named = program(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RINGFENCE_BINARY", "mine")
    assert find_binary() == named


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    package_in(monkeypatch, tmp_path)
    installed = program(tmp_path / "bin" / "ringfence")
    monkeypatch.setenv("RINGFENCE_BINARY", "")
    assert find_binary() == installed


@pytest.mark.parametrize("what", ["nothing", "a directory", "a plain file"])
def test_a_variable_that_names_no_program_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, what: str
) -> None:
    named = tmp_path / "named"
    if what == "a directory":
        named.mkdir()
    elif what == "a plain file":
        program(named)
        named.chmod(0o644)
    program(tmp_path / "path" / "ringfence")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("RINGFENCE_BINARY", str(named))
    with pytest.raises(BinaryNotFound, match="RINGFENCE_BINARY names .*named, which is not a program"):
        find_binary()


def test_beside_the_package_after_target(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    package_in(monkeypatch, tmp_path)
    installed = program(tmp_path / "bin" / "ringfence")
    assert find_binary() == installed


@pytest.mark.parametrize("site", ["lib/python3.9/site-packages", "local/lib/python3.11/dist-packages"])
def test_in_the_prefix_of_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, site: str) -> None:
    place = tmp_path / site
    package_in(monkeypatch, place)
    installed = program(place.parent.parent.parent / "bin" / "ringfence")
    assert find_binary() == installed


def test_a_library_directory_is_not_taken_for_a_prefix(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    package_in(monkeypatch, tmp_path / "a" / "b" / "c")
    program(tmp_path / "bin" / "ringfence")
    with pytest.raises(BinaryNotFound):
        find_binary()


def test_in_the_scripts_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    installed = program(tmp_path / "scripts" / "ringfence")
    places = {("scripts",): str(tmp_path / "scripts"), ("scripts", "posix_user"): "/nonexistent"}
    monkeypatch.setattr(_binary.sysconfig, "get_path", lambda *scheme: places[scheme])
    assert find_binary() == installed


def test_in_the_prefix_of_the_interpreter(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    installed = program(tmp_path / "venv" / "bin" / "ringfence")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    assert find_binary() == installed


def test_in_the_scripts_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    installed = program(tmp_path / "user" / "ringfence")
    places = {("scripts",): "/nonexistent", ("scripts", "posix_user"): str(tmp_path / "user")}
    monkeypatch.setattr(_binary.sysconfig, "get_path", lambda *scheme: places[scheme])
    assert find_binary() == installed


def test_the_program_of_the_package_is_preferred(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    package_in(monkeypatch, tmp_path / "target")
    own = program(tmp_path / "target" / "bin" / "ringfence")
    program(tmp_path / "venv" / "bin" / "ringfence")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    assert find_binary() == own


def test_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    found = program(tmp_path / "ringfence")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_binary() == found


def test_the_real_program_is_known_as_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    (tmp_path / "ringfence").symlink_to(os.environ["RINGFENCE"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_binary() == str(tmp_path / "ringfence")


@pytest.mark.parametrize(
    ("says", "code"), [("fence 1.0.0", 0), ("ringfence", 0), ("the ringfence 1.0.0", 0), ("ringfence 1.0.0", 1)]
)
def test_a_program_of_somebody_else_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, says: str, code: int
) -> None:
    program(tmp_path / "first" / "ringfence", says, code)
    ours = program(tmp_path / "second" / "ringfence")
    monkeypatch.setenv("PATH", f"{tmp_path}/first:{tmp_path}/second")
    assert find_binary() == ours


def test_a_program_that_cannot_be_started_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    broken = tmp_path / "ringfence"
    broken.write_bytes(b"\x7fELF of another machine")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BinaryNotFound):
        find_binary()


def test_a_program_that_does_not_answer_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    sleep = shutil.which("sleep", path=os.defpath)
    waits = tmp_path / "ringfence"
    waits.write_text(f"#!/bin/sh\nexec {sleep} 600\n")
    waits.chmod(0o755)
    monkeypatch.setattr(_binary, "_VERSION_WITHIN", 0.2)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BinaryNotFound):
        find_binary()


@pytest.mark.parametrize("path", ["", ".", "here"])
def test_what_lies_in_the_working_directory_is_never_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, path: str
) -> None:
    program(tmp_path / path / "ringfence")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path)
    with pytest.raises(BinaryNotFound):
        find_binary()


def test_without_a_program_it_says_how_to_go_on() -> None:
    with pytest.raises(BinaryNotFound) as found:
        find_binary()
    assert "client-only" in str(found.value)
    assert "endpoint= or RINGFENCE_ENDPOINT" in str(found.value)
