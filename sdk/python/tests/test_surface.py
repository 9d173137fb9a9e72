"""Both worlds offer the same, and all that the API has; what is generated is as it is made."""

import ast
import inspect
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import ringfence
from ringfence import exceptions
from ringfence._wire import methods
from ringfence._wire.method import Method

PACKAGE = pathlib.Path(ringfence.__file__).parent
ROOT = PACKAGE.parent

PAIRS = [(name, "Async" + name) for name in sorted(ringfence.__all__)
         if "Async" + name in ringfence.__all__]


def members(kind):
    return {name: inspect.getattr_static(kind, name) for name in dir(kind)
            if not name.startswith("_")}


def plain(value):
    """A function, whatever it is wrapped in."""
    if isinstance(value, (classmethod, staticmethod)):
        value = value.__func__
    if isinstance(value, property):
        value = value.fget
    return getattr(value, "__wrapped__", value)


def blocking(annotation):
    """What an annotation of the one world is in the other."""
    if not isinstance(annotation, str):
        return annotation
    text = re.sub(r"\bAsync([A-Z]\w*)", r"\1", annotation)
    return re.sub(r"\bAwaitable\[(\w+)\]", r"\1", text)


def test_there_are_two_of_each():
    assert [name for name, _ in PAIRS] == [
        "AttachedExec", "AuditStream", "ExecStream", "LogStream", "Process", "Sandbox", "SandboxClient",
        "SessionWrapper", "Terminal"]


@pytest.mark.parametrize("sync_name, async_name", PAIRS)
def test_both_worlds_have_the_same_methods_with_the_same_parameters(sync_name, async_name):
    ours, theirs = (members(getattr(ringfence, name)) for name in (sync_name, async_name))
    assert sorted(ours) == sorted(theirs)
    for name in ours:
        assert type(ours[name]) is type(theirs[name]), name
        one, other = plain(ours[name]), plain(theirs[name])
        if not inspect.isfunction(one):
            continue
        assert not inspect.iscoroutinefunction(one), name
        assert not inspect.isasyncgenfunction(one), name
        told, asked = inspect.signature(one), inspect.signature(other)
        assert list(told.parameters) == list(asked.parameters), name
        for given, taken in zip(told.parameters.values(), asked.parameters.values()):
            assert (given.kind, given.default) == (taken.kind, taken.default), (name, given)
            assert given.annotation == blocking(taken.annotation), (name, given)


@pytest.mark.parametrize("name", ["Sandbox", "SandboxClient", "SessionWrapper", "Process",
                                  "Terminal", "AsyncSandbox", "AsyncSandboxClient"])
def test_everything_public_says_what_it_is(name):
    for member, value in members(getattr(ringfence, name)).items():
        if inspect.isfunction(plain(value)) and not isinstance(value, property):
            assert inspect.getdoc(plain(value)), f"{name}.{member}"


@pytest.mark.parametrize("world", ["_async", "_sync"])
def test_every_call_of_the_api_is_made_by_the_client(world):
    text = "".join(file.read_text() for file in (PACKAGE / world).glob("*.py"))
    used = set(re.findall(r"methods\.(\w+)", text))
    offered = {name for name, value in vars(methods).items() if isinstance(value, Method)}
    assert offered == used


def test_what_is_exported_is_exactly_what_is_meant_to_be():
    listed = ringfence.__all__
    assert listed == sorted(set(listed)) and not [name for name in listed if name[0] == "_"
                                                  and name != "__version__"]
    assert set(exceptions.__all__) <= set(listed)
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    imported = {alias.asname or alias.name for node in tree.body
                if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert imported == set(listed)
    defined = {name for name, value in vars(exceptions).items()
               if isinstance(value, type) and value.__module__ == exceptions.__name__}
    assert defined == set(exceptions.__all__)


def test_the_package_is_typed_and_knows_its_version():
    assert (PACKAGE / "py.typed").exists()
    manifest = (ROOT.parents[1] / "Cargo.toml").read_text()
    assert f'version = "{ringfence.__version__}"' in manifest


def generate(root, *options):
    return subprocess.run(
        [sys.executable, root / "sdk/python/generate.py", *options], stderr=subprocess.PIPE, text=True)


def test_what_is_generated_is_what_would_be_generated():
    assert generate(ROOT.parents[1], "--check").stderr == ""


@pytest.mark.parametrize("changed, stale", [
    ("sdk/python/ringfence/_async/_files.py", "_sync/_files.py"),
    ("sdk/python/ringfence/_sync/_files.py", "_sync/_files.py"),
    ("api/sandbox/v1/server.proto", "_wire/server_pb2.py"),
])
def test_what_was_not_generated_again_is_noticed(tmp_path, changed, stale):
    repository = ROOT.parents[1]
    ignored = shutil.ignore_patterns("__pycache__", "tests")
    shutil.copytree(repository / "api", tmp_path / "api", ignore=ignored)
    shutil.copytree(repository / "sdk/python", tmp_path / "sdk/python", ignore=ignored)
    file = tmp_path / changed
    mark = "message Added { string text = 1; }\n" if file.suffix == ".proto" else "ADDED = 1\n"
    file.write_text(file.read_text() + mark)
    checked = generate(tmp_path, "--check")
    assert checked.returncode == 1 and stale in checked.stderr
