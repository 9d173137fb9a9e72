"""The overview's way to tell what went wrong: one `except` for each, with all that is known."""

import builtins
import socket

import pytest
import ringfence
from ringfence import (
    CommandExecutionError,
    CommandTimeoutError,
    PermissionDeniedError,
    Sandbox,
    SandboxClient,
    SandboxNotFoundError,
    SandboxNotRunningError,
)

from projects import WEB


def outcome(make, command, **options):
    """What the overview does with every kind of failure, as a text."""
    try:
        sandbox = make()
        return sandbox.run(command, raise_on_error=True, **options).stdout
    except CommandTimeoutError as late:
        return f"out of time after {late.timeout_seconds:g} s: {late.command}"
    except CommandExecutionError as failed:
        return f"failed with code {failed.exit_code}: {failed.stderr}"
    except PermissionDeniedError as denied:
        return f"refused: {denied.path}"
    except SandboxNotRunningError as idle:
        return f"not running: {idle.current_status}"


def test_every_kind_of_failure_has_its_own_branch(open_sandbox, api):
    sandbox = open_sandbox(WEB, preset="read-only", sdk=api)

    def told(command, **options):
        return outcome(lambda: sandbox, command, **options)

    assert told("echo fine", timeout=60) == "fine\n"
    assert told("sleep 600", timeout=1) == "out of time after 1 s: sleep 600"
    assert told("echo why >&2; exit 4") == "failed with code 4: why\n"
    assert "Permission denied" in told("echo x > app.py")
    assert told("echo x > app.py", raise_on_denied=True) == "refused: /app.py"
    sandbox.stop()
    assert told("true") == "not running: stopped"


def test_a_sandbox_that_was_never_started_is_pending(open_sandbox):
    sandbox = open_sandbox(WEB, auto_start=False)
    assert outcome(lambda: sandbox, "true") == "not running: pending"


def test_what_was_printed_before_the_time_ran_out_is_there(open_sandbox):
    sandbox = open_sandbox(WEB, preset="read-only")
    with pytest.raises(builtins.TimeoutError) as late:
        sandbox.run("echo begun; echo trouble >&2; sleep 600", timeout=2)
    assert (late.value.stdout, late.value.stderr) == ("begun\n", "trouble\n")


def test_a_command_that_failed_says_what_it_was_refused(open_sandbox, api):
    sandbox = open_sandbox(WEB, preset="read-only", sdk=api)
    with pytest.raises(CommandExecutionError) as failed:
        sandbox.run("make deps", raise_on_error=True)
    assert failed.value.command == "make deps" and failed.value.exit_code == 2
    assert [(each.path, each.needed) for each in failed.value.denials] == [("/vendor", "write")]
    assert "/vendor" in str(failed.value)


def test_no_server_is_a_connection_error_with_its_address(api, make_project):
    with socket.socket() as taken:
        # Bound and not listening: nobody else gets the port meanwhile.
        taken.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ringfence.ConnectionError, match="ringfence serve") as nobody:
            api.Sandbox.from_local(make_project(WEB), endpoint=endpoint)
    assert nobody.value.endpoint == endpoint
    assert isinstance(nobody.value, builtins.ConnectionError)


@pytest.mark.parametrize("path", ["no/such/directory", __file__], ids=["missing", "a file"])
def test_a_path_that_is_no_directory_is_a_value_error(where, api, path):
    with pytest.raises(ValueError, match="directory"):
        api.Sandbox.from_local(path, **where.options)


def test_what_is_not_there_is_named(where):
    with pytest.raises(SandboxNotFoundError) as missing:
        Sandbox.connect("sb_0000000000000000", **where.options)
    assert missing.value.sandbox_id == "sb_0000000000000000"
    shared = "private server" in str(missing.value)
    assert shared == where.is_embedded, "that another process cannot be reached is said"


def test_each_has_the_common_parent(where, project):
    with SandboxClient(**where.options) as client:
        for wrong in (lambda: client.get_sandbox("sb_0"), lambda: client.get_codebase("cb_0"),
                      lambda: client.get_session("sess_0"),
                      lambda: Sandbox.from_local(project, preset="nonsense", **where.options)):
            with pytest.raises(ringfence.SandboxError) as caught:
                wrong()
            assert type(caught.value) is not ringfence.SandboxError
