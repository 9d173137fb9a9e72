"""Every method of `Sandbox`, `AsyncSandbox` and their sessions, against a real server."""

from datetime import datetime, timedelta

import pytest
from agentfense import (
    Permission,
    PermissionRule,
    ResourceLimits,
    SandboxError,
    SandboxStatus,
    SessionStatus,
)

from covers import covers
from in_image import IMAGE, RUNTIME

FILES = {
    "main.py": "print('main ran')\n",
    "README.md": "# Small\n",
    "src/tool.py": "VALUE = 1\n",
    "src/tests/test_tool.py": "assert True\n",
}


@pytest.fixture
def sandbox(api, make_project, endpoint):
    made = api.Sandbox.from_local(make_project(FILES), preset="full-access", endpoint=endpoint)
    yield made
    made.destroy()


@covers("Sandbox.from_local", "Sandbox.__enter__", "Sandbox.__exit__", "Sandbox.run")
def test_with_block_uploads_runs_and_leaves_nothing(api, make_project, endpoint, client):
    path = make_project(FILES)
    with api.Sandbox.from_local(path, preset="read-only", endpoint=endpoint) as sandbox:
        made, codebase = sandbox.id, sandbox.codebase_id
        assert sandbox.run("python3 main.py").stdout == "main ran\n"
    with pytest.raises(SandboxError, match="sandbox not found"):
        client.get_sandbox(made)
    with pytest.raises(SandboxError, match="codebase not found"):
        client.get_codebase(codebase)


@covers(
    "Sandbox.id",
    "Sandbox.codebase_id",
    "Sandbox.status",
    "Sandbox.runtime",
    "Sandbox.info",
    "Sandbox.codebase",
    "Sandbox.__repr__",
)
def test_a_sandbox_tells_about_itself(api, make_project, endpoint):
    limits = ResourceLimits(memory_bytes=256 << 20, pids_limit=64)
    with api.Sandbox.from_local(
        make_project(FILES),
        preset="read-only",
        permissions=[PermissionRule(pattern="/src/**", permission=Permission.VIEW, priority=7)],
        resources=limits,
        labels={"team": "core"},
        owner_id="owner-7",
        codebase_name="told",
        endpoint=endpoint,
    ) as sandbox:
        info, codebase = sandbox.info, sandbox.codebase
        assert sandbox.id == info.id and info.id.startswith("sb_")
        assert sandbox.codebase_id == codebase.id and codebase.id.startswith("cb_")
        assert sandbox.status is SandboxStatus.RUNNING
        assert sandbox.runtime.value == RUNTIME
        assert (codebase.name, codebase.owner_id) == ("told", "owner-7")
        assert info.labels == {"team": "core"}
        assert info.resources == limits
        assert [rule.to_dict() for rule in info.permissions] == [
            {"pattern": "**/*", "permission": "read", "type": "glob", "priority": 0},
            {"pattern": "/src/**", "permission": "view", "type": "glob", "priority": 7},
        ]
        assert info.created_at <= info.started_at <= datetime.now() + timedelta(seconds=5)
        assert info.stopped_at is None and info.expires_at is None and info.image == (IMAGE or None)
        assert info.id in repr(sandbox) and "running" in repr(sandbox)


@covers("Sandbox.start", "Sandbox.stop", "Sandbox.refresh")
def test_a_sandbox_starts_stops_and_starts_again(api, make_project, endpoint, client):
    path = make_project(FILES)
    with api.Sandbox.from_local(
        path, preset="full-access", endpoint=endpoint, auto_start=False
    ) as sandbox:
        assert sandbox.status is SandboxStatus.PENDING
        assert sandbox.start().status is SandboxStatus.RUNNING
        sandbox.run("echo kept > kept.txt; echo kept > /tmp/kept.txt")
        stopped = sandbox.stop()
        assert stopped.status is SandboxStatus.STOPPED and stopped.info.stopped_at is not None
        client.start_sandbox(sandbox.id)
        assert sandbox.status is SandboxStatus.STOPPED, "what was known before is kept"
        assert sandbox.refresh().status is SandboxStatus.RUNNING
        assert sandbox.run("cat kept.txt /tmp/kept.txt").stdout == "kept\nkept\n"


@covers("Sandbox.from_codebase", "Sandbox.destroy")
def test_a_codebase_outlives_the_sandboxes_on_it(api, codebase, client, endpoint):
    client.upload_file(codebase.id, "data.txt", b"shared\n")
    sandbox = api.Sandbox.from_codebase(codebase.id, preset="read-only", endpoint=endpoint)
    assert sandbox.run("cat data.txt").stdout == "shared\n"
    sandbox.destroy()
    sandbox.destroy()
    assert client.get_codebase(codebase.id).id == codebase.id


@covers("Sandbox.destroy")
def test_destroy_keeps_or_deletes_the_codebase_as_told(api, make_project, endpoint, client):
    kept = api.Sandbox.from_local(make_project(FILES), endpoint=endpoint)
    kept.destroy(delete_codebase=False)
    assert client.get_codebase(kept.codebase_id).file_count == len(FILES)
    again = api.Sandbox.from_codebase(kept.codebase_id, endpoint=endpoint)
    again.destroy(delete_codebase=True)
    with pytest.raises(SandboxError, match="codebase not found"):
        client.get_codebase(kept.codebase_id)


@covers("Sandbox.connect")
def test_another_can_connect_to_a_running_sandbox(api, sandbox, endpoint):
    sandbox.run("echo left > left.txt")
    other = api.Sandbox.connect(sandbox.id, endpoint=endpoint)
    assert other.id == sandbox.id and other.codebase_id == sandbox.codebase_id
    assert other.run("cat left.txt").stdout == "left\n"


@covers("Sandbox.run")
def test_run_takes_environment_directory_and_time(api, sandbox):
    result = sandbox.run(
        'echo "$GREETING"; pwd', env={"GREETING": "a $(b) 'c'"}, workdir="/workspace/src"
    )
    assert result.stdout == "a $(b) 'c'\n/workspace/src\n"
    assert (result.exit_code, result.stderr, result.success) == (0, "", True)
    assert timedelta(0) < result.duration < timedelta(seconds=20)


@covers("Sandbox.exec")
def test_exec_takes_input_and_keeps_the_streams_apart(api, sandbox):
    result = sandbox.exec(
        "cat; echo broken >&2; exit 3",
        stdin="one\ntwo",
        env={"A": "1"},
        workdir="/workspace",
        timeout=timedelta(seconds=20),
    )
    assert (result.stdout, result.stderr, result.exit_code) == ("one\ntwo", "broken\n", 3)


@covers("Sandbox.exec_stream")
def test_exec_stream_brings_all_output(api, sandbox):
    pieces = list(sandbox.exec_stream("echo out; echo err >&2; exit 3"))
    assert all(isinstance(piece, bytes) for piece in pieces)
    assert sorted(b"".join(pieces).split()) == [b"err", b"out"]


@covers("Sandbox.exec_stream")
def test_exec_stream_brings_output_while_the_command_runs(api, sandbox):
    # It goes on only when the reader has answered what it read.
    command = "echo ready; until [ -e /workspace/go ]; do sleep 0.02; done; cat; echo done"
    pieces = sandbox.exec_stream(command, stdin="in\n", timeout=timedelta(seconds=20))
    assert next(pieces) == b"ready\n"
    sandbox.run("touch go")
    assert b"".join(pieces) == b"in\ndone\n"


@covers(
    "Sandbox.session",
    "SessionWrapper.id",
    "SessionWrapper.sandbox_id",
    "SessionWrapper.status",
    "SessionWrapper.shell",
    "SessionWrapper.exec",
    "SessionWrapper.close",
    "SessionWrapper.__enter__",
    "SessionWrapper.__exit__",
)
def test_a_session_keeps_its_state_until_it_is_closed(api, sandbox, client):
    with sandbox.session(shell="/bin/bash", env={"FIRST": "1"}) as session:
        assert session.id.startswith("sess_")
        assert session.sandbox_id == sandbox.id
        assert session.status is SessionStatus.ACTIVE
        assert session.shell == "/bin/bash"
        session.exec("cd src; second=2")
        result = session.exec(
            'echo "$FIRST $second $PWD"; echo aside >&2', timeout=timedelta(seconds=20)
        )
        assert (result.stdout, result.stderr) == ("1 2 /workspace/src\n", "aside\n")
        made = session.id
    with pytest.raises(SandboxError):
        client.session_exec(made, "true")
    other = sandbox.session()
    assert other.exec("exit_code() { return 5; }; exit_code").exit_code == 5
    other.close()


@covers("Sandbox.read_file", "Sandbox.read_file_bytes", "Sandbox.write_file", "Sandbox.list_files")
def test_files_go_both_ways_between_caller_and_sandbox(api, sandbox):
    sandbox.write_file("/workspace/in.txt", "from outside ü\n")
    assert sandbox.run("cat in.txt").stdout == "from outside ü\n"
    sandbox.run(
        "mkdir -p out/deep; printf 'made\\n' > out/made.txt; printf '\\377\\0' > out/deep/raw"
    )
    assert sandbox.read_file("/workspace/out/made.txt") == "made\n"
    assert sandbox.read_file("/out/made.txt") == sandbox.read_file("out/made.txt") == "made\n"
    assert sandbox.read_file_bytes("/workspace/out/deep/raw") == b"\xff\x00"
    assert sandbox.list_files() == ["README.md", "in.txt", "main.py", "out", "src"]
    assert sandbox.list_files("/workspace/out", recursive=True) == ["deep/raw", "made.txt"]
