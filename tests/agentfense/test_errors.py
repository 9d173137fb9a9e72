"""Each exception that the published client can raise, from a situation that really causes it."""

import json
from datetime import timedelta

import agentfense
import grpc
import pytest
from agentfense import (
    CommandExecutionError,
    CommandTimeoutError,
    InvalidConfigurationError,
    PermissionDeniedError,
    ResourceLimitExceededError,
    ResourceLimits,
    RuntimeType,
    SandboxClient,
    SandboxError,
)
from agentfense._gen import codebase_pb2, sandbox_pb2
from agentfense.exceptions import from_grpc_error

from server import Server, free_port
from wire import API, assert_no_host_path, call_ours, info_of, ours, refused

NOWHERE = "sb_0123456789abcdef"


def plain(error):
    """The exception is this class and none derived from it."""
    assert type(error) is SandboxError
    assert_no_host_path(str(error))
    return error


# ---- SandboxError ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda c: c.get_sandbox(NOWHERE), "sandbox not found"),
        (lambda c: c.start_sandbox(NOWHERE), "sandbox not found"),
        (lambda c: c.exec(NOWHERE, "true"), "sandbox not found"),
        (lambda c: c.create_session(NOWHERE), "sandbox not found"),
        (lambda c: c.get_session("sess_0123456789abcdef"), "session not found"),
        (lambda c: c.session_exec("sess_0123456789abcdef", "true"), "session not found"),
        (lambda c: c.get_codebase("cb_0123456789abcdef"), "codebase not found"),
        (lambda c: c.get_codebase("../../etc/passwd"), "codebase not found"),
        (lambda c: c.create_sandbox("cb_0123456789abcdef"), "codebase not found"),
    ],
)
def test_what_does_not_exist_is_a_sandbox_error(client, ask, text):
    with pytest.raises(SandboxError, match=text) as caught:
        ask(client)
    assert plain(caught.value).grpc_code == grpc.StatusCode.NOT_FOUND.value


@pytest.mark.parametrize(
    ("ask", "name"),
    [
        (lambda c, id: c.download_file(id, "no/such.txt"), "no/such.txt"),
        (lambda c, id: c.list_files(id, "no/such"), "no/such"),
        (lambda c, id: c.list_files(id, "no/such", recursive=True), "no/such"),
    ],
)
def test_a_missing_file_or_directory_is_named(client, codebase, ask, name):
    with pytest.raises(SandboxError, match=name) as caught:
        ask(client, codebase.id)
    assert plain(caught.value).grpc_code == grpc.StatusCode.NOT_FOUND.value


@pytest.mark.parametrize(
    "ask",
    [
        lambda c, id: c.exec(id, "true"),
        lambda c, id: c.create_session(id),
    ],
)
def test_a_sandbox_that_does_not_run_says_what_it_does(client, codebase, ask):
    sandbox = client.create_sandbox(codebase.id)
    with pytest.raises(SandboxError, match="(?i)pending") as caught:
        ask(client, sandbox.id)
    assert plain(caught.value).grpc_code == grpc.StatusCode.FAILED_PRECONDITION.value


def test_a_session_that_has_ended_says_so(shared):
    session = shared.session()
    assert session.exec("exit 7").exit_code == 7
    with pytest.raises(SandboxError, match="7") as caught:
        session.exec("true")
    assert plain(caught.value).grpc_code == grpc.StatusCode.FAILED_PRECONDITION.value


def test_a_codebase_in_use_is_not_deleted(client, codebase):
    client.create_sandbox(codebase.id)
    with pytest.raises(SandboxError) as caught:
        client.delete_codebase(codebase.id)
    assert plain(caught.value).grpc_code == grpc.StatusCode.FAILED_PRECONDITION.value


# ---- CommandTimeoutError, CommandExecutionError ------------------------------------------------


def test_a_command_out_of_time_is_a_timeout_error(shared):
    with pytest.raises(CommandTimeoutError, match="timed out after [0-9]"):
        shared.exec("sleep 60", timeout=timedelta(seconds=0.3))
    with shared.session() as session:
        with pytest.raises(CommandTimeoutError):
            session.exec("sleep 60", timeout=timedelta(seconds=0.3))
        assert session.exec("echo alive").stdout == "alive\n"


def test_a_timeout_brings_the_end_of_what_was_printed(stubs, shared):
    request = sandbox_pb2.ExecRequest(
        sandbox_id=shared.id, command="seq 1 9999; echo oops >&2; echo last; sleep 60"
    )
    request.timeout.FromTimedelta(timedelta(seconds=1.5))
    with refused(grpc.StatusCode.DEADLINE_EXCEEDED, "COMMAND_TIMEOUT") as caught:
        stubs.sandboxes.Exec(request)
    said = info_of(caught.value).metadata
    assert said["stdout_tail"].endswith("9999\nlast\n") and said["stderr_tail"] == "oops\n"
    assert 1.5 <= float(said["seconds"]) < 10
    assert sum(map(len, said.values())) < 4096 + 100


def test_a_failing_command_raises_when_asked_to(shared):
    with pytest.raises(CommandExecutionError) as caught:
        shared.run("echo half; echo why >&2; exit 9", raise_on_error=True)
    error = caught.value
    assert (error.exit_code, error.stdout, error.stderr) == (9, "half\n", "why\n")
    with pytest.raises(CommandExecutionError):
        shared.run("false").raise_on_error()


# ---- InvalidConfigurationError -----------------------------------------------------------------


def rule(pattern):
    return [{"pattern": pattern, "permission": "none"}]


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda c, id: c.create_codebase(name="", owner_id="o"), "name is required"),
        (lambda c, id: c.create_codebase(name="n", owner_id=""), "owner_id is required"),
        (lambda c, id: c.get_codebase(""), "codebase_id is required"),
        (lambda c, id: c.create_sandbox(""), "codebase_id is required"),
        (lambda c, id: c.get_sandbox(""), "sandbox_id is required"),
        (lambda c, id: c.exec("", "true"), "sandbox_id is required"),
        (lambda c, id: c.exec(NOWHERE, ""), "command is required"),
        (lambda c, id: c.get_session(""), "session_id is required"),
        (lambda c, id: c.upload_file(id, "", b"x"), "is required"),
        (lambda c, id: c.upload_file(id, "../x", b"x"), r"\.\./x"),
        (lambda c, id: c.upload_file(id, "a/../../x", b"x"), r"a/\.\./\.\./x"),
        (lambda c, id: c.download_file(id, "../x"), r"\.\./x"),
        (lambda c, id: c.list_files(id, "../x"), r"\.\./x"),
        (lambda c, id: c.create_sandbox(id, permissions=rule("**/[ab")), r"\[ab"),
        (lambda c, id: c.create_sandbox(id, permissions=rule("a/../b")), r"a/\.\./b"),
        (lambda c, id: c.create_sandbox(id, permissions=rule("")), "pattern"),
        (lambda c, id: c.create_sandbox(id, image="python:3"), "image"),
        (lambda c, id: c.create_sandbox(id, runtime=RuntimeType.DOCKER), "image"),
        (lambda c, id: c.create_sandbox(id, expires_in=timedelta(seconds=-5)), "negative"),
        (lambda c, id: c.create_sandbox(id, resources=ResourceLimits(memory_bytes=-1)), "memory"),
    ],
)
def test_a_bad_argument_is_an_invalid_configuration(client, codebase, ask, text):
    with pytest.raises(InvalidConfigurationError, match=text) as caught:
        ask(client, codebase.id)
    assert_no_host_path(str(caught.value))


@pytest.mark.parametrize("name", ["A B", "1A", "A=B", ""])
def test_a_name_that_is_none_for_a_variable_is_refused(shared, name):
    with pytest.raises(InvalidConfigurationError):
        shared.run("true", env={name: "x"})


def test_uploads_that_begin_wrong_are_refused(stubs, codebase):
    meta = codebase_pb2.UploadChunk(
        metadata=codebase_pb2.UploadChunk.Metadata(codebase_id=codebase.id, file_path="a")
    )
    data = codebase_pb2.UploadChunk(data=b"x")
    for chunks in ([data, meta], [meta, meta], []):
        with refused(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT", "metadata"):
            stubs.codebases.UploadFiles(iter(chunks))
    listed = stubs.codebases.ListFiles(codebase_pb2.ListFilesRequest(codebase_id=codebase.id))
    assert not listed.files, "an upload that failed leaves nothing"


# ---- ConnectionError, ResourceLimitExceededError, PermissionDeniedError -------------------------


def test_no_server_is_a_connection_error(make_project):
    nobody = f"127.0.0.1:{free_port()}"
    with SandboxClient(nobody) as client:
        with pytest.raises(agentfense.ConnectionError):
            client.list_sandboxes()
    with pytest.raises(agentfense.ConnectionError):
        agentfense.Sandbox.from_local(make_project({"a": "a"}), endpoint=nobody)


def test_one_sandbox_too_many_is_a_resource_limit():
    with Server("--max-sandboxes", "1") as server, SandboxClient(server.endpoint) as client:
        codebase = client.create_codebase(name="n", owner_id="o")
        first = client.create_sandbox(codebase.id)
        with pytest.raises(ResourceLimitExceededError, match="1"):
            client.create_sandbox(codebase.id)
        client.destroy_sandbox(first.id)
        client.create_sandbox(codebase.id)


def test_a_caller_without_the_token_that_is_asked_for_may_do_nothing():
    """The client cannot send one, so it is for servers that ask for none."""
    with Server("--require-token") as server, SandboxClient(server.endpoint) as client:
        for ask in (client.list_sandboxes, client.list_codebases):
            with pytest.raises(SandboxError) as caught:
                ask()
            assert plain(caught.value).grpc_code == grpc.StatusCode.UNAUTHENTICATED.value


def test_what_the_policy_refuses_is_a_permission_error(client, open_sandbox):
    """No call of the published client has the agent's view, so this is one of ours."""
    sandbox = open_sandbox({"a.txt": "a\n"}, preset="view-only")
    request = ours("ReadFileRequest", sandbox_id=sandbox.id, path="/a.txt", view=2)
    with refused(grpc.StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED") as caught:
        call_ours(client._channel, "WorkspaceService/ReadFile", request)
    said = info_of(caught.value).metadata
    assert (said["path"], said["level_needed"]) == ("/a.txt", "read") and "**/*" in said["rule"]
    assert isinstance(from_grpc_error(caught.value, "read file"), PermissionDeniedError)


# ---- what all errors have in common ------------------------------------------------------------


def registry():
    return {each["code"]: each["grpc"] for each in json.loads((API / "errors.json").read_text())}


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (
            lambda s: s.sandboxes.GetSandbox(sandbox_pb2.GetSandboxRequest(sandbox_id=NOWHERE)),
            "SANDBOX_NOT_FOUND",
        ),
        (
            lambda s: s.sandboxes.GetSession(sandbox_pb2.GetSessionRequest(session_id="x")),
            "SESSION_NOT_FOUND",
        ),
        (
            lambda s: s.codebases.GetCodebase(codebase_pb2.GetCodebaseRequest(codebase_id="x")),
            "CODEBASE_NOT_FOUND",
        ),
        (lambda s: s.sandboxes.GetSandbox(sandbox_pb2.GetSandboxRequest()), "INVALID_ARGUMENT"),
    ],
)
def test_errors_carry_the_stable_code_of_the_registry(stubs, call, code):
    with refused(grpc.StatusCode[registry()[code]], code) as caught:
        call(stubs)
    assert info_of(caught.value).domain == "ringfence"


def test_an_error_of_a_stream_comes_when_it_is_read(client):
    """The blocking client leaves it as the library's own; it has the code at least."""
    pieces = client.exec_stream(NOWHERE, "true")
    with refused(grpc.StatusCode.NOT_FOUND, "SANDBOX_NOT_FOUND"):
        next(pieces)


def test_output_that_is_too_much_for_the_client_is_cut_in_the_middle(shared):
    result = shared.run(
        "printf begin; head -c 9000000 /dev/zero | tr '\\0' x; printf end; seq 500000 >&2"
    )
    assert result.stdout.startswith("beginxxx") and result.stdout.endswith("xxxend")
    assert result.stderr.startswith("1\n2\n") and result.stderr.endswith("499999\n500000\n")
    assert "ringfence" in result.stdout, "a line in the gap says what was left out"
    assert len(result.stdout.encode()) + len(result.stderr.encode()) <= 3.5 * (1 << 20)


def test_output_that_is_not_text_does_not_break_the_call(shared):
    result = shared.run("printf 'a\\377b\\0c'; printf '\\303' >&2")
    assert (result.stdout, result.stderr) == ("a\ufffdb\0c", "\ufffd")


def test_the_end_of_a_stream_tells_the_exit_code(stubs, shared):
    call = stubs.sandboxes.ExecStream(
        sandbox_pb2.ExecRequest(sandbox_id=shared.id, command="exit 3")
    )
    assert b"".join(piece.data for piece in call) == b""
    trailers = {each.key: each.value for each in call.trailing_metadata()}
    assert call.code() is grpc.StatusCode.OK and trailers["ringfence-exit-code"] == "3"
