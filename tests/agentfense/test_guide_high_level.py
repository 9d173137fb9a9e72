"""What the guide to the high-level API shows, run.

Where it uses Docker the same is done without, and what a server without Docker answers is in
`test_scenarios.py`. Where it leaves the preset out and then reads files, it has one here.
"""

import subprocess
import sys
from datetime import timedelta

import pytest
from agentfense import (
    Permission,
    PermissionRule,
    ResourceLimits,
    Sandbox,
    SandboxError,
    SandboxStatus,
    walk_directory,
)

from projects import WEB_PROJECT

WAIT = timedelta(seconds=20)
SCRIPTS = {
    "setup.sh": "#!/bin/sh\necho ready > state.txt\n",
    "main.sh": "#!/bin/sh\necho main, $(cat state.txt)\n",
    "test.sh": "#!/bin/sh\necho tested\n",
}


# ---- making sandboxes --------------------------------------------------------------------------


def test_the_current_directory_can_be_listed(make_project, endpoint, monkeypatch):
    monkeypatch.chdir(make_project(WEB_PROJECT))
    with Sandbox.from_local(".", endpoint=endpoint) as sandbox:
        result = sandbox.run("ls -la")
    assert result.exit_code == 0 and "README.md" in result.stdout


@pytest.mark.parametrize("path", ["no/such/directory", __file__])
def test_a_path_that_is_no_directory_is_refused(path, endpoint):
    with pytest.raises(ValueError):
        Sandbox.from_local(path, endpoint=endpoint)


def test_no_preset_is_the_most_careful_one(make_project, endpoint):
    with Sandbox.from_local(make_project({"a": "a"}), preset=None, endpoint=endpoint) as sandbox:
        assert "Permission denied" in sandbox.run("cat a").stderr


def test_rules_of_ones_own_on_a_preset(open_sandbox):
    process = (
        "import pathlib\n"
        "pathlib.Path('output/sum.txt').write_text(str(sum(map(int, open('numbers.txt')))))\n"
        "print(pathlib.Path('secrets').exists())\n"
    )
    sandbox = open_sandbox(
        {"process.py": process, "numbers.txt": "1\n2\n", "output/.keep": "", "secrets/key": "k\n"},
        preset="read-only",
        permissions=[
            PermissionRule(pattern="/output/**", permission=Permission.WRITE),
            PermissionRule(pattern="/secrets/**", permission=Permission.NONE),
        ],
    )
    result = sandbox.run("python3 process.py")
    assert (result.stdout, result.stderr) == ("False\n", "")
    assert sandbox.run("cat output/sum.txt").stdout == "3"


LIMITS = ResourceLimits(memory_bytes=64 << 20, cpu_quota=50_000, pids_limit=20)


@pytest.fixture
def limited(open_sandbox):
    labels = {"team": "backend", "env": "testing"}
    return open_sandbox(WEB_PROJECT, preset="agent-safe", resources=LIMITS, labels=labels)


def test_limits_and_labels_are_told(limited):
    assert limited.info.resources == LIMITS
    assert limited.info.labels == {"team": "backend", "env": "testing"}


def test_a_command_within_the_limits_is_not_troubled(limited):
    result = limited.run("python3 -m unittest check", timeout=20)
    assert result.exit_code == 0 and result.duration < timedelta(seconds=20)


def test_the_limit_on_memory_holds(limited):
    result = limited.run("python3 -c 'len(bytearray(200 << 20))'")
    assert result.exit_code != 0
    assert limited.run("echo alive").stdout == "alive\n"


FORKS = """
import os, signal
try:
    for n in range(50):
        os.fork() or signal.pause()
except BlockingIOError:
    print("enough")
"""


def test_the_limit_on_processes_holds(limited):
    result = limited.exec("cat > /tmp/f.py; python3 /tmp/f.py", stdin=FORKS, timeout=WAIT)
    assert "enough" in result.stdout, result.output


def test_ignored_files_are_not_uploaded(open_sandbox):
    sandbox = open_sandbox(
        {
            "Makefile": "test:\n\t@ls -A\n",
            "run.log": "x",
            "dist/a": "x",
            "build/b": "x",
            "film.mp4": "x",
            "all.zip": "x",
        },
        ignore_patterns=["*.log", "dist/**", "build/**", "*.mp4", "*.zip"],
        preset="read-only",
    )
    assert sandbox.run("make test").stdout == "Makefile\n"


def test_two_sandboxes_of_different_rights_share_a_codebase(
    client, codebase, make_project, endpoint
):
    for path, content in walk_directory(make_project(WEB_PROJECT)):
        client.upload_file(codebase.id, path, content)
    with Sandbox.from_codebase(
        codebase_id=codebase.id,
        preset="read-only",
        labels={"purpose": "analysis"},
        endpoint=endpoint,
    ) as reader:
        assert reader.run("python3 -m tabnanny -v app.py").exit_code == 0
        assert reader.run("make build").exit_code != 0
    with Sandbox.from_codebase(
        codebase_id=codebase.id,
        preset="development",
        labels={"purpose": "testing"},
        endpoint=endpoint,
    ) as writer:
        assert writer.run("make build test").exit_code == 0
    assert client.get_codebase(codebase.id).file_count == len(WEB_PROJECT)


def test_two_sandboxes_at_once_do_not_see_each_others_writes(client, codebase, endpoint):
    client.upload_file(codebase.id, "a.txt", b"old\n")
    options = {"preset": "full-access", "endpoint": endpoint}
    with (
        Sandbox.from_codebase(codebase.id, **options) as one,
        Sandbox.from_codebase(codebase.id, **options) as other,
    ):
        one.run("echo new > a.txt")
        assert one.run("cat a.txt").stdout == "new\n"
        assert other.run("cat a.txt").stdout == "old\n"
        assert one.read_file("a.txt") == "old\n", "with several, files are those of the codebase"


def test_a_lost_sandbox_is_found_again_by_its_id(open_sandbox, endpoint):
    first = open_sandbox({"a": "a"})
    again = Sandbox.connect(first.id, endpoint=endpoint)
    assert again.run("whoami").stdout == "user\n"
    again.destroy()
    with pytest.raises(SandboxError, match="sandbox not found"):
        first.refresh()


def test_another_process_uses_the_sandbox(open_sandbox, endpoint):
    sandbox = open_sandbox({"data.csv": "a,b\n1,2\n"}, preset="read-only")
    program = (
        "import sys; from agentfense import Sandbox\n"
        "there = Sandbox.connect(sys.argv[1], endpoint=sys.argv[2])\n"
        "sys.stdout.write(there.run('cat /workspace/data.csv').stdout)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program, sandbox.id, endpoint],
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert said.stdout == "a,b\n1,2\n", said.stderr
    assert sandbox.refresh().status is SandboxStatus.RUNNING


# ---- life --------------------------------------------------------------------------------------


def test_a_sandbox_waits_until_it_is_started(open_sandbox):
    sandbox = open_sandbox(SCRIPTS, auto_start=False)
    assert sandbox.status is SandboxStatus.PENDING
    sandbox.start()
    assert sandbox.status is SandboxStatus.RUNNING
    assert sandbox.run("./test.sh").stdout == "tested\n", "a script may be executed once uploaded"


def test_work_goes_on_after_a_pause(open_sandbox):
    sandbox = open_sandbox(SCRIPTS)
    assert sandbox.run("./setup.sh").exit_code == 0
    sandbox.stop()
    with pytest.raises(SandboxError, match="(?i)stopped"):
        sandbox.run("./main.sh")
    sandbox.start()
    assert sandbox.run("./main.sh").stdout == "main, ready\n"


def test_refresh_brings_what_others_did(open_sandbox, endpoint):
    sandbox = open_sandbox(SCRIPTS)
    other = Sandbox.connect(sandbox.id, endpoint=endpoint)
    sandbox.stop()
    assert other.status is SandboxStatus.RUNNING
    assert other.refresh().status is SandboxStatus.STOPPED


def test_a_codebase_can_be_kept_for_later(make_project, endpoint, client):
    sandbox = Sandbox.from_local(make_project(SCRIPTS), preset="read-only", endpoint=endpoint)
    try:
        assert sandbox.run("./test.sh").exit_code == 0
    finally:
        sandbox.destroy(delete_codebase=False)
    assert client.get_codebase(sandbox.codebase_id).file_count == 3
    client.delete_codebase(sandbox.codebase_id)
