# Made from _async/_work.py by generate.py.
"""What is run in a sandbox."""

from __future__ import annotations

from typing import List, Mapping, Optional, Union

from .._types import ExecResult, ProcessInfo, Seconds, Session, TerminalInfo
from ..exceptions import PermissionDeniedError
from ._handle import Handle
from ._process import Process
from ._session import SessionWrapper
from ._streams import ExecStream
from ._terminal import Terminal


class Work(Handle):
    def run(
        self,
        command: str,
        timeout: Optional[Seconds] = 60,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        raise_on_error: bool = False,
        *,
        stdin: Optional[Union[str, bytes]] = None,
        raise_on_denied: bool = False,
    ) -> ExecResult:
        """Runs a command in a fresh shell and waits for it.

        >>> result = sandbox.run("pytest -q", timeout=300)  # doctest: +SKIP
        >>> print(result.exit_code, result.stdout)  # doctest: +SKIP

        Args:
            timeout: seconds it may take; None: as long as it likes.
            workdir: where, `/workspace` if not given.
            raise_on_error: an exit code that is not 0 is a `CommandExecutionError`.
            raise_on_denied: so is anything the policy refused it a `PermissionDeniedError`.

        Raises:
            CommandTimeoutError: its time ran out; with what it had printed.
            SandboxNotRunningError: call `start()` first.
        """
        result = self.exec(command, stdin, env, workdir, timeout)
        if raise_on_denied and result.denials:
            first = result.denials[0]
            raise PermissionDeniedError(
                first.operation, first.path, needed=first.needed, rule=first.rule,
                message=f"`{command}` was refused {first.operation} of {first.path}: it needs "
                f"{first.needed} and has {first.level}", code="PERMISSION_DENIED")
        return result.raise_on_error() if raise_on_error else result

    def exec(
        self,
        command: str,
        stdin: Optional[Union[str, bytes]] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Optional[Seconds] = None,
    ) -> ExecResult:
        """The same with input, and without a time limit unless one is given.

        >>> sandbox.exec("sort", stdin="b\\na\\n")  # doctest: +SKIP
        """
        return self._client.exec(self.id, command, stdin, env, workdir, timeout)

    def exec_stream(
        self,
        command: str,
        stdin: Optional[Union[str, bytes]] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        timeout: Optional[Seconds] = None,
    ) -> ExecStream:
        """Yields what a command prints, as it is printed. Leaving the stream ends the command.

        >>> stream = sandbox.exec_stream("make")  # doctest: +SKIP
        >>> for chunk in stream:  # doctest: +SKIP
        ...     print(chunk.decode(), end="")
        >>> stream.exit_code  # doctest: +SKIP
        """
        return self._client.exec_stream(self.id, command, stdin, env, workdir, timeout)

    def session(
        self,
        shell: str = "/bin/sh",
        env: Optional[Mapping[str, str]] = None,
        *,
        name: Optional[str] = None,
        cwd: Optional[str] = None,
    ) -> SessionWrapper:
        """A shell that keeps its directory, variables and jobs from one command to the next.

        >>> with sandbox.session() as session:  # doctest: +SKIP
        ...     session.exec("cd src")
        ...     print((session.exec("pwd")).stdout)
        """
        return self._client.create_session(self.id, shell, env, name=name, cwd=cwd)

    def sessions(self) -> List[Session]:
        """Its sessions."""
        return self._client.list_sessions(self.id)

    def start_process(
        self,
        command: str,
        *,
        session: Optional[Union[str, SessionWrapper]] = None,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        name: Optional[str] = None,
    ) -> Process:
        """Starts a command that goes on by itself, with a log.

        >>> server = sandbox.start_process("python3 app.py")  # doctest: +SKIP
        >>> server.wait_for_port(8000)  # doctest: +SKIP
        >>> server.kill()  # doctest: +SKIP
        """
        return self._client.start_process(
            self.id, command, session=_id(session), env=env, cwd=cwd, name=name)

    def processes(self) -> List[ProcessInfo]:
        """Its background processes, also those that have ended."""
        return self._client.list_processes(self.id)

    def terminal(
        self,
        command: Optional[str] = None,
        *,
        cols: int = 80,
        rows: int = 24,
        session: Optional[Union[str, SessionWrapper]] = None,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[str] = None,
        name: Optional[str] = None,
        record: bool = False,
    ) -> Terminal:
        """A command, or an interactive shell, on a terminal: for programs that ask.

        >>> with sandbox.terminal("python3 -m pdb app.py") as pdb:  # doctest: +SKIP
        ...     pdb.expect("(Pdb)")
        ...     pdb.write("next\\n")
        """
        return self._client.open_terminal(
            self.id, command, cols=cols, rows=rows, session=_id(session), env=env, cwd=cwd,
            name=name, record=record)

    def terminals(self) -> List[TerminalInfo]:
        """Its terminals."""
        return self._client.list_terminals(self.id)


def _id(session: Optional[Union[str, SessionWrapper]]) -> Optional[str]:
    return session.id if isinstance(session, SessionWrapper) else session
