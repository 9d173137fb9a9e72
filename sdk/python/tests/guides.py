"""What the tests of the guides stand on: both faces of the SDK, and sandboxes to share."""

import asyncio
import contextlib
import types

import pytest
import ringfence

import projects
import servers
from blocking import Blocking


@pytest.fixture(scope="session")
def loop_of_all():
    loop = asyncio.new_event_loop()
    yield loop
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


@pytest.fixture(params=["blocking", "asyncio"])
def api(request, loop_of_all):
    """The SDK: the blocking classes, and the asyncio ones made to look like them."""
    if request.param == "blocking":
        return ringfence
    return types.SimpleNamespace(
        Sandbox=Blocking(ringfence.AsyncSandbox, loop_of_all),
        SandboxClient=Blocking(ringfence.AsyncSandboxClient, loop_of_all),
    )


def pytest_collection_modifyitems(config, items):
    """What is said twice is left out: servers differ below both faces, so the asyncio one has the
    embedded server here. Tests that are written with `async` run on all."""
    twice = [item for item in items if _parameters(item) == ("tls", "asyncio")]
    config.hook.pytest_deselected(items=twice)
    items[:] = [item for item in items if item not in twice]


def _parameters(item):
    given = item.callspec.params if hasattr(item, "callspec") else {}
    return given.get("where"), given.get("api")


@pytest.fixture
def make_project(tmp_path):
    """Makes a directory of files from a map of names and contents."""
    made = []

    def make(files, name="project"):
        made.append(name)
        return projects.written(tmp_path / f"{name}-{len(made)}", files)

    return make


@pytest.fixture
def open_sandbox(where, make_project):
    """Starts a sandbox on a project of these files; it is gone when the test ends."""
    with contextlib.ExitStack() as opened:

        def open_one(files, preset="full-access", *, sdk=ringfence, **options):
            made = sdk.Sandbox.from_local(
                make_project(files), preset=preset, **where.options, **options)
            return opened.enter_context(made)

        yield open_one


@pytest.fixture(scope="session")
def shared_sandboxes(tls_server):
    """One sandbox of the web project for each server, for tests that leave nothing in the way. The
    servers end after them."""
    with contextlib.ExitStack() as opened:
        made = {}

        def shared(where, root):
            if where.name not in made:
                path = projects.written(root / where.name, projects.WEB)
                made[where.name] = opened.enter_context(ringfence.Sandbox.from_local(
                    path, preset="full-access", **where.options))
            return made[where.name]

        yield shared


@pytest.fixture
def blocking_web(where, shared_sandboxes, tmp_path_factory):
    """The shared sandbox on a server."""
    return shared_sandboxes(where, tmp_path_factory.getbasetemp())


@pytest.fixture
def web(where, api, blocking_web):
    """The same, through both faces."""
    if api is ringfence:
        yield blocking_web
    else:
        with api.Sandbox.connect(blocking_web.id, **where.options) as connected:
            yield connected


@pytest.fixture
def environment(blocking_web):
    """A virtual environment in the workspace of the shared sandbox. Its pip is the system's: one
    of its own is thousands of files."""
    if not blocking_web.exists("backend/venv/ready"):
        made = "python3 -m venv --without-pip --system-site-packages backend/venv"
        blocking_web.run(f"{made} && touch backend/venv/ready", timeout=100, raise_on_error=True)
    return "backend/venv"


@pytest.fixture(scope="session")
def plain_server():
    """Without TLS and token: the published client knows neither."""
    with servers.served() as where:
        yield where


@pytest.fixture
def at(plain_server, make_project):
    """What programs for both clients need."""
    return types.SimpleNamespace(server=plain_server.options, project=make_project)
