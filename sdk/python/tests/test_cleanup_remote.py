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


IN_ASYNCIO = """
async def main():
    async with await amade() as sandbox:
        {block}
asyncio.run(main())
"""


def test_what_was_in_a_block_goes_with_its_program_and_a_bare_sandbox_stays(
        program, shared, client):
    bare = program("sandbox = made(); say(sandbox.id)", options=shared.options)
    kept = bare.line()
    bare.ends()
    blocks = ["with made() as sandbox: sandbox.run(LONG, timeout=None)",
              IN_ASYNCIO.format(block="await sandbox.run(LONG, timeout=None)")]
    killed = [program(block, options=shared.options) for block in blocks]
    for each in killed:
        each.runs()
        each.kill()
        each.ends(-9)
    servers.wait_until(lambda: [each.id for each in client.list_sandboxes()] == [kept],
                       what="the end of the sandboxes of those that were killed")
    servers.wait_until(lambda: len(client.list_codebases()) == 1, what="the end of their codebases")
    for each in killed:
        servers.wait_until(lambda: not each.commands(), what="the end of the command")
    assert client.exec(kept, "echo stays").stdout == "stays\n"


BUSY = {
    "asleep": "time.sleep(PAUSE)",
    "in_a_loop": "END = time.monotonic() + PAUSE\n    while time.monotonic() < END: pass",
    "without_letting_go_of_the_interpreter": "ctypes.PyDLL(None).sleep(PAUSE)",
}


def test_programs_that_are_merely_busy_keep_their_sandboxes(program, shared, client):
    texts = [f"with made() as sandbox:\n    {busy}\n    say(sandbox.run('echo here').stdout.strip())"
             for busy in BUSY.values()]
    texts.append(IN_ASYNCIO.format(
        block="time.sleep(PAUSE); say((await sandbox.run('echo here')).stdout.strip())"))
    begin = f"import ctypes\nPAUSE = {LEASE} * 2\n"
    running = [program(begin + text, options=shared.options) for text in texts]
    for run in running:
        run.says("here")
        run.ends()
    assert is_empty(client)


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
