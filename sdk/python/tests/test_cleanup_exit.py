"""However a program ends, nothing of its private server is left, and it does end."""

import os
import signal

import pytest

import servers

ENDS = {
    "normally": "with made() as sandbox: sandbox.run('true')",
    "with_a_bare_sandbox": "sandbox = made(); sandbox.run('true')",
    "with_a_sandbox_nobody_holds": "made()",
    "with_a_client_that_was_only_asked": "client = SandboxClient(); client.info()",
    "with_a_process_and_a_session_and_a_terminal": """
sandbox = made()
process = sandbox.start_process(LONG)
session = sandbox.session()
terminal = sandbox.terminal(LONG)
""",
    "with_streams_open": """
sandbox = made()
pieces = iter(sandbox.exec_stream(f"echo begun; {LONG}"))
next(pieces)
process = sandbox.start_process(f"echo begun; {LONG}")
lines = iter(process.logs(follow=True))
next(lines)
events = iter(sandbox.audit(follow=True))
next(events)
""",
    "with_a_stream_in_a_reference_cycle": """
sandbox = made()
stream = sandbox.exec_stream(f"echo begun; {LONG}")
stream.itself = stream
pieces = iter(stream)
next(pieces)
del stream, pieces, sandbox
""",
    "by_sys_exit_in_the_block": "with made() as sandbox: sys.exit(0)",
    "by_os_exit_in_the_block": "with made() as sandbox: os._exit(0)",
    "by_os_exit_with_a_bare_sandbox": "sandbox = made(); os._exit(0)",
    "after_two_sandboxes_in_one_block":
        "with made() as one, made() as other: one.run('true'); other.run('true')",
    "after_it_was_destroyed_twice": """
with made() as sandbox:
    sandbox.destroy()
    sandbox.destroy()
""",
    "in_a_directory_that_is_gone": """
import tempfile
with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
sandbox = made()
""",
    "with_its_standard_streams_closed": """
sandbox = made()
os.close(0), os.close(1)
""",
    "with_an_atexit_of_its_own_that_is_too_late": """
import atexit
def late():
    for call in (sandbox._client.info, made, lambda: sandbox._client.create_codebase("a", "b")):
        try:
            call()
        except (SandboxError, RuntimeError):
            pass
atexit.unregister(_embedded._end)
atexit.register(late)
atexit.register(_embedded._end)
sandbox = made()
""",
    "with_an_atexit_of_its_own_that_uses_the_sandbox": """
import atexit
sandbox = made()
atexit.register(lambda: say(sandbox.run("echo late").stdout.strip()))
""",
}


@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_left_after_it_ended(program, end):
    run = program(ENDS[end])
    run.ends()
    run.leaves_nothing()


def test_an_orderly_exit_waits_for_the_server(program):
    run = program("sandbox = made(); say(server())")
    server = int(run.line())
    run.ends()
    assert not os.path.exists(f"/proc/{server}")
    assert not run.left()


def test_an_exception_in_the_block_comes_out_and_destroys(program):
    run = program("""
with made() as outer:
    try:
        with made() as sandbox:
            raise KeyError("mine")
    except KeyError:
        try:
            Sandbox.connect(sandbox.id, client=outer._client)
        except SandboxNotFoundError:
            say("destroyed")
    raise RuntimeError("the end")
""")
    run.says("destroyed")
    run.ends(1, "RuntimeError: the end")
    run.leaves_nothing()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_nothing_is_left_of_a_program_that_was_killed_while_a_command_ran(program, number):
    run = program("with made() as sandbox: sandbox.run(LONG, timeout=None)")
    run.runs()
    run.process.send_signal(number)
    run.ends(-number)
    run.leaves_nothing()


def test_a_program_that_handles_sigterm_by_exiting_leaves_the_block(program):
    run = program("""
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
with made() as sandbox:
    sandbox.run(LONG, timeout=None)
""")
    run.runs()
    run.process.terminate()
    run.ends(7)
    run.leaves_nothing()


def test_a_server_that_was_killed_is_told_of_and_replaced(program):
    run = program("""
sandbox = made()
os.kill(server(), signal.SIGKILL)
_embedded._server._process.wait()
try:
    sandbox.run("true")
except ConnectionError as error:
    say(error)
with made() as another:
    say(another.run("echo back").stdout.strip())
try:
    sandbox.run("true")
except ConnectionError as error:
    say("still gone")
""")
    assert "the private server of this process has ended" in run.line()
    run.says("back", "still gone")
    run.ends()
    run.leaves_nothing()


def test_a_server_killed_while_a_command_runs_ends_the_call_and_the_command(program):
    run = program("""
say(os.getpid())
try:
    with made() as sandbox:
        say(server())
        sandbox.run(LONG, timeout=None)
except ConnectionError as error:
    say(error)
""")
    run.line()
    server = int(run.line())
    run.runs()
    os.kill(server, signal.SIGKILL)
    assert "the private server of this process has ended" in run.line()
    run.ends()
    servers.wait_until(lambda: not run.commands(), what="the end of the command")


def test_a_stopped_server_does_not_keep_the_program_for_ever(program):
    run = program("""
_embedded._END_SECONDS = 1.0
sandbox = made()
os.kill(server(), signal.SIGSTOP)
""")
    run.ends()
