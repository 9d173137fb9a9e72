"""The asyncio classes behind the face of the blocking ones, so that both share their tests."""

import inspect


class Blocking:
    """Runs what an object (or a class) does on an event loop and waits for it."""

    def __init__(self, target, loop):
        self._target = target
        self._loop = loop

    def __call__(self, *args, **kwargs):
        # What belongs to a loop must be made while it runs.
        async def make():
            return _called(self._target, args, kwargs)

        return self._wait(make())

    def __getattr__(self, name):
        attribute = getattr(self._target, name)
        if inspect.isroutine(attribute):
            return lambda *args, **kwargs: self._face(_called(attribute, args, kwargs))
        return self._face(attribute)

    def __enter__(self):
        return self._wait(self._target.__aenter__())

    def __exit__(self, *failure):
        return self._wait(self._target.__aexit__(*failure))

    def __iter__(self):
        pieces = self._target.__aiter__()
        while True:
            try:
                yield self._wait(pieces.__anext__())
            except StopAsyncIteration:
                return

    def __repr__(self):
        return repr(self._target)

    def _wait(self, awaitable):
        return self._face(self._loop.run_until_complete(awaitable))

    def _face(self, made):
        if made is self._target:
            return self
        if inspect.isawaitable(made):
            return self._wait(made)
        return Blocking(made, self._loop) if _is_asynchronous(made) else made


def _called(function, args, kwargs):
    """What is handed on is handed on as what it is."""
    bare = {name: _bare(value) for name, value in kwargs.items()}
    return function(*map(_bare, args), **bare)


def _bare(value):
    return value._target if isinstance(value, Blocking) else value


def _is_asynchronous(made):
    return type(made).__module__.startswith("ringfence._async") or inspect.isasyncgen(made)
