"""What the published client cannot, next to what ours does in its place.

Each row is a small program and what comes of it with either client. An exception counts by its
class. Both columns are asserted, so that a row goes when it is no longer true.
"""

import os
from datetime import timedelta

import agentfense
import grpc
import pytest
import ringfence

from projects import WEB


def opened(sdk, at, files=WEB, **options):
    options.setdefault("preset", "full-access")
    return sdk.Sandbox.from_local(at.project(files), **at.server, **options)


# ---- arguments and results ----------------------------------------------------------------------


def session_limit_in_seconds(sdk, at):
    with opened(sdk, at) as sandbox, sandbox.session() as session:
        return session.exec("echo done", timeout=100).stdout


def exec_limit_in_seconds(sdk, at):
    with opened(sdk, at) as sandbox:
        return sandbox.exec("echo done", timeout=100).stdout


def exit_code_of_a_stream(sdk, at):
    with opened(sdk, at) as sandbox:
        stream = sandbox.exec_stream("exit 3")
        list(stream)
        return stream.exit_code


def output_to_the_byte(sdk, at):
    with opened(sdk, at) as sandbox:
        return sandbox.run("printf '\\377'").stdout_bytes


def what_was_refused(sdk, at):
    with opened(sdk, at, preset="view-only") as sandbox:
        return [each.path for each in sandbox.run("cat README.md").denials]


def an_exception_that_names_the_path(sdk, at):
    with opened(sdk, at, preset="view-only") as sandbox:
        try:
            sandbox.run("make", raise_on_error=True)
        except sdk.CommandExecutionError as failed:
            return "/Makefile" in str(failed)


def directories_are_marked_in_lists(sdk, at):
    with opened(sdk, at, {"src/a.py": "", "b.py": ""}) as sandbox:
        return sorted(sandbox.list_files())


def count_of_uploaded_files(sdk, at):
    with opened(sdk, at) as sandbox:
        return sandbox.codebase.file_count


# ---- files --------------------------------------------------------------------------------------


def a_program_can_be_executed(sdk, at):
    path = at.project({"tool": ":\n"})
    os.chmod(os.path.join(path, "tool"), 0o755)
    with sdk.Sandbox.from_local(path, preset="full-access", **at.server) as sandbox:
        return sandbox.run("stat -c %a tool").stdout


def an_empty_directory_is_there(sdk, at):
    path = at.project({"a.txt": ""})
    os.mkdir(os.path.join(path, "empty"))
    with sdk.Sandbox.from_local(path, preset="full-access", **at.server) as sandbox:
        return sandbox.run("ls -d empty").stdout


def a_link_stays_a_link(sdk, at):
    path = at.project({"a.txt": "a\n"})
    os.symlink("a.txt", os.path.join(path, "link"))
    with sdk.Sandbox.from_local(path, preset="full-access", **at.server) as sandbox:
        return sandbox.run("readlink link").stdout


def a_link_brings_nothing_in_from_outside(sdk, at):
    outside, path = at.project({"secret": "hunter2\n"}), at.project({"a.txt": "a\n"})
    os.symlink(os.path.join(outside, "secret"), os.path.join(path, "link"))
    with sdk.Sandbox.from_local(path, preset="full-access", **at.server) as sandbox:
        return sandbox.run("cat link").stdout


def an_exception_of_gitignore(sdk, at):
    files = {".gitignore": "*.log\n!keep.log\n", "a.log": "", "keep.log": ""}
    with opened(sdk, at, files) as sandbox:
        return sandbox.run("ls").stdout


def a_gitignore_further_down(sdk, at):
    files = {"src/.gitignore": "made.py\n", "src/made.py": "", "made.py": ""}
    with opened(sdk, at, files) as sandbox:
        return sandbox.run("ls made.py src").stdout


def files_of_one_of_two_sandboxes(sdk, at):
    with opened(sdk, at, {"a.txt": "old\n"}) as one, sdk.Sandbox.from_codebase(
            one.codebase_id, preset="full-access", **at.server):
        one.run("echo new > a.txt")
        return one.read_file("a.txt")


# ---- exceptions ---------------------------------------------------------------------------------


def no_such_sandbox(sdk, at):
    with sdk.SandboxClient(**at.server) as client:
        client.get_sandbox("sb_0")


def no_such_codebase(sdk, at):
    with sdk.SandboxClient(**at.server) as client:
        client.get_codebase("cb_0")


def no_such_session(sdk, at):
    with sdk.SandboxClient(**at.server) as client:
        client.get_session("sess_0")


def no_such_file(sdk, at):
    with opened(sdk, at) as sandbox:
        sandbox.read_file("no/such/file")


def not_running(sdk, at):
    with opened(sdk, at, auto_start=False) as sandbox:
        sandbox.run("true")


def a_session_that_has_ended(sdk, at):
    with opened(sdk, at) as sandbox, sandbox.session() as session:
        session.exec("exit 7")
        session.exec("true")


def a_stream_of_no_sandbox(sdk, at):
    with sdk.SandboxClient(**at.server) as client:
        list(client.exec_stream("sb_0", "true"))


def no_docker(sdk, at):
    opened(sdk, at, runtime=sdk.RuntimeType.DOCKER, image="python:3.11-slim")


def what_a_timeout_was_about(sdk, at):
    with opened(sdk, at) as sandbox:
        try:
            sandbox.exec("echo begun; sleep 600", timeout=timedelta(seconds=1))
        except sdk.CommandTimeoutError as late:
            return late.command


def where_nobody_answered(sdk, at):
    try:
        with sdk.SandboxClient("127.0.0.1:1") as client:
            client.list_sandboxes()
    except sdk.ConnectionError as nobody:
        return nobody.endpoint


# ---- life ---------------------------------------------------------------------------------------


def what_was_connected_to_outlives_the_block(sdk, at):
    with opened(sdk, at) as sandbox:
        with sdk.Sandbox.connect(sandbox.id, **at.server):
            pass
        return sandbox.refresh().status.value


ROWS = [
    # program, with the published client, with ours
    (session_limit_in_seconds, AttributeError, "done\n"),
    (exec_limit_in_seconds, AttributeError, "done\n"),
    (exit_code_of_a_stream, AttributeError, 3),
    (output_to_the_byte, AttributeError, b"\xff"),
    (what_was_refused, AttributeError, ["/README.md"]),
    (an_exception_that_names_the_path, False, True),
    (directories_are_marked_in_lists, ["b.py", "src"], ["b.py", "src/"]),
    (count_of_uploaded_files, 0, len(WEB)),
    (a_program_can_be_executed, "644\n", "755\n"),
    (an_empty_directory_is_there, "", "empty\n"),
    (a_link_stays_a_link, "", "a.txt\n"),
    (a_link_brings_nothing_in_from_outside, "hunter2\n", ""),
    (an_exception_of_gitignore, "", "keep.log\n"),
    (a_gitignore_further_down, "made.py\n\nsrc:\nmade.py\n", "made.py\n\nsrc:\n"),
    (files_of_one_of_two_sandboxes, "old\n", "new\n"),
    (no_such_sandbox, agentfense.SandboxError, ringfence.SandboxNotFoundError),
    (no_such_codebase, agentfense.SandboxError, ringfence.CodebaseNotFoundError),
    (no_such_session, agentfense.SandboxError, ringfence.SessionNotFoundError),
    (no_such_file, agentfense.SandboxError, ringfence.FileNotFoundError),
    (not_running, agentfense.SandboxError, ringfence.SandboxNotRunningError),
    (a_session_that_has_ended, agentfense.SandboxError, ringfence.SessionClosedError),
    (a_stream_of_no_sandbox, grpc.RpcError, ringfence.SandboxNotFoundError),
    (no_docker, agentfense.SandboxError, ringfence.UnsupportedError),
    (what_a_timeout_was_about, "unknown", "echo begun; sleep 600"),
    (where_nobody_answered, "unknown", "127.0.0.1:1"),
    (what_was_connected_to_outlives_the_block, agentfense.SandboxError, "running"),
]


def outcome(program, sdk, at):
    try:
        return program(sdk, at)
    except grpc.RpcError:
        return grpc.RpcError
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("program, theirs, ours", ROWS, ids=[row[0].__name__ for row in ROWS])
def test_the_published_client_cannot_and_ours_can(program, theirs, ours, at):
    assert outcome(program, ringfence, at) == ours
    assert outcome(program, agentfense, at) == theirs
