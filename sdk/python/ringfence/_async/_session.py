"""A shell that keeps its state."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Mapping, Optional, Type, Union

from .._types import ExecResult, Seconds, Session, SessionStatus
from ..exceptions import (
    ConnectionError,
    SandboxError,
    SandboxNotFoundError,
    SessionNotFoundError,
)
from ._io import to_the_end
from ._streams import AsyncExecStream, AsyncLogStream

if TYPE_CHECKING:
    from ._commands import AsyncCommands


class AsyncSessionWrapper:
    """A session: its directory, variables, functions and jobs last from one command to the next.

    >>> async with await sandbox.session() as session:  # doctest: +SKIP
    ...     await session.exec("cd src && export DEBUG=1")
    ...     print((await session.exec("pwd; echo $DEBUG")).stdout)
    """

    def __init__(self, client: "AsyncCommands", session: Session) -> None:
        self._client = client
        self._session = session
        self._closed = False

    @property
    def id(self) -> str:
        return self._session.id

    @property
    def name(self) -> Optional[str]:
        return self._session.name

    @property
    def sandbox_id(self) -> str:
        return self._session.sandbox_id

    @property
    def shell(self) -> str:
        return self._session.shell

    @property
    def status(self) -> SessionStatus:
        """As it was when it was last asked for; `refresh()` asks."""
        return SessionStatus.CLOSED if self._closed else self._session.status

    @property
    async def cwd(self) -> str:
        """Where the shell is now."""
        return (await self._client.get_session(self.id)).cwd

    async def refresh(self) -> "AsyncSessionWrapper":
        """Asks the server what it has on record."""
        self._session = await self._client.get_session(self.id)
        return self

    async def exec(
        self,
        command: str,
        timeout: Optional[Seconds] = None,
        *,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        stdin: Optional[Union[str, bytes]] = None,
    ) -> ExecResult:
        """Runs a command. `env`, `cwd` and `stdin` are for this one only.

        Raises:
            CommandTimeoutError: its time ran out; the session goes on.
            SessionClosedError: the shell has ended.
        """
        return await self._client.session_exec(
            self.id, command, timeout, env=env, cwd=cwd, stdin=stdin)

    def exec_stream(
        self,
        command: str,
        timeout: Optional[Seconds] = None,
        *,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        stdin: Optional[Union[str, bytes]] = None,
    ) -> AsyncExecStream:
        """The same, yielding what is printed as it is printed."""
        return self._client.session_exec_stream(
            self.id, command, timeout, env=env, cwd=cwd, stdin=stdin)

    def logs(self, follow: bool = False, *, offset: int = 0) -> AsyncLogStream:
        """What its jobs have printed between commands."""
        return self._client.session_log(self.id, follow, offset=offset)

    async def close(self) -> None:
        """Ends it and everything it started. Closing again does nothing."""
        if not self._closed:
            self._closed = True
            try:
                await self._client.destroy_session(self.id)
            except (SessionNotFoundError, SandboxNotFoundError):
                pass
            except ConnectionError:
                if not self._client._is_embedded:
                    raise

    async def __aenter__(self) -> "AsyncSessionWrapper":
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
            # What went wrong in the block is what counts.
            if error is None:
                raise

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} of {self.sandbox_id}>"
