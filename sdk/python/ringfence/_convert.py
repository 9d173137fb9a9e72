"""Between messages and the types of this package."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Iterable, List, Mapping, Optional

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from . import _types as t
from ._wire import v1
from .exceptions import InvalidConfigurationError

_VIEWS = {"owner": v1.VIEW_OWNER, "agent": v1.VIEW_AGENT}
_NETWORKS = {
    "none": v1.NETWORK_MODE_NONE,
    "host": v1.NETWORK_MODE_HOST,
    "bridge": v1.NETWORK_MODE_BRIDGE,
}
_RUNTIMES = {
    t.RuntimeType.BWRAP: v1.RUNTIME_TYPE_BWRAP,
    t.RuntimeType.DOCKER: v1.RUNTIME_TYPE_DOCKER,
}


def rules_out(rules: Iterable[t.PermissionRule]) -> List[v1.PermissionRule]:
    return [rule_out(rule) for rule in rules]


def rule_out(rule: t.PermissionRule) -> v1.PermissionRule:
    try:
        return v1.PermissionRule(
            pattern=rule.pattern,
            type=f"PATTERN_TYPE_{rule.type.name}",
            permission=f"PERMISSION_{rule.permission.name}",
            priority=rule.priority,
        )
    except (ValueError, UnicodeEncodeError) as error:
        raise InvalidConfigurationError(f"{rule.pattern!r} cannot be sent: {error}") from None


def rule_in(rule: v1.PermissionRule) -> t.PermissionRule:
    kind = rule.type or v1.PATTERN_TYPE_GLOB
    return t.PermissionRule(
        rule.pattern,
        permission_in(rule.permission),
        t.PatternType(_word(v1.PatternType.Name(kind), "PATTERN_TYPE_")),
        rule.priority,
    )


def permission_in(level: "v1.Permission") -> t.Permission:
    return t.Permission(_word(v1.Permission.Name(level or v1.PERMISSION_NONE), "PERMISSION_"))


def limits_out(limits: Optional[t.ResourceLimits]) -> Optional[v1.ResourceLimits]:
    if limits is None or not limits.to_dict():
        return None
    for name, value in limits.to_dict().items():
        if not isinstance(value, int) or value <= 0:
            raise InvalidConfigurationError(f"{name} is a number above 0, not {value!r}")
    return v1.ResourceLimits(**limits.to_dict())


def runtime_out(runtime: t.RuntimeType) -> "v1.RuntimeType":
    try:
        return _RUNTIMES[t.RuntimeType(runtime)]
    except ValueError:
        raise InvalidConfigurationError(f"the runtime is bwrap or docker, not {runtime!r}") from None


def network_out(network: str) -> "v1.NetworkMode":
    if network not in _NETWORKS:
        raise InvalidConfigurationError(f"the network is none, host or bridge, not {network!r}")
    return _NETWORKS[network]


def view_out(view: str) -> "v1.View":
    if view not in _VIEWS:
        raise InvalidConfigurationError(f"the view is owner or agent, not {view!r}")
    return _VIEWS[view]


def seconds(value: Optional[t.Seconds], what: str = "timeout") -> Optional[float]:
    """A time in seconds, from whatever it was given as."""
    if value is None:
        return None
    number = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not number > 0:
        raise InvalidConfigurationError(f"the {what} is a time above 0, not {value!r}")
    return float(number)


def duration_out(value: Optional[float]) -> Optional[Duration]:
    if value is None:
        return None
    # A century is as good as ever, and what is longer does not fit.
    made = Duration()
    made.FromNanoseconds(int(min(value, 3.2e9) * 1e9))
    return made


def env_out(env: Optional[Mapping[str, str]]) -> Mapping[str, str]:
    if env is not None and not isinstance(env, Mapping):
        raise InvalidConfigurationError(
            f"the environment is a dictionary of names and values, not {env!r}")
    for name, value in (env or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidConfigurationError(
                f"environment variables have text as names and values, not {name!r}: {value!r}")
    return env or {}


def time_in(stamp: Timestamp) -> Optional[datetime]:
    if not stamp.seconds and not stamp.nanos:
        return None
    return datetime.fromtimestamp(stamp.seconds, timezone.utc) + timedelta(
        microseconds=stamp.nanos // 1000)


def sandbox_in(message: v1.Sandbox) -> t.SandboxInfo:
    return t.SandboxInfo(
        id=message.id,
        codebase_id=message.codebase_id,
        status=t.SandboxStatus(_word(v1.SandboxStatus.Name(message.status), "SANDBOX_STATUS_")),
        permissions=[rule_in(rule) for rule in message.permissions],
        labels=dict(message.labels),
        runtime=_runtime_in(message.runtime),
        image=message.image or None,
        image_user=message.image_user,
        resources=_limits_in(message) if message.HasField("resources") else None,
        created_at=time_in(message.created_at),
        started_at=time_in(message.started_at),
        stopped_at=time_in(message.stopped_at),
        expires_at=time_in(message.expires_at),
        network=_word(v1.NetworkMode.Name(message.network or v1.NETWORK_MODE_NONE), "NETWORK_MODE_"),
        env=dict(message.env),
        owner_id=message.owner_id or None,
        reason=message.reason or None,
        confinement=_confinement_in(message) if message.HasField("confinement") else None,
        codebase_version=message.codebase_version or None,
    )


def _runtime_in(runtime: "v1.RuntimeType") -> t.RuntimeType:
    return t.RuntimeType.DOCKER if runtime == v1.RUNTIME_TYPE_DOCKER else t.RuntimeType.BWRAP


def _limits_in(message: v1.Sandbox) -> t.ResourceLimits:
    limits = message.resources
    return t.ResourceLimits(
        limits.memory_bytes or None, limits.cpu_quota or None, limits.cpu_shares or None,
        limits.pids_limit or None)


def _confinement_in(message: v1.Sandbox) -> t.Confinement:
    what = message.confinement
    return t.Confinement(what.uid, what.seccomp, what.landlock_abi, what.tracking)


def codebase_in(message: v1.Codebase) -> t.Codebase:
    return t.Codebase(
        id=message.id,
        name=message.name,
        owner_id=message.owner_id,
        size=message.size,
        file_count=message.file_count,
        created_at=time_in(message.created_at),
        updated_at=time_in(message.updated_at),
        local_path=message.local_path or None,
        version=message.version,
    )


def result_in(message: v1.ExecResult, command: str) -> t.ExecResult:
    bill = message.bill
    return t.ExecResult(
        stdout=message.stdout_bytes.decode(errors="replace"),
        stderr=message.stderr_bytes.decode(errors="replace"),
        exit_code=message.exit_code,
        duration=message.duration.ToTimedelta(),
        command=command,
        stdout_bytes=message.stdout_bytes,
        stderr_bytes=message.stderr_bytes,
        timed_out=bill.timed_out,
        truncated=bill.stdout_cut or bill.stderr_cut,
        denials=[denial_in(denial) for denial in bill.denied],
        denials_more=bill.denied_more,
        usage=t.Usage(timedelta(microseconds=bill.cpu_micros), bill.peak_memory_bytes),
        reason=bill.reason or None,
        signal=bill.signal or None,
        changes=[change_in(change) for change in bill.changes],
        command_id=bill.command_id or None,
    )


def denial_in(message: v1.DeniedAccess) -> t.Denial:
    return t.Denial(
        operation=message.operation,
        path=message.path,
        needed=message.needed,
        level=message.level,
        rule=message.rule or None,
        priority=message.priority,
        count=message.count or 1,
    )


def change_in(message: v1.FileChange) -> t.Change:
    # `from` is a word of the language.
    return t.Change(message.kind, message.path, getattr(message, "from") or None)


def file_in(message: v1.FileInfo) -> t.FileInfo:
    kind = _word(v1.FileKind.Name(message.kind), "FILE_KIND_")
    return t.FileInfo(
        path=message.path,
        name=message.name,
        is_dir=message.is_dir,
        size=message.size,
        modified_at=time_in(message.modified_at),
        full_path=message.full_path,
        mode=message.mode,
        kind=("directory" if message.is_dir else "file") if kind == "unspecified" else kind,
        target=message.target or None,
    )


def session_in(message: v1.Session) -> t.Session:
    status = _word(v1.SessionStatus.Name(message.status), "SESSION_STATUS_")
    return t.Session(
        id=message.id,
        sandbox_id=message.sandbox_id,
        status=t.SessionStatus("unknown" if status == "unspecified" else status),
        shell=message.shell,
        created_at=time_in(message.created_at),
        closed_at=time_in(message.closed_at),
        name=message.name or None,
        cwd=message.cwd,
        busy=message.busy,
    )


def status_in(state: v1.ProcessState) -> t.ProcessStatus:
    name = _word(v1.ProcessState.Status.Name(state.status), "STATUS_")
    return t.ProcessStatus("running" if name == "unspecified" else name)


def exit_code_in(state: v1.ProcessState) -> Optional[int]:
    """As a shell has it."""
    status = status_in(state)
    if status is t.ProcessStatus.RUNNING:
        return None
    return 128 + state.signal if state.signal and not state.exit_code else state.exit_code


def process_in(message: v1.Process) -> t.ProcessInfo:
    return t.ProcessInfo(
        id=message.id,
        sandbox_id=message.sandbox_id,
        pid=message.pid,
        command=message.command,
        status=status_in(message.state),
        session_id=message.session_id or None,
        exit_code=exit_code_in(message.state),
        signal=message.state.signal or None,
        reason=message.state.reason or None,
        created_at=time_in(message.created_at),
        ended_at=time_in(message.ended_at),
    )


def terminal_in(message: v1.Terminal) -> t.TerminalInfo:
    return t.TerminalInfo(
        id=message.id,
        sandbox_id=message.sandbox_id,
        pid=message.pid,
        command=message.command,
        status=status_in(message.state),
        rows=message.rows,
        cols=message.columns,
        exit_code=exit_code_in(message.state),
        watchers=message.watchers,
    )


def applied_in(message: v1.ApplyResponse) -> t.ApplyResult:
    return t.ApplyResult(
        applied=[change_in(change) for change in message.applied],
        conflicts=list(message.conflicts),
        refused=[change_in(change) for change in message.refused],
        written=message.written,
    )


def snapshot_in(message: v1.Snapshot) -> t.Snapshot:
    return t.Snapshot(
        id=message.id,
        sandbox_id=message.sandbox_id,
        codebase_id=message.codebase_id,
        name=message.name,
        created_at=time_in(message.created_at),
    )


def explanation_in(message: v1.Explanation) -> t.Explanation:
    rule = rule_in(message.rule) if message.HasField("rule") else None
    return t.Explanation(message.path, permission_in(message.permission), rule, message.reason)


def step_in(message: v1.FetchImageProgress) -> t.ImageStep:
    return t.ImageStep(message.layer or None, message.status, message.current, message.total)


def event_in(message: v1.AuditEvent) -> t.AuditEvent:
    time = time_in(message.time) or datetime.fromtimestamp(0, timezone.utc)
    return t.AuditEvent(message.sequence, time, message.kind, json.loads(message.json))


def token_in(message: v1.Token, secret: Optional[str] = None) -> t.Token:
    return t.Token(
        id=message.id,
        account=message.account,
        label=message.label,
        created_at=time_in(message.created_at),
        last_used_at=time_in(message.last_used_at),
        revoked_at=time_in(message.revoked_at),
        secret=secret,
    )


def _word(name: str, prefix: str) -> str:
    return name[len(prefix):].lower()
