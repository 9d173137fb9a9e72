"""Everything that can be called is called, blocking and with asyncio, and does the same."""

import contextlib
import inspect
import pathlib
import types

import pytest
import ringfence
from ringfence._wire import methods
from ringfence._wire.method import Method

import calls
import calls_of_client
import calls_of_sandbox
import complaints
import servers
from blocking import Blocking

CLASSES = ["AttachedExec", "AuditStream", "ExecStream", "LogStream", "Process", "Sandbox",
           "SandboxClient", "SessionWrapper", "Terminal"]
"""Those that do something, and are in both worlds."""

WORLDS = ["blocking", "asyncio"]


@pytest.fixture(scope="module")
def server():
    """Its own Unix socket: directories can be named, tokens made, and leases are held all the same."""
    with servers.served() as where:
        yield {"endpoint": f"unix://{where.state}/server/api.sock"}


@pytest.fixture(scope="module")
def face(loop_of_all):
    def shown(world, name):
        if world == "blocking":
            return getattr(ringfence, name)
        return Blocking(getattr(ringfence, "Async" + name), loop_of_all)
    return shown


@pytest.fixture(scope="module", params=WORLDS)
def it(request, server, face, tmp_path_factory):
    world = request.param
    root = tmp_path_factory.mktemp(world)
    for name in ("hello.txt", "src/a.py", "src/b.py"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(f"{name}\n")
    make_client, Sandbox = face(world, "SandboxClient"), face(world, "Sandbox")
    with make_client(**server) as client, contextlib.ExitStack() as opened:
        sandbox = opened.enter_context(
            Sandbox.from_local(root, preset="full-access", client=client))
        yield types.SimpleNamespace(
            world=world, root=root, client=client, Sandbox=Sandbox, sandbox=sandbox,
            another_client=lambda: make_client(**server))


@pytest.mark.parametrize("use", calls.USES, ids=lambda use: f"{use.__module__[9:]}.{use.__name__}")
def test_it_does_what_it_says(it, use):
    before = complaints.everything(it.client)
    use(it)
    assert complaints.everything(it.client) == before


def test_every_call_of_the_api_has_been_made_by_now(it):
    """Channels remember what they were used for."""
    channel = (it.client._target if isinstance(it.client, Blocking) else it.client)._channel
    offered = {value.path for value in vars(methods).values() if isinstance(value, Method)}
    assert set(channel._callables) == offered


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def test_everything_public_is_in_the_table():
    offered = {f"{name}.{member}" for name in CLASSES for member in public(getattr(ringfence, name))}
    # An attribute of the object, which the class does not have.
    assert calls.exercised() - offered == {"Terminal.exit_code"}
    assert offered - calls.exercised() == set()


def test_what_the_table_says_is_used_is_used():
    for use in calls.USES:
        text = inspect.getsource(use).split("\ndef ", 1)[-1]
        unused = [name for name in use.exercised if "." + name.split(".")[1] not in text]
        assert not unused, use.__name__


def test_the_table_is_of_both_files():
    assert {use.__module__ for use in calls.USES} == {
        calls_of_client.__name__, calls_of_sandbox.__name__}


@pytest.mark.parametrize("name", CLASSES)
def test_what_waits_in_one_world_is_plain_in_the_other(name):
    plain, waiting = (getattr(ringfence, prefix + name) for prefix in ("", "Async"))
    for member in public(plain):
        ours, theirs = (inspect.getattr_static(kind, member) for kind in (plain, waiting))
        for function in filter(None, (getattr(ours, "fget", None), getattr(ours, "__func__", ours))):
            assert not inspect.iscoroutinefunction(function), member
            assert not inspect.isasyncgenfunction(function), member
        assert inspect.isgeneratorfunction(ours) == inspect.isasyncgenfunction(theirs), member


def test_both_worlds_have_the_same_modules():
    package = pathlib.Path(ringfence.__file__).parent
    ours, theirs = ({file.name for file in (package / world).glob("*.py")}
                    for world in ("_sync", "_async"))
    assert ours == theirs
