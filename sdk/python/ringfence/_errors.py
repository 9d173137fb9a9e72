"""From a status of gRPC to an exception that says what happened.

The server names its reason by a stable code (`api/errors.json`) with details; the request says what
it was about. A status without a code of ours comes from gRPC itself, or from another program.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Optional

import grpc
from google.protobuf.message import DecodeError, Message

from . import _embedded
from ._endpoint import Endpoint
from ._wire import v1
from .exceptions import (
    AlreadyExistsError,
    ApplyConflictError,
    AuthenticationError,
    CodebaseInUseError,
    CodebaseNotFoundError,
    CommandTimeoutError,
    ConnectionError,
    FileNotFoundError,
    InvalidConfigurationError,
    PermissionDeniedError,
    ProcessExitedError,
    ProcessNotFoundError,
    ResourceLimitExceededError,
    SandboxError,
    SandboxNotFoundError,
    SandboxNotRunningError,
    SandboxRunningError,
    SessionClosedError,
    SessionNotFoundError,
    SnapshotInUseError,
    SnapshotNotFoundError,
    TerminalNotFoundError,
    UnsupportedError,
    WaitTimeoutError,
)

_DETAILS = "grpc-status-details-bin"
_DOMAIN = "ringfence"


class Refusal:
    """What is known about a call that failed."""

    def __init__(self, error: grpc.RpcError, endpoint: Endpoint, request: Optional[Message]) -> None:
        status = error.code()
        self.grpc_code: str = status.name if status else "UNKNOWN"
        self.message: str = error.details() or self.grpc_code.lower()
        self.endpoint = endpoint
        self.request = request
        info = _error_info(error)
        self.code: Optional[str] = info.reason if info else None
        self.details: Dict[str, str] = dict(info.metadata) if info else {}

    def about(self, *names: str) -> str:
        """The first of these that the details or the request have."""
        for name in names:
            found = self.details.get(name) or getattr(self.request, name, None)
            if found:
                return str(found)
        return ""

    @property
    def more(self) -> Dict[str, Any]:
        return {"code": self.code, "grpc_code": self.grpc_code}


def translated(
    error: grpc.RpcError, endpoint: Endpoint, request: Optional[Message] = None
) -> SandboxError:
    """The exception for a call that failed."""
    if endpoint.embedded:
        _embedded.rest_if_over()
    refusal = Refusal(error, endpoint, request)
    if refusal.code in _BY_CODE:
        return _BY_CODE[refusal.code](refusal)
    return _without_code(refusal)


def _error_info(error: grpc.RpcError) -> Optional[v1.ErrorInfo]:
    trailing: Any = error.trailing_metadata() or ()
    for key, value in trailing:
        if key == _DETAILS:
            try:
                status = v1.StatusDetails.FromString(value)
                for packed in status.details:
                    if packed.type_url.endswith("/google.rpc.ErrorInfo"):
                        info = v1.ErrorInfo.FromString(packed.value)
                        return info if info.domain == _DOMAIN else None
            except DecodeError:
                return None
    return None


def _without_code(refusal: Refusal) -> SandboxError:
    at = refusal.endpoint
    if refusal.grpc_code in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
        return ConnectionError(at.shown, _plainly(refusal), **refusal.more)
    if refusal.grpc_code == "UNAUTHENTICATED":
        return _unauthenticated(refusal)
    if refusal.grpc_code == "UNIMPLEMENTED":
        return ConnectionError(
            at.shown, message=f"the server at {at.shown} does not know this call; "
            "it is no Ringfence server, or an older one", **refusal.more)
    if refusal.grpc_code == "INVALID_ARGUMENT":
        return InvalidConfigurationError(refusal.message, **refusal.more)
    if refusal.grpc_code == "RESOURCE_EXHAUSTED":
        return ResourceLimitExceededError("message_size", message=refusal.message, **refusal.more)
    return SandboxError(refusal.message, **refusal.more)


_PLAINLY = (
    ("Connection refused", "nobody listens there; is `ringfence serve` running?"),
    ("WRONG_VERSION_NUMBER", "what answers there does not speak TLS"),
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not trusted; give ca_certificate=…"),
    ("Failed parsing HTTP/2", "what answers there does not speak gRPC"),
)
"""What gRPC says, and what it means."""


def _plainly(refusal: Refusal) -> str:
    for said, meant in _PLAINLY:
        if said in refusal.message and not refusal.endpoint.embedded:
            return meant
    last = refusal.message.rpartition("last error: ")[2].strip().rstrip(".")
    why = re.sub(r"^([A-Z_]+: )?((ipv4|ipv6|unix):\S+: )?", "", last)
    if refusal.grpc_code == "DEADLINE_EXCEEDED":
        why = "it does not answer"
    return f"{why}; {refusal.endpoint.hint}"


def _unauthenticated(refusal: Refusal) -> SandboxError:
    return AuthenticationError(
        refusal.endpoint.shown, f"{refusal.message}; give token=… or set RINGFENCE_TOKEN",
        message=f"the server at {refusal.endpoint.shown} does not let you in", **refusal.more)


def _sandbox_not_found(refusal: Refusal) -> SandboxError:
    hint = None
    if refusal.endpoint.embedded:
        hint = ("this process has a private server; a sandbox of another process can only be "
                "reached on a server that both share (start `ringfence serve`, or give endpoint=…)")
    return SandboxNotFoundError(refusal.about("sandbox_id"), hint, **refusal.more)


def _permission_denied(refusal: Refusal) -> SandboxError:
    return PermissionDeniedError(
        refusal.about("operation") or "access",
        refusal.about("path") or None,
        message=refusal.message,
        needed=refusal.about("level_needed") or None,
        rule=refusal.about("rule") or None,
        **refusal.more)


def _session_closed(refusal: Refusal) -> SandboxError:
    return SessionClosedError(
        refusal.about("session_id", "session"), exit_code=_number(refusal.details.get("exit_code")),
        **refusal.more)


def _command_timeout(refusal: Refusal) -> SandboxError:
    return CommandTimeoutError(
        refusal.about("command"), float(refusal.details.get("seconds") or 0),
        stdout=refusal.details.get("stdout_tail", ""), stderr=refusal.details.get("stderr_tail", ""),
        **refusal.more)


def _conflict(refusal: Refusal) -> SandboxError:
    return ApplyConflictError(
        refusal.details.get("paths", "").split("\n"),
        yields_to_force=refusal.details.get("yields_to_force") != "false", **refusal.more)


def _limit(refusal: Refusal) -> SandboxError:
    return ResourceLimitExceededError(
        refusal.about("limit") or "unknown", refusal.details.get("most"),
        message=refusal.message, **refusal.more)


def _number(text: Optional[str]) -> Optional[int]:
    return int(text) if text and text.lstrip("-").isdigit() else None


_BY_CODE: Dict[str, Callable[[Refusal], SandboxError]] = {
    "INVALID_ARGUMENT": lambda r: InvalidConfigurationError(r.message, **r.more),
    "UNAUTHENTICATED": _unauthenticated,
    "CODEBASE_NOT_FOUND": lambda r: CodebaseNotFoundError(r.about("codebase_id"), **r.more),
    "SANDBOX_NOT_FOUND": _sandbox_not_found,
    "SESSION_NOT_FOUND": lambda r: SessionNotFoundError(
        r.about("session_id", "session"), **r.more),
    "PROCESS_NOT_FOUND": lambda r: ProcessNotFoundError(r.message, **r.more),
    "TERMINAL_NOT_FOUND": lambda r: TerminalNotFoundError(r.message, **r.more),
    "SNAPSHOT_NOT_FOUND": lambda r: SnapshotNotFoundError(
        f"there is no snapshot {r.about('snapshot_id')}", **r.more),
    "FILE_NOT_FOUND": lambda r: FileNotFoundError(
        r.about("codebase_id"), r.about("path", "file_path", "from"), **r.more),
    "ROUTE_NOT_FOUND": lambda r: SandboxError(r.message, **r.more),
    "TOKEN_NOT_FOUND": lambda r: SandboxError(r.message, **r.more),
    "PERMISSION_DENIED": _permission_denied,
    "SANDBOX_NOT_RUNNING": lambda r: SandboxNotRunningError(
        r.about("sandbox_id"), r.details.get("status", "not running"), **r.more),
    "SANDBOX_RUNNING": lambda r: SandboxRunningError(r.about("sandbox_id"), **r.more),
    "SESSION_CLOSED": _session_closed,
    "CODEBASE_IN_USE": lambda r: CodebaseInUseError(r.message, **r.more),
    "SNAPSHOT_IN_USE": lambda r: SnapshotInUseError(r.message, **r.more),
    "APPLY_CONFLICT": _conflict,
    "SESSION_ALREADY_EXISTS": lambda r: AlreadyExistsError(r.message, **r.more),
    "PROCESS_ALREADY_EXISTS": lambda r: AlreadyExistsError(r.message, **r.more),
    "TERMINAL_ALREADY_EXISTS": lambda r: AlreadyExistsError(r.message, **r.more),
    "FILE_ALREADY_EXISTS": lambda r: AlreadyExistsError(r.message, **r.more),
    "PROCESS_EXITED": lambda r: ProcessExitedError(
        r.message, _number(r.details.get("exit_code")), **r.more),
    "COMMAND_TIMEOUT": _command_timeout,
    "WAIT_TIMEOUT": lambda r: WaitTimeoutError(r.message, **r.more),
    "RESOURCE_LIMIT_EXCEEDED": _limit,
    "UNSUPPORTED": lambda r: UnsupportedError(r.message, r.details.get("hint"), **r.more),
    "INTERNAL": lambda r: SandboxError(r.message, **r.more),
}
