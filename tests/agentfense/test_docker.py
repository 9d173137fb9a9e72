"""The published client on a server with a container engine: scenario 8, and what the guides do with images."""

import os

import pytest
from agentfense import AsyncSandbox, ResourceLimits, RuntimeType, Sandbox, SandboxClient

from engine import Engine, name_of
from server import Server


@pytest.fixture(scope="module")
def in_images():
    """Where a server is that can run sandboxes in images."""
    before = os.environ.get("DOCKER_HOST", "")
    with Engine() as engine:
        for image in ("full", "busybox"):
            engine.load(image)
        os.environ["DOCKER_HOST"] = engine.host
        try:
            with Server() as server:
                yield server.endpoint
        finally:
            os.environ["DOCKER_HOST"] = before
        assert engine.containers() == {}


def options(endpoint, image="full"):
    limits = ResourceLimits(memory_bytes=512 << 20, pids_limit=100)
    return dict(runtime=RuntimeType.DOCKER, image=name_of(image), resources=limits, endpoint=endpoint)


def test_8_a_sandbox_in_an_image_with_limits(make_project, in_images):
    project = make_project({"app.py": "print('app')\n", ".env": "KEY=1\n"})
    with Sandbox.from_local(project, preset="agent-safe", **options(in_images)) as sandbox:
        assert sandbox.run("python3 app.py").stdout == "app\n"
        assert sandbox.run("cat .env").exit_code != 0
        with SandboxClient(in_images) as client:
            shown = client.get_sandbox(sandbox.id)
        assert (shown.runtime, shown.image) == (RuntimeType.DOCKER, name_of("full"))
        assert (shown.resources.memory_bytes, shown.resources.pids_limit) == (512 << 20, 100)


def test_a_session_in_an_image_keeps_its_state(make_project, in_images):
    with Sandbox.from_local(make_project({"a/b": "b\n"}), preset="development",
                            **options(in_images, "busybox")) as sandbox:
        with sandbox.session() as session:
            session.exec("cd a; export X=1; sleep 1000 &")
            assert session.exec("pwd; echo $X; cat b").stdout == "/workspace/a\n1\nb\n"


def test_it_stops_and_starts_again(make_project, in_images):
    with Sandbox.from_local(make_project({"a": "a\n"}), preset="full-access",
                            **options(in_images, "busybox")) as sandbox:
        sandbox.run("echo kept > kept")
        sandbox.stop()
        sandbox.start()
        assert sandbox.run("cat kept").stdout == "kept\n"


def test_with_asyncio(make_project, in_images, loop_of_all):
    async def use():
        async with await AsyncSandbox.from_local(
                make_project({"a": "a\n"}), preset="read-only", **options(in_images, "busybox")) as sandbox:
            return (await sandbox.run("cat a")).stdout

    assert loop_of_all.run_until_complete(use()) == "a\n"
