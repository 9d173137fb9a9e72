"""The asynchronous client behind the face of the synchronous one.

Both clients have the same methods; with this they share their tests too.
"""

import inspect

import agentfense

_WRAPPED = (agentfense.AsyncSandbox, agentfense.AsyncSandboxClient, agentfense.AsyncSessionWrapper)


class Blocking:
    """Runs what an object (or a class) does on an event loop and waits for it."""

    def __init__(self, target, loop):
        self._target = target
        self._loop = loop

    def __call__(self, *args, **kwargs):
        # Channels belong to the loop on which they are made.
        async def make():
            return self._target(*args, **kwargs)

        return self._wait(make())

    def __getattr__(self, name):
        attribute = getattr(self._target, name)
        if not inspect.isroutine(attribute):
            return attribute
        return lambda *args, **kwargs: self._result(attribute(*args, **kwargs))

    def __enter__(self):
        return self._wait(self._target.__aenter__())

    def __exit__(self, *failure):
        return self._wait(self._target.__aexit__(*failure))

    def __repr__(self):
        return repr(self._target)

    def _result(self, made):
        if inspect.isawaitable(made):
            return self._wait(made)
        return self._items(made) if inspect.isasyncgen(made) else made

    def _wait(self, awaitable):
        made = self._loop.run_until_complete(awaitable)
        if made is self._target:
            return self
        return Blocking(made, self._loop) if isinstance(made, _WRAPPED) else made

    def _items(self, generator):
        try:
            while True:
                yield self._loop.run_until_complete(generator.__anext__())
        except StopAsyncIteration:
            return
