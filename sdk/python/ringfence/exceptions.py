"""What can go wrong, as exceptions.

SandboxError
├── ConnectionError                 no server there, or it cannot be spoken to   (also builtins.ConnectionError)
│   ├── AuthenticationError         it wants a token, or not this one
│   └── IncompatibleServerError     it is too old or too new for this package
├── InvalidConfigurationError       an argument, a rule, a preset                (also ValueError)
├── UnsupportedError                the server's host cannot do it
├── PermissionDeniedError           the policy refuses it                        (also builtins.PermissionError)
├── ResourceLimitExceededError      a limit has been reached
├── AlreadyExistsError              the name is taken                            (also builtins.FileExistsError)
├── SandboxNotFoundError
├── SandboxNotRunningError
├── SandboxRunningError             it must be stopped for this
├── CodebaseError
│   ├── CodebaseNotFoundError
│   ├── CodebaseInUseError
│   ├── FileNotFoundError                                                        (also builtins.FileNotFoundError)
│   └── UploadError
├── ApplyConflictError              files were changed on both sides
├── SnapshotNotFoundError
├── SnapshotInUseError
├── CommandExecutionError           a command's exit code is not 0
├── CommandTimeoutError             a command's time ran out                     (also TimeoutError)
├── WaitTimeoutError                what was waited for did not come             (also TimeoutError)
├── SessionError
│   ├── SessionNotFoundError
│   └── SessionClosedError          its shell has ended
├── ProcessError
│   ├── ProcessNotFoundError
│   └── ProcessExitedError          it ended before what was waited for came
└── TerminalError
    ├── TerminalNotFoundError
    └── TerminalClosedError         its program has ended

Those that mean what a builtin exception means are that one too, so `except TimeoutError` works.
"""

from __future__ import annotations

import builtins
import errno
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple, Type

if TYPE_CHECKING:
    from ._types import Denial

__all__ = [
    "AlreadyExistsError",
    "ApplyConflictError",
    "AuthenticationError",
    "CodebaseError",
    "CodebaseInUseError",
    "CodebaseNotFoundError",
    "CommandExecutionError",
    "CommandTimeoutError",
    "ConnectionError",
    "FileNotFoundError",
    "IncompatibleServerError",
    "InvalidConfigurationError",
    "PermissionDeniedError",
    "ProcessError",
    "ProcessExitedError",
    "ProcessNotFoundError",
    "ResourceLimitExceededError",
    "SandboxError",
    "SandboxNotFoundError",
    "SandboxNotRunningError",
    "SandboxRunningError",
    "SessionClosedError",
    "SessionError",
    "SessionNotFoundError",
    "SnapshotInUseError",
    "SnapshotNotFoundError",
    "TerminalClosedError",
    "TerminalError",
    "TerminalNotFoundError",
    "UnsupportedError",
    "UploadError",
    "WaitTimeoutError",
]


class SandboxError(Exception):
    """Something could not be done. Every exception of this package is one.

    Attributes:
        message: one sentence for people.
        details: more about it, if there is more.
        code: the API's stable name for it (`SANDBOX_NOT_FOUND`), if the server said so.
        grpc_code: the name of the gRPC status (`NOT_FOUND`), if there was one.
    """

    def __init__(
        self,
        message: str,
        details: Optional[str] = None,
        grpc_code: Optional[str] = None,
        *,
        code: Optional[str] = None,
    ) -> None:
        self.message = readable(message)
        super().__init__(self.message)
        self.details = details
        self.grpc_code = grpc_code
        self.code = code

    def __str__(self) -> str:
        return f"{self.message}: {self.details}" if self.details else self.message

    def __reduce__(self) -> Tuple[Any, ...]:
        # Constructors differ; a copy in another process needs the attributes only. Those of an
        # OSError are not among the others.
        state = self.__dict__.copy()
        state.update({name: getattr(self, name) for name in ("errno", "filename")
                      if getattr(self, name, None) is not None})
        return _rebuilt, (type(self), self.args, state)


def _rebuilt(kind: Type[SandboxError], args: Tuple[Any, ...], state: Dict[str, Any]) -> SandboxError:
    error = kind.__new__(kind, *args)
    error.args = args
    for name, value in state.items():
        setattr(error, name, value)
    return error


class ConnectionError(SandboxError, builtins.ConnectionError):
    """There is no server at `endpoint`, or it cannot be spoken to."""

    def __init__(self, endpoint: str, details: Optional[str] = None, **more: Any) -> None:
        message = more.pop("message", None) or f"cannot reach a Ringfence server at {endpoint}"
        super().__init__(message, details, **more)
        self.endpoint = endpoint


class AuthenticationError(ConnectionError):
    """The server wants a token, or does not know this one."""


class IncompatibleServerError(ConnectionError):
    """The server and this package do not understand each other.

    Attributes:
        server_version: what the server says it is.
    """

    def __init__(self, endpoint: str, server_version: str, message: str) -> None:
        super().__init__(endpoint, message=message)
        self.server_version = server_version


class InvalidConfigurationError(SandboxError, ValueError):
    """An argument, a rule or a preset is not one."""


class UnsupportedError(SandboxError):
    """The server's host cannot do it; `hint` says how it could.

    Attributes:
        hint: what to install or to change, if anything helps.
    """

    def __init__(self, message: str, hint: Optional[str] = None, **more: Any) -> None:
        super().__init__(message, hint, **more)
        self.hint = hint


class PermissionDeniedError(SandboxError, builtins.PermissionError):
    """The policy refuses it.

    Attributes:
        operation: what was tried.
        path: with what, below the workspace.
        needed: the level it needs (`read`, `write`).
        rule: the rule that decided, if one did.
    """

    def __init__(
        self,
        operation: str,
        path: Optional[str] = None,
        details: Optional[str] = None,
        *,
        needed: Optional[str] = None,
        rule: Optional[str] = None,
        **more: Any,
    ) -> None:
        what = f"{operation} of {path}" if path else operation
        message = more.pop("message", None) or f"the policy refuses {what}"
        super().__init__(message, details, **more)
        self.operation = operation
        self.path = path
        self.needed = needed
        self.rule = rule
        self.errno = errno.EACCES
        self.filename = path


class ResourceLimitExceededError(SandboxError):
    """A limit has been reached.

    Attributes:
        resource: which limit (`max_sandboxes`, `max_file_size`, …).
        limit: how much it allows, if the server said so.
    """

    def __init__(
        self, resource: str, limit: Optional[str] = None, details: Optional[str] = None, **more: Any
    ) -> None:
        message = more.pop("message", None) or f"the limit {resource} has been reached"
        super().__init__(message, details, **more)
        self.resource = resource
        self.limit = limit

    @property
    def resource_type(self) -> str:
        return self.resource


class AlreadyExistsError(SandboxError, builtins.FileExistsError):
    """There is one of that name already: a session, a process, a terminal, a file."""

    def __init__(self, message: str, **more: Any) -> None:
        super().__init__(message, **more)
        self.errno = errno.EEXIST


class SandboxNotFoundError(SandboxError):
    """There is no such sandbox on that server, or it is not yours."""

    def __init__(self, sandbox_id: str, details: Optional[str] = None, **more: Any) -> None:
        super().__init__(f"there is no sandbox {sandbox_id}", details, **more)
        self.sandbox_id = sandbox_id


class SandboxNotRunningError(SandboxError):
    """The sandbox must run for this; call `start()`.

    Attributes:
        current_status: what it does instead (`stopped`).
    """

    def __init__(
        self, sandbox_id: str, current_status: str, details: Optional[str] = None, **more: Any
    ) -> None:
        message = f"sandbox {sandbox_id} does not run (it is {current_status}); start() it first"
        super().__init__(message, details, **more)
        self.sandbox_id = sandbox_id
        self.current_status = current_status


class SandboxRunningError(SandboxError):
    """The sandbox must be stopped for this; call `stop()`."""

    def __init__(self, sandbox_id: str, details: Optional[str] = None, **more: Any) -> None:
        super().__init__(f"sandbox {sandbox_id} runs; stop() it first", details, **more)
        self.sandbox_id = sandbox_id


class CodebaseError(SandboxError):
    """Something about stored files could not be done."""


class CodebaseNotFoundError(CodebaseError):
    """There is no such codebase on that server, or it is not yours."""

    def __init__(self, codebase_id: str, details: Optional[str] = None, **more: Any) -> None:
        super().__init__(f"there is no codebase {codebase_id}", details, **more)
        self.codebase_id = codebase_id


class CodebaseInUseError(CodebaseError):
    """Sandboxes or snapshots stand on the codebase."""


class FileNotFoundError(CodebaseError, builtins.FileNotFoundError):
    """There is no such file or directory, or the policy hides it.

    Attributes:
        path: which, as it was asked for.
    """

    def __init__(
        self, codebase_id: str, path: str, details: Optional[str] = None, **more: Any
    ) -> None:
        super().__init__(f"there is no file {path}", details, **more)
        self.codebase_id = codebase_id
        self.path = path
        self.errno = errno.ENOENT
        self.filename = path

    @property
    def file_path(self) -> str:
        return self.path


class UploadError(CodebaseError):
    """Files could not be sent.

    Attributes:
        file_path: the file it failed at, if it was one.
    """

    def __init__(
        self, file_path: str, codebase_id: str, details: Optional[str] = None, **more: Any
    ) -> None:
        message = more.pop("message", None) or f"cannot upload {file_path}"
        super().__init__(message, details, **more)
        self.file_path = file_path
        self.codebase_id = codebase_id


class ApplyConflictError(SandboxError):
    """Files were changed on both sides, so nothing was written.

    Attributes:
        conflicts: their paths, as many as fitted into the answer.
        yields_to_force: whether `apply(force=True)` would write all the same.
    """

    def __init__(
        self, conflicts: Sequence[str], *, yields_to_force: bool = True, **more: Any
    ) -> None:
        listed = ", ".join(conflicts[:5]) + (", …" if len(conflicts) > 5 else "")
        way_out = "; apply(force=True) overwrites" if yields_to_force else ""
        super().__init__(f"changed on both sides: {listed}{way_out}", **more)
        self.conflicts: List[str] = list(conflicts)
        self.yields_to_force = yields_to_force


class SnapshotNotFoundError(SandboxError):
    """There is no such snapshot, or it is not yours."""


class SnapshotInUseError(SandboxError):
    """Sandboxes stand on the snapshot."""


class CommandExecutionError(SandboxError):
    """A command ended with another exit code than 0.

    Attributes:
        command, exit_code, stdout, stderr: the command, and what came of it.
        denials: what the policy refused it meanwhile, which is often why.
    """

    def __init__(
        self,
        command: str,
        exit_code: int,
        stdout: str = "",
        stderr: str = "",
        denials: Sequence["Denial"] = (),
        **more: Any,
    ) -> None:
        message = f"`{_shortened(command)}` ended with code {exit_code}"
        if denials:
            message += f"; the policy refused it {_listed(denials)}"
        super().__init__(message, _tail(stderr or stdout), **more)
        self.command = command
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr
        self.denials: List[Denial] = list(denials)


class CommandTimeoutError(SandboxError, builtins.TimeoutError):
    """A command's time ran out, and it was ended.

    Attributes:
        command, timeout_seconds: the command, and how long it had.
        stdout, stderr: what it had printed until then.
    """

    def __init__(
        self,
        command: str,
        timeout_seconds: float,
        details: Optional[str] = None,
        *,
        stdout: str = "",
        stderr: str = "",
        **more: Any,
    ) -> None:
        message = f"`{_shortened(command)}` took longer than {timeout_seconds:g} seconds"
        super().__init__(message, details, **more)
        self.command = command
        self.timeout_seconds = timeout_seconds
        self.stdout = stdout
        self.stderr = stderr


class WaitTimeoutError(SandboxError, builtins.TimeoutError):
    """What was waited for did not come in time."""


class SessionError(SandboxError):
    """Something about a session could not be done."""


class SessionNotFoundError(SessionError):
    """There is no such session."""

    def __init__(self, session_id: str, details: Optional[str] = None, **more: Any) -> None:
        super().__init__(f"there is no session {session_id}", details, **more)
        self.session_id = session_id


class SessionClosedError(SessionError):
    """The session's shell has ended.

    Attributes:
        exit_code: how, if that is known.
    """

    def __init__(
        self,
        session_id: str,
        details: Optional[str] = None,
        *,
        exit_code: Optional[int] = None,
        **more: Any,
    ) -> None:
        how = "" if exit_code is None else f" with code {exit_code}"
        super().__init__(f"the shell of session {session_id} has ended{how}", details, **more)
        self.session_id = session_id
        self.exit_code = exit_code


class ProcessError(SandboxError):
    """Something about a background process could not be done."""


class ProcessNotFoundError(ProcessError):
    """There is no such process."""


class ProcessExitedError(ProcessError):
    """The process ended before what was waited for came.

    Attributes:
        exit_code: how, if that is known.
    """

    def __init__(self, message: str, exit_code: Optional[int] = None, **more: Any) -> None:
        super().__init__(message, **more)
        self.exit_code = exit_code


class TerminalError(SandboxError):
    """Something about a terminal could not be done."""


class TerminalNotFoundError(TerminalError):
    """There is no such terminal."""


class TerminalClosedError(TerminalError):
    """The terminal's program has ended, or the terminal was closed."""


_LONGEST = 600


def readable(message: str) -> str:
    """Names in it may come from anywhere, and it ends up on terminals."""
    half = _LONGEST // 2
    text = message if len(message) <= _LONGEST else f"{message[:half]}…{message[-half:]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _shortened(command: str) -> str:
    first = command.strip().split("\n", 1)[0]
    return first if first == command.strip() and len(first) <= 100 else first[:99] + "…"


def _tail(text: str) -> Optional[str]:
    text = text.strip()
    return (text if len(text) <= 500 else "…" + text[-499:]) or None


def _listed(denials: Sequence["Denial"]) -> str:
    paths = list(dict.fromkeys(denial.path for denial in denials))
    return ", ".join(paths[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")
