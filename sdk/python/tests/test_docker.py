"""Sandboxes in images, with an engine of the suite's own."""

import os
import subprocess
import sys

import pytest

import servers
from engine import Engine, name_of
from ringfence import ResourceLimits, RuntimeType, Sandbox, SandboxClient, UnsupportedError

LIMITS = ResourceLimits(memory_bytes=512 << 20, pids_limit=100)

ONE_LINE = """
import sys
from ringfence import RuntimeType, Sandbox

with Sandbox.from_local(".", preset="agent-safe", runtime=RuntimeType.DOCKER, image=sys.argv[1]) as sandbox:
    print(sandbox.run("cat hello .env; whoami", timeout=60).output)
"""


@pytest.fixture(scope="module")
def engine():
    with Engine() as running:
        running.load("full")
        yield running
        assert running.containers() == {}


@pytest.fixture(scope="module")
def in_images(engine):
    before = os.environ.get("DOCKER_HOST", "")
    os.environ["DOCKER_HOST"] = engine.host
    try:
        with servers.served() as where:
            yield where.options
    finally:
        os.environ["DOCKER_HOST"] = before


@pytest.fixture
def project(tmp_path):
    (tmp_path / "hello").write_text("hello\n")
    (tmp_path / "other").write_text("other\n")
    (tmp_path / ".env").write_text("SECRET=1\n")
    return tmp_path


def test_one_line_without_a_server(engine, project):
    done = subprocess.run(
        [sys.executable, "-c", ONE_LINE, name_of("full")], cwd=project, capture_output=True, text=True,
        env={**os.environ, "DOCKER_HOST": engine.host}, timeout=100)
    assert "hello\n" in done.stdout and "user\n" in done.stdout, done
    assert "SECRET" not in done.stdout and "No such file" in done.stdout, done
    assert engine.containers() == {}


def test_everything_works_as_without_an_image(in_images, project):
    with Sandbox.from_local(project, preset="full-access", runtime=RuntimeType.DOCKER, image=name_of("full"),
                            resources=LIMITS, **in_images) as sandbox:
        assert sandbox.info.runtime == RuntimeType.DOCKER and sandbox.info.image == name_of("full")
        with sandbox.session("/bin/bash") as session:
            session.exec("cd /tmp; x=1")
            assert session.exec("echo $x $PWD").stdout == "1 /tmp\n"
        server = sandbox.start_process("python3 -u -m http.server 8000 --bind 127.0.0.1")
        server.wait_for_port(8000, timeout=60)
        server.kill()
        terminal = sandbox.terminal("python3 -q")
        terminal.expect(">>>", timeout=60)
        terminal.write("6 * 7\n")
        terminal.expect("42", timeout=60)
        terminal.close()
        sandbox.run("echo changed >> hello; rm other")
        assert {change.path for change in sandbox.changes()} == {"/hello", "/other"}
        with sandbox.fork() as fork:
            assert fork.run("cat hello").stdout == "hello\nchanged\n"
        sandbox.stop()
        sandbox.start()
        assert sandbox.run("cat hello").stdout == "hello\nchanged\n"


def test_an_image_that_is_nowhere_is_named(in_images, project):
    with SandboxClient(**in_images) as client:
        before = {each.id for each in client.list_codebases()}
        with pytest.raises(UnsupportedError, match="ringfence-test-none"):
            Sandbox.from_local(
                project, runtime=RuntimeType.DOCKER, image="ringfence-test-none:1", **in_images)
        assert {each.id for each in client.list_codebases()} == before
