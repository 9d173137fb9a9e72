"""Run agents, scripts and CI steps on real code, in sandboxes.

>>> from ringfence import Sandbox
>>> with Sandbox.from_local("./project", preset="agent-safe") as sandbox:  # doctest: +SKIP
...     print(sandbox.run("pytest").stdout)

`Sandbox` is for blocking code, `AsyncSandbox` for asyncio with the same methods, `SandboxClient` and
`AsyncSandboxClient` have every call of the API.
"""

import os as _os

# Programs that fork after they have spoken to a server can do so in the child too. With epoll, gRPC
# closes descriptors in the child that are not its own any more. grpcio reads all of this when it is
# first imported.
_os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "true")
_os.environ.setdefault("GRPC_POLL_STRATEGY", "poll")
# What it has to say comes as exceptions; otherwise forks are worth a line on stderr to it.
_os.environ.setdefault("GRPC_VERBOSITY", "NONE")

from ._async._attached import AsyncAttachedExec  # noqa: E402
from ._async._client import AsyncSandboxClient  # noqa: E402
from ._async._process import AsyncProcess  # noqa: E402
from ._async._record import AsyncAuditStream  # noqa: E402
from ._async._sandbox import AsyncSandbox  # noqa: E402
from ._async._session import AsyncSessionWrapper  # noqa: E402
from ._async._streams import AsyncExecStream, AsyncLogStream  # noqa: E402
from ._async._terminal import AsyncTerminal  # noqa: E402
from ._local import SkippedLinksWarning  # noqa: E402
from ._presets import (  # noqa: E402
    PRESET_AGENT_SAFE,
    PRESET_DEVELOPMENT,
    PRESET_FULL_ACCESS,
    PRESET_READ_ONLY,
    PRESET_VIEW_ONLY,
    extend_preset,
    get_preset,
    get_preset_dicts,
    list_presets,
    register_preset,
)
from ._sync._attached import AttachedExec  # noqa: E402
from ._sync._client import SandboxClient  # noqa: E402
from ._sync._process import Process  # noqa: E402
from ._sync._record import AuditStream  # noqa: E402
from ._sync._sandbox import Sandbox  # noqa: E402
from ._sync._session import SessionWrapper  # noqa: E402
from ._sync._streams import ExecStream, LogStream  # noqa: E402
from ._sync._terminal import Terminal  # noqa: E402
from ._types import (  # noqa: E402
    ApplyResult,
    AuditCheck,
    AuditEvent,
    Change,
    Codebase,
    Confinement,
    Denial,
    ExecResult,
    Explanation,
    FileInfo,
    ImageStep,
    PatternType,
    Permission,
    PermissionRule,
    ProcessInfo,
    ProcessStatus,
    ResourceLimits,
    RuntimeType,
    SandboxInfo,
    SandboxStatus,
    ServerInfo,
    Session,
    SessionStatus,
    Snapshot,
    TerminalInfo,
    Token,
    UploadResult,
    Usage,
)
from ._version import VERSION as __version__  # noqa: E402
from ._walk import SkippedFilesWarning, walk_directory  # noqa: E402
from .exceptions import (  # noqa: E402
    AlreadyExistsError,
    ApplyConflictError,
    AuthenticationError,
    CodebaseError,
    CodebaseInUseError,
    CodebaseNotFoundError,
    CommandExecutionError,
    CommandTimeoutError,
    ConnectionError,
    FileNotFoundError,
    IncompatibleServerError,
    InvalidConfigurationError,
    PermissionDeniedError,
    ProcessError,
    ProcessExitedError,
    ProcessNotFoundError,
    ResourceLimitExceededError,
    SandboxError,
    SandboxNotFoundError,
    SandboxNotRunningError,
    SandboxRunningError,
    SessionClosedError,
    SessionError,
    SessionNotFoundError,
    SnapshotInUseError,
    SnapshotNotFoundError,
    TerminalClosedError,
    TerminalError,
    TerminalNotFoundError,
    UnsupportedError,
    UploadError,
    WaitTimeoutError,
)

__all__ = [
    "AlreadyExistsError",
    "ApplyConflictError",
    "ApplyResult",
    "AsyncAttachedExec",
    "AsyncAuditStream",
    "AsyncExecStream",
    "AsyncLogStream",
    "AsyncProcess",
    "AsyncSandbox",
    "AsyncSandboxClient",
    "AsyncSessionWrapper",
    "AsyncTerminal",
    "AttachedExec",
    "AuditCheck",
    "AuditEvent",
    "AuditStream",
    "AuthenticationError",
    "Change",
    "Codebase",
    "CodebaseError",
    "CodebaseInUseError",
    "CodebaseNotFoundError",
    "CommandExecutionError",
    "CommandTimeoutError",
    "Confinement",
    "ConnectionError",
    "Denial",
    "ExecResult",
    "ExecStream",
    "Explanation",
    "FileInfo",
    "FileNotFoundError",
    "ImageStep",
    "IncompatibleServerError",
    "InvalidConfigurationError",
    "LogStream",
    "PRESET_AGENT_SAFE",
    "PRESET_DEVELOPMENT",
    "PRESET_FULL_ACCESS",
    "PRESET_READ_ONLY",
    "PRESET_VIEW_ONLY",
    "PatternType",
    "Permission",
    "PermissionDeniedError",
    "PermissionRule",
    "Process",
    "ProcessError",
    "ProcessExitedError",
    "ProcessInfo",
    "ProcessNotFoundError",
    "ProcessStatus",
    "ResourceLimitExceededError",
    "ResourceLimits",
    "RuntimeType",
    "Sandbox",
    "SandboxClient",
    "SandboxError",
    "SandboxInfo",
    "SandboxNotFoundError",
    "SandboxNotRunningError",
    "SandboxRunningError",
    "SandboxStatus",
    "ServerInfo",
    "Session",
    "SessionClosedError",
    "SessionError",
    "SessionNotFoundError",
    "SessionStatus",
    "SessionWrapper",
    "SkippedFilesWarning",
    "SkippedLinksWarning",
    "Snapshot",
    "SnapshotInUseError",
    "SnapshotNotFoundError",
    "Terminal",
    "TerminalClosedError",
    "TerminalError",
    "TerminalInfo",
    "TerminalNotFoundError",
    "Token",
    "UnsupportedError",
    "UploadError",
    "UploadResult",
    "Usage",
    "WaitTimeoutError",
    "__version__",
    "extend_preset",
    "get_preset",
    "get_preset_dicts",
    "list_presets",
    "register_preset",
    "walk_directory",
]
