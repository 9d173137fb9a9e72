"""What goes wrong, as a table: one function for each way to get an exception, and what it must carry.

`provoke(scene)` has `scene.sandbox` (running, preset `agent-safe`), its `scene.client`, `scene.where`
and `scene.root`. What it makes it also removes.
"""

import contextlib
from dataclasses import dataclass, field
from typing import Callable

import ringfence
from ringfence import RuntimeType, Sandbox, SandboxClient

import impostors
import servers

PARENTS = {"CodebaseError", "ProcessError", "SessionError", "TerminalError"}
"""For those who catch; what is raised is always one of their children."""


@dataclass(frozen=True)
class Situation:
    kind: type
    provoke: Callable
    code: str
    fields: dict = field(default_factory=dict)

    @property
    def name(self):
        return f"{self.kind.__name__}-{self.provoke.__name__}"


SITUATIONS = []


def raises(kind, code=None, **fields):
    """Puts a function into the table. A field is a value, or a question about it."""
    def listed(provoke):
        SITUATIONS.append(Situation(kind, provoke, code, fields))
        return provoke
    return listed


def has(text):
    return lambda value: text in value


def idle(scene, **options):
    """Another sandbox on the same files, that is not started."""
    return Sandbox.from_codebase(
        scene.sandbox.codebase_id, auto_start=False, client=scene.client, **options)


@raises(ringfence.ConnectionError, endpoint=has("127.0.0.1:"), details=has("ringfence serve"),
        grpc_code="UNAVAILABLE")
def nobody_listens(scene):
    with impostors.nobody() as address:
        SandboxClient(address).info()


@raises(ringfence.AuthenticationError, "UNAUTHENTICATED", endpoint=has("localhost:"),
        details=has("token="))
def an_unknown_token(scene):
    SandboxClient(**{**scene.tls, "token": "rf_nobody"}).info()


@raises(ringfence.IncompatibleServerError, server_version="0.0.1", endpoint=has("127.0.0.1:"))
def an_old_server(scene):
    with impostors.server_that_says(server="ringfence", version="0.0.1", api=0) as address:
        SandboxClient(address).info()


@raises(ringfence.InvalidConfigurationError, message=has("agent-safe, development"))
def an_unknown_preset(scene):
    Sandbox.from_local(scene.root, preset="agent-save", **scene.where.options)


@raises(ringfence.InvalidConfigurationError, "INVALID_ARGUMENT", grpc_code="INVALID_ARGUMENT")
def a_pattern_that_is_none(scene):
    Sandbox.from_local(scene.root, permissions=[{"pattern": "**/[ab"}], **scene.where.options)


@raises(ringfence.UnsupportedError, "UNSUPPORTED", message=has("docker"))
def a_runtime_that_is_not_there(scene):
    Sandbox.from_local(
        scene.root, runtime=RuntimeType.DOCKER, image="debian", **scene.where.options)


@raises(ringfence.UnsupportedError, "UNSUPPORTED", hint=has("--require-token"),
        details=has("--require-token"))
def the_network_of_a_host_that_trusts_it(scene):
    with servers.served() as where:
        Sandbox.from_local(scene.root, network="host", **where.options)


@raises(ringfence.PermissionDeniedError, "PERMISSION_DENIED", path="/hello.txt",
        filename="/hello.txt", needed="write", rule=has("**/*"), grpc_code="PERMISSION_DENIED")
def a_file_call_in_the_agents_view(scene):
    scene.sandbox.write_file("hello.txt", "x", view="agent")


@raises(ringfence.PermissionDeniedError, "PERMISSION_DENIED", path="/hello.txt",
        operation="write", needed="write", rule="**/*", message=has("echo x"))
def a_command_that_is_refused_something(scene):
    scene.sandbox.run("echo x > hello.txt", raise_on_denied=True)


@raises(ringfence.ResourceLimitExceededError, "RESOURCE_LIMIT_EXCEEDED", resource="sandboxes",
        resource_type="sandboxes", limit="1")
def one_sandbox_too_many(scene):
    with servers.served("--max-sandboxes", 1) as where:
        with Sandbox.from_local(scene.root, auto_start=False, **where.options):
            Sandbox.from_local(scene.root, auto_start=False, **where.options)


@raises(ringfence.AlreadyExistsError, "SESSION_ALREADY_EXISTS", message=has("twice"))
def a_session_of_that_name(scene):
    with scene.sandbox.session(name="twice"):
        scene.sandbox.session(name="twice")


@raises(ringfence.AlreadyExistsError, "PROCESS_ALREADY_EXISTS", message=has("twice"))
def a_process_of_that_name(scene):
    process = scene.sandbox.start_process("sleep 600", name="twice")
    try:
        scene.sandbox.start_process("true", name="twice")
    finally:
        process.kill()


@raises(ringfence.AlreadyExistsError, "TERMINAL_ALREADY_EXISTS", message=has("twice"))
def a_terminal_of_that_name(scene):
    with scene.sandbox.terminal("cat", name="twice"):
        scene.sandbox.terminal("cat", name="twice")


@raises(ringfence.AlreadyExistsError, "FILE_ALREADY_EXISTS", message=has("/hello.txt"))
def a_link_where_a_file_is(scene):
    scene.sandbox.symlink("hello.txt", "elsewhere")


@raises(ringfence.SandboxNotFoundError, "SANDBOX_NOT_FOUND", sandbox_id="sb_0123456789abcdef")
def an_unknown_sandbox(scene):
    Sandbox.connect("sb_0123456789abcdef", **scene.where.options)


@raises(ringfence.SandboxNotRunningError, "SANDBOX_NOT_RUNNING", current_status="pending",
        sandbox_id=has("sb_"), message=has("start()"))
def a_command_before_the_start(scene):
    with idle(scene) as sandbox:
        sandbox.run("true")


@raises(ringfence.SandboxRunningError, "SANDBOX_RUNNING", sandbox_id=has("sb_"))
def going_back_while_it_runs(scene):
    kept = scene.sandbox.snapshot()
    try:
        scene.sandbox.restore(kept)
    finally:
        scene.client.delete_snapshot(kept.id)


@raises(ringfence.CodebaseNotFoundError, "CODEBASE_NOT_FOUND", codebase_id="cb_0123456789abcdef")
def an_unknown_codebase(scene):
    Sandbox.from_codebase("cb_0123456789abcdef", **scene.where.options)


@raises(ringfence.CodebaseInUseError, "CODEBASE_IN_USE", message=has("sb_"))
def a_codebase_with_a_sandbox(scene):
    scene.client.delete_codebase(scene.sandbox.codebase_id)


@raises(ringfence.FileNotFoundError, "FILE_NOT_FOUND", path="/no/such.txt",
        filename="/no/such.txt", file_path="/no/such.txt")
def a_missing_file(scene):
    scene.sandbox.read_file("no/such.txt")


@raises(ringfence.FileNotFoundError, "FILE_NOT_FOUND", path="/secrets/token")
def a_hidden_file_in_the_agents_view(scene):
    scene.sandbox.read_file("/workspace/secrets/token", view="agent")


@raises(ringfence.FileNotFoundError, "FILE_NOT_FOUND", path="/no.txt", codebase_id=has("cb_"))
def a_missing_file_of_a_codebase(scene):
    scene.client.download_file(scene.sandbox.codebase_id, "no.txt")


@raises(ringfence.UploadError, "RESOURCE_LIMIT_EXCEEDED", file_path=has("/"),
        codebase_id=has("cb_"), details=has("5"))
def a_file_that_the_server_does_not_take(scene):
    with servers.served("--max-file-size", 5) as where:
        Sandbox.from_local(scene.root, **where.options)


@raises(ringfence.ApplyConflictError, "APPLY_CONFLICT", yields_to_force=True,
        conflicts=["/hello.txt", "/one, two.txt"], message=has("force=True"))
def the_same_files_changed_twice(scene):
    with contextlib.ExitStack() as opened:
        first, second = (
            opened.enter_context(idle(scene, preset="full-access")) for _ in range(2))
        for sandbox in (first, second):
            for name in ("hello.txt", "one, two.txt"):
                sandbox.write_file(name, sandbox.id)
        first.apply()
        second.apply()


@raises(ringfence.SnapshotNotFoundError, "SNAPSHOT_NOT_FOUND", message=has("snap_nothing"))
def an_unknown_snapshot(scene):
    with idle(scene) as sandbox:
        sandbox.restore("snap_nothing")


@raises(ringfence.SnapshotInUseError, "SNAPSHOT_IN_USE")
def a_snapshot_with_a_sandbox(scene):
    kept = scene.sandbox.snapshot()
    try:
        with idle(scene, snapshot=kept):
            scene.client.delete_snapshot(kept.id)
    finally:
        scene.client.delete_snapshot(kept.id)


@raises(ringfence.CommandExecutionError, command="echo out; echo why >&2; exit 3", exit_code=3,
        stdout="out\n", stderr="why\n", denials=[], details="why")
def a_command_that_fails(scene):
    scene.sandbox.run("echo out; echo why >&2; exit 3", raise_on_error=True)


@raises(ringfence.CommandExecutionError, message=has("/secrets"), exit_code=2, stdout="",
        denials=lambda found: [(denial.path, denial.needed, denial.level) for denial in found]
        == [("/secrets", "view", "none")])
def a_build_that_fails_on_a_hidden_file(scene):
    scene.sandbox.exec("make -f -", stdin="all: secrets/token\n").raise_on_error()


@raises(ringfence.CommandExecutionError, message=has("/hello.txt"),
        denials=lambda found: [denial.path for denial in found] == ["/hello.txt"])
def a_build_that_fails_on_a_file_that_it_may_not_write(scene):
    scene.sandbox.run("echo x > hello.txt", raise_on_error=True)


@raises(ringfence.CommandTimeoutError, command="echo begun; sleep 600", timeout_seconds=1.5,
        stdout="begun\n", stderr="")
def a_command_that_takes_too_long(scene):
    scene.sandbox.run("echo begun; sleep 600", timeout=1.5)


@raises(ringfence.WaitTimeoutError, "WAIT_TIMEOUT")
def a_line_that_does_not_come(scene):
    process = scene.sandbox.start_process("sleep 600")
    try:
        process.wait_for_log("never", timeout=0.1)
    finally:
        process.kill()


@raises(ringfence.WaitTimeoutError, details=None, message=has("'never'"))
def a_text_that_is_not_shown(scene):
    with scene.sandbox.terminal("sleep 600") as terminal:
        terminal.expect("never", timeout=0.1)


@raises(ringfence.SessionNotFoundError, "SESSION_NOT_FOUND", session_id="sess_nothing")
def an_unknown_session(scene):
    scene.client.session_exec("sess_nothing", "true")


@raises(ringfence.SessionClosedError, "SESSION_CLOSED", exit_code=3, session_id=has("sess_"))
def a_shell_that_has_ended(scene):
    with scene.sandbox.session() as session:
        session.exec("exit 3")
        session.exec("true")


@raises(ringfence.ProcessNotFoundError, "PROCESS_NOT_FOUND", message=has("nothing"))
def an_unknown_process(scene):
    scene.client.kill_process(scene.sandbox.id, "nothing")


@raises(ringfence.ProcessExitedError, "PROCESS_EXITED", exit_code=4)
def a_process_that_ends_first(scene):
    scene.sandbox.start_process("exit 4").wait_for_log("never", timeout=60)


@raises(ringfence.TerminalNotFoundError, "TERMINAL_NOT_FOUND", message=has("nothing"))
def an_unknown_terminal(scene):
    scene.client.attach_terminal(scene.sandbox.id, "nothing")


@raises(ringfence.TerminalClosedError, details=has("shown"))
def a_program_that_ends_first(scene):
    with scene.sandbox.terminal("echo shown") as terminal:
        terminal.expect("never", timeout=60)


@raises(ringfence.TerminalClosedError, message=has("has ended"))
def typing_to_a_program_that_has_ended(scene):
    with scene.sandbox.terminal("true") as terminal:
        terminal.wait(60)
        terminal.write("hello\n")


@raises(ringfence.TerminalClosedError, message=has("was closed"))
def typing_on_a_terminal_that_was_closed(scene):
    terminal = scene.sandbox.terminal("cat")
    terminal.close()
    terminal.write("hello\n")


@raises(ringfence.SandboxError, message=has("closed"))
def a_client_that_was_closed(scene):
    client = SandboxClient(**scene.where.options)
    client.close()
    client.list_sandboxes()
