"""One server for all tests, and small projects to run in it."""

import asyncio
import contextlib
import types

import agentfense
import pytest

import projects
from blocking import Blocking
from covers import Recorder, asynchronous
from server import Server

pytest_plugins = ["in_image"]

PASSED = pytest.StashKey[bool]()
"""Whether a test got to its end: only then has it used all that it uses."""


@pytest.fixture(scope="session")
def server():
    with Server() as running:
        yield running


@pytest.fixture(scope="session")
def endpoint(server):
    return server.endpoint


@pytest.fixture(scope="session")
def client(endpoint):
    with agentfense.SandboxClient(endpoint) as connected:
        yield connected


@pytest.fixture(scope="session")
def stubs(client):
    """The generated stubs of the published client: what its methods cannot say, these can."""
    return types.SimpleNamespace(sandboxes=client._sandbox_stub, codebases=client._codebase_stub)


@pytest.fixture(scope="session")
def loop_of_all():
    loop = asyncio.new_event_loop()
    yield loop
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


@pytest.fixture(params=["sync", "async"])
def api(request, loop_of_all):
    """Both clients with one face."""
    if request.param == "sync":
        return types.SimpleNamespace(
            is_async=False, Sandbox=agentfense.Sandbox, SandboxClient=agentfense.SandboxClient
        )
    return types.SimpleNamespace(
        is_async=True,
        Sandbox=Blocking(agentfense.AsyncSandbox, loop_of_all),
        SandboxClient=Blocking(agentfense.AsyncSandboxClient, loop_of_all),
    )


@pytest.fixture(autouse=True)
def uses_what_it_covers(request, monkeypatch):
    """Fails a test that says it covers a name and then does not use it."""
    marker = request.node.get_closest_marker("covers")
    names = marker.args if marker else ()
    if "api" in request.fixturenames and request.getfixturevalue("api").is_async:
        names = [asynchronous(name) for name in names]
    recorder = Recorder(monkeypatch, names)
    yield
    if request.node.stash.get(PASSED, False):
        assert not recorder.unused(), "covered in name only"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report


@pytest.fixture
def make_project(tmp_path):
    """Makes a directory of files from a map of names and contents."""
    made = []

    def make(files, name="project"):
        root = tmp_path / (f"{name}-{len(made)}" if made else name)
        made.append(root)
        return projects.write(root, files)

    return make


@pytest.fixture
def open_sandbox(make_project, endpoint):
    """Starts a sandbox on a project of these files; it is gone when the test ends."""
    with contextlib.ExitStack() as opened:

        def open_one(files, preset="full-access", **options):
            path = make_project(files)
            return opened.enter_context(
                agentfense.Sandbox.from_local(path, preset=preset, endpoint=endpoint, **options)
            )

        yield open_one


@pytest.fixture(scope="session")
def shared(endpoint, tmp_path_factory):
    """A sandbox for tests that leave nothing in it that another would trip over."""
    root = tmp_path_factory.mktemp("shared")
    (root / "greeting.txt").write_text("hello\n")
    with agentfense.Sandbox.from_local(
        str(root), preset="full-access", endpoint=endpoint
    ) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def web(endpoint, tmp_path_factory):
    """A sandbox on the project that the guide to sessions speaks of."""
    path = projects.write(tmp_path_factory.mktemp("web"), projects.GUIDE_PROJECT)
    with agentfense.Sandbox.from_local(path, preset="full-access", endpoint=endpoint) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def environment(web):
    """A virtual environment in the workspace of `web`, with pip."""
    made = web.run("python3 -m venv backend/venv")
    assert made.exit_code == 0, made.output
    return "backend/venv"


@pytest.fixture
def codebase(client):
    """An empty codebase; what stands on it is destroyed with it."""
    made = client.create_codebase(name="conformance", owner_id="tests")
    yield made
    for sandbox in client.list_sandboxes(codebase_id=made.id):
        client.destroy_sandbox(sandbox.id)
    client.delete_codebase(made.id)
