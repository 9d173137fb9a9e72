"""Commands: in a fresh shell, or in one that keeps its state."""

from __future__ import annotations

from typing import List, Mapping, Optional, Union

from .. import _convert as convert
from .._message import encoded, message, starting
from .._types import ExecResult, Seconds, Session
from .._wire import methods, v1
from ..exceptions import CommandTimeoutError
from ._attached import AsyncAttachedExec, attached
from ._connection import AsyncConnection
from ._session import AsyncSessionWrapper
from ._streams import AsyncExecStream, AsyncLogStream

_OPTIONS = v1.ResultOptions(bytes=True)


class AsyncCommands(AsyncConnection):
    async def exec(
        self,
        sandbox_id: str,
        command: str,
        stdin: Optional[Union[str, bytes]] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Optional[Seconds] = None,
    ) -> ExecResult:
        """Runs a command in a fresh shell and waits for it."""
        channel = await self._open()
        limit = convert.seconds(timeout)
        request = _exec_request(sandbox_id, command, stdin, env, workdir, limit)
        return finished(await channel.unary(methods.Exec, request), command, limit)

    def exec_stream(
        self,
        sandbox_id: str,
        command: str,
        stdin: Optional[Union[str, bytes]] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Optional[Seconds] = None,
    ) -> AsyncExecStream:
        """Runs a command in a fresh shell and yields what it prints, as it is printed. It starts
        with the first piece that is asked for; leaving the stream ends it."""
        limit = convert.seconds(timeout)
        request = _exec_request(sandbox_id, command, stdin, env, workdir, limit)
        return AsyncExecStream(self._open, methods.ExecStream, request, command, limit)

    async def exec_attached(
        self,
        sandbox_id: str,
        command: str,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Optional[Seconds] = None,
    ) -> AsyncAttachedExec:
        """Runs a command in a fresh shell that is given input and signals while it runs."""
        return await attached(self._open, sandbox_id, command, env, workdir, timeout)

    async def create_session(
        self,
        sandbox_id: str,
        shell: str = "/bin/sh",
        env: Optional[Mapping[str, str]] = None,
        *,
        name: Optional[str] = None,
        cwd: Optional[str] = None,
    ) -> AsyncSessionWrapper:
        """A shell that keeps its directory, variables and jobs from one command to the next."""
        channel = await self._open()
        request = message(
            v1.CreateSessionRequest,
            sandbox_id=sandbox_id, shell=shell, env=convert.env_out(env), name=name or "",
            cwd=cwd or "")
        made = await channel.unary(methods.CreateSession, request)
        return AsyncSessionWrapper(self, convert.session_in(made))

    async def session(
        self,
        sandbox_id: str,
        shell: str = "/bin/sh",
        env: Optional[Mapping[str, str]] = None,
        *,
        name: Optional[str] = None,
        cwd: Optional[str] = None,
    ) -> AsyncSessionWrapper:
        """The same, in the words of a `with` block."""
        return await self.create_session(sandbox_id, shell, env, name=name, cwd=cwd)

    async def get_session(self, session_id: str) -> Session:
        """What is on record about a session."""
        channel = await self._open()
        request = message(v1.GetSessionRequest, session_id=session_id)
        return convert.session_in(await channel.unary(methods.GetSession, request))

    async def list_sessions(self, sandbox_id: str) -> List[Session]:
        """The sessions of a sandbox."""
        channel = await self._open()
        request = message(v1.ListSessionsRequest, sandbox_id=sandbox_id)
        answer = await channel.unary(methods.ListSessions, request)
        return [convert.session_in(session) for session in answer.sessions]

    async def destroy_session(self, session_id: str) -> None:
        """Ends a session and everything it started."""
        channel = await self._open()
        request = message(v1.DestroySessionRequest, session_id=session_id)
        await channel.unary(methods.DestroySession, request)

    async def session_exec(
        self,
        session_id: str,
        command: str,
        timeout: Optional[Seconds] = None,
        *,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        stdin: Optional[Union[str, bytes]] = None,
    ) -> ExecResult:
        """Runs a command in a session. `env`, `cwd` and `stdin` are for this command only."""
        channel = await self._open()
        limit = convert.seconds(timeout)
        request = _session_request(session_id, command, limit, env, cwd, stdin)
        return finished(await channel.unary(methods.SessionExec, request), command, limit)

    def session_exec_stream(
        self,
        session_id: str,
        command: str,
        timeout: Optional[Seconds] = None,
        *,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        stdin: Optional[Union[str, bytes]] = None,
    ) -> AsyncExecStream:
        """The same, yielding what is printed as it is printed."""
        limit = convert.seconds(timeout)
        request = _session_request(session_id, command, limit, env, cwd, stdin)
        return AsyncExecStream(self._open, methods.SessionExecStream, request, command, limit)

    def session_log(
        self, session_id: str, follow: bool = False, *, offset: int = 0
    ) -> AsyncLogStream:
        """What the jobs of a session have printed between commands."""
        request = message(
            v1.SessionLogRequest, session_id=session_id, follow=follow, **starting(offset))
        return AsyncLogStream(self._open, methods.SessionLog, request)


def finished(message: v1.ExecResult, command: str, limit: Optional[float]) -> ExecResult:
    """A command that was out of time is an exception, with what it had printed."""
    result = convert.result_in(message, command)
    if result.timed_out:
        spent = result.duration.total_seconds() if result.duration else 0.0
        raise CommandTimeoutError(
            command, limit or spent, stdout=result.stdout, stderr=result.stderr)
    return result


def _exec_request(
    sandbox_id: str,
    command: str,
    stdin: Optional[Union[str, bytes]],
    env: Optional[Mapping[str, str]],
    workdir: Optional[str],
    limit: Optional[float],
) -> v1.ExecRequest:
    return message(
        v1.ExecRequest,
        sandbox_id=sandbox_id,
        command=command,
        stdin_bytes=encoded(stdin, "input"),
        env=convert.env_out(env),
        workdir=workdir or "",
        timeout=convert.duration_out(limit),
        options=_OPTIONS,
    )


def _session_request(
    session_id: str,
    command: str,
    limit: Optional[float],
    env: Optional[Mapping[str, str]],
    cwd: Optional[str],
    stdin: Optional[Union[str, bytes]],
) -> v1.SessionExecRequest:
    return message(
        v1.SessionExecRequest,
        session_id=session_id,
        command=command,
        timeout=convert.duration_out(limit),
        env=convert.env_out(env),
        cwd=cwd or "",
        stdin=encoded(stdin, "input"),
        options=_OPTIONS,
    )
