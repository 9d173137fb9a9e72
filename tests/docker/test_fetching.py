"""Images that the engine does not have yet."""

import json
import os
import pty
import subprocess

import grpc
import pytest

from engine import tree_of
from registry import Registry
from rest import Rest
from server import Server
from wire import Client, refused, v1

CODE = grpc.StatusCode


@pytest.fixture(scope="module")
def busybox():
    return tree_of("busybox")


@pytest.fixture
def registry(busybox, engine):
    with Registry(busybox) as running:
        yield running
        engine.ask("DELETE", f"/images/{running.image()}?force=1")


def test_an_image_is_fetched_when_a_sandbox_needs_it(client, codebase, registry):
    box = client.new_sandbox(codebase, image=registry.image(), runtime=v1.RUNTIME_TYPE_DOCKER)
    assert client.run(box, "echo $FETCHED; cat hello.txt").stdout == "yes\nhello\n"
    asked = len(registry.asked)
    assert asked
    client.new_sandbox(codebase, image=registry.image(), runtime=v1.RUNTIME_TYPE_DOCKER)
    assert len(registry.asked) == asked


def test_how_far_it_is_can_be_followed(client, registry):
    steps = list(client.image.FetchImage(v1.FetchImageRequest(image=registry.image())))
    assert steps[-1].ready and not any(step.ready for step in steps[:-1])
    told = [step for step in steps if step.total]
    assert any(0 < step.current < step.total for step in told), steps
    # It is there: nothing is told but that.
    again = list(client.image.FetchImage(v1.FetchImageRequest(image=registry.image())))
    assert [step.ready for step in again] == [True]


def test_over_rest(server, registry):
    rest = Rest(server.unix)
    body = json.dumps({"image": registry.image()})
    status, _, said = rest.raw("POST", "/v1/images/fetch", body, {"content-type": "application/json"})
    lines = [json.loads(line) for line in said.splitlines()]
    assert status == 200 and lines[-1]["ready"], said
    assert any(0 < int(line.get("current", 0)) < int(line.get("total", 0)) for line in lines), said
    status, answer = rest("POST", "/v1/images/fetch", image="a b")
    assert status == 400, answer


def test_who_leaves_ends_it(client, busybox, engine):
    with Registry(busybox, size=64 << 20, pause=0.1) as slow:
        steps = client.image.FetchImage(v1.FetchImageRequest(image=slow.image()))
        next(iter(steps))
        steps.cancel()
        assert engine.ask("GET", f"/images/{slow.image()}/json")[0] == 404


@pytest.mark.parametrize("tag", ["none", "1"])
def test_an_image_that_cannot_be_had_is_named(client, registry, tag):
    name = registry.image(tag).replace(registry.host, registry.host if tag == "none" else "127.0.0.1:1")
    with refused() as how:
        list(client.image.FetchImage(v1.FetchImageRequest(image=name)))
    assert how.status == CODE.FAILED_PRECONDITION and name in how.message and "\n" not in how.message
    with refused() as how:
        list(client.image.FetchImage(v1.FetchImageRequest(image="a b")))
    assert how.status == CODE.INVALID_ARGUMENT


def test_a_server_can_be_told_to_fetch_none(registry, engine):
    with Server("--no-image-fetch") as server, Client(server.unix) as client:
        with refused() as how:
            list(client.image.FetchImage(v1.FetchImageRequest(image=registry.image())))
        assert how.status == CODE.FAILED_PRECONDITION and "fetches none" in how.message
        codebase = client.new_codebase(hello_txt=b"hello\n")
        with refused() as how:
            client.new_sandbox(codebase, image=registry.image(), runtime=v1.RUNTIME_TYPE_DOCKER)
        assert how.status == CODE.FAILED_PRECONDITION and "fetches none" in how.message
    assert registry.asked == []


def test_the_command_line_says_so(registry, tmp_path):
    command = [os.environ["RINGFENCE"], "run", "--discard", "--image", registry.image(), tmp_path, "--", "echo", "it runs"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.stdout, done.returncode) == ("it runs\n", 0), done
    assert done.stderr.count("fetching") == 1 and registry.image() in done.stderr
    again = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert "fetching" not in again.stderr


def test_on_a_terminal_there_is_a_bar(busybox, engine, tmp_path):
    with Registry(busybox, size=16 << 20) as registry:
        command = [os.environ["RINGFENCE"], "run", "--discard", "--image", registry.image(), tmp_path, "--", "true"]
        ours, theirs = pty.openpty()
        done = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = b""
        while piece := _read(ours):
            shown += piece
        os.close(ours)
        assert done.wait() == 0 and b"fetching" in shown and b"MiB" in shown, shown
        engine.ask("DELETE", f"/images/{registry.image()}?force=1")


def _read(terminal):
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""
