"""What the guide to the high-level API shows of making sandboxes, and of their life."""

import os
import subprocess
import sys

import pytest
import ringfence
from ringfence import (
    CodebaseNotFoundError,
    Sandbox,
    SandboxClient,
    SandboxNotFoundError,
    SandboxNotRunningError,
    SandboxStatus,
    walk_directory,
)

import servers
from projects import WEB

WAIT = 60

SCRIPTS = {
    "setup.sh": "#!/bin/sh\necho ready > state.txt\n",
    "main.sh": "#!/bin/sh\necho main, $(cat state.txt)\n",
    "test.sh": "#!/bin/sh\necho tested\n",
}


@pytest.fixture
def client(where):
    with SandboxClient(**where.options) as connected:
        yield connected


@pytest.fixture
def codebase(client):
    made = client.create_codebase(name="shared", owner_id="team")
    yield made
    client.delete_codebase(made.id)


# ---- making -------------------------------------------------------------------------------------


def test_the_current_directory_can_be_listed(where, api, make_project, monkeypatch):
    monkeypatch.chdir(make_project(WEB))
    with api.Sandbox.from_local(".", **where.options) as sandbox:
        result = sandbox.run("ls -la")
    assert result.exit_code == 0 and "README.md" in result.stdout


def test_a_preset_and_rules_as_objects_or_dictionaries(open_sandbox, api):
    process = (
        "import pathlib\n"
        "pathlib.Path('output/sum.txt').write_text(str(sum(map(int, open('numbers.txt')))))\n"
        "print(pathlib.Path('secrets').exists())\n")
    sandbox = open_sandbox(
        {"process.py": process, "numbers.txt": "1\n2\n", "output/.keep": "", "secrets/key": "k\n"},
        preset="read-only",
        permissions=[
            ringfence.PermissionRule("/output/**", ringfence.Permission.WRITE),
            {"pattern": "/secrets/**", "permission": "none"},
        ],
        sdk=api)
    result = sandbox.run("python3 process.py")
    assert (result.stdout, result.stderr) == ("False\n", "")
    assert sandbox.run("cat output/sum.txt").stdout == "3"


def test_what_patterns_say_is_left_out(open_sandbox, api):
    sandbox = open_sandbox(
        {"Makefile": "test:\n\t@find . -type f | sort\n", "run.log": "x", "deep/er.log": "x",
         "dist/a": "x", "build/b": "x", "film.mp4": "x", "all.zip": "x", ".gitignore": "*.tmp\n",
         "a.tmp": "x", "node_modules/x/index.js": "x", ".env": "x"},
        ignore_patterns=["*.log", "dist/**", "build/**", "*.mp4", "*.zip"],
        preset="read-only", sdk=api)
    assert sandbox.run("make test").stdout == "./.gitignore\n./Makefile\n"


def test_two_sandboxes_of_different_rights_share_a_codebase(client, codebase, make_project, where):
    for path, content in walk_directory(make_project(WEB)):
        client.upload_file(codebase.id, path, content)
    with Sandbox.from_codebase(
            codebase_id=codebase.id, preset="read-only", labels={"purpose": "analysis"},
            **where.options) as reader:
        assert reader.run("python3 -m tabnanny -v app.py").exit_code == 0
        assert reader.run("make deps").exit_code != 0
    with Sandbox.from_codebase(
            codebase_id=codebase.id, preset="development", labels={"purpose": "testing"},
            **where.options) as writer:
        assert writer.run("make deps build test", timeout=WAIT).exit_code == 0
    assert client.get_codebase(codebase.id).file_count == len(WEB), "neither owned it"


def test_labels_find_sandboxes_again(open_sandbox, client, api):
    sandbox = open_sandbox(WEB, labels={"team": "backend", "run": "labels"}, sdk=api)
    assert sandbox.info.labels == {"team": "backend", "run": "labels"}
    found = client.list_sandboxes(labels={"run": "labels"})
    assert [each.id for each in found] == [sandbox.id]


# ---- connecting ---------------------------------------------------------------------------------


def test_a_lost_sandbox_is_found_again_by_its_id(where, api, make_project):
    sandbox = api.Sandbox.from_local(make_project(WEB), **where.options)
    sandbox_id = sandbox.id
    sandbox.close()
    sandbox = api.Sandbox.connect(sandbox_id, **where.options)
    assert sandbox.run("whoami").stdout == "user\n"
    sandbox.destroy()
    with pytest.raises(SandboxNotFoundError):
        api.Sandbox.connect(sandbox_id, **where.options)


def test_one_that_was_connected_to_outlives_the_block(open_sandbox, where, api):
    sandbox = open_sandbox(WEB)
    with api.Sandbox.connect(sandbox.id, **where.options) as connected:
        assert connected.status is SandboxStatus.RUNNING
    assert sandbox.refresh().status is SandboxStatus.RUNNING
    assert sandbox.run("echo still here").stdout == "still here\n"


def test_destroying_one_that_was_connected_to_ends_it_and_what_was_made_for_it(
        where, client, make_project):
    sandbox = Sandbox.from_local(make_project(WEB), **where.options)
    Sandbox.connect(sandbox.id, **where.options).destroy()
    with pytest.raises(SandboxNotFoundError):
        sandbox.refresh()
    with pytest.raises(CodebaseNotFoundError):
        client.get_codebase(sandbox.codebase_id)
    sandbox.close()


CONNECT = """
import sys
from ringfence import Sandbox

there = Sandbox.connect(sys.argv[1])
sys.stdout.write(there.run("cat /workspace/data.csv").stdout)
"""


def test_another_process_uses_the_sandbox(make_project):
    """It needs a server that both can reach."""
    path = make_project({"data.csv": "a,b\n1,2\n"})
    with servers.served() as shared:
        with Sandbox.from_local(path, preset="read-only", **shared.options) as sandbox:
            said = connected(sandbox.id, RINGFENCE_ENDPOINT=shared.options["endpoint"])
            assert said.stdout == "a,b\n1,2\n", said.stderr
            assert sandbox.refresh().status is SandboxStatus.RUNNING


def test_a_sandbox_of_a_private_server_is_not_for_others_and_they_are_told(make_project):
    with Sandbox.from_local(make_project(WEB)) as sandbox:
        said = connected(sandbox.id)
    assert said.returncode == 1 and "private server" in said.stderr
    assert "endpoint=" in said.stderr


def connected(sandbox_id, **environment):
    return subprocess.run(
        [sys.executable, "-c", CONNECT, sandbox_id], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, universal_newlines=True, timeout=WAIT,
        env={**os.environ, **environment})


# ---- life ---------------------------------------------------------------------------------------


def test_a_sandbox_waits_until_it_is_started(open_sandbox, api):
    sandbox = open_sandbox(SCRIPTS, auto_start=False, sdk=api)
    assert sandbox.status is SandboxStatus.PENDING
    assert sandbox.start() is sandbox
    assert sandbox.status is SandboxStatus.RUNNING
    assert sandbox.run("./test.sh").stdout == "tested\n"


def test_work_goes_on_after_a_pause(open_sandbox, api):
    sandbox = open_sandbox(SCRIPTS, sdk=api)
    assert sandbox.run("./setup.sh").exit_code == 0
    assert sandbox.stop().status is SandboxStatus.STOPPED
    with pytest.raises(SandboxNotRunningError, match="stopped"):
        sandbox.run("./main.sh")
    assert sandbox.start().run("./main.sh").stdout == "main, ready\n"


def test_refresh_brings_what_others_did(open_sandbox, where, api):
    sandbox = open_sandbox(SCRIPTS)
    with api.Sandbox.connect(sandbox.id, **where.options) as other:
        sandbox.stop()
        assert other.status is SandboxStatus.RUNNING, "as it was when it was last asked for"
        assert other.refresh().status is SandboxStatus.STOPPED


def test_a_sandbox_can_be_destroyed_by_hand(where, api, client, make_project):
    sandbox = api.Sandbox.from_local(make_project(SCRIPTS), preset="read-only", **where.options)
    try:
        assert sandbox.run("./test.sh").exit_code == 0
    finally:
        sandbox.destroy()
    assert sandbox.codebase_id not in [each.id for each in client.list_codebases()]


def test_its_codebase_can_be_kept_for_later(where, api, client, make_project):
    path = make_project(SCRIPTS)
    sandbox = api.Sandbox.from_local(path, preset="read-only", **where.options)
    sandbox.destroy(delete_codebase=False)
    with Sandbox.from_codebase(
            sandbox.codebase_id, preset="read-only", **where.options) as again:
        assert again.run("./test.sh").stdout == "tested\n"
    client.delete_codebase(sandbox.codebase_id)
