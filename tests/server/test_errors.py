"""Every row of the table of errors, on gRPC and on REST."""

import grpc
import pytest

from rest import Rest
from wire import refused, v1

CODE = grpc.StatusCode
NOWHERE = "0123456789abcdef"


class Ways:
    """The same call on both ways: a method and its message, a verb and its route."""

    def __init__(self, server):
        self.client, self.rest = server.client(), Rest(server.endpoint)

    def both_refuse(self, grpc_call, rest_call, code, status, http, details=()):
        with refused() as how:
            grpc_call()
        assert (how.code, how.status) == (code, status), how.message
        answered, said = rest_call()
        assert (said["code"], answered) == (code, http), said
        assert set(said) == {"code", "message", "details"}
        for where in (how.details, said["details"]):
            assert set(details) <= set(where), where
        for message in (how.message, said["message"]):
            assert message and "/tmp/" not in message and "/var/" not in message


@pytest.fixture
def ways(server):
    both = Ways(server)
    yield both
    both.client.channel.close()


def test_a_missing_argument(ways):
    ways.both_refuse(
        lambda: ways.client.codebase.CreateCodebase(v1.CreateCodebaseRequest(owner_id="x")),
        lambda: ways.rest("POST", "/v1/codebases", ownerId="x"),
        "INVALID_ARGUMENT", CODE.INVALID_ARGUMENT, 400)


def test_a_malformed_rule(ways):
    codebase = ways.client.new_codebase()
    rule = v1.PermissionRule(pattern="**/[ab", permission=v1.PERMISSION_READ)
    ways.both_refuse(
        lambda: ways.client.sandbox.CreateSandbox(
            v1.CreateSandboxRequest(codebase_id=codebase, permissions=[rule])),
        lambda: ways.rest("POST", "/v1/sandboxes", codebaseId=codebase,
                          permissions=[{"pattern": "**/[ab", "permission": "PERMISSION_READ"}]),
        "INVALID_ARGUMENT", CODE.INVALID_ARGUMENT, 400)


@pytest.mark.parametrize("path", ["../escape", "a/../../escape", "/../x", "a\0b"])
def test_an_illegal_path(ways, path):
    codebase = ways.client.new_codebase()
    ways.both_refuse(
        lambda: ways.client.codebase.ListFiles(
            v1.ListFilesRequest(codebase_id=codebase, path=path)),
        lambda: ways.rest("GET", f"/v1/codebases/{codebase}/files?path="
                          + path.replace("\0", "%00")),
        "INVALID_ARGUMENT", CODE.INVALID_ARGUMENT, 400)


@pytest.mark.parametrize("odd", [f"sb_{NOWHERE}", "sb_../../../../etc", "..%2f..%2fetc", "x" * 5000])
def test_an_unknown_sandbox(ways, odd):
    ways.both_refuse(
        lambda: ways.client.sandbox.GetSandbox(v1.GetSandboxRequest(sandbox_id=odd)),
        lambda: ways.rest("GET", "/v1/sandboxes/" + odd.replace("/", "%2f")),
        "SANDBOX_NOT_FOUND", CODE.NOT_FOUND, 404)


@pytest.mark.parametrize("odd", [f"cb_{NOWHERE}", "cb_../../../../etc", "../../victim"])
def test_an_unknown_codebase(ways, odd):
    ways.both_refuse(
        lambda: ways.client.codebase.DeleteCodebase(v1.DeleteCodebaseRequest(codebase_id=odd)),
        lambda: ways.rest("DELETE", "/v1/codebases/" + odd.replace("/", "%2f")),
        "CODEBASE_NOT_FOUND", CODE.NOT_FOUND, 404)


def test_an_unknown_session(ways):
    ways.both_refuse(
        lambda: ways.client.sandbox.GetSession(
            v1.GetSessionRequest(session_id=f"sess_{NOWHERE}")),
        lambda: ways.rest("GET", f"/v1/sessions/sess_{NOWHERE}"),
        "SESSION_NOT_FOUND", CODE.NOT_FOUND, 404)


def test_an_unknown_process(ways, sandbox):
    ways.both_refuse(
        lambda: ways.client.process.GetProcess(
            v1.GetProcessRequest(sandbox_id=sandbox, process_id="proc_none")),
        lambda: ways.rest("GET", f"/v1/sandboxes/{sandbox}/processes/proc_none"),
        "PROCESS_NOT_FOUND", CODE.NOT_FOUND, 404)


def test_an_unknown_file(ways, sandbox):
    ways.both_refuse(
        lambda: ways.client.workspace.StatFile(
            v1.FileRequest(sandbox_id=sandbox, path="/nothing")),
        lambda: ways.rest("GET", f"/v1/sandboxes/{sandbox}/stat?path=/nothing"),
        "FILE_NOT_FOUND", CODE.NOT_FOUND, 404)


def test_what_the_policy_refuses(ways):
    codebase = ways.client.new_codebase(secret_txt=b"s")
    sandbox = ways.client.new_sandbox(codebase, preset="view-only")
    ways.both_refuse(
        lambda: list(ways.client.workspace.ReadFile(v1.ReadFileRequest(
            sandbox_id=sandbox, path="/secret.txt", view=v1.VIEW_AGENT))),
        lambda: ways.rest("GET", f"/v1/sandboxes/{sandbox}/files/secret.txt?view=VIEW_AGENT"),
        "PERMISSION_DENIED", CODE.PERMISSION_DENIED, 403, ["path", "level_needed", "rule"])


def test_a_file_that_is_there(ways, sandbox):
    ways.both_refuse(
        lambda: ways.client.workspace.MakeSymlink(
            v1.MakeSymlinkRequest(sandbox_id=sandbox, path="/hello.txt", target="x")),
        lambda: ways.rest("POST", f"/v1/sandboxes/{sandbox}/symlink", path="/hello.txt", target="x"),
        "FILE_ALREADY_EXISTS", CODE.ALREADY_EXISTS, 409, ["path"])


def test_links_that_lead_nowhere_at_all(ways, sandbox):
    for target in ("", "a\0b", "x" * 4096):
        ways.both_refuse(
            lambda: ways.client.workspace.MakeSymlink(
                v1.MakeSymlinkRequest(sandbox_id=sandbox, path="/link", target=target)),
            lambda: ways.rest("POST", f"/v1/sandboxes/{sandbox}/symlink", path="/link", target=target),
            "INVALID_ARGUMENT", CODE.INVALID_ARGUMENT, 400)


def test_a_sandbox_that_does_not_run(ways):
    codebase = ways.client.new_codebase()
    asked = v1.CreateSandboxRequest(codebase_id=codebase)
    sandbox = ways.client.sandbox.CreateSandbox(asked).id
    ways.both_refuse(
        lambda: ways.client.run(sandbox, "true"),
        lambda: ways.rest("POST", f"/v1/sandboxes/{sandbox}/exec", command="true"),
        "SANDBOX_NOT_RUNNING", CODE.FAILED_PRECONDITION, 409, ["status"])


def test_a_session_that_has_ended(ways, sandbox):
    made = ways.client.sandbox.CreateSession(v1.CreateSessionRequest(sandbox_id=sandbox)).id
    ended = ways.client.sandbox.SessionExec(
        v1.SessionExecRequest(session_id=made, command="exit 7"))
    assert ended.exit_code == 7 and ended.bill.session_ended
    ways.both_refuse(
        lambda: ways.client.sandbox.SessionExec(
            v1.SessionExecRequest(session_id=made, command="true")),
        lambda: ways.rest("POST", f"/v1/sessions/{made}/exec", command="true"),
        "SESSION_CLOSED", CODE.FAILED_PRECONDITION, 410, ["exit_code"])


def test_a_name_that_is_taken(ways, sandbox):
    ways.client.sandbox.CreateSession(v1.CreateSessionRequest(sandbox_id=sandbox, name="mine"))
    ways.both_refuse(
        lambda: ways.client.sandbox.CreateSession(
            v1.CreateSessionRequest(sandbox_id=sandbox, name="mine")),
        lambda: ways.rest("POST", f"/v1/sandboxes/{sandbox}/sessions", name="mine"),
        "SESSION_ALREADY_EXISTS", CODE.ALREADY_EXISTS, 409)


def test_time_that_ran_out(ways, sandbox):
    command = "echo so far; sleep 100"
    asked = v1.ExecRequest(sandbox_id=sandbox, command=command)
    asked.timeout.FromMilliseconds(300)
    ways.both_refuse(
        lambda: ways.client.sandbox.Exec(asked),
        lambda: ways.rest("POST", f"/v1/sandboxes/{sandbox}/exec", command=command, timeout="0.3s"),
        "COMMAND_TIMEOUT", CODE.DEADLINE_EXCEEDED, 408, ["seconds", "stdout_tail"])
    asked.options.bytes = True
    result = ways.client.sandbox.Exec(asked)
    assert result.bill.timed_out and result.stdout_bytes == b"so far\n"


def test_a_limit_that_is_reached(ways, sandbox):
    for number in range(64):
        try:
            ways.client.sandbox.CreateSession(
                v1.CreateSessionRequest(sandbox_id=sandbox, shell="/bin/sh"))
        except grpc.RpcError:
            break
    ways.both_refuse(
        lambda: ways.client.sandbox.CreateSession(v1.CreateSessionRequest(sandbox_id=sandbox)),
        lambda: ways.rest("POST", f"/v1/sandboxes/{sandbox}/sessions", shell="/bin/sh"),
        "RESOURCE_LIMIT_EXCEEDED", CODE.RESOURCE_EXHAUSTED, 429, ["limit", "most"])


def test_a_runtime_this_host_lacks(ways):
    codebase = ways.client.new_codebase()
    asked = v1.CreateSandboxRequest(
        codebase_id=codebase, runtime=v1.RUNTIME_TYPE_DOCKER, image="debian")
    ways.both_refuse(
        lambda: ways.client.sandbox.CreateSandbox(asked),
        lambda: ways.rest("POST", "/v1/sandboxes", codebaseId=codebase,
                          runtime="RUNTIME_TYPE_DOCKER", image="debian"),
        "UNSUPPORTED", CODE.FAILED_PRECONDITION, 409, ["runtime"])


def test_runtimes_and_images_that_do_not_go_together(ways):
    codebase = ways.client.new_codebase()
    for fields in ({"runtime": "RUNTIME_TYPE_DOCKER"}, {"image": "debian"}):
        asked = v1.CreateSandboxRequest(codebase_id=codebase, **fields)
        ways.both_refuse(
            lambda: ways.client.sandbox.CreateSandbox(asked),
            lambda: ways.rest("POST", "/v1/sandboxes", codebaseId=codebase, **fields),
            "INVALID_ARGUMENT", CODE.INVALID_ARGUMENT, 400)


def test_what_somebody_stands_on_is_not_deleted(ways, sandbox):
    codebase = ways.client.sandbox.GetSandbox(v1.GetSandboxRequest(sandbox_id=sandbox)).codebase_id
    ways.both_refuse(
        lambda: ways.client.codebase.DeleteCodebase(v1.DeleteCodebaseRequest(codebase_id=codebase)),
        lambda: ways.rest("DELETE", f"/v1/codebases/{codebase}"),
        "CODEBASE_IN_USE", CODE.FAILED_PRECONDITION, 409)


def test_routes_and_methods_that_do_not_exist(ways):
    for verb, path in [("GET", "/v1/nothing"), ("PATCH", "/v1/sandboxes"), ("GET", "/")]:
        assert ways.rest(verb, path)[1]["code"] == "ROUTE_NOT_FOUND"
    call = ways.client.channel.unary_unary("/sandbox.v1.SandboxService/Nothing")
    with refused() as how:
        call(b"")
    assert how.status == CODE.UNIMPLEMENTED


@pytest.mark.parametrize("body, kind", [
    (b"{", "application/json"), (b"[]", "application/json"), (b'{"a": 1}', "application/json"),
    (b'{"name": 7}', "application/json"), (b"\xff\xfe", "application/json"),
    (b'{"name": "x", "ownerId": "y"}', "text/plain"), (b'{"name": "x"}', None)])
def test_bodies_that_make_no_sense(ways, body, kind):
    headers = {"content-type": kind} if kind else {}
    status, _, said = ways.rest.raw("POST", "/v1/codebases", body, headers)
    assert status == 400 and b"INVALID_ARGUMENT" in said


def test_bytes_that_are_no_message(ways):
    call = ways.client.channel.unary_unary("/sandbox.v1.SandboxService/CreateSandbox")
    for garbage in (b"\xff" * 10, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x02\xff\xfe"):
        with refused() as how:
            call(garbage)
        assert how.status in (CODE.INTERNAL, CODE.INVALID_ARGUMENT)
