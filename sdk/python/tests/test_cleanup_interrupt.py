"""Ctrl-C comes out at once, ends what was waited for, and leaves nothing."""

import gc
import weakref

import pytest

import servers
from ringfence._sync._io import _Call

WAITS = """
def run(sandbox): sandbox.run(LONG, timeout=None)
def exec_stream(sandbox): list(sandbox.exec_stream(LONG))
def tagged_exec_stream(sandbox): list(sandbox.exec_stream(LONG).tagged())
def session_exec(sandbox): sandbox.session().exec(LONG)
def session_exec_stream(sandbox): list(sandbox.session().exec_stream(LONG))
def terminal_expect(sandbox): sandbox.terminal(LONG).expect("what never comes", timeout=None)
def terminal_wait(sandbox): sandbox.terminal(LONG).wait()
def wait_for_log(sandbox): sandbox.start_process(LONG).wait_for_log("nothing", timeout=None)
def wait_for_port(sandbox): sandbox.start_process(LONG).wait_for_port(9, timeout=None)
def wait(sandbox): sandbox.start_process(LONG).wait()
def logs(sandbox): list(sandbox.start_process(LONG).logs(follow=True))
def audit(sandbox): sandbox.start_process(LONG); list(sandbox.audit(follow=True))

# Where it is when it waits; the long command may have begun before.
WAITS = {
    run: "_answered", exec_stream: "_pieces", tagged_exec_stream: "tagged", session_exec: "session_exec",
    session_exec_stream: "_pieces", terminal_expect: "hear", terminal_wait: "hear",
    wait_for_log: "wait_process", wait_for_port: "wait_process", wait: "wait_process",
    logs: "_lines", audit: "_events"}
"""


def test_it_ends_what_is_waited_for_and_the_block(program):
    run = program(f"""{WAITS}
with made() as outer:
    for wait, place in WAITS.items():
        try:
            with made() as sandbox:
                say(wait.__name__)
                say_when_in(place)
                wait(sandbox)
        except KeyboardInterrupt:
            say("interrupted")
        wait_for_word()
        say([each.id for each in outer._client.list_sandboxes()] == [outer.id])
    say("over")
""")
    while run.line() != "over":
        run.says("inside")
        run.runs()
        run.interrupt()
        run.says("interrupted")
        servers.wait_until(lambda: not run.commands(), what="the end of the command")
        run.go_on()
        run.says("True")
    run.ends()
    run.leaves_nothing()


@pytest.mark.parametrize("wait", [
    "sandbox.run(LONG, timeout=None)",
    "for _ in sandbox.exec_stream(LONG): pass",
    "with sandbox.session() as session: session.exec(LONG)",
    "with sandbox.terminal(LONG) as terminal: say_when_in('hear'); terminal.wait()",
], ids=["run", "exec_stream", "session", "terminal"])
def test_a_command_ends_also_when_the_sandbox_goes_on(program, wait):
    run = program(f"""
with made() as sandbox:
    try:
        {wait}
    except KeyboardInterrupt:
        say("interrupted")
    wait_for_word()
    say(sandbox.run("echo goes on").stdout.strip())
""")
    if "say_when_in" in wait:
        run.says("inside")
    run.runs()
    run.interrupt()
    run.says("interrupted")
    servers.wait_until(lambda: not run.commands(), what="the end of the command")
    run.go_on()
    run.says("goes on")
    run.ends()
    run.leaves_nothing()


@pytest.mark.parametrize("wait", ["sandbox.run(LONG, timeout=None)", "sandbox.terminal(LONG).wait()"])
def test_it_comes_out_also_when_another_thread_was_given_the_signal(program, wait):
    run = program(f"""
def strike():
    wait_for_word()
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
threading.Thread(target=strike, daemon=True).start()
with made() as sandbox:
    {wait}
""")
    run.runs()
    run.go_on()
    run.ends(-2, "KeyboardInterrupt")
    run.leaves_nothing()


def test_nobody_catches_it(program):
    run = program("with made() as sandbox: sandbox.run(LONG, timeout=None)")
    run.runs()
    run.interrupt()
    run.ends(-2, "KeyboardInterrupt")
    run.leaves_nothing()


@pytest.mark.parametrize("step", [
    "_ready", "_line", "_greeted", "create_codebase", "create_sandbox", "__init__"])
def test_from_local_can_be_interrupted_at_any_step(program, step):
    run = program(f"""
say_when_in({step!r})
try:
    with made() as sandbox:
        signal.sigwait([signal.SIGINT])
except KeyboardInterrupt:
    pass
say("out")
with made() as sandbox:
    say(sandbox.run("echo again").stdout.strip())
    say(len(sandbox._client.list_sandboxes()), len(sandbox._client.list_codebases()))
""")
    run.says("inside")
    run.interrupt()
    run.says("out", "again", "1 1")
    run.ends()
    run.leaves_nothing()


def test_twice_in_a_row_leaves_nothing_either(program):
    run = program("""
say_when_in("destroy")
with made() as sandbox:
    sandbox.run(LONG, timeout=None)
""")
    run.runs()
    run.interrupt()
    run.says("inside")
    run.interrupt()
    run.ends(-2, "KeyboardInterrupt")
    run.leaves_nothing()


@pytest.mark.parametrize("given_up", [False, True])
def test_a_call_that_was_given_up_is_never_collected(given_up):
    """It would take a lock, at the end of the interpreter one that nobody gives back."""
    class Begun:
        def result(self):
            return self

        cancel = result

    call = _Call(Begun)
    begun = weakref.ref(call.answer())
    if given_up:
        call.abandon()
    del call
    gc.collect()
    assert (begun() is not None) == given_up
