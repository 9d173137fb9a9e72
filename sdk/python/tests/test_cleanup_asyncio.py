"""Tasks that are cancelled and loops that end leave nothing, and say nothing."""

import pytest

import servers

WAITS = """
async def run(sandbox): await sandbox.run(LONG, timeout=None)
async def asleep(sandbox): await sandbox.start_process(LONG); await asyncio.sleep(86400)
async def log(sandbox):
    await (await sandbox.start_process(LONG)).wait_for_log("nothing", timeout=None)
async def session(sandbox): await (await sandbox.session()).exec(LONG)
async def terminal(sandbox): await (await sandbox.terminal(LONG)).expect("nothing", timeout=None)
async def stream(sandbox): [piece async for piece in sandbox.exec_stream(LONG)]
async def logs(sandbox):
    [line async for line in (await sandbox.start_process(LONG)).logs(follow=True)]
"""


def test_a_task_is_cancelled_in_the_block(program):
    run = program(f"""{WAITS}
async def word():
    await asyncio.get_running_loop().run_in_executor(None, wait_for_word)

async def work(wait):
    async with await amade() as sandbox:
        await wait(sandbox)

async def main():
    async with await amade() as outer:
        for wait in (run, asleep, log, session, terminal, stream, logs):
            say(wait.__name__)
            task = asyncio.ensure_future(work(wait))
            await word()
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                say("cancelled")
            await word()
            say([each.id for each in await outer._client.list_sandboxes()] == [outer.id])
    say("over")
asyncio.run(main())
""")
    while run.line() != "over":
        run.runs()
        run.go_on()
        run.says("cancelled")
        servers.wait_until(lambda: not run.commands(), what="the end of the command")
        run.go_on()
        run.says("True")
    run.ends()
    run.leaves_nothing()


def test_from_local_is_cancelled_at_any_moment(program):
    run = program("""
async def work():
    async with await amade():
        await asyncio.sleep(86400)

async def main():
    async with await amade() as outer:
        for steps in range(24):
            task = asyncio.ensure_future(work())
            for _ in range(steps):
                await asyncio.sleep(0.008)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                pass
        say(len(await outer._client.list_sandboxes()), len(await outer._client.list_codebases()))
asyncio.run(main())
""")
    run.says("1 1")
    run.ends()
    run.leaves_nothing()


def test_the_first_from_local_is_cancelled(program):
    run = program("""
async def main():
    task = asyncio.ensure_future(amade())
    await asyncio.sleep(0.01)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        say("cancelled")
asyncio.run(main())
""")
    run.says("cancelled")
    run.ends()
    run.leaves_nothing()


def test_wait_for_gives_up_a_command(program):
    run = program("""
async def main():
    async with await amade() as sandbox:
        try:
            await asyncio.wait_for(sandbox.run(LONG, timeout=None), 1)
        except asyncio.TimeoutError:
            say("time is up")
        await asyncio.get_running_loop().run_in_executor(None, wait_for_word)
        say((await sandbox.run("echo goes on")).stdout.strip())
asyncio.run(main())
""")
    run.says("time is up")
    servers.wait_until(lambda: not run.commands(), what="the end of the command")
    run.go_on()
    run.says("goes on")
    run.ends()
    run.leaves_nothing()


def test_ctrl_c_ends_the_block_and_the_program(program):
    run = program("""
async def main():
    try:
        async with await amade() as sandbox:
            await sandbox.run(LONG, timeout=None)
    finally:
        say("left")
asyncio.run(main())
""")
    run.runs()
    run.interrupt()
    run.says("left")
    run.ends(-2, "KeyboardInterrupt")
    run.leaves_nothing()


def test_one_of_several_fails(program):
    run = program("""
async def work(number):
    async with await amade() as sandbox:
        if number == 2:
            await sandbox.run("exit 7", raise_on_error=True)
        await sandbox.run(LONG, timeout=None)

async def main():
    tasks = [asyncio.ensure_future(work(number)) for number in range(4)]
    try:
        await asyncio.gather(*tasks)
    except CommandExecutionError as error:
        say(error.exit_code)
asyncio.run(main())
""")
    run.says("7")
    run.ends()
    run.leaves_nothing()


def test_one_loop_after_the_other(program):
    run = program("""
async def main(number):
    async with await amade() as sandbox:
        say((await sandbox.run(f"echo {number}")).stdout.strip())
asyncio.run(main(1))
asyncio.run(main(2))
""")
    run.says("1", "2")
    run.ends()
    run.leaves_nothing()


def test_a_bare_sandbox_outlives_its_loop_and_can_be_found_again(program):
    run = program("""
kept = []
async def first():
    kept.append(await amade())
async def second():
    again = await AsyncSandbox.connect(kept[0].id)
    say((await again.run("echo again")).stdout.strip())
    await again.destroy()
asyncio.run(first())
asyncio.run(second())
""")
    run.says("again")
    run.ends()
    run.leaves_nothing()


def test_a_loop_in_each_of_several_threads(program):
    run = program("""
async def main(number):
    async with await amade() as sandbox:
        for _ in range(5):
            assert (await sandbox.run(f"echo {number}")).stdout.strip() == str(number)
            assert [piece async for piece in sandbox.exec_stream("echo a")] == [b"a\\n"]
        say("done")
threads = [threading.Thread(target=lambda n=n: asyncio.run(main(n))) for n in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
""")
    run.says(*["done"] * 5, None)
    run.ends()
    run.leaves_nothing()


OPEN = """
kept = []
async def main():
    sandbox = await amade()
    stream = sandbox.exec_stream(f"echo begun; {LONG}")
    pieces = stream.__aiter__()
    say((await pieces.__anext__()).decode().strip())
    terminal = await sandbox.terminal(LONG)
    process = await sandbox.start_process(f"echo begun; {LONG}")
    lines = process.logs(follow=True).__aiter__()
    await lines.__anext__()
    kept.extend([sandbox, stream, pieces, terminal, lines] if KEEP else [])
"""


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "let_go"])
@pytest.mark.parametrize("end", [
    "asyncio.run(main())",
    "loop = asyncio.new_event_loop(); loop.run_until_complete(main())",
], ids=["run", "not_even_closed"])
def test_a_loop_ends_with_streams_and_terminals_open(program, end, keep):
    run = program(f"KEEP = {keep}\n{OPEN}\n{end}\nsay('over')")
    run.says("begun", "over")
    run.ends()
    run.leaves_nothing()


def test_a_hundred_at_once_on_one_directory(program):
    run = program("""
async def work(number):
    async with await amade() as sandbox:
        return (await sandbox.run(f"echo {number}")).stdout.strip()

async def main():
    answers = await asyncio.gather(*(work(number) for number in range(100)))
    say(answers == [str(number) for number in range(100)])
asyncio.run(main())
""")
    run.says("True")
    run.ends()
    run.leaves_nothing()
