"""A server that others share keeps nothing of a program that died, and all of one that lives."""

import contextlib
import subprocess

import pytest

import servers
from ringfence import SandboxClient

LEASE = 2


@pytest.fixture(scope="module")
def shared():
    with servers.served("--lease-seconds", LEASE) as where:
        yield where


@pytest.fixture
def client(shared):
    with SandboxClient(**shared.options) as client:
        yield client
        for sandbox in client.list_sandboxes():
            client.destroy_sandbox(sandbox.id)
        for codebase in client.list_codebases():
            client.delete_codebase(codebase.id)


def is_empty(client):
    return not client.list_sandboxes() and not client.list_codebases()


def goes_by_itself(client):
    servers.wait_until(lambda: is_empty(client), what="the end of sandbox and codebase")


def test_nothing_is_left_of_a_program_that_was_killed_in_the_block(program, shared, client):
    run = program("with made() as sandbox: sandbox.run(LONG, timeout=None)", options=shared.options)
    run.runs()
    run.kill()
    run.ends(-9)
    goes_by_itself(client)
    servers.wait_until(lambda: not run.commands(), what="the end of the command")


def test_nothing_is_left_of_an_asyncio_program_that_was_killed_in_the_block(
        program, shared, client):
    run = program("""
async def main():
    async with await amade() as sandbox:
        await sandbox.run(LONG, timeout=None)
asyncio.run(main())
""", options=shared.options)
    run.runs()
    run.kill()
    run.ends(-9)
    goes_by_itself(client)


@pytest.mark.parametrize("busy", [
    "time.sleep(PAUSE)",
    "end = time.monotonic() + PAUSE\n    while time.monotonic() < end: pass",
    "ctypes.PyDLL(None).sleep(math.ceil(PAUSE))",
], ids=["asleep", "in_a_loop", "without_letting_go_of_the_interpreter"])
def test_a_program_that_is_merely_busy_keeps_its_sandbox(program, shared, client, busy):
    run = program(f"""
import ctypes, math
PAUSE = {LEASE} * 2.5
with made() as sandbox:
    {busy}
    say(sandbox.run("echo still here").stdout.strip())
""", options=shared.options)
    run.says("still here")
    run.ends()
    assert is_empty(client)


def test_a_loop_that_is_blocked_keeps_its_sandbox(program, shared, client):
    run = program(f"""
async def main():
    async with await amade() as sandbox:
        time.sleep({LEASE} * 2.5)
        say((await sandbox.run("echo still here")).stdout.strip())
asyncio.run(main())
""", options=shared.options)
    run.says("still here")
    run.ends()
    assert is_empty(client)


def test_a_bare_sandbox_stays(program, shared, client):
    run = program("sandbox = made(); say(sandbox.id)", options=shared.options)
    name = run.line()
    run.ends()
    # Another that is leased shows that the server has looked for lapsed ones meanwhile.
    other = program("with made() as sandbox: sandbox.run(LONG, timeout=None)",
                    options=shared.options)
    other.runs()
    other.kill()
    servers.wait_until(
        lambda: [each.id for each in client.list_sandboxes()] == [name], what="the end of the other")
    assert client.exec(name, "echo stays").stdout == "stays\n"


def test_no_thread_is_left_after_the_block(program, shared, client):
    run = program("""
before = set(threading.enumerate())
with made() as sandbox:
    sandbox.run("true")
deadline = time.monotonic() + 30
while set(threading.enumerate()) - before and time.monotonic() < deadline:
    time.sleep(0.01)
say(set(threading.enumerate()) - before or "none")
""", options=shared.options)
    run.says("none")
    run.ends()
    assert is_empty(client)


@pytest.mark.parametrize("step", [
    "create_codebase", "_push", "create_sandbox", "begin", "destroy_sandbox"])
def test_ctrl_c_at_any_step_leaves_nothing(program, shared, client, step):
    run = program(f"""
say_when_in({step!r})
try:
    with made() as sandbox:
        if {step!r} != "destroy_sandbox":
            sandbox.run(LONG, timeout=None)
except KeyboardInterrupt:
    say("interrupted")
""", options=shared.options)
    run.says("inside")
    run.interrupt()
    run.says("interrupted")
    run.ends()
    goes_by_itself(client)


def test_ctrl_c_during_an_upload_comes_out_and_leaves_nothing(program, shared, client):
    run = program("""
import pathlib
for name in "abcd":
    with open(pathlib.Path(PROJECT, name), "wb") as file:
        file.truncate(45_000_000)
        file.write(name.encode())
say_when_in("send")
try:
    with made() as sandbox:
        sandbox.run(LONG, timeout=None)
except KeyboardInterrupt:
    say("interrupted")
""", options=shared.options)
    run.says("inside")
    run.interrupt()
    run.says("interrupted")
    run.ends()
    goes_by_itself(client)


def test_a_server_that_is_restarted_does_not_lose_what_is_leased(program):
    with servers.served("--lease-seconds", LEASE) as where:
        run = program("""
with made() as sandbox:
    sandbox.run("echo kept > /tmp/file")
    say("ready")
    wait_for_word()
    say(sandbox.run("cat /tmp/file").stdout.strip())
    wait_for_word()
    say(sandbox.run("cat /tmp/file").stdout.strip())
    sandbox.run(LONG, timeout=None)
""", options=where.options)
        run.says("ready")
        where.process.kill()
        where.process.wait()
        with restarted(where):
            with SandboxClient(**where.options) as client:
                run.go_on()
                run.says("kept")
                lapses(client)
                run.go_on()
                run.says("kept")
                run.runs()
                run.kill()
                run.ends(-9)
                goes_by_itself(client)


def lapses(client):
    """Waits until a lease that nobody holds has lapsed: by then, so has any other of before."""
    codebase = client.create_codebase("lapses", "tests")
    sandbox = client.create_sandbox(codebase.id, leased=True)
    gone = lambda: sandbox.id not in [each.id for each in client.list_sandboxes()]
    servers.wait_until(gone, what="the end of a lease")
    client.delete_codebase(codebase.id)


@contextlib.contextmanager
def restarted(where):
    """The same server once more: its state, its address."""
    with open(where.state / "log", "ab") as log:
        process = subprocess.Popen(
            [servers.program(), "serve", "--listen", where.options["endpoint"], "--state",
             where.state, "--lease-seconds", str(LEASE)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
    try:
        servers._ready(process, where.state)
        yield
    finally:
        process.terminate()
        process.wait(servers.END_WITHIN)
        process.stdout.close()
