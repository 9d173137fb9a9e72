"""Every method of `SandboxClient` and `AsyncSandboxClient`, against a real server."""

import hashlib
from datetime import timedelta

import pytest
from agentfense import ResourceLimits, RuntimeType, SandboxStatus, SessionStatus

from covers import covers
from in_image import RUNTIME


@pytest.fixture
def low_level(api, endpoint):
    with api.SandboxClient(endpoint=endpoint) as connected:
        yield connected


def started(client, codebase):
    rules = [{"pattern": "**/*", "permission": "write"}]
    return client.start_sandbox(client.create_sandbox(codebase.id, permissions=rules).id)


@covers("SandboxClient.__enter__", "SandboxClient.__exit__", "SandboxClient.close")
def test_a_client_is_of_no_use_once_closed(api, endpoint):
    with api.SandboxClient(endpoint=endpoint) as client:
        client.list_sandboxes()
    # Each library has its own error for a channel that is closed.
    with pytest.raises(Exception, match="(?i)closed|shut|cancelled"):
        client.list_sandboxes()
    other = api.SandboxClient(endpoint=endpoint)
    other.close()


@covers(
    "SandboxClient.create_codebase",
    "SandboxClient.get_codebase",
    "SandboxClient.list_codebases",
    "SandboxClient.delete_codebase",
)
def test_codebases_are_made_found_listed_and_deleted(api, low_level):
    made = low_level.create_codebase(name="one", owner_id="owner-of-one")
    assert (made.name, made.owner_id, made.size, made.file_count) == ("one", "owner-of-one", 0, 0)
    assert low_level.get_codebase(made.id) == made
    assert low_level.list_codebases(owner_id="owner-of-one") == [made]
    assert made in low_level.list_codebases()
    low_level.delete_codebase(made.id)
    assert low_level.list_codebases(owner_id="owner-of-one") == []


@covers("SandboxClient.upload_file", "SandboxClient.download_file", "SandboxClient.list_files")
def test_files_are_stored_as_they_were_sent(api, low_level, codebase):
    content = bytes(range(256)) * 1024
    sent = low_level.upload_file(codebase.id, "deep/er/data.bin", content, chunk_size=10_000)
    assert (sent.codebase_id, sent.file_path) == (codebase.id, "deep/er/data.bin")
    assert (sent.size, sent.checksum) == (len(content), hashlib.md5(content).hexdigest())
    low_level.upload_file(codebase.id, "empty", b"")
    assert low_level.download_file(codebase.id, "deep/er/data.bin") == content
    assert low_level.download_file(codebase.id, "empty") == b""
    top = low_level.list_files(codebase.id)
    assert [(f.path, f.name, f.is_dir) for f in top] == [
        ("deep", "deep", True),
        ("empty", "empty", False),
    ]
    (found,) = low_level.list_files(codebase.id, path="/deep", recursive=True)
    assert (found.path, found.name, found.size) == ("er/data.bin", "data.bin", len(content))
    assert found.modified_at is not None


@covers(
    "SandboxClient.create_sandbox",
    "SandboxClient.get_sandbox",
    "SandboxClient.list_sandboxes",
    "SandboxClient.start_sandbox",
    "SandboxClient.stop_sandbox",
    "SandboxClient.destroy_sandbox",
)
def test_the_life_of_a_sandbox_step_by_step(api, low_level, codebase):
    made = low_level.create_sandbox(
        codebase_id=codebase.id,
        permissions=[
            {"pattern": "/docs", "type": "directory", "permission": "write", "priority": 3}
        ],
        labels={"run": "17"},
        expires_in=timedelta(hours=1),
        runtime=RuntimeType.BWRAP,
        resources=ResourceLimits(
            memory_bytes=128 << 20, cpu_quota=50_000, cpu_shares=512, pids_limit=50
        ),
    )
    assert made.status is SandboxStatus.PENDING and made.started_at is None
    assert made.labels == {"run": "17"} and made.runtime.value == RUNTIME
    assert made.expires_at - made.created_at == pytest.approx(
        timedelta(hours=1), abs=timedelta(seconds=2)
    )
    assert made.resources == ResourceLimits(128 << 20, 50_000, 512, 50)
    (rule,) = made.permissions
    assert rule.to_dict() == {
        "pattern": "/docs",
        "type": "directory",
        "permission": "write",
        "priority": 3,
    }
    assert low_level.get_sandbox(made.id) == made
    assert low_level.list_sandboxes(codebase_id=codebase.id) == [made]
    assert made.id in [each.id for each in low_level.list_sandboxes()]
    assert low_level.start_sandbox(made.id).status is SandboxStatus.RUNNING
    assert low_level.stop_sandbox(made.id).status is SandboxStatus.STOPPED
    low_level.destroy_sandbox(made.id)
    assert low_level.list_sandboxes(codebase_id=codebase.id) == []


@covers("SandboxClient.exec", "SandboxClient.exec_stream")
def test_commands_run_through_the_low_level_client(api, low_level, codebase):
    sandbox = started(low_level, codebase)
    result = low_level.exec(
        sandbox.id,
        "cat; echo $X",
        stdin="in\n",
        env={"X": "x"},
        workdir="/tmp",
        timeout=timedelta(seconds=20),
    )
    assert (result.stdout, result.exit_code, result.command) == ("in\nx\n", 0, "cat; echo $X")
    pieces = low_level.exec_stream(
        sandbox.id,
        "cat; pwd",
        stdin="in\n",
        env={"X": "x"},
        workdir="/tmp",
        timeout=timedelta(seconds=20),
    )
    assert b"".join(pieces) == b"in\n/tmp\n"


@covers(
    "SandboxClient.create_session",
    "SandboxClient.session",
    "SandboxClient.get_session",
    "SandboxClient.list_sessions",
    "SandboxClient.session_exec",
    "SandboxClient.destroy_session",
)
def test_sessions_through_the_low_level_client(api, low_level, codebase):
    sandbox = started(low_level, codebase)
    made = low_level.create_session(sandbox.id, shell="/bin/sh", env={"A": "a"})
    found = low_level.get_session(made.id)
    assert (found.id, found.sandbox_id, found.shell) == (made.id, sandbox.id, "/bin/sh")
    assert found.status is SessionStatus.ACTIVE
    assert found.created_at is not None and found.closed_at is None
    with low_level.session(sandbox.id) as other:
        listed = [each.id for each in low_level.list_sessions(sandbox.id)]
        assert listed == [made.id, other.id], "oldest first"
    assert low_level.session_exec(made.id, "echo $A", timeout=timedelta(seconds=20)).stdout == "a\n"
    low_level.destroy_session(made.id)
    assert low_level.list_sessions(sandbox.id) == []
