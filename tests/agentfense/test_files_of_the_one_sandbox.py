"""Whose files the file calls of a codebase mean.

The published client reads and writes files through the codebase, and its users expect to meet what
their sandbox wrote. So while exactly one sandbox of a codebase has been started and not destroyed,
these calls go through its workspace, as its owner; otherwise they go to the stored files.
"""

import contextlib

import pytest
from agentfense import Sandbox, SandboxError


@pytest.fixture
def opened(codebase, client, endpoint):
    """Starts sandboxes on one codebase that holds `a.txt`."""
    client.upload_file(codebase.id, "a.txt", b"stored\n")

    def start(preset="full-access", auto_start=True):
        return Sandbox.from_codebase(
            codebase.id, preset=preset, endpoint=endpoint, auto_start=auto_start
        )

    return start


def test_one_that_was_not_started_has_no_files_of_its_own(opened, client, codebase):
    sandbox = opened(auto_start=False)
    sandbox.write_file("b.txt", "later\n")
    assert sandbox.read_file("a.txt") == "stored\n"
    assert sandbox.start().run("cat a.txt b.txt").stdout == "stored\nlater\n"


def test_one_that_was_started_is_meant(opened):
    sandbox = opened()
    sandbox.run("echo changed > a.txt; mkdir -p d/e; echo new > d/e/f; rm -f gone")
    assert sandbox.read_file("a.txt") == "changed\n"
    assert sandbox.list_files("d", recursive=True) == ["e/f"]
    sandbox.write_file("a.txt", "from outside\n")
    assert sandbox.run("cat a.txt").stdout == "from outside\n"
    sandbox.run("rm a.txt")
    with pytest.raises(SandboxError, match="a.txt"):
        sandbox.read_file("a.txt")


def test_one_that_is_stopped_is_still_meant(opened):
    sandbox = opened()
    sandbox.run("echo changed > a.txt")
    sandbox.stop()
    assert sandbox.read_file("a.txt") == "changed\n"
    sandbox.write_file("b.txt", "while stopped\n")
    assert sandbox.start().run("cat b.txt").stdout == "while stopped\n"


def test_with_several_the_stored_files_are_meant(opened):
    one, other = opened(), opened()
    one.run("echo one > a.txt")
    other.run("echo other > a.txt")
    assert one.read_file("a.txt") == other.read_file("a.txt") == "stored\n"


def test_the_last_of_several_is_meant_again(opened):
    one, other = opened(), opened()
    one.run("echo one > a.txt")
    other.destroy()
    assert one.read_file("a.txt") == "one\n"


def test_when_it_is_gone_the_stored_files_are_as_they_were(opened, client, codebase):
    sandbox = opened()
    sandbox.run("echo changed > a.txt; echo new > b.txt")
    sandbox.destroy()
    assert client.download_file(codebase.id, "a.txt") == b"stored\n"
    assert [file.path for file in client.list_files(codebase.id)] == ["a.txt"]


def test_the_owner_is_not_bound_by_the_rules_for_the_agent(opened, client, codebase):
    client.upload_file(codebase.id, ".env", b"KEY=1\n")
    sandbox = opened(preset="agent-safe")
    assert sandbox.run("ls -A").stdout == "a.txt\n"
    assert sandbox.list_files() == [".env", "a.txt"]
    assert sandbox.read_file(".env") == "KEY=1\n"
    sandbox.write_file("a.txt", "the owner's\n")
    assert sandbox.run("cat a.txt").stdout == "the owner's\n"


def test_links_that_the_agent_made_do_not_lead_to_the_host(opened, tmp_path):
    secret = tmp_path / "host.txt"
    secret.write_text("of the host\n")
    sandbox = opened()
    made = sandbox.run(f"ln -s {secret} file; ln -s {tmp_path} dir; ln -s /etc/passwd users")
    assert made.exit_code == 0
    for path in ("file", "dir/host.txt", "users"):
        with pytest.raises(SandboxError):
            sandbox.read_file(path)
    with pytest.raises(SandboxError):
        sandbox.write_file("dir/new.txt", "x")
    # The link may be replaced or the call refused; what it points to stays as it is.
    with contextlib.suppress(SandboxError):
        sandbox.write_file("file", "overwritten\n")
    assert secret.read_text() == "of the host\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["host.txt"]
