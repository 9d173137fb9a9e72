"""What is printed, as it is printed."""

from __future__ import annotations

import codecs
from types import TracebackType
from typing import (
    Any,
    AsyncIterator,
    Awaitable,
    Callable,
    Generic,
    Optional,
    Tuple,
    Type,
    TypeVar,
)

from .. import _convert as convert
from .._types import ExecResult
from .._wire import v1
from .._wire.method import Response, ServerStream
from ..exceptions import CommandTimeoutError
from ._io import AsyncChannel, AsyncStream

Self = TypeVar("Self", bound="AsyncLeavable[Any]")

Open = Callable[[], Awaitable[AsyncChannel]]

NAMES = {
    v1.ExecOutput.OUTPUT_TYPE_STDOUT: "stdout",
    v1.ExecOutput.OUTPUT_TYPE_STDERR: "stderr",
}


class AsyncLeavable(Generic[Response]):
    """A stream that begins with the first piece that is asked for, and ends when it is left."""

    def __init__(self, open: Open, method: ServerStream[Any, Response], request: Any) -> None:
        self._open = open
        self._method = method
        self._request = request
        self._stream: Optional[AsyncStream[Response]] = None

    async def _messages(self) -> AsyncStream[Response]:
        if self._stream is None:
            channel = await self._open()
            self._stream = channel.stream(self._method, self._request)
        return self._stream

    def close(self) -> None:
        """Leaves it. A command that is not at its end is ended."""
        if self._stream is not None:
            self._stream.cancel()

    def __del__(self) -> None:
        self.close()

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


class AsyncExecStream(AsyncLeavable[v1.ExecOutput]):
    """The output of a command, in pieces of bytes.

    Attributes:
        result: what came of it, once the stream is at its end; its output is not kept.
        exit_code: the same for the exit code alone.
    """

    def __init__(
        self,
        open: Open,
        method: ServerStream[Any, v1.ExecOutput],
        request: Any,
        command: str,
        limit: Optional[float],
    ) -> None:
        super().__init__(open, method, request)
        self._command = command
        self._limit = limit
        self.result: Optional[ExecResult] = None

    @property
    def exit_code(self) -> Optional[int]:
        return self.result.exit_code if self.result else None

    async def tagged(self) -> AsyncIterator[Tuple[str, bytes]]:
        """Pieces with the name of their stream.

        >>> async for stream, chunk in sandbox.exec_stream("make").tagged():  # doctest: +SKIP
        ...     print(stream, chunk)
        """
        async for message in await self._messages():
            if self._has_piece(message):
                yield NAMES.get(message.type, "stdout"), message.data

    def _has_piece(self, message: v1.ExecOutput) -> bool:
        if message.HasField("result"):
            self._end(message.result)
        return bool(message.data)

    def _end(self, result: v1.ExecResult) -> None:
        self.result = convert.result_in(result, self._command)
        if self.result.timed_out:
            spent = self.result.duration.total_seconds() if self.result.duration else 0.0
            raise CommandTimeoutError(self._command, self._limit or spent)

    async def _pieces(self) -> AsyncIterator[bytes]:
        # Not made of tagged(): a loop that ends closes generators, but none that those leave.
        async for message in await self._messages():
            if self._has_piece(message):
                yield message.data

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces()


class AsyncLogStream(AsyncLeavable[v1.LogChunk]):
    """A log, line by line. `follow` goes on until what is logged has ended.

    Attributes:
        offset: where the next byte is in the log, to go on from.
    """

    def __init__(self, open: Open, method: ServerStream[Any, v1.LogChunk], request: Any) -> None:
        super().__init__(open, method, request)
        self.offset: int = getattr(request, "from")

    async def tagged(self) -> AsyncIterator[Tuple[str, bytes]]:
        """Pieces of bytes with the name of their stream."""
        async for message in await self._messages():
            if self._has_piece(message):
                yield NAMES.get(message.type, "stdout"), message.data

    def _has_piece(self, message: v1.LogChunk) -> bool:
        if message.data:
            self.offset = message.offset + len(message.data)
        return bool(message.data)

    async def read(self) -> str:
        """All of it."""
        return b"".join([data async for _, data in self.tagged()]).decode(errors="replace")

    async def _lines(self) -> AsyncIterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        rest = ""
        async for message in await self._messages():
            self._has_piece(message)
            *lines, rest = (rest + decoder.decode(message.data)).split("\n")
            for line in lines:
                yield line
        rest += decoder.decode(b"", True)
        if rest:
            yield rest

    def __aiter__(self) -> AsyncIterator[str]:
        return self._lines()
