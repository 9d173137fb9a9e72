"""What came of a command: all of its output, how it ended, and what it used."""

import json
import os
import signal
import time
from datetime import timedelta

import pytest
import ringfence
from ringfence import CommandTimeoutError, ResourceLimits, Sandbox

import servers

WAIT = 100
"""Seconds that only a command that hangs needs."""


@pytest.fixture(scope="module")
def roots(tls_server, tmp_path_factory):
    """One sandbox for each server, that all tests share."""
    made = {}

    def root(where):
        if where.name not in made:
            place = tmp_path_factory.mktemp("results")
            (place / "src").mkdir()
            made[where.name] = Sandbox.from_local(
                place, preset="full-access", resources=ResourceLimits(memory_bytes=256 << 20),
                env={"MADE_WITH": "it"}, **where.options)
        return made[where.name]

    yield root
    for each in made.values():
        each.destroy()


@pytest.fixture
def sandbox(where, api, roots):
    """Through both faces."""
    shared = roots(where)
    if api is ringfence:
        yield shared
    else:
        with api.Sandbox.connect(shared.id, **where.options) as connected:
            yield connected


def python(text):
    """A command that runs a program."""
    return f"python3 -c '{text}'"


def test_the_fields_of_a_result(sandbox):
    command = "echo out; echo err >&2; exit 3"
    result = sandbox.exec(command)
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    assert (result.stdout_bytes, result.stderr_bytes) == (b"out\n", b"err\n")
    assert result.command == command and result.output == "out\n\nerr\n"
    assert not (result.success or result.timed_out or result.truncated)
    assert (result.denials, result.denials_more, result.reason, result.signal) == ([], 0, None, None)
    assert sandbox.exec("true").success and result.command_id != sandbox.exec("true").command_id


def test_bytes_that_are_no_text_come_exactly_and_are_replaced_in_text(sandbox):
    every = bytes(range(256))
    result = sandbox.exec("tee /dev/stderr", stdin=every)
    assert result.stdout_bytes == result.stderr_bytes == every
    assert result.stdout == every.decode(errors="replace")
    assert "\N{REPLACEMENT CHARACTER}" in result.stdout


def test_output_of_a_megabyte_is_whole(sandbox):
    data = os.urandom(1 << 20)
    result = sandbox.exec("cat", stdin=data)
    assert result.stdout_bytes == data and not result.truncated


def test_output_without_measure_is_cut_in_the_middle(sandbox):
    lines = 2_500_000
    result = sandbox.exec(f"seq {lines}", timeout=WAIT)
    assert result.truncated and result.exit_code == 0
    assert result.stdout.startswith("1\n2\n3\n") and result.stdout.endswith(f"\n{lines}\n")
    assert 1 << 20 < len(result.stdout_bytes) < 18_888_896, "seq prints more than that"
    assert result.stderr == ""


def test_time_and_use_are_told(sandbox):
    result = sandbox.exec(python(
        "import time; held = bytearray(50 << 20)\n"
        "while time.process_time() < 0.3: pass"), timeout=WAIT)
    assert result.exit_code == 0, result.output
    assert result.usage.cpu_time >= timedelta(seconds=0.3)
    assert (50 << 20) < result.usage.peak_memory_bytes < (256 << 20)
    assert timedelta(seconds=0.3) <= result.duration < timedelta(seconds=WAIT)


@pytest.mark.parametrize("name", ["KILL", "TERM", "SEGV", "ABRT"])
def test_who_is_ended_by_a_signal_says_which(sandbox, name):
    number = getattr(signal, "SIG" + name)
    result = sandbox.exec(f"exec sh -c 'kill -{name} $$'")
    assert (result.exit_code, result.signal) == (128 + number, number)


@pytest.mark.parametrize("code", [0, 1, 2, 126, 127, 128, 200, 255])
def test_exit_codes_are_those_of_the_command(sandbox, code):
    result = sandbox.exec(f"exit {code}")
    assert (result.exit_code, result.success, result.signal) == (code, code == 0, None)


def test_what_does_not_exist_is_127(sandbox):
    result = sandbox.exec("no-such-command")
    assert result.exit_code == 127 and "no-such-command" in result.stderr


@pytest.mark.parametrize("given", [None, "", "text\n", "ünï", b"\0\xff\n", os.urandom(2 << 20)],
                         ids=["none", "empty", "text", "unicode", "bytes", "much"])
def test_input_arrives(sandbox, given):
    wanted = given.encode() if isinstance(given, str) else given or b""
    assert sandbox.exec("cat", stdin=given).stdout_bytes == wanted
    assert sandbox.run("cat", stdin=given).stdout_bytes == wanted


def test_input_that_nobody_reads_does_no_harm(sandbox):
    assert sandbox.exec("echo done", stdin="x" * (2 << 20)).stdout == "done\n"


def test_variables_are_for_one_command(sandbox):
    tricky = {"A": "b c", "EMPTY": "", "LINES_": "1\n2", "UNI": "ü☃", "QUOTE": "'\"$A`"}
    show = python("import os, json; print(json.dumps(dict(os.environ)))")
    seen = json.loads(sandbox.run(show, env=tricky).stdout)
    assert {name: seen[name] for name in tricky} == tricky
    assert seen["MADE_WITH"] == "it" and "RINGFENCE_STATE" not in seen
    after = json.loads(sandbox.run(show, env={"MADE_WITH": "other"}).stdout)
    assert not tricky.keys() & after.keys() and after["MADE_WITH"] == "other"


def test_a_command_is_run_where_it_should_be(sandbox):
    assert sandbox.run("pwd").stdout == "/workspace\n"
    for name in ("src", "/workspace/src", "src/../src/."):
        assert sandbox.run("pwd -P", workdir=name).stdout == "/workspace/src\n"
    assert sandbox.run("pwd", workdir="/tmp").stdout == "/tmp\n"
    missing = sandbox.run("pwd", workdir="/no/such")
    assert missing.exit_code != 0 and "/no/such" in missing.stderr and missing.stdout == ""


def test_a_command_whose_time_is_up_is_ended_and_what_it_printed_is_there(where, roots):
    mark, seconds = f"86{time.monotonic_ns()}", 2.5
    limit = seconds if where.is_embedded else timedelta(seconds=seconds)
    with pytest.raises(CommandTimeoutError) as late:
        roots(where).exec(f"echo out; echo err >&2; sleep {mark}; echo never", timeout=limit)
    assert (late.value.stdout, late.value.stderr) == ("out\n", "err\n")
    assert late.value.timeout_seconds == seconds
    servers.wait_until(lambda: not servers.processes(mark), what="the end of the command")


def test_who_takes_too_much_memory_is_ended_with_the_reason(sandbox):
    result = sandbox.exec(python("len(bytearray(1 << 30))"), timeout=WAIT)
    assert result.exit_code == 137 and "memory" in result.reason
    assert sandbox.exec("echo alive").stdout == "alive\n"


def test_a_stream_tells_its_pieces_apart_in_order(sandbox):
    go = f"/tmp/go-{time.monotonic_ns()}"
    wait = f"until [ -e {go}-$n ]; do sleep 0.02; done"
    stream = sandbox.exec_stream(
        f"for n in 1 2 3; do echo out $n; {wait}; echo err $n >&2; {wait.replace('-$n', '-e$n')}; "
        "done; exit 5")
    seen = []
    for name, piece in stream.tagged():
        seen.append((name, piece))
        word, number = piece.split()
        assert stream.exit_code is None
        sandbox.exec(f"touch {go}-{'e' if word == b'err' else ''}{number.decode()}")
    assert seen == [each for n in (b"1", b"2", b"3")
                    for each in (("stdout", b"out %s\n" % n), ("stderr", b"err %s\n" % n))]
    assert stream.exit_code == 5 and not stream.result.success


def test_a_stream_has_all_of_much_output(sandbox):
    total = sum(map(len, sandbox.exec_stream("head -c 20000000 /dev/zero", timeout=WAIT)))
    assert total == 20_000_000


def test_leaving_a_stream_ends_its_command(sandbox):
    mark = f"86{time.monotonic_ns()}"
    with sandbox.exec_stream(f"echo begun; sleep {mark}") as stream:
        for piece in stream:
            assert piece == b"begun\n"
            break
        assert servers.processes(mark)
    servers.wait_until(lambda: not servers.processes(mark), what="the end of the command")
    assert stream.exit_code is None


def test_a_stream_whose_time_is_up_has_given_what_there_was(where, roots):
    stream = roots(where).exec_stream("echo begun; sleep 600", timeout=2)
    pieces = []
    with pytest.raises(CommandTimeoutError) as late:
        for piece in stream:
            pieces.append(piece)
    assert pieces == [b"begun\n"] and late.value.timeout_seconds == 2
    assert stream.result.timed_out


def test_a_stream_takes_input_variables_and_a_directory(sandbox):
    stream = sandbox.exec_stream("cat; echo $A; pwd", "in\n", {"A": "b"}, "src", WAIT)
    assert b"".join(stream) == b"in\nb\n/workspace/src\n" and stream.exit_code == 0
