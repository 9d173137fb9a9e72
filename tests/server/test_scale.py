"""Many at once, and what is left when they, their server or their wardens are gone."""

import concurrent.futures
import glob
import os
import signal
import socket

import grpc
import pytest

from rest import Rest
from server import Server, wardens
from waiting import until
from wire import refused, v1

HUNDRED = 100


def at_once(count, work, workers=None):
    with concurrent.futures.ThreadPoolExecutor(workers or count) as pool:
        return list(pool.map(work, range(count)))


def left_of(server, sandboxes):
    """Whatever of these is still there: mounts, wardens, control groups, directories."""
    mounts = [line for line in open("/proc/self/mountinfo") if any(each in line for each in sandboxes)]
    groups = [path for each in sandboxes for path in glob.glob(f"/sys/fs/cgroup/*/ringfence/*{each}*")]
    kept = set(os.listdir(server.state / "server" / "sandboxes")) & set(sandboxes)
    return mounts + groups + sorted(kept)


@pytest.fixture
def fresh():
    with Server() as running:
        yield running


@pytest.mark.timeout(600)
def test_a_hundred_sandboxes(fresh):
    """Made, started, used and destroyed at the same time by many: each has its own of everything."""
    with fresh.client() as client:
        codebase = client.new_codebase(base_txt=b"base\n")

        def live(number):
            made = client.sandbox.CreateSandbox(v1.CreateSandboxRequest(
                codebase_id=codebase, preset="full-access", env={"MINE": str(number)}), timeout=300)
            client.sandbox.StartSandbox(v1.StartSandboxRequest(sandbox_id=made.id), timeout=300)
            run = v1.ExecRequest(sandbox_id=made.id, command="echo $MINE > mine; cat base.txt mine; ls")
            assert client.sandbox.Exec(run, timeout=300).stdout.split() == [
                "base", str(number), "base.txt", "mine"]
            session = client.sandbox.CreateSession(
                v1.CreateSessionRequest(sandbox_id=made.id), timeout=300).id
            for command in (f"x={number}", "cd /tmp"):
                client.sandbox.SessionExec(
                    v1.SessionExecRequest(session_id=session, command=command), timeout=300)
            said = client.sandbox.SessionExec(v1.SessionExecRequest(
                session_id=session, command="echo $x $MINE $PWD"), timeout=300)
            assert said.stdout.split() == [str(number), str(number), "/tmp"]
            return made.id

        made = at_once(HUNDRED, live, workers=25)
        assert len(set(made)) == HUNDRED
        listed = client.sandbox.ListSandboxes(v1.ListSandboxesRequest()).sandboxes
        assert {each.id: each.status for each in listed} == {
            each: v1.SANDBOX_STATUS_RUNNING for each in made}
        uids = {each.confinement.uid for each in listed}
        assert len(uids) == HUNDRED, "sandboxes share a user of the host"
        assert len(wardens(fresh.state)) == HUNDRED
        at_once(HUNDRED, lambda number: client.sandbox.DestroySandbox(
            v1.DestroySandboxRequest(sandbox_id=made[number]), timeout=300), workers=25)
        until(lambda: not left_of(fresh, made) and not wardens(fresh.state))
        assert client.download(codebase, "base.txt") == b"base\n"


def test_twenty_commands_at_once(client, sandbox):
    """None waits for another: each goes on only when all have begun."""
    command = "touch b{0}; until [ $(ls b* | wc -l) = 20 ]; do sleep 0.02; done; seq {0}00 {0}99; exit {0}"
    results = at_once(20, lambda number: client.run(sandbox, command.format(number + 10)))
    for number, result in enumerate(results, 10):
        assert result.exit_code == number
        assert result.stdout.split() == [str(each) for each in range(number * 100, number * 100 + 100)]


def test_fifty_sessions_at_once(client, sandbox):
    def live(number):
        made = client.sandbox.CreateSession(
            v1.CreateSessionRequest(sandbox_id=sandbox, name=f"s{number}", shell="/bin/sh")).id
        for step in range(3):
            client.sandbox.SessionExec(v1.SessionExecRequest(
                session_id=made, command=f"x=${{x}}{number}.; cd /tmp"))
        return made, client.sandbox.SessionExec(
            v1.SessionExecRequest(session_id=made, command="echo $x $PWD")).stdout

    done = at_once(50, live)
    for number, (_, said) in enumerate(done):
        assert said == f"{number}." * 3 + " /tmp\n"
    listed = client.sandbox.ListSessions(v1.ListSessionsRequest(sandbox_id=sandbox)).sessions
    assert {made for made, _ in done} <= {each.id for each in listed}
    at_once(50, lambda number: client.sandbox.DestroySession(
        v1.DestroySessionRequest(session_id=done[number][0])))
    listed = client.sandbox.ListSessions(v1.ListSessionsRequest(sandbox_id=sandbox)).sessions
    assert not {made for made, _ in done} & {each.id for each in listed}


def test_a_lease_is_renewed(client):
    """By a sign and by a stream; each time it is safe for longer than before."""
    made = client.sandbox.CreateSandbox(
        v1.CreateSandboxRequest(codebase_id=client.new_codebase(), leased=True)).id
    asked = v1.LeaseSandboxRequest(sandbox_id=made)
    times = [client.sandbox.RenewLease(asked).safe_until.ToMilliseconds()]
    stream = client.sandbox.LeaseSandbox(asked)
    times.append(next(stream).safe_until.ToMilliseconds())
    times.append(client.sandbox.RenewLease(asked).safe_until.ToMilliseconds())
    assert times == sorted(times)
    client.sandbox.DestroySandbox(v1.DestroySandboxRequest(sandbox_id=made))
    with refused() as how:
        list(stream)
    assert how.code == "SANDBOX_NOT_FOUND", "who holds a lease is told that there is nothing to hold"
    with refused() as how:
        client.sandbox.RenewLease(asked)
    assert how.code == "SANDBOX_NOT_FOUND"


def expired(client, start):
    """A sandbox whose time was a second, and is over."""
    asked = v1.CreateSandboxRequest(codebase_id=client.new_codebase(), start=start)
    asked.expires_in.FromSeconds(1)
    made = client.sandbox.CreateSandbox(asked)
    assert made.expires_at.ToMilliseconds() - made.created_at.ToMilliseconds() == 1000

    def gone():
        try:
            client.sandbox.GetSandbox(v1.GetSandboxRequest(sandbox_id=made.id))
        except grpc.RpcError as error:
            return error.code() == grpc.StatusCode.NOT_FOUND

    until(gone)
    return made.id


@pytest.mark.parametrize("start", [True, False])
def test_what_expires_is_destroyed(server, client, start):
    made = expired(client, start)
    until(lambda: not left_of(server, [made]))


def test_the_record_says_that_it_expired(client):
    *_, last = client.audit.Audit(v1.AuditRequest(sandbox_id=expired(client, True)))
    assert "its time was over" in last.json


def shown_on(client, sandbox, typed, wanted):
    """What a terminal shows, from its beginning until what is wanted."""
    said = [v1.TerminalInput(attach=v1.TerminalInput.Attach(sandbox_id=sandbox, terminal_id="screen")),
            v1.TerminalInput(data=typed)]
    shown, stream = b"", client.terminal.AttachTerminal(iter(said))
    while wanted not in shown:
        shown += next(stream).data
    stream.cancel()
    return shown


def test_sandboxes_outlive_a_graceful_stop(fresh):
    """The next server takes them over with all that runs in them."""
    with fresh.client() as client:
        sandbox = client.new_sandbox(client.new_codebase(base_txt=b"base\n"))
        session = client.sandbox.CreateSession(v1.CreateSessionRequest(sandbox_id=sandbox)).id
        client.sandbox.SessionExec(v1.SessionExecRequest(session_id=session, command="x=kept; cd /tmp"))
        client.process.StartProcess(v1.StartProcessRequest(
            sandbox_id=sandbox, id="talker",
            command="echo before; until [ -e /tmp/go ]; do sleep 0.02; done; echo after"))
        client.process.WaitProcess(v1.WaitProcessRequest(
            sandbox_id=sandbox, process_id="talker", text="before"))
        client.terminal.OpenTerminal(v1.OpenTerminalRequest(
            sandbox_id=sandbox, id="screen", argv=[b"/bin/sh"], env={"PS1": ""}))
        shown_on(client, sandbox, b"y=typed; echo fir''st\n", b"first")
    running = wardens(fresh.state)
    fresh.stop()
    assert fresh.process.returncode == 0
    assert wardens(fresh.state) == running and len(running) == 1
    fresh.start()
    with fresh.client() as client:
        found = client.sandbox.GetSandbox(v1.GetSandboxRequest(sandbox_id=sandbox))
        assert found.status == v1.SANDBOX_STATUS_RUNNING
        said = client.sandbox.SessionExec(
            v1.SessionExecRequest(session_id=session, command="echo $x $PWD; touch /tmp/go"))
        assert said.stdout == "kept /tmp\n"
        client.process.WaitProcess(v1.WaitProcessRequest(
            sandbox_id=sandbox, process_id="talker", exit=True))
        log = client.process.ProcessLog(v1.ProcessLogRequest(sandbox_id=sandbox, process_id="talker"))
        assert b"".join(each.data for each in log) == b"before\nafter\n"
        shown = shown_on(client, sandbox, b"echo $y aga''in\n", b"typed again")
        assert b"first" in shown
    assert wardens(fresh.state) == running


def test_a_stop_waits_for_nobody_who_only_watches(fresh):
    """Streams that would go on for ever do not hold up the end."""
    with fresh.client() as client:
        sandbox = client.new_sandbox(client.new_codebase())
        following = client.audit.Audit(v1.AuditRequest(sandbox_id=sandbox, follow=True), timeout=None)
        next(following)
        host, port = fresh.endpoint.split(":")
        with socket.create_connection((host, int(port))) as idle:
            idle.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert idle.recv(1000)
            fresh.stop()
    fresh.start()


def test_a_server_that_takes_its_sandboxes_with_it():
    with Server("--stop-sandboxes") as server:
        with server.client() as client:
            made = [client.new_sandbox(client.new_codebase()) for _ in range(3)]
            client.run(made[0], "echo kept > kept.txt")
        server.stop()
        assert server.process.returncode == 0 and not wardens(server.state)
        server.start()
        with server.client() as client:
            listed = client.sandbox.ListSandboxes(v1.ListSandboxesRequest()).sandboxes
            assert {each.id: each.status for each in listed} == {
                each: v1.SANDBOX_STATUS_STOPPED for each in made}
            client.sandbox.StartSandbox(v1.StartSandboxRequest(sandbox_id=made[0]))
            assert client.run(made[0], "cat kept.txt").stdout == "kept\n"


def test_a_warden_that_is_killed(fresh):
    """Its sandbox says so, keeps its files, holds nothing else, and can be started again."""
    with fresh.client() as client:
        sandbox = client.new_sandbox(client.new_codebase(base_txt=b"base\n"))
        other = client.new_sandbox(client.new_codebase())
        client.run(sandbox, "echo layer > layer.txt; sync")
        client.process.StartProcess(v1.StartProcessRequest(sandbox_id=sandbox, command="exec sleep 4711"))
        victim = [pid for pid in wardens(fresh.state) if sandbox in open(f"/proc/{pid}/cmdline").read()]
        os.kill(victim[0], signal.SIGKILL)

        def found():
            return client.sandbox.GetSandbox(v1.GetSandboxRequest(sandbox_id=sandbox))

        until(lambda: found().status == v1.SANDBOX_STATUS_ERROR)
        assert found().reason
        assert str(fresh.state) not in found().reason
        with refused() as how:
            client.run(sandbox, "true")
        assert how.code == "SANDBOX_NOT_RUNNING"

        def held():
            mounts = [line for line in open("/proc/self/mountinfo") if sandbox in line]
            return mounts + glob.glob(f"/sys/fs/cgroup/*/ringfence/*{sandbox}*") + asleep("4711")

        until(lambda: not held())
        read = client.workspace.ReadFile(v1.ReadFileRequest(sandbox_id=sandbox, path="layer.txt"))
        assert b"".join(each.data for each in read) == b"layer\n"
        again = client.sandbox.StartSandbox(v1.StartSandboxRequest(sandbox_id=sandbox))
        assert again.status == v1.SANDBOX_STATUS_RUNNING and not again.reason
        assert client.run(sandbox, "cat base.txt layer.txt").stdout == "base\nlayer\n"
        assert client.run(other, "echo fine").stdout == "fine\n"
        for each in (sandbox, other):
            client.sandbox.DestroySandbox(v1.DestroySandboxRequest(sandbox_id=each))
        until(lambda: not left_of(fresh, [sandbox, other]))
    assert Rest(fresh.endpoint).raw("GET", "/healthz")[0] == 200


def asleep(seconds):
    """Processes of the host that sleep for so long."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            line = open(path, "rb").read()
        except OSError:
            continue
        if line == b"sleep\0" + seconds.encode() + b"\0":
            found.append(path)
    return found
