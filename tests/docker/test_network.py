"""What the inside can reach."""

import contextlib
import subprocess
import sys

import pytest

from engine import Engine, name_of
from server import Server
from waiting import until
from wire import Client, v1

GATEWAY = "172.17.0.1"
PORT = 8123


@pytest.fixture(scope="module")
def bridged(tmp_path_factory):
    """A server whose engine gives containers a network."""
    with Engine(bridged=True) as engine, pytest.MonkeyPatch.context() as patch:
        engine.load("busybox")
        patch.setenv("DOCKER_HOST", engine.host)
        with Server() as server, _site(engine, tmp_path_factory.mktemp("site")), Client(server.unix) as client:
            yield client
            client.destroy_all()


@contextlib.contextmanager
def _site(engine, place):
    """Somebody who can be reached there."""
    command = ["nsenter", "-t", str(engine.pid), "-n", sys.executable, "-m", "http.server", str(PORT), "--bind",
               GATEWAY, "--directory", place]
    site = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        site.kill()
        site.wait()


def interfaces(client, box):
    listed = client.run(box, "cat /proc/net/dev").stdout.splitlines()[2:]
    return {line.split(":")[0].strip() for line in listed}


def reaches(client, box):
    request = "printf 'GET /none HTTP/1.0\\r\\n\\r\\n'"
    done = client.run(box, f"{request} | nc -w 5 {GATEWAY} {PORT}")
    return done.stdout + done.stderr


def sandbox(client, **fields):
    codebase = client.new_codebase(hello_txt=b"hello\n")
    return client.new_sandbox(
        codebase, image=name_of("busybox"), runtime=v1.RUNTIME_TYPE_DOCKER, **fields)


def test_a_bridge_leads_out_when_asked_for(bridged):
    box = sandbox(bridged, network=v1.NETWORK_MODE_BRIDGE)
    assert interfaces(bridged, box) == {"lo", "eth0"}
    until(lambda: "404" in reaches(bridged, box))
    shown = bridged.sandbox.GetSandbox(v1.GetSandboxRequest(sandbox_id=box))
    assert shown.network == v1.NETWORK_MODE_BRIDGE


def test_nothing_leads_out_otherwise(bridged):
    box = sandbox(bridged)
    assert interfaces(bridged, box) == {"lo"}
    assert "unreachable" in reaches(bridged, box)
    served = "echo here | nc -l -p 8000 127.0.0.1 & sleep 0.3; nc 127.0.0.1 8000 < /dev/null"
    assert bridged.run(box, served).stdout == "here\n"
