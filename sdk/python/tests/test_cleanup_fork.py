"""Forked children have no part in what their parent made, and leave nothing of their own."""

import os
import signal

import pytest

import servers

def test_the_sandbox_goes_on_however_a_child_ends(program):
    run = program("""
import gc
def let_go():
    global sandbox
    del sandbox
    gc.collect()
    sys.exit(5)

ways = [
    lambda: sys.exit(3),
    lambda: os._exit(4),
    let_go,
    lambda: (sandbox.__exit__(None, None, None), os._exit(6)),
    lambda: os.execv("/bin/sh", ["sh", "-c", "exit 7"]),
    lambda: os.kill(os.getpid(), signal.SIGKILL),
]
with made() as sandbox:
    sandbox.run("true")
    for way in ways:
        child = os.fork()
        if child == 0:
            way()
        say("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        say(sandbox.run("echo goes on").stdout.strip())
""")
    for code in (3, 4, 5, 6, 7, -9):
        run.says(f"child {code}", "goes on")
    run.ends()
    run.leaves_nothing()


def test_a_child_that_ends_leaves_streams_sessions_and_terminals_to_its_parent(program):
    run = program("""
with made() as sandbox, sandbox.session() as session, sandbox.terminal("cat") as terminal:
    stream = iter(sandbox.exec_stream("echo one; sleep 1; echo two"))
    say(next(stream).decode().strip())
    child = os.fork()
    if child == 0:
        sys.exit()
    os.waitpid(child, 0)
    say(next(stream).decode().strip())
    say(session.exec("echo three").stdout.strip())
    terminal.write("four\\n")
    terminal.expect("four")
    say("four")
""")
    run.says("one", "two", "three", "four")
    run.ends()
    run.leaves_nothing()


def test_what_a_parent_made_says_so_in_a_child(program):
    run = program("""
with made() as sandbox:
    session = sandbox.session()
    terminal = sandbox.terminal("cat")
    uses = [
        lambda: sandbox.run("true"), lambda: list(sandbox.exec_stream("true")), sandbox.refresh,
        sandbox.destroy, lambda: session.exec("true"), lambda: terminal.write("x"), terminal.read]
    child = os.fork()
    if child == 0:
        for use in uses:
            try:
                use()
            except SandboxError as error:
                say(error)
        sys.exit()
    os.waitpid(child, 0)
    say(session.exec("echo goes on").stdout.strip())
""")
    run.says(*["this was made before the process was forked; make a new one in the child"] * 7,
             "goes on")
    run.ends()
    run.leaves_nothing()


@pytest.mark.parametrize("end", ["sys.exit()", "os._exit(0)"])
def test_a_child_has_a_server_of_its_own_that_goes_with_it(program, end):
    run = program(f"""
with made() as sandbox:
    of_parent = server()
    child = os.fork()
    if child == 0:
        own = made()
        say(own.run("echo in the child").stdout.strip(), server() != of_parent)
        {end}
    say("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    say(sandbox.run("echo goes on").stdout.strip(), server() == of_parent)
""")
    run.says("in the child True", "child 0", "goes on True")
    run.ends()
    run.leaves_nothing()


def test_the_server_of_a_child_is_gone_while_its_parent_goes_on(program):
    run = program("""
with made() as sandbox:
    child = os.fork()
    if child == 0:
        with made() as own:
            say(os.getpid(), server())
            own.run(LONG, timeout=None)
    os.waitpid(child, 0)
    say("killed")
    signal.pause()
""")
    child, server = map(int, run.line().split())
    run.runs()
    os.kill(child, signal.SIGKILL)
    run.says("killed")
    servers.wait_until(lambda: not os.path.exists(f"/proc/{server}"), what="the end of its server")
    servers.wait_until(lambda: not run.commands(), what="the end of its command")
    run.kill()
    run.ends(-9)
    run.leaves_nothing()


def test_a_child_that_outlives_its_parent_does_not_keep_the_server(program):
    run = program("""
sandbox = made()
if os.fork() == 0:
    signal.alarm(600)
    os.setsid()
    while os.getppid() != 1:
        time.sleep(0.01)
    say("orphan", os.getpid())
    signal.pause()
say("server", server())
os._exit(0)
""")
    lines = dict(run.line().split() for _ in range(2))
    run.ends()
    servers.wait_until(lambda: not os.path.exists(f"/proc/{lines['server']}"), what="its end")
    assert os.path.exists(f"/proc/{lines['orphan']}")
    os.kill(int(lines["orphan"]), signal.SIGKILL)
    run.leaves_nothing()


def test_a_fork_while_another_thread_starts_the_server_does_no_harm(program):
    run = program("""
def work():
    with made() as sandbox:
        say(sandbox.run("echo done").stdout.strip())

started, forked = threading.Event(), threading.Event()
begin = _embedded._Server.__init__
def begin_slowly(self):
    started.set()
    forked.wait()
    begin(self)
_embedded._Server.__init__ = begin_slowly

thread = threading.Thread(target=work)
thread.start()
started.wait()
child = os.fork()
forked.set()
if child == 0:
    work()
    sys.exit()
thread.join()
os.waitpid(child, 0)
""")
    run.says("done", "done")
    run.ends()
    run.leaves_nothing()


def test_a_fork_while_other_threads_are_in_calls_does_no_harm(program):
    run = program("""
from concurrent.futures import ThreadPoolExecutor
with made() as sandbox, ThreadPoolExecutor(4) as pool:
    running = [pool.submit(sandbox.run, "sleep 0.3; echo done") for _ in range(4)]
    for _ in range(5):
        child = os.fork()
        if child == 0:
            with made() as own:
                os._exit(0 if own.run("true").success else 1)
        say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    say({each.result().stdout for each in running})
""")
    run.says("0", "0", "0", "0", "0", "{'done\\n'}")
    run.ends()
    run.leaves_nothing()


IN_ASYNCIO = """
async def main():
    async with await amade() as sandbox:
        running = asyncio.ensure_future(sandbox.run("sleep 0.5; echo done"))
        await asyncio.sleep(0)
        child = os.fork()
        if child == 0:
            signal.alarm(40)
            {child}
        loop = asyncio.get_running_loop()
        _, status = await loop.run_in_executor(None, os.waitpid, child, 0)
        say("child", os.waitstatus_to_exitcode(status))
        say((await running).stdout.strip())
asyncio.run(main())
"""


@pytest.mark.parametrize("child, code", [
    ("os._exit(3)", 3),
    ("with made() as own: os._exit(0 if own.run('true').success else 1)", 0),
], ids=["os_exit", "using_a_sandbox"])
def test_a_program_of_asyncio_goes_on_when_its_child_ends_by(program, child, code):
    run = program(IN_ASYNCIO.format(child=child))
    run.says(f"child {code}", "done")
    run.ends()
    run.leaves_nothing()


def test_a_child_of_asyncio_that_cannot_use_asyncio_is_told_so(program):
    run = program(IN_ASYNCIO.format(child="""
            try:
                asyncio.run(amade())
            except SandboxError as error:
                say(error)
            os._exit(0)"""))
    assert "use Sandbox in it" in run.line()
    run.says("child 0", "done")
    run.ends()
    run.leaves_nothing()


def test_a_child_can_use_asyncio_when_its_parent_has_done_with_it(program):
    run = program("""
async def main():
    async with await amade() as sandbox:
        say((await sandbox.run("echo done")).stdout.strip())
asyncio.run(main())
child = os.fork()
asyncio.run(main())
if child:
    os.waitpid(child, 0)
""")
    run.says("done", "done", "done")
    run.ends()
    run.leaves_nothing()
