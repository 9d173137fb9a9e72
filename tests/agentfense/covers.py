"""Which test uses which public name of the client.

A test says so with `@covers("Sandbox.run")`. What it says is checked twice: the test fails if it
ends without having used the name, and `test_surface.py` fails if a name is in no test's list. A
test that takes the fixture `api` runs for both clients, and its names stand for both:
`Sandbox.run` is also `AsyncSandbox.run`.
"""

import functools
import inspect

import agentfense
import pytest

COVERED = set()
"""Every name that some test says it uses."""

_ASYNC_NAMES = {"__enter__": "__aenter__", "__exit__": "__aexit__"}


def covers(*names):
    def mark(test):
        COVERED.update(names)
        if "api" in inspect.signature(test).parameters:
            COVERED.update(map(asynchronous, names))
        return pytest.mark.covers(*names)(test)

    return mark


def asynchronous(name):
    """The name that the asynchronous client has for what the other one calls `name`."""
    owner, _, attribute = name.rpartition(".")
    if not owner:
        return name
    return f"Async{owner}.{_ASYNC_NAMES.get(attribute, attribute)}"


class Recorder:
    """Remembers which of the names were used while it is in place."""

    def __init__(self, monkeypatch, names):
        self._left = set(names)
        for name in names:
            self._watch(monkeypatch, name)

    def unused(self):
        return sorted(self._left)

    def _watch(self, monkeypatch, name):
        owner, _, attribute = name.rpartition(".")
        holder = getattr(agentfense, owner) if owner else agentfense
        original = inspect.getattr_static(holder, attribute)
        monkeypatch.setattr(holder, attribute, self._watched(name, original))

    def _watched(self, name, original):
        if isinstance(original, property):
            return property(self._noting(name, original.fget))
        if isinstance(original, (classmethod, staticmethod)):
            return type(original)(self._noting(name, original.__func__))
        return self._noting(name, original)

    def _noting(self, name, function):
        @functools.wraps(function)
        def noted(*args, **kwargs):
            self._left.discard(name)
            return function(*args, **kwargs)

        return noted
