"""Many threads and many processes, and nothing left of any of them."""

import pytest


def test_ten_threads_with_a_sandbox_each(program):
    run = program("""
from concurrent.futures import ThreadPoolExecutor
def work(number):
    with made() as sandbox:
        return sandbox.run(f"echo {number}").stdout.strip()
with ThreadPoolExecutor(10) as pool:
    say(*pool.map(work, range(10)))
""")
    run.says("0 1 2 3 4 5 6 7 8 9")
    run.ends()
    run.leaves_nothing()


def test_an_executor_that_is_left_running_at_exit(program):
    run = program("""
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(10)
def work(number):
    with made() as sandbox:
        return sandbox.run("true").success
for number in range(10):
    pool.submit(work, number).add_done_callback(lambda done: say(done.result()))
""")
    run.says(*["True"] * 10, None)
    run.ends()
    run.leaves_nothing()


def test_one_sandbox_used_by_ten_threads(program):
    run = program("""
from concurrent.futures import ThreadPoolExecutor
with made() as sandbox, ThreadPoolExecutor(10) as pool:
    answers = pool.map(lambda number: sandbox.run(f"echo {number}").stdout.strip(), range(30))
    say(len(set(answers)))
""")
    run.says("30")
    run.ends()
    run.leaves_nothing()


@pytest.mark.parametrize("what", [
    "sandbox.run(LONG, timeout=None)",
    "list(sandbox.exec_stream(LONG))",
    "sandbox.terminal(LONG).wait()",
    "asyncio.run(hold())",
], ids=["run", "exec_stream", "terminal", "asyncio"])
def test_a_daemon_thread_in_the_middle_of_something_at_exit(program, what):
    run = program(f"""
async def hold():
    async with await amade() as sandbox:
        await sandbox.run(LONG, timeout=None)
def work():
    with made() as sandbox:
        {what}
threading.Thread(target=work, daemon=True).start()
wait_for_word()
""")
    run.runs()
    run.go_on()
    run.ends()
    run.leaves_nothing()


def test_ctrl_c_in_the_main_thread_while_others_hold_sandboxes(program):
    run = program("""
def work():
    with made() as sandbox:
        sandbox.run(LONG, timeout=None)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
with made() as sandbox:
    sandbox.run(LONG, timeout=None)
""")
    run.runs()
    run.interrupt()
    run.ends(-2, "KeyboardInterrupt")
    run.leaves_nothing()


POOL = """
import multiprocessing

def work(number):
    sandbox = made()
    if number == 3:
        sandbox.run("echo to be seen >&2; exit 3", raise_on_error=True)
    if number == 4:
        sandbox.read_file("/nothing-here")
    return sandbox.run(f"echo {number}").stdout.strip()

if __name__ == "__main__":
    with made() as sandbox, multiprocessing.get_context(METHOD).Pool(4) as pool:
        running = [pool.apply_async(work, (number,)) for number in range(5)]
        for each in running:
            try:
                say(each.get())
            except CommandExecutionError as error:
                say(error.exit_code, error.stderr.strip())
            except FileNotFoundError as error:
                say(error.path)
        say(sandbox.run("echo goes on").stdout.strip())
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_of_processes_with_sandboxes_of_their_own(program, method):
    run = program(f"METHOD = {method!r}\n{POOL}")
    run.says("0", "1", "2", "3 to be seen", "/nothing-here", "goes on")
    run.ends()
    run.leaves_nothing()


def test_a_pool_that_is_interrupted(program):
    run = program("""
import multiprocessing

def work(number):
    with made() as sandbox:
        sandbox.run(LONG, timeout=None)

if __name__ == "__main__":
    pool = multiprocessing.get_context("fork").Pool(2)
    pool.map_async(work, range(2))
    wait_for_word()
    pool.terminate()
    pool.join()
    say("over")
""")
    run.runs()
    run.go_on()
    run.says("over")
    run.ends()
    run.leaves_nothing()


def test_no_thread_is_left_after_the_block(program):
    run = program("""
before = set(threading.enumerate())
with made() as sandbox, sandbox.session() as session, sandbox.terminal("cat") as terminal:
    sandbox.run("true")
    terminal.write("x\\n")
    terminal.expect("x")
    list(sandbox.exec_stream("true"))
    session.exec("true")
deadline = time.monotonic() + 30
while set(threading.enumerate()) - before and time.monotonic() < deadline:
    time.sleep(0.01)
say(set(threading.enumerate()) - before or "none")
""")
    run.says("none")
    run.ends()
