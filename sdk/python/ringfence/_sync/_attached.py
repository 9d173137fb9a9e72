# Made from _async/_attached.py by generate.py.
"""A command that is spoken to while it runs."""

from __future__ import annotations

import signal as signals
from types import TracebackType
from typing import Iterator, Awaitable, Callable, Mapping, Optional, Tuple, Type, Union

from .. import _convert as convert
from .._message import encoded, message
from .._types import ExecResult, Seconds
from .._wire import methods, v1
from ..exceptions import CommandTimeoutError
from ._io import Channel, Conversation
from ._streams import NAMES

Talk = Conversation[v1.ExecInput, v1.ExecOutput]


class AttachedExec:
    """A command with input and signals as they come. Leaving the block ends it.

    >>> with client.exec_attached(sandbox.id, "cat") as cat:  # doctest: +SKIP
    ...     cat.write("hello\\n")
    ...     cat.end_input()
    ...     print([piece for piece in cat], cat.exit_code)
    """

    def __init__(self, talk: Talk, command: str, limit: Optional[float]) -> None:
        self._talk = talk
        self._command = command
        self._limit = limit
        self.result: Optional[ExecResult] = None
        """What came of it, at the end of its output."""

    @property
    def exit_code(self) -> Optional[int]:
        return self.result.exit_code if self.result else None

    def write(self, text: Union[str, bytes]) -> None:
        """Gives it input."""
        self._talk.say(v1.ExecInput(stdin=encoded(text, "input")))

    def end_input(self) -> None:
        """Says that there is no more."""
        self._talk.say(v1.ExecInput(end_of_stdin=True))

    def signal(self, number: Union[int, signals.Signals]) -> None:
        """Sends a signal to it and all it started."""
        self._talk.say(message(v1.ExecInput, signal=number))

    def cancel(self) -> None:
        """Ends it; what there is of its output still comes."""
        self._talk.say(v1.ExecInput(cancel=True))

    def tagged(self) -> Iterator[Tuple[str, bytes]]:
        """What it prints, with the name of the stream."""
        while self.result is None:
            message = self._talk.hear()
            if message is None:
                return
            if message.HasField("result"):
                self._end(message.result)
            elif message.data:
                yield NAMES.get(message.type, "stdout"), message.data

    def _end(self, result: v1.ExecResult) -> None:
        self.result = convert.result_in(result, self._command)
        if self.result.timed_out:
            raise CommandTimeoutError(self._command, self._limit or 0)

    def _pieces(self) -> Iterator[bytes]:
        for _, data in self.tagged():
            yield data

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces()

    def close(self) -> None:
        """Leaves it; a command that is not at its end is ended."""
        self._talk.leave()

    def __enter__(self) -> "AttachedExec":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


def attached(
    open: Callable[[], Channel],
    sandbox_id: str,
    command: str,
    env: Optional[Mapping[str, str]],
    workdir: Optional[str],
    timeout: Optional[Seconds],
) -> AttachedExec:
    """Starts one."""
    limit = convert.seconds(timeout)
    request = message(
        v1.ExecRequest,
        sandbox_id=sandbox_id, command=command, env=convert.env_out(env), workdir=workdir or "",
        timeout=convert.duration_out(limit), options=v1.ResultOptions(bytes=True))
    talk = (open()).duplex(methods.ExecAttached, request)
    talk.say(v1.ExecInput(command=request))
    return AttachedExec(talk, command, limit)
