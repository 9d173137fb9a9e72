"""Start, stop, start again, and the end of anything at any time."""

import os
import signal
import subprocess
import tempfile

import grpc
import pytest

from engine import Engine, name_of
from server import Server, program
from waiting import until
from wire import Client, refused, v1

CODE = grpc.StatusCode


def started(client, codebase):
    return client.new_sandbox(codebase, image=name_of("busybox"), runtime=v1.RUNTIME_TYPE_DOCKER)


def status_of(client, box):
    found = client.sandbox.GetSandbox(v1.GetSandboxRequest(sandbox_id=box))
    return found.status, found.reason


def works(client, box):
    try:
        return client.run(box, "cat kept").stdout == "kept\n"
    except grpc.RpcError:
        return False


def start(client, box):
    client.sandbox.StartSandbox(v1.StartSandboxRequest(sandbox_id=box))


def stop(client, box):
    client.sandbox.StopSandbox(v1.StopSandboxRequest(sandbox_id=box))


def test_it_stops_and_starts_again(client, codebase, engine):
    box = started(client, codebase)
    client.run(box, "echo kept > kept; echo kept > /tmp/kept; echo kept > ~/kept")
    for _ in range(2):
        stop(client, box)
        assert engine.containers() == {}
        start(client, box)
        assert list(engine.containers()) == [f"ringfence-{box}"]
        assert client.run(box, "cat kept /tmp/kept ~/kept").stdout == "kept\n" * 3


def test_a_container_that_is_ended_is_reported_and_started_again(client, codebase, engine):
    box = started(client, codebase)
    client.run(box, "echo kept > kept")
    engine.ask("POST", f"/containers/ringfence-{box}/kill")
    until(lambda: status_of(client, box)[0] == v1.SANDBOX_STATUS_ERROR)
    assert status_of(client, box)[1]
    until(lambda: engine.containers() == {})
    start(client, box)
    assert client.run(box, "cat kept").stdout == "kept\n"


def test_a_warden_that_is_killed_takes_its_container_along(client, codebase, engine, server):
    box = started(client, codebase)
    client.run(box, "echo kept > kept")
    before = open("/proc/mounts").read()
    os.kill(warden_of(server, box), signal.SIGKILL)
    until(lambda: status_of(client, box)[0] == v1.SANDBOX_STATUS_ERROR)
    until(lambda: engine.containers() == {})
    assert str(server.state) not in before and str(server.state) not in open("/proc/mounts").read()
    start(client, box)
    assert client.run(box, "cat kept").stdout == "kept\n"


def warden_of(server, box):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{pid}/cmdline").read().split("\0")
        except OSError:
            continue
        if "warden" in words and any(box in word for word in words):
            return int(pid)
    raise AssertionError("there is no warden")


def test_a_server_that_is_killed_finds_its_containers_again(engine):
    with Server() as server:
        with Client(server.unix) as client:
            box = started(client, client.new_codebase(hello_txt=b"hello\n"))
            client.run(box, "echo kept > kept")
        server.kill()
        assert list(engine.containers()) == [f"ringfence-{box}"]
        server.start()
        with Client(server.unix) as client:
            assert client.run(box, "cat kept").stdout == "kept\n"
            client.destroy_all()
        assert engine.containers() == {}


def test_containers_of_others_are_left_alone(client, codebase, engine):
    spec = '{"Image": "%s", "Cmd": ["/bin/sleep", "1000"], "Labels": {"dev.ringfence.sandbox": "sb_x",' \
        ' "dev.ringfence.dir": "/elsewhere/sb_x"}}' % name_of("busybox")
    assert engine.ask("POST", "/containers/create?name=other", spec)[0] == 201
    try:
        with Server() as server, Client(server.unix) as mine:
            # One whose image says that it is of a sandbox of this server's, which is not there.
            claims = spec.replace("/elsewhere", f"{server.state}/server/sandboxes")
            assert engine.ask("POST", "/containers/create?name=claims", claims)[0] == 201
            server.kill()
            server.start()
            assert set(engine.containers()) == {"other", "claims"}
        engine.ask("DELETE", "/containers/claims?force=1")
        with Server() as server, Client(server.unix) as mine:
            box = started(mine, mine.new_codebase(hello_txt=b"hello\n"))
            assert set(engine.containers()) == {"other", f"ringfence-{box}"}
            mine.destroy_all()
        assert set(engine.containers()) == {"other"}
    finally:
        for name in ("other", "claims"):
            engine.ask("DELETE", f"/containers/{name}?force=1")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_an_engine_that_goes_and_comes_back(how, monkeypatch):
    with Engine() as engine:
        engine.load("busybox")
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        with Server() as server, Client(server.unix) as client:
            codebase = client.new_codebase(hello_txt=b"hello\n")
            box = started(client, codebase)
            client.run(box, "echo kept > kept")
            engine.stop(how)
            with refused() as refusal:
                started(client, codebase)
            assert refusal.status == CODE.FAILED_PRECONDITION and "container engine" in refusal.message
            # It ends its containers with itself, or when it comes back; or it keeps them.
            engine.start()
            until(lambda: status_of(client, box)[0] == v1.SANDBOX_STATUS_ERROR or works(client, box))
            stop(client, box)
            start(client, box)
            assert client.run(box, "cat kept").stdout == "kept\n"
            client.destroy_all()
            until(lambda: engine.containers() == {})


def test_an_engine_that_stands_still_holds_nobody_up_for_long(monkeypatch):
    with Engine() as engine:
        engine.load("busybox")
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        with Server() as server, Client(server.unix) as client:
            box = started(client, client.new_codebase(hello_txt=b"hello\n"))
            client.run(box, "echo kept > kept")
            os.kill(engine.pid, signal.SIGSTOP)
            try:
                assert client.run(box, "cat kept").stdout == "kept\n"
                client.sandbox.StopSandbox(v1.StopSandboxRequest(sandbox_id=box), timeout=30)
                server.kill()
                server.start()
            finally:
                os.kill(engine.pid, signal.SIGCONT)
            until(lambda: engine.containers() == {})
            start(client, box)
            assert client.run(box, "cat kept").stdout == "kept\n"
            client.destroy_all()


def test_without_an_engine_it_is_said_and_bwrap_works(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with Server() as server, Client(server.unix) as client:
        codebase = client.new_codebase(hello_txt=b"hello\n")
        with refused() as how:
            started(client, codebase)
        assert how.status == CODE.FAILED_PRECONDITION and f"{tmp_path}/none.sock" in how.message
        assert client.run(client.new_sandbox(codebase), "cat hello.txt").stdout == "hello\n"
        client.destroy_all()


def as_nobody(*command, **env):
    """Run by somebody who is neither root nor in a group of the engine's."""
    alone = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *command]
    return subprocess.run(alone, capture_output=True, text=True, timeout=60, env={**os.environ, **env})


def test_without_root_it_is_said(engine, tmp_path):
    done = as_nobody(program(), "run", "--image", name_of("busybox"), "--state", "/nonexistent", "/usr/share", "--", "true")
    assert done.returncode == 125 and done.stdout == "", done
    with tempfile.TemporaryDirectory() as state:
        os.chmod(state, 0o777)
        done = as_nobody(program(), "run", "--image", name_of("busybox"), "--state", state, "/usr/share", "--", "true")
    assert done.returncode == 125 and "needs a server that runs as root" in done.stderr, done
    assert engine.containers() == {}


def test_the_doctor_says_whether_an_engine_answers(engine, tmp_path):
    def said(how, **env):
        found = how(program(), "doctor", **env).stdout
        return next(line for line in found.splitlines() if "container engine" in line)

    def as_root(*command, **env):
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **env})

    assert said(as_root).startswith("ok") and engine.socket in said(as_root)
    assert "no such socket" in said(as_root, DOCKER_HOST=f"unix://{tmp_path}/none")
    # First its directory cannot be entered, then it cannot be used itself.
    assert "may not use its socket" in said(as_nobody)
    os.chmod(os.path.dirname(engine.socket), 0o711)
    assert "may not use its socket" in said(as_nobody)
