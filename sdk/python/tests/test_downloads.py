"""Directories go into a sandbox and come out as they are; nothing is written but where it belongs."""

import os
import stat

import pytest
import ringfence
from ringfence import Sandbox, SkippedFilesWarning, SkippedLinksWarning

import complaints


@pytest.fixture(scope="module")
def boxes(tls_server, tmp_path_factory):
    """One sandbox for each server; its workspace is emptied for every test."""
    made = {}

    def box(where):
        if where.name not in made:
            made[where.name] = Sandbox.from_local(
                tmp_path_factory.mktemp("box"), preset="full-access", **where.options)
        return made[where.name]

    yield box
    for each in made.values():
        each.destroy()


@pytest.fixture
def sandbox(where, boxes):
    sandbox = boxes(where)
    # As code inside, which has no trouble with names that are no text.
    sandbox.run("find . -mindepth 1 -delete", raise_on_error=True)
    return sandbox


def shape(root):
    """Everything below a directory: contents and modes of files, targets of links, directories."""
    found = {}
    for where, directories, files in os.walk(root):
        for name in directories + files:
            path = os.path.join(where, name)
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                what = os.readlink(path)
            elif stat.S_ISDIR(status.st_mode):
                what = None
            else:
                what = (open(path, "rb").read(), stat.S_IMODE(status.st_mode))
            found[os.path.relpath(path, root)] = what
    return found


@pytest.fixture
def source(tmp_path):
    root = tmp_path / "source"
    (root / "a" / "empty").mkdir(parents=True)
    (root / "a" / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (root / "a" / "run.sh").chmod(0o755)
    (root / "a" / "bytes").write_bytes(os.urandom(3 << 20))
    (root / "a" / "bytes").chmod(0o600)
    (root / "a" / "up").symlink_to("../ünï cödé")
    (root / "a" / "root").symlink_to("..")
    (root / "ünï cödé").touch()
    (root / "ünï cödé").chmod(0o644)
    (root / "nowhere").symlink_to("not/there")
    return root


def test_a_directory_comes_back_as_it_went(sandbox, source, tmp_path):
    assert sandbox.upload_dir(source, "in/here") == 3
    assert sandbox.run("cd in/here && ./a/run.sh && cat a/up").stdout == "ran\n"
    assert sandbox.download_dir("in/here", tmp_path / "deep" / "target") == 3
    assert shape(tmp_path / "deep" / "target") == shape(source)
    # And again, on top of what is there.
    assert sandbox.upload_dir(source, "in/here") == 3
    assert sandbox.download_dir("in/here", tmp_path / "deep" / "target") == 3
    assert shape(tmp_path / "deep" / "target") == shape(source)


def test_what_was_there_stays_and_what_has_changed_is_replaced(sandbox, tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "both").write_text("a longer text than the other")
    sandbox.write_file("both", "theirs", mode=0o600)
    assert sandbox.download_dir(target=tmp_path) == 1
    assert shape(tmp_path) == {"mine": (b"mine", 0o644), "both": (b"theirs", 0o600)}


def test_what_the_agent_does_not_see_does_not_come_in_its_view(where, source, tmp_path):
    rules = [{"pattern": "/a/bytes", "permission": "none", "priority": 9}]
    with Sandbox.from_local(source, preset="read-only", permissions=rules, auto_start=False,
                            **where.options) as sandbox:
        sandbox.download_dir("/", tmp_path / "agent", view="agent")
        sandbox.download_dir("/", tmp_path / "owner")
    assert shape(tmp_path / "owner").keys() - shape(tmp_path / "agent").keys() == {"a/bytes"}


LINKS_OUT = {
    "absolute": "/etc/passwd",
    "up": "..",
    "far": "../../../etc/passwd",
    "sly": "sub/../../outside",
    "sub/up": "../../outside",
    "sub/above": "..",
    "chained": "sub/above/..",
}
"""All lead out but `sub/above`, which only helps the last one to."""


def test_links_that_lead_out_are_not_written_and_named(sandbox, tmp_path):
    for name, target in LINKS_OUT.items():
        sandbox.symlink(name, target)
    sandbox.write_file("file", "text")
    with pytest.warns(SkippedLinksWarning) as told:
        assert sandbox.download_dir("/", tmp_path / "target") == 1
    assert shape(tmp_path / "target") == {"sub": None, "sub/above": "..", "file": (b"text", 0o644)}
    for name in LINKS_OUT.keys() - {"sub/above"}:
        assert f"{name} -> {LINKS_OUT[name]}" in str(told[0].message)


def hostile(sandbox, tmp_path, first, then):
    """Downloads twice; what is outside of the target must be as it was."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    sandbox.run(first, raise_on_error=True)
    sandbox.download_dir("/", tmp_path / "target")
    sandbox.run(then, raise_on_error=True)
    try:
        sandbox.download_dir("/", tmp_path / "target")
        problem = None
    except ringfence.SandboxError as error:
        complaints.assert_helpful(error)
        problem = str(error)
    assert shape(outside) == {"file": (b"mine", 0o644)}
    assert sorted(os.listdir(tmp_path)) == ["outside", "target"]
    return problem


@pytest.mark.parametrize("first, then, match", [
    ("mkdir a && ln -s a x", "rm x && mkdir x && echo bad > x/file", "x is there already"),
    ("mkdir a && ln -s a x", "rm x && echo bad > x", "x is there already"),
    ("mkdir -p x/y", "rm -r x && ln -s ../outside x", None),
    ("mkdir x && echo good > x/file", "rm -r x && mkdir a && ln -s a x", "cannot make the link"),
    ("echo good > x", "rm x && mkdir x && echo bad > x/file", "x is there already"),
], ids=["link to directory", "link to file", "directory to link out", "directory to link",
        "file to directory"])
@pytest.mark.filterwarnings("ignore::ringfence.SkippedLinksWarning")
def test_what_has_become_something_else_is_not_followed(sandbox, tmp_path, first, then, match):
    problem = hostile(sandbox, tmp_path, first, then)
    assert problem is None if match is None else match in problem


@pytest.mark.parametrize("name", ["file", "directory"])
def test_links_that_were_there_are_not_followed(sandbox, tmp_path, name):
    outside, target = tmp_path / "outside", tmp_path / "target"
    (outside / "directory").mkdir(parents=True)
    (outside / "file").write_text("mine")
    target.mkdir()
    (target / name).symlink_to(outside / name)
    sandbox.write_file("file" if name == "file" else "directory/file", "bad")
    with pytest.raises(ringfence.SandboxError, match="is there already") as caught:
        sandbox.download_dir("/", target)
    complaints.assert_helpful(caught.value)
    assert shape(outside) == {"directory": None, "file": (b"mine", 0o644)}


def test_names_that_are_no_text_are_left_out_and_the_rest_is_not(sandbox, tmp_path):
    sandbox.run(r"""
        mkdir good "$(printf 'dir\377')"
        echo x > "$(printf 'good/\377')"; echo x > "$(printf 'dir\377/file')"
        echo x > "$(printf 'good/new\nline')"; echo x > 'good/back\slash'
        mkfifo good/fifo; echo x > 'good/..file'""", raise_on_error=True)
    with pytest.warns(SkippedFilesWarning, match="names are no text") as told:
        assert sandbox.download_dir("/", tmp_path / "target") == 3
    assert "good/\N{REPLACEMENT CHARACTER}" in str(told[0].message)
    assert sorted(shape(tmp_path / "target")) == [
        "good", "good/..file", "good/back\\slash", "good/new\nline"]


def test_set_uid_bits_stay_inside(sandbox, tmp_path):
    sandbox.run("echo x > tool && chmod 6755 tool", raise_on_error=True)
    sandbox.download_dir("/", tmp_path)
    assert stat.S_IMODE((tmp_path / "tool").stat().st_mode) == 0o755


@pytest.mark.parametrize("path, kind", [
    ("missing", ringfence.FileNotFoundError), ("file", ringfence.InvalidConfigurationError)])
def test_what_is_no_directory_cannot_be_downloaded_and_makes_none(sandbox, tmp_path, path, kind):
    sandbox.write_file("file", "x")
    with pytest.raises(kind):
        sandbox.download_dir(path, tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_a_file_is_no_place_for_a_directory(sandbox, tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(ringfence.SandboxError, match="is not a directory"):
        sandbox.download_dir("/", tmp_path / "taken")
    with pytest.raises(ringfence.SandboxError, match="taken"):
        sandbox.download_dir("/", tmp_path / "taken" / "below")
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.parametrize("target", ["/", "../../../../../../"], ids=["absolute", "up"])
def test_uploads_do_not_follow_links_out_of_the_workspace(sandbox, source, tmp_path, target):
    (tmp_path / "outside").mkdir()
    sandbox.symlink("a", f"{target}{tmp_path.relative_to('/')}/outside")
    with pytest.raises(ringfence.SandboxError):
        sandbox.upload_dir(source)
    assert shape(tmp_path / "outside") == {}
