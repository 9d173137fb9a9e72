"""`kill -9` of the server, in the middle of everything, a hundred times."""

import os
import threading

import grpc
import pytest

from in_image import RUNTIME
from server import Server, wardens
from wire import v1

ROUNDS = 100 if RUNTIME == "bwrap" else 20
AT_ONCE = 50


@pytest.fixture(scope="module")
def world():
    """A server with sandboxes in which there is something to lose."""
    with Server() as server:
        with server.client() as client:
            codebase = client.new_codebase(base_txt=b"base\n")
            sandboxes = [client.new_sandbox(codebase) for _ in range(4)]
            sessions = {}
            for sandbox in sandboxes:
                asked = v1.CreateSessionRequest(sandbox_id=sandbox, shell="/bin/bash")
                sessions[sandbox] = client.sandbox.CreateSession(asked).id
                said = v1.SessionExecRequest(
                    session_id=sessions[sandbox],
                    command=f"cd /tmp; export KEPT={sandbox}; sleep 100000 & echo $! > job")
                assert client.sandbox.SessionExec(said).exit_code == 0
            target = client.new_codebase()
        yield server, sandboxes, sessions, target


def content(name):
    """Long enough that an upload takes several messages, and tells whose it is."""
    return (name.encode() + b"\n") * 20_000


def strain(server, sandboxes, target, mark, stop):
    """Runs commands and uploads until the server is gone; what was promised is noted."""
    kept = []

    def one(number):
        with server.client() as client:
            done = 0
            while not stop.is_set():
                name = f"{mark}-{number}-{done}"
                try:
                    if number % 2:
                        client.upload(target, f"dir{number}/{name}", content(name))
                        kept.append(("upload", f"dir{number}/{name}", name))
                    else:
                        sandbox = sandboxes[number % len(sandboxes)]
                        client.run(sandbox, f"echo {name} > /workspace/{name}")
                        kept.append(("exec", sandbox, name))
                except grpc.RpcError:
                    return
                done += 1

    threads = [threading.Thread(target=one, args=(number,)) for number in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    return threads, kept


def check_all_is_there(client, sandboxes, sessions):
    """Every sandbox is as it was, sessions answer with their state, what ran still runs."""
    listed = client.sandbox.ListSandboxes(v1.ListSandboxesRequest()).sandboxes
    assert {each.id: each.status for each in listed} == {
        each: v1.SANDBOX_STATUS_RUNNING for each in sandboxes}
    for sandbox, session in sessions.items():
        asked = v1.SessionExecRequest(
            session_id=session, command='echo "$KEPT $PWD"; kill -0 "$(cat job)" && jobs -r | wc -l')
        said = client.sandbox.SessionExec(asked)
        assert said.stdout.split() == [sandbox, "/tmp", "1"], said


def check_promises(client, target, kept):
    """What was answered is there, and no upload is half there."""
    files = {each.full_path: each.size for each in client.codebase.ListFiles(
        v1.ListFilesRequest(codebase_id=target, recursive=True)).files}
    for path, size in files.items():
        assert size == len(content(os.path.basename(path))), f"{path} is half there"
    for kind, where, name in kept:
        if kind == "upload":
            assert f"/{where}" in files, f"{where} was promised"
    for path in list(files)[:3]:
        assert client.download(target, path) == content(os.path.basename(path))
    by_sandbox = {}
    for kind, where, name in kept:
        if kind == "exec":
            by_sandbox.setdefault(where, []).append(name)
    for sandbox, names in by_sandbox.items():
        said = client.run(sandbox, f"cat {' '.join(names)}; rm -f /workspace/*-*-*")
        assert said.stdout.split() == names


def check_nothing_without_a_record(server, sandboxes):
    place = server.state / "server" / "sandboxes"
    assert sorted(os.listdir(place)) == sorted(sandboxes)
    assert len(wardens(server.state)) == len(sandboxes)


@pytest.mark.timeout(600)
def test_a_hundred_kills_lose_nothing(world):
    server, sandboxes, sessions, target = world
    total = 0
    for number in range(ROUNDS):
        stop = threading.Event()
        threads, kept = strain(server, sandboxes, target, f"r{number}", stop)
        # Each round dies at another point of its work: after so many answers.
        while len(kept) < number % 40 and any(thread.is_alive() for thread in threads):
            stop.wait(0.001)
        server.kill()
        stop.set()
        for thread in threads:
            thread.join()
        server.start()
        with server.client() as client:
            check_all_is_there(client, sandboxes, sessions)
            check_promises(client, target, kept)
        check_nothing_without_a_record(server, sandboxes)
        total += len(kept)
    assert total > ROUNDS, "the server was killed before it did anything"


def test_a_create_is_there_or_not(world):
    """Killed between the steps of a create: a record with its reality, or neither."""
    server, sandboxes, _, target = world
    for delay in range(20):
        with server.client() as client:
            made = [client.sandbox.CreateSandbox.future(v1.CreateSandboxRequest(
                codebase_id=target, preset="full-access", start=True)) for _ in range(4)]
            threading.Event().wait(delay * 0.002)
            server.kill()
            for each in made:
                each.cancel()
        server.start()
        with server.client() as client:
            listed = client.sandbox.ListSandboxes(v1.ListSandboxesRequest()).sandboxes
            new = [each for each in listed if each.id not in sandboxes]
            running = [each for each in new if each.status == v1.SANDBOX_STATUS_RUNNING]
            for each in running:
                assert client.run(each.id, "echo lives").stdout == "lives\n"
            assert len(wardens(server.state)) == len(sandboxes) + len(running)
            for each in new:
                client.sandbox.DestroySandbox(v1.DestroySandboxRequest(sandbox_id=each.id))
            check_nothing_without_a_record(server, sandboxes)
