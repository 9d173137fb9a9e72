"""Projects to work on, and the servers that work on them."""

import os
import pathlib

import pytest

import programs
import servers

pytest_plugins = ["guides", "in_image"]
# Modules that check something for the tests say what they found, as tests do.
pytest.register_assert_rewrite("calls_of_client", "calls_of_sandbox", "complaints")


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory):
    """Private servers keep their things away from those of whoever runs the tests."""
    os.environ["RINGFENCE_STATE"] = str(tmp_path_factory.mktemp("state"))
    os.environ.pop("RINGFENCE_ENDPOINT", None)
    os.environ.pop("RINGFENCE_TOKEN", None)


@pytest.fixture(autouse=True)
def caches(tmp_path_factory, monkeypatch):
    """The place for caches, so that no test finds or leaves anything in the user's own."""
    home = tmp_path_factory.mktemp("caches")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.delenv("RINGFENCE_NO_CACHE", raising=False)
    return home / "ringfence" / "digests"


@pytest.fixture(scope="session")
def tls_server():
    """One for all tests that get along with each other: TCP, TLS, and a token."""
    with servers.served("--lease-seconds", "3", tls=True, token=True) as where:
        yield where


@pytest.fixture(params=["embedded", "tls"])
def where(request):
    """Both kinds of servers. `Sandbox.from_local(project, **where.options)`."""
    if request.param == "embedded":
        return servers.EMBEDDED
    return request.getfixturevalue("tls_server")


@pytest.fixture
def program(tmp_path):
    """`program(text)` starts a Python program; see `programs.PRELUDE` for what it can use."""
    started = []

    def start(text, **more):
        started.append(programs.Program(tmp_path, text, **more))
        return started[-1]

    yield start
    for each in started:
        each.end()


@pytest.fixture
def project(tmp_path):
    """A small project with a secret, a program, and a place for output."""
    root = tmp_path / "project"
    files = {
        "hello.txt": "hello\n",
        "main.py": "print('Hello!')\n",
        "src/app.py": "def add(a, b):\n    return a + b\n",
        "src/data.csv": "a,b\n1,2\n",
        "tests/test_app.py": "import sys\nsys.path.insert(0, 'src')\nimport app\n"
                             "def test_add():\n    assert app.add(1, 2) == 3\n",
        "secrets/token.txt": "hunter2\n",
        "config.key": "key\n",
        ".env": "PASSWORD=hunter2\n",
        "output/.keep": "",
    }
    for name, text in files.items():
        write(root / name, text)
    return root


def write(path: pathlib.Path, text: str, mode=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if mode is not None:
        path.chmod(mode)
