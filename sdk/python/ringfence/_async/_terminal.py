"""Commands on terminals."""

from __future__ import annotations

import time
from types import TracebackType
from typing import List, Mapping, Optional, Type, Union

from .. import _convert as convert
from .._message import encoded, message
from .._types import Seconds, TerminalInfo
from .._wire import methods, v1
from ..exceptions import (
    ConnectionError,
    SandboxError,
    TerminalClosedError,
    TerminalNotFoundError,
    WaitTimeoutError,
)
from ._connection import AsyncConnection
from ._io import AsyncConversation, TimeUp, to_the_end

_SHOWN = 2000
"""How much of a screen goes into a message."""


class AsyncTerminals(AsyncConnection):
    async def open_terminal(
        self,
        sandbox_id: str,
        command: Optional[str] = None,
        *,
        cols: int = 80,
        rows: int = 24,
        session: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        name: Optional[str] = None,
        record: bool = False,
    ) -> "AsyncTerminal":
        """Starts a command, or an interactive shell, on a terminal of its own."""
        channel = await self._open()
        request = message(
            v1.OpenTerminalRequest,
            sandbox_id=sandbox_id, command=command or "", session=session or "",
            env=convert.env_out(env), cwd=cwd or "", rows=rows, columns=cols, id=name or "",
            record=record)
        made = convert.terminal_in(await channel.unary(methods.OpenTerminal, request))
        return await self._attached(made)

    async def attach_terminal(self, sandbox_id: str, terminal_id: str) -> "AsyncTerminal":
        """A terminal that is there; what was shown before comes first."""
        for info in await self.list_terminals(sandbox_id):
            if info.id == terminal_id:
                return await self._attached(info)
        raise TerminalNotFoundError(
            f"there is no terminal {terminal_id}", code="TERMINAL_NOT_FOUND")

    async def _attached(self, info: TerminalInfo) -> "AsyncTerminal":
        channel = await self._open()
        attach = v1.TerminalInput.Attach(sandbox_id=info.sandbox_id, terminal_id=info.id)
        conversation = channel.duplex(methods.AttachTerminal, attach)
        await conversation.say(v1.TerminalInput(attach=attach))
        return AsyncTerminal(self, info, conversation)

    async def list_terminals(self, sandbox_id: str) -> List[TerminalInfo]:
        """The terminals of a sandbox."""
        channel = await self._open()
        request = message(v1.ListTerminalsRequest, sandbox_id=sandbox_id)
        answer = await channel.unary(methods.ListTerminals, request)
        return [convert.terminal_in(terminal) for terminal in answer.terminals]

    async def resize_terminal(
        self, sandbox_id: str, terminal_id: str, cols: int, rows: int
    ) -> None:
        """Tells what runs on it that it has another size."""
        channel = await self._open()
        request = message(
            v1.ResizeTerminalRequest,
            sandbox_id=sandbox_id, terminal_id=terminal_id, rows=rows, columns=cols)
        await channel.unary(methods.ResizeTerminal, request)

    async def close_terminal(self, sandbox_id: str, terminal_id: str) -> None:
        """Hangs up: what runs on it is ended."""
        channel = await self._open()
        request = message(v1.CloseTerminalRequest, sandbox_id=sandbox_id, terminal_id=terminal_id)
        await channel.unary(methods.CloseTerminal, request)

    async def terminal_recording(self, sandbox_id: str, terminal_id: str) -> bytes:
        """Everything that was shown on a recorded terminal, as an asciicast."""
        channel = await self._open()
        request = message(v1.CloseTerminalRequest, sandbox_id=sandbox_id, terminal_id=terminal_id)
        return b"".join(
            [chunk.data for chunk in await channel.whole(methods.TerminalRecording, request)])


class AsyncTerminal:
    """A terminal: what is typed, and what is shown.

    >>> async with await sandbox.terminal("python3 -m pdb main.py") as pdb:  # doctest: +SKIP
    ...     await pdb.expect("(Pdb)")
    ...     await pdb.write("break 12\\ncontinue\\n")
    ...     print(await pdb.expect("(Pdb)"))
    """

    def __init__(
        self,
        client: AsyncTerminals,
        info: TerminalInfo,
        conversation: AsyncConversation[v1.TerminalInput, v1.TerminalOutput],
    ) -> None:
        self._client = client
        self._info = info
        self._conversation = conversation
        self._unread = b""
        self._closed = False
        self.exit_code: Optional[int] = None
        """Of its program, once that has ended and its end was read."""

    @property
    def id(self) -> str:
        return self._info.id

    @property
    def pid(self) -> int:
        return self._info.pid

    async def write(self, text: Union[str, bytes]) -> None:
        """Types. A line ends with a newline, as on a keyboard."""
        if self._closed:
            raise TerminalClosedError(f"terminal {self.id} was closed")
        self._client._check_own()
        if self.exit_code is not None:
            raise TerminalClosedError(f"the program of terminal {self.id} has ended")
        await self._conversation.say(v1.TerminalInput(data=encoded(text, "input")))

    async def read(self, timeout: Optional[Seconds] = 10) -> str:
        """What has been shown since it was last read; waits for something if there is nothing yet.
        Empty when the program has ended.

        Raises:
            WaitTimeoutError: nothing was shown in time.
        """
        deadline = _deadline(timeout)
        while not self._unread and await self._more(deadline, "anything"):
            pass
        return self._taken(len(self._unread))

    async def expect(self, text: str, timeout: Optional[Seconds] = 30) -> str:
        """Waits until a text is shown; everything up to its end. What comes after it is kept.

        Raises:
            WaitTimeoutError: it was not shown in time; what was is kept, and in `details`.
            TerminalClosedError: the program ended first.
        """
        wanted, deadline = text.encode(), _deadline(timeout)
        while wanted not in self._unread:
            if not await self._more(deadline, repr(text)):
                raise TerminalClosedError(
                    f"the program ended before it showed {text!r}", self._screen())
        return self._taken(self._unread.index(wanted) + len(wanted))

    async def wait(self, timeout: Optional[Seconds] = None) -> int:
        """Waits for the end of its program; the exit code. What is shown until then can be read."""
        deadline = _deadline(timeout)
        while await self._more(deadline, "its end"):
            pass
        return self.exit_code if self.exit_code is not None else -1

    async def resize(self, cols: int, rows: int) -> None:
        """Gives it another size."""
        await self._client.resize_terminal(self._info.sandbox_id, self.id, cols, rows)

    async def close(self) -> None:
        """Hangs up: what runs on it is ended. Closing again does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._client.close_terminal(self._info.sandbox_id, self.id)
        except TerminalNotFoundError:
            pass
        except ConnectionError:
            if not self._client._is_embedded:
                raise
        finally:
            await self._conversation.leave()

    async def _more(self, deadline: Optional[float], what: str) -> bool:
        """Takes in what is shown next; False at the end."""
        self._client._check_own()
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        try:
            message = await self._conversation.hear(left)
        except TimeUp:
            raise WaitTimeoutError(
                f"the terminal did not show {what} in time", self._screen()) from None
        if message is None:
            return False
        if message.HasField("ended"):
            self.exit_code = convert.exit_code_in(message.ended)
        self._unread += message.data
        return True

    def _taken(self, count: int) -> str:
        taken, self._unread = self._unread[:count], self._unread[count:]
        return taken.decode(errors="replace")

    def _screen(self) -> Optional[str]:
        return self._unread[-_SHOWN:].decode(errors="replace") or None

    async def __aenter__(self) -> "AsyncTerminal":
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if not self._client._is_own:
            return
        try:
            await to_the_end(self.close)
        except SandboxError:
            if error is None:
                raise

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} of {self._info.sandbox_id}>"


def _deadline(timeout: Optional[Seconds]) -> Optional[float]:
    limit = convert.seconds(timeout)
    return None if limit is None else time.monotonic() + limit
