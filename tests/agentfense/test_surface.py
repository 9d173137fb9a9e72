"""Nothing that the published client can do is left untested."""

import inspect

import agentfense
import pytest

# Imported for what their tests say they cover, also when only this file runs.
import test_client  # noqa: F401
import test_presets  # noqa: F401
import test_sandbox  # noqa: F401
from covers import COVERED

CLASSES = ["Sandbox", "SandboxClient", "SessionWrapper"]
CLASSES += [f"Async{name}" for name in CLASSES]
SPECIAL = {"__enter__", "__exit__", "__aenter__", "__aexit__", "__repr__"}


def public_names(class_name):
    held = vars(getattr(agentfense, class_name))
    return {f"{class_name}.{name}" for name in held if not name.startswith("_") or name in SPECIAL}


@pytest.mark.parametrize("class_name", CLASSES)
def test_every_public_method_has_a_test_that_uses_it(class_name):
    names = public_names(class_name)
    assert names, "nothing public was found: has the client changed?"
    assert names - COVERED == set()


def test_every_public_function_has_a_test_that_uses_it():
    functions = {
        name for name in agentfense.__all__ if inspect.isfunction(getattr(agentfense, name))
    }
    assert len(functions) >= 11
    assert functions - COVERED == set()


def test_nothing_is_said_to_be_covered_that_does_not_exist():
    for name in COVERED:
        owner, _, attribute = name.rpartition(".")
        holder = getattr(agentfense, owner) if owner else agentfense
        assert hasattr(holder, attribute), name


def test_the_version_under_test_is_the_published_one():
    from importlib.metadata import version

    assert version("agentfense") == "0.2.1"
