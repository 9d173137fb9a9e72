"""Every exception is raised by what it is named after, with all that it promises to carry."""

import builtins
import copy
import errno
import json
import pathlib
import pickle
import types

import pytest
import ringfence
from ringfence import Sandbox, _errors, exceptions

import complaints
from situations import PARENTS, SITUATIONS

REGISTRY = json.loads((pathlib.Path(__file__).parents[3] / "api/errors.json").read_text())

BUILTINS = {
    "AlreadyExistsError": builtins.FileExistsError,
    "AuthenticationError": builtins.ConnectionError,
    "CommandTimeoutError": TimeoutError,
    "ConnectionError": builtins.ConnectionError,
    "FileNotFoundError": builtins.FileNotFoundError,
    "IncompatibleServerError": builtins.ConnectionError,
    "InvalidConfigurationError": ValueError,
    "PermissionDeniedError": builtins.PermissionError,
    "WaitTimeoutError": TimeoutError,
}

NUMBERS = {
    "AlreadyExistsError": errno.EEXIST,
    "FileNotFoundError": errno.ENOENT,
    "PermissionDeniedError": errno.EACCES,
}


@pytest.fixture(scope="module")
def scenes(tls_server, tmp_path_factory):
    """One running sandbox for each kind of server, and more where a situation needs them."""
    made = {}

    def scene(where):
        if where.name not in made:
            root = tmp_path_factory.mktemp("scene")
            for name in ("hello.txt", "one, two.txt", "secrets/token", "output/.keep"):
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text(f"{name}\n")
            sandbox = Sandbox.from_local(root, preset="agent-safe", **where.options)
            made[where.name] = types.SimpleNamespace(
                where=where, root=root, sandbox=sandbox, client=sandbox._client,
                tls=tls_server.options)
        return made[where.name]

    yield scene
    for each in made.values():
        each.sandbox.destroy()


@pytest.fixture(params=SITUATIONS, ids=lambda situation: situation.name)
def situation(request):
    return request.param


def test_it_is_raised_with_all_it_promises(where, situation, scenes):
    scene = scenes(where)
    with complaints.nothing_made(where):
        with pytest.raises(ringfence.SandboxError) as caught:
            situation.provoke(scene)
    error = caught.value
    assert type(error) is situation.kind
    complaints.assert_helpful(error)
    assert error.code == situation.code
    if error.grpc_code is not None:
        wanted = [entry["grpc"] for entry in REGISTRY if entry["code"] == error.code]
        assert [error.grpc_code] == wanted or error.code is None
    for name, value in situation.fields.items():
        found = getattr(error, name)
        assert value(found) if callable(value) else found == value, (name, found)
    assert_is_also_the_builtin(error)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert_same(twin, error)


def assert_is_also_the_builtin(error):
    kind = BUILTINS.get(type(error).__name__)
    if kind is None:
        assert not isinstance(error, (OSError, ValueError))
    else:
        with pytest.raises(kind):
            raise error
    assert getattr(error, "errno", None) == NUMBERS.get(type(error).__name__)


def assert_same(twin, error):
    assert type(twin) is type(error) and str(twin) == str(error) and twin.args == error.args
    assert vars(twin) == vars(error)
    for name in ("errno", "filename"):
        assert getattr(twin, name, None) == getattr(error, name, None)


def test_none_is_forgotten():
    raised = {situation.kind.__name__ for situation in SITUATIONS}
    assert raised | PARENTS == set(exceptions.__all__) and not raised & PARENTS
    for name in PARENTS:
        parent = getattr(exceptions, name)
        assert [situation for situation in SITUATIONS if issubclass(situation.kind, parent)]


def test_all_are_sandbox_errors_and_importable_from_both_places():
    for name in exceptions.__all__:
        kind = getattr(exceptions, name)
        assert getattr(ringfence, name) is kind and issubclass(kind, ringfence.SandboxError)
        assert issubclass(kind, BUILTINS.get(name, Exception))


def test_every_code_of_the_registry_has_its_exception():
    codes = [entry["code"] for entry in REGISTRY]
    assert sorted(codes) == sorted(_errors._BY_CODE)
    assert len(set(codes)) == len(codes)
