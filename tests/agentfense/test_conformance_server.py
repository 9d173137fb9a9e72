"""The published server's own tests of its service, and its end-to-end flows, over real gRPC.

Where ours differs on purpose: repeating start, stop or destroy succeeds (theirs fails), and a
`type` that is not set means glob. Left out: "Server.New is not nil", an internal.
"""

import time

import grpc
import pytest
from agentfense._gen import codebase_pb2, common_pb2
from agentfense._gen import sandbox_pb2 as pb

from in_image import RUNTIME
from wire import refused

NOT_FOUND = grpc.StatusCode.NOT_FOUND
UNKNOWN = "sb_0123456789abcdef"
RUNNING, STOPPED, PENDING = (
    common_pb2.SANDBOX_STATUS_RUNNING,
    common_pb2.SANDBOX_STATUS_STOPPED,
    common_pb2.SANDBOX_STATUS_PENDING,
)


@pytest.fixture
def calls(stubs):
    return stubs.sandboxes


@pytest.fixture
def create(calls, codebase):
    def make(level=common_pb2.PERMISSION_READ, **fields):
        rule = common_pb2.PermissionRule(pattern="**/*", permission=level)
        fields.setdefault("codebase_id", codebase.id)
        return calls.CreateSandbox(pb.CreateSandboxRequest(permissions=[rule], **fields))

    return make


@pytest.fixture
def running(calls, create):
    return start(calls, create(common_pb2.PERMISSION_WRITE).id)


def get(calls, id):
    return calls.GetSandbox(pb.GetSandboxRequest(sandbox_id=id))


def start(calls, id):
    return calls.StartSandbox(pb.StartSandboxRequest(sandbox_id=id))


def stop(calls, id):
    return calls.StopSandbox(pb.StopSandboxRequest(sandbox_id=id))


def destroy(calls, id):
    return calls.DestroySandbox(pb.DestroySandboxRequest(sandbox_id=id))


def execute(calls, id, command):
    return calls.Exec(pb.ExecRequest(sandbox_id=id, command=command))


def in_codebase(calls, id):
    return [
        each.id for each in calls.ListSandboxes(pb.ListSandboxesRequest(codebase_id=id)).sandboxes
    ]


# ---- sandboxes ---------------------------------------------------------------------------------


def test_create_echoes_what_was_asked_for(create, codebase):
    made = create(labels={"env": "test"})
    assert made.id and made.codebase_id == codebase.id
    assert made.status == PENDING and len(made.permissions) == 1
    assert dict(made.labels) == {"env": "test"}
    assert pb.RuntimeType.Name(made.runtime) == f"RUNTIME_TYPE_{RUNTIME.upper()}", "what it will run in is said"


def test_create_on_an_unknown_codebase_is_refused(create):
    with refused(NOT_FOUND, "CODEBASE_NOT_FOUND"):
        create(codebase_id="cb_0123456789abcdef")


def test_get_finds_what_was_made(calls, create):
    made = create()
    assert get(calls, made.id) == made


@pytest.mark.parametrize("call", [get, start, stop, destroy])
@pytest.mark.parametrize("id", [UNKNOWN, "../../victim"])
def test_an_id_that_never_existed_is_refused(calls, call, id):
    with refused(NOT_FOUND, "SANDBOX_NOT_FOUND"):
        call(calls, id)


def test_list_has_all_and_can_be_narrowed_to_a_codebase(calls, client, create, codebase):
    other = client.create_codebase(name="other", owner_id="tests")
    made = [create().id, create().id, create(codebase_id=other.id).id]
    listed = [each.id for each in calls.ListSandboxes(pb.ListSandboxesRequest()).sandboxes]
    assert set(made) <= set(listed)
    assert sorted(in_codebase(calls, codebase.id)) == sorted(made[:2])
    destroy(calls, made[2])
    client.delete_codebase(other.id)


def test_start_sets_status_and_time(calls, create):
    started = start(calls, create().id)
    assert started.status == RUNNING and started.started_at.seconds > 0


def test_stop_sets_status_and_time(calls, running):
    stopped = stop(calls, running.id)
    assert stopped.status == STOPPED and stopped.stopped_at.seconds > 0


def test_a_destroyed_sandbox_is_gone(calls, create):
    made = create()
    destroy(calls, made.id)
    with refused(NOT_FOUND, "SANDBOX_NOT_FOUND"):
        get(calls, made.id)


def test_start_repeated_succeeds(calls, running):
    execute(calls, running.id, "echo kept > /tmp/kept")
    assert start(calls, running.id).status == RUNNING
    assert execute(calls, running.id, "cat /tmp/kept").stdout == "kept\n"


def test_stop_repeated_succeeds(calls, running):
    stop(calls, running.id)
    assert stop(calls, running.id).status == STOPPED


def test_destroy_repeated_succeeds(calls, running):
    destroy(calls, running.id)
    destroy(calls, running.id)


def test_exec_returns_what_was_printed(calls, running):
    result = execute(calls, running.id, "echo hello world")
    assert (result.stdout, result.exit_code) == ("hello world\n", 0)


@pytest.mark.parametrize(
    "prepare", [lambda calls, id: None, lambda calls, id: (start(calls, id), stop(calls, id))]
)
def test_exec_where_nothing_runs_is_refused(calls, create, prepare):
    made = create()
    prepare(calls, made.id)
    with refused(grpc.StatusCode.FAILED_PRECONDITION, "SANDBOX_NOT_RUNNING"):
        execute(calls, made.id, "true")


def test_a_sandbox_is_destroyed_when_its_time_is_over(calls, create):
    made = create(expires_in={"seconds": 1})
    start(calls, made.id)
    deadline = time.monotonic() + 15
    with refused(NOT_FOUND, "SANDBOX_NOT_FOUND"):
        while time.monotonic() < deadline:
            get(calls, made.id)
            time.sleep(0.05)


# ---- the end-to-end flows ----------------------------------------------------------------------


def upload(stubs, id, path, content):
    meta = codebase_pb2.UploadChunk.Metadata(codebase_id=id, file_path=path)
    chunks = [codebase_pb2.UploadChunk(metadata=meta), codebase_pb2.UploadChunk(data=content)]
    return stubs.codebases.UploadFiles(iter(chunks))


def files_of(stubs, id):
    request = codebase_pb2.ListFilesRequest(codebase_id=id, recursive=True)
    return [file for file in stubs.codebases.ListFiles(request).files if not file.is_dir]


def test_the_whole_way_from_codebase_to_nothing(stubs):
    made = stubs.codebases.CreateCodebase(
        codebase_pb2.CreateCodebaseRequest(name="e2e", owner_id="tests")
    )
    assert upload(stubs, made.id, "test.txt", b"hello world!").file_path == "test.txt"
    assert len(files_of(stubs, made.id)) == 1
    rule = common_pb2.PermissionRule(pattern="**/*", permission=common_pb2.PERMISSION_READ)
    calls = stubs.sandboxes
    sandbox = calls.CreateSandbox(pb.CreateSandboxRequest(codebase_id=made.id, permissions=[rule]))
    assert sandbox.status == PENDING
    assert start(calls, sandbox.id).status == RUNNING
    result = execute(calls, sandbox.id, "cat test.txt")
    assert (result.stdout, result.exit_code) == ("hello world!", 0)
    assert stop(calls, sandbox.id).status == STOPPED
    destroy(calls, sandbox.id)
    with refused(NOT_FOUND):
        get(calls, sandbox.id)
    stubs.codebases.DeleteCodebase(codebase_pb2.DeleteCodebaseRequest(codebase_id=made.id))


def test_three_sandboxes_of_different_levels_on_one_codebase(stubs, calls, create, codebase):
    upload(stubs, codebase.id, "a.txt", b"a\n")
    levels = [common_pb2.PERMISSION_READ, common_pb2.PERMISSION_WRITE, common_pb2.PERMISSION_VIEW]
    made = [start(calls, create(level).id) for level in levels]
    assert sorted(in_codebase(calls, codebase.id)) == sorted(each.id for each in made)
    tried = "(cat a.txt; echo more >> a.txt) 2>/dev/null"
    assert [execute(calls, each.id, tried).exit_code == 0 for each in made] == [False, True, False]
    assert [execute(calls, each.id, "cat a.txt 2>/dev/null").stdout for each in made] == [
        "a\n",
        "a\nmore\n",
        "",
    ]


def test_files_of_a_small_project(stubs, codebase):
    project = {
        "readme.md": b"#\n",
        "src/main.py": b"print()\n",
        "src/utils.py": b"",
        "config.yaml": b"a: 1\n",
    }
    for path, content in project.items():
        upload(stubs, codebase.id, path, content)
    assert len(files_of(stubs, codebase.id)) == 4
    request = codebase_pb2.DownloadFileRequest(codebase_id=codebase.id, file_path="src/main.py")
    assert (
        b"".join(chunk.data for chunk in stubs.codebases.DownloadFile(request))
        == project["src/main.py"]
    )


def test_the_life_of_a_session(calls, running):
    made = calls.CreateSession(
        pb.CreateSessionRequest(sandbox_id=running.id, shell="/bin/sh", env={"INIT_VAR": "set"})
    )
    assert made.status == common_pb2.SESSION_STATUS_ACTIVE and made.shell == "/bin/sh"
    assert calls.GetSession(pb.GetSessionRequest(session_id=made.id)).id == made.id
    listed = calls.ListSessions(pb.ListSessionsRequest(sandbox_id=running.id)).sessions
    assert [each.id for each in listed] == [made.id]
    result = calls.SessionExec(pb.SessionExecRequest(session_id=made.id, command="echo $INIT_VAR"))
    assert (result.stdout, result.exit_code) == ("set\n", 0)
    calls.DestroySession(pb.DestroySessionRequest(session_id=made.id))
    with refused(NOT_FOUND, "SESSION_NOT_FOUND"):
        calls.GetSession(pb.GetSessionRequest(session_id=made.id))


def test_three_sessions_and_then_none(calls, running):
    create = pb.CreateSessionRequest(sandbox_id=running.id, shell="/bin/sh")
    made = [calls.CreateSession(create).id for _ in range(3)]
    asked = pb.ListSessionsRequest(sandbox_id=running.id)
    assert [each.id for each in calls.ListSessions(asked).sessions] == made
    for id in made:
        calls.DestroySession(pb.DestroySessionRequest(session_id=id))
    assert not calls.ListSessions(asked).sessions


def test_a_session_streams_its_output(calls, running):
    """On the wire, though the published client has no method for it."""
    made = calls.CreateSession(pb.CreateSessionRequest(sandbox_id=running.id, shell="/bin/sh"))
    request = pb.SessionExecRequest(session_id=made.id, command="echo out; echo err >&2")
    pieces = [(piece.type, piece.data) for piece in calls.SessionExecStream(request) if piece.data]
    assert sorted(pieces) == [
        (pb.ExecOutput.OUTPUT_TYPE_STDOUT, b"out\n"),
        (pb.ExecOutput.OUTPUT_TYPE_STDERR, b"err\n"),
    ]


def test_destroying_the_sandbox_ends_its_sessions(calls, running):
    made = calls.CreateSession(pb.CreateSessionRequest(sandbox_id=running.id, shell="/bin/sh"))
    calls.SessionExec(pb.SessionExecRequest(session_id=made.id, command="sleep 1000 &"))
    destroy(calls, running.id)
    with refused(NOT_FOUND):
        calls.SessionExec(pb.SessionExecRequest(session_id=made.id, command="true"))
