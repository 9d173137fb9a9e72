"""Answers of REST that go on: they come while things happen, and leaving ends them."""

import base64
import os

import pytest

from streams import Streaming
from waiting import until
from wire import v1

BOTH = pytest.mark.parametrize("events", [False, True], ids=["lines", "events"])
KIND = {False: "application/x-ndjson", True: "text/event-stream"}


@pytest.fixture
def rest(server):
    return Streaming(server.endpoint)


def shown(message):
    return base64.b64decode(message["data"]).decode()


@BOTH
def test_output_comes_as_it_is_printed(rest, client, sandbox, events):
    """The second line is printed only after somebody has seen the first."""
    command = "echo first; until [ -e /tmp/go ]; do sleep 0.02; done; echo second >&2; exit 5"
    with rest.open("POST", f"/v1/sandboxes/{sandbox}/exec/stream", events, command=command) as answer:
        assert (answer.status, answer.kind) == (200, KIND[events])
        first = next(answer)
        assert (first["type"], shown(first)) == ("OUTPUT_TYPE_STDOUT", "first\n")
        client.run(sandbox, "touch /tmp/go")
        second = next(answer)
        assert (second["type"], shown(second)) == ("OUTPUT_TYPE_STDERR", "second\n")
        assert next(answer)["result"]["exitCode"] == 5
        assert list(answer) == []
    assert answer.ended == (("end", {}) if events else None)


@BOTH
def test_all_of_a_long_output_comes_in_order(rest, sandbox, events):
    with rest.open("POST", f"/v1/sandboxes/{sandbox}/exec/stream", events,
                   command="seq 200000") as answer:
        *pieces, last = answer
    assert "".join(map(shown, pieces)) == "".join(f"{n}\n" for n in range(1, 200_001))
    assert last["result"]["exitCode"] == 0


@BOTH
def test_a_call_that_is_refused_is_no_stream(rest, sandbox, events):
    for path in ("/v1/sandboxes/sb_none/exec/stream", f"/v1/sandboxes/{sandbox}/exec/stream?x=1"):
        with rest.open("POST", path, events, command="true") as answer:
            assert answer.status in (400, 404) and answer.kind == "application/json"


@BOTH
def test_an_error_in_the_middle_is_the_last_thing_said(rest, client, events):
    sandbox = client.new_sandbox(client.new_codebase())
    with rest.open("POST", f"/v1/sandboxes/{sandbox}/exec/stream", events,
                   command="echo up; sleep 1000") as answer:
        assert shown(next(answer)) == "up\n"
        client.sandbox.DestroySandbox(v1.DestroySandboxRequest(sandbox_id=sandbox))
        rest_of_it = list(answer)
    # Either it says how the command ended, or that nobody knows.
    if events:
        kind, error = answer.ended
        assert kind == "end" and rest_of_it[-1]["result"]["exitCode"] or error["code"]
    else:
        assert "error" in rest_of_it[-1] or rest_of_it[-1]["result"]["exitCode"]


@BOTH
def test_leaving_ends_the_command(rest, client, sandbox, events):
    with rest.open("POST", f"/v1/sandboxes/{sandbox}/exec/stream", events,
                   command="echo up; exec sleep 4242") as answer:
        assert shown(next(answer)) == "up\n"
        assert client.run(sandbox, "pgrep -fc 'sleep 424[2]'").stdout == "1\n"
    until(lambda: client.run(sandbox, "pgrep -fc 'sleep 424[2]'").stdout == "0\n")


@BOTH
def test_leaving_ends_the_command_of_a_session_and_not_the_session(rest, client, sandbox, events):
    made = client.sandbox.CreateSession(v1.CreateSessionRequest(sandbox_id=sandbox)).id
    with rest.open("POST", f"/v1/sessions/{made}/exec/stream", events,
                   command="x=kept; echo up; sleep 4242") as answer:
        assert shown(next(answer)) == "up\n"
    said = client.sandbox.SessionExec(v1.SessionExecRequest(session_id=made, command="echo $x"))
    assert said.stdout == "kept\n"


@BOTH
def test_a_log_is_followed(rest, client, sandbox, events):
    """Two readers see each line when it comes, one of them from the middle, and the end."""
    client.process.StartProcess(v1.StartProcessRequest(
        sandbox_id=sandbox, id="talker",
        command="echo one; until [ -e /tmp/go ]; do sleep 0.02; done; echo two; exit 3"))
    path = f"/v1/sandboxes/{sandbox}/processes/talker/log"
    with rest.open("GET", f"{path}?follow=true", events) as answer:
        first = next(answer)
        assert (first["offset"], shown(first)) == ("0", "one\n")
        with rest.open("GET", f"{path}?follow=true&from=2", events) as later:
            middle = next(later)
            assert (middle["offset"], shown(middle)) == ("2", "e\n")
            client.run(sandbox, "touch /tmp/go")
            for reader in (answer, later):
                line, end = next(reader), list(reader)[-1]
                assert (line["offset"], shown(line)) == ("4", "two\n")
                assert (end["ended"]["status"], end["ended"]["exitCode"]) == ("STATUS_EXITED", 3)


def open_files(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


@BOTH
def test_leaving_a_log_leaves_nothing_open(rest, client, server, sandbox, events):
    client.process.StartProcess(v1.StartProcessRequest(
        sandbox_id=sandbox, id="quiet", command="echo up; exec sleep 1000"))
    before = open_files(server)
    for _ in range(20):
        with rest.open("GET", f"/v1/sandboxes/{sandbox}/processes/quiet/log?follow=true",
                       events) as answer:
            assert shown(next(answer)) == "up\n"
    until(lambda: open_files(server) <= before)
    still = client.process.GetProcess(v1.GetProcessRequest(sandbox_id=sandbox, process_id="quiet"))
    assert still.state.status == v1.ProcessState.STATUS_RUNNING


@BOTH
def test_the_record_is_followed_until_the_end(rest, client, events):
    sandbox = client.new_sandbox(client.new_codebase())
    with rest.open("GET", f"/v1/sandboxes/{sandbox}/audit?follow=true", events) as answer:
        seen = [next(answer)]
        for mark in ("marked-1", "marked-2"):
            client.run(sandbox, f"echo {mark}")
            while mark not in seen[-1]["json"]:
                seen.append(next(answer))
        client.sandbox.DestroySandbox(v1.DestroySandboxRequest(sandbox_id=sandbox))
        seen += list(answer)
    numbers = [int(each["sequence"]) for each in seen]
    assert numbers == list(range(numbers[0], numbers[0] + len(seen))), "something was left out"
    with rest.open("GET", f"/v1/sandboxes/{sandbox}/audit?after={numbers[2]}", events) as answer:
        assert [int(each["sequence"]) for each in answer] == numbers[3:]


@BOTH
def test_leaving_the_record_leaves_nothing_open(rest, server, sandbox, events):
    before = open_files(server)
    for _ in range(20):
        with rest.open("GET", f"/v1/sandboxes/{sandbox}/audit?follow=true", events) as answer:
            assert next(answer)["kind"]
    until(lambda: open_files(server) <= before)
