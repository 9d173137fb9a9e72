"""What goes in and out: rules, limits, results, records."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Dict, List, Mapping, Optional, Union

from .exceptions import CommandExecutionError, InvalidConfigurationError


class Permission(str, Enum):
    """What may be done with a path."""

    NONE = "none"
    """It does not exist."""
    VIEW = "view"
    """Its name can be seen."""
    READ = "read"
    WRITE = "write"


class PatternType(str, Enum):
    """How a rule's pattern is meant."""

    GLOB = "glob"
    DIRECTORY = "directory"
    """The directory and everything below it."""
    FILE = "file"


class SandboxStatus(str, Enum):
    PENDING = "pending"
    RUNNING = "running"
    STOPPED = "stopped"
    ERROR = "error"


class SessionStatus(str, Enum):
    UNKNOWN = "unknown"
    ACTIVE = "active"
    CLOSED = "closed"


class ProcessStatus(str, Enum):
    RUNNING = "running"
    EXITED = "exited"
    KILLED = "killed"
    FAILED = "failed"
    """It could not be started."""


class RuntimeType(str, Enum):
    """What keeps a sandbox apart from its host."""

    BWRAP = "bwrap"
    DOCKER = "docker"


@dataclass
class ResourceLimits:
    """What a sandbox may use. None: no limit.

    Attributes:
        memory_bytes: of all its processes together.
        cpu_quota: microseconds of processor time per 100 ms; 50 000 is half a core.
        cpu_shares: weight against others when the processors are busy.
        pids_limit: processes and threads at once.
    """

    memory_bytes: Optional[int] = None
    cpu_quota: Optional[int] = None
    cpu_shares: Optional[int] = None
    pids_limit: Optional[int] = None

    def to_dict(self) -> Dict[str, int]:
        return {name: value for name, value in vars(self).items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "ResourceLimits":
        unknown = set(data) - {"memory_bytes", "cpu_quota", "cpu_shares", "pids_limit"}
        if unknown:
            raise InvalidConfigurationError(f"there is no limit called {sorted(unknown)[0]!r}")
        return cls(**data)


@dataclass
class PermissionRule:
    """Who matches `pattern` has `permission`.

    The highest priority decides; of equals the more specific pattern, then the later rule.

    >>> PermissionRule("/output/**", Permission.WRITE)
    PermissionRule(pattern='/output/**', permission=<Permission.WRITE: 'write'>, \
type=<PatternType.GLOB: 'glob'>, priority=0)
    """

    pattern: str
    permission: Permission = Permission.READ
    type: PatternType = PatternType.GLOB
    priority: int = 0

    def to_dict(self) -> Dict[str, Any]:
        return {
            "pattern": self.pattern,
            "permission": self.permission.value,
            "type": self.type.value,
            "priority": self.priority,
        }


RuleLike = Union[PermissionRule, Mapping[str, Any]]
"""A rule, or a dictionary with its fields."""

Seconds = Union[int, float, timedelta]
"""How long, in seconds or as a timedelta."""


@dataclass
class Confinement:
    """What is enforced on everything that runs in a sandbox.

    Attributes:
        uid: the user of the host it runs as.
        seccomp: system calls are filtered.
        landlock_abi: the version of Landlock in force; 0: none.
        tracking: how its processes are counted and ended.
    """

    uid: int
    seccomp: bool
    landlock_abi: int
    tracking: str


@dataclass
class SandboxInfo:
    """A sandbox as the server has it on record."""

    id: str
    codebase_id: str
    status: SandboxStatus
    permissions: List[PermissionRule] = field(default_factory=list)
    labels: Dict[str, str] = field(default_factory=dict)
    runtime: RuntimeType = RuntimeType.BWRAP
    image: Optional[str] = None
    resources: Optional[ResourceLimits] = None
    created_at: Optional[datetime] = None
    started_at: Optional[datetime] = None
    stopped_at: Optional[datetime] = None
    expires_at: Optional[datetime] = None
    network: str = "none"
    env: Dict[str, str] = field(default_factory=dict)
    owner_id: Optional[str] = None
    reason: Optional[str] = None
    """Why it is in error, or how it ended last."""
    confinement: Optional[Confinement] = None
    """What is enforced, while it runs."""
    codebase_version: Optional[int] = None
    image_user: bool = False
    """Everything in it runs as the user that its image names."""


@dataclass
class ImageStep:
    """How far the fetching of an image has come.

    Attributes:
        layer: the part of the image it is about; None: all of it.
        status: in the words of the container engine.
        current, total: bytes of that part, where they are known.
    """

    layer: Optional[str]
    status: str
    current: int = 0
    total: int = 0


@dataclass
class Codebase:
    """Stored files that sandboxes stand on."""

    id: str
    name: str
    owner_id: str
    size: int = 0
    file_count: int = 0
    created_at: Optional[datetime] = None
    updated_at: Optional[datetime] = None
    local_path: Optional[str] = None
    """A directory of the server's host that is used where it is."""
    version: int = 0


@dataclass
class Denial:
    """Something the policy refused a command.

    Attributes:
        operation: what it tried (`open`, `unlink`, …).
        path: with what, below the workspace.
        needed, level: the level it needs, and the one it has.
        rule, priority: the rule that decided.
        count: how often.
    """

    operation: str
    path: str
    needed: str
    level: str
    rule: Optional[str] = None
    priority: int = 0
    count: int = 1


@dataclass
class Usage:
    """What a command used."""

    cpu_time: timedelta
    peak_memory_bytes: int


@dataclass
class Change:
    """A file that is not as it was: `added`, `modified`, `deleted`, `renamed` or `mode`."""

    kind: str
    path: str
    renamed_from: Optional[str] = None


@dataclass
class ExecResult:
    """What came of a command.

    >>> result = ExecResult(stdout="3 passed", stderr="", exit_code=0)
    >>> result.success, result.output
    (True, '3 passed')

    Attributes:
        stdout, stderr: what it printed, as text; bytes that are no UTF-8 are replaced.
        stdout_bytes, stderr_bytes: the same, exactly.
        exit_code: 128 + N if signal N ended it.
        truncated: it printed more than is kept; the middle was cut out.
        timed_out: its time ran out.
        denials: what the policy refused it; `denials_more` counts those that are not listed.
        usage: what it used.
        reason: what the exit code alone does not say (the memory limit ended it, say).
    """

    stdout: str
    stderr: str
    exit_code: int
    duration: Optional[timedelta] = None
    command: Optional[str] = None
    stdout_bytes: bytes = field(default=b"", repr=False)
    stderr_bytes: bytes = field(default=b"", repr=False)
    timed_out: bool = False
    truncated: bool = False
    denials: List[Denial] = field(default_factory=list)
    denials_more: int = 0
    usage: Optional[Usage] = None
    reason: Optional[str] = None
    signal: Optional[int] = None
    changes: List[Change] = field(default_factory=list)
    command_id: Optional[str] = None

    @property
    def success(self) -> bool:
        return self.exit_code == 0

    @property
    def output(self) -> str:
        """Both streams, one after the other."""
        return "\n".join(part for part in (self.stdout, self.stderr) if part)

    def raise_on_error(self) -> "ExecResult":
        """Itself if the command succeeded; raises `CommandExecutionError` otherwise."""
        if not self.success:
            raise CommandExecutionError(
                command=self.command or "<unknown>",
                exit_code=self.exit_code,
                stdout=self.stdout,
                stderr=self.stderr,
                denials=self.denials,
            )
        return self


@dataclass
class FileInfo:
    """A file, a directory or a symbolic link."""

    path: str
    name: str
    is_dir: bool
    size: int
    modified_at: Optional[datetime] = None
    full_path: str = ""
    """From the root of the workspace."""
    mode: int = 0
    kind: str = "file"
    """`file`, `directory`, `symlink` or `other`."""
    target: Optional[str] = None
    """Of a symbolic link."""


@dataclass
class UploadResult:
    """A file that was stored; the checksum is its MD5."""

    codebase_id: str
    file_path: str
    size: int
    checksum: str
    blake3: str = ""


@dataclass
class Session:
    """A shell that keeps its state, as the server has it on record."""

    id: str
    sandbox_id: str
    status: SessionStatus
    shell: str = "/bin/sh"
    created_at: Optional[datetime] = None
    closed_at: Optional[datetime] = None
    name: Optional[str] = None
    cwd: str = ""
    busy: bool = False


@dataclass
class ProcessInfo:
    """A background process as the server has it on record."""

    id: str
    sandbox_id: str
    pid: int
    command: str
    status: ProcessStatus
    session_id: Optional[str] = None
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    reason: Optional[str] = None
    created_at: Optional[datetime] = None
    ended_at: Optional[datetime] = None


@dataclass
class TerminalInfo:
    """A terminal as the server has it on record."""

    id: str
    sandbox_id: str
    pid: int
    command: str
    status: ProcessStatus
    rows: int
    cols: int
    exit_code: Optional[int] = None
    watchers: int = 0


@dataclass
class ApplyResult:
    """What became of a sandbox's changes.

    Attributes:
        applied: what was written, or would be.
        conflicts: changed on both sides.
        refused: changes the policy does not let code inside make; they are never written.
        written: whether anything was written.
    """

    applied: List[Change]
    conflicts: List[str]
    refused: List[Change]
    written: bool


@dataclass
class Snapshot:
    """The files of a sandbox as they were."""

    id: str
    sandbox_id: str
    codebase_id: str
    name: str = ""
    created_at: Optional[datetime] = None


@dataclass
class Explanation:
    """What may be done with a path, and which rule decided."""

    path: str
    permission: Permission
    rule: Optional[PermissionRule]
    reason: str


@dataclass
class AuditEvent:
    """One line of a sandbox's record; `data` is all of it."""

    sequence: int
    time: datetime
    kind: str
    data: Dict[str, Any]


@dataclass
class AuditCheck:
    """Whether a record is as it was written; `problem` says where its chain breaks."""

    intact: bool
    events: int
    problem: Optional[str] = None


@dataclass
class ServerInfo:
    """The server that is spoken to."""

    version: str
    account: str
    runtimes: List[str]
    local: bool
    """Directories of its host may be named."""
    endpoint: str
    embedded: bool


@dataclass
class Token:
    """Who may call over the network."""

    id: str
    account: str
    label: str
    created_at: Optional[datetime] = None
    last_used_at: Optional[datetime] = None
    revoked_at: Optional[datetime] = None
    secret: Optional[str] = field(default=None, repr=False)
    """Only when it has just been made."""
