from typing import Any as _Any
import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from ringfence._wire import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RuntimeType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUNTIME_TYPE_UNSPECIFIED: _ClassVar[RuntimeType]
    RUNTIME_TYPE_BWRAP: _ClassVar[RuntimeType]
    RUNTIME_TYPE_DOCKER: _ClassVar[RuntimeType]

class NetworkMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NETWORK_MODE_UNSPECIFIED: _ClassVar[NetworkMode]
    NETWORK_MODE_NONE: _ClassVar[NetworkMode]
    NETWORK_MODE_HOST: _ClassVar[NetworkMode]
    NETWORK_MODE_BRIDGE: _ClassVar[NetworkMode]
RUNTIME_TYPE_UNSPECIFIED: RuntimeType
RUNTIME_TYPE_BWRAP: RuntimeType
RUNTIME_TYPE_DOCKER: RuntimeType
NETWORK_MODE_UNSPECIFIED: NetworkMode
NETWORK_MODE_NONE: NetworkMode
NETWORK_MODE_HOST: NetworkMode
NETWORK_MODE_BRIDGE: NetworkMode

class ResourceLimits(_message.Message):
    __slots__ = ("memory_bytes", "cpu_quota", "cpu_shares", "pids_limit")
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    CPU_QUOTA_FIELD_NUMBER: _ClassVar[int]
    CPU_SHARES_FIELD_NUMBER: _ClassVar[int]
    PIDS_LIMIT_FIELD_NUMBER: _ClassVar[int]
    memory_bytes: int
    cpu_quota: int
    cpu_shares: int
    pids_limit: int
    def __init__(self, memory_bytes: _Optional[int] = ..., cpu_quota: _Optional[int] = ..., cpu_shares: _Optional[int] = ..., pids_limit: _Optional[int] = ...) -> None: ...

class Sandbox(_message.Message):
    __slots__ = ("id", "codebase_id", "permissions", "status", "labels", "created_at", "started_at", "stopped_at", "expires_at", "runtime", "image", "resources", "network", "reason", "owner_id", "confinement", "codebase_version", "env", "image_user")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    CODEBASE_ID_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    STOPPED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    OWNER_ID_FIELD_NUMBER: _ClassVar[int]
    CONFINEMENT_FIELD_NUMBER: _ClassVar[int]
    CODEBASE_VERSION_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    IMAGE_USER_FIELD_NUMBER: _ClassVar[int]
    id: str
    codebase_id: str
    permissions: _containers.RepeatedCompositeFieldContainer[_common_pb2.PermissionRule]
    status: _common_pb2.SandboxStatus
    labels: _containers.ScalarMap[str, str]
    created_at: _timestamp_pb2.Timestamp
    started_at: _timestamp_pb2.Timestamp
    stopped_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    runtime: RuntimeType
    image: str
    resources: ResourceLimits
    network: NetworkMode
    reason: str
    owner_id: str
    confinement: Confinement
    codebase_version: int
    env: _containers.ScalarMap[str, str]
    image_user: bool
    def __init__(self, id: _Optional[str] = ..., codebase_id: _Optional[str] = ..., permissions: _Optional[_Iterable[_Union[_common_pb2.PermissionRule, _Mapping[str, _Any]]]] = ..., status: _Optional[_Union[_common_pb2.SandboxStatus, str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, _Any]]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, _Any]]] = ..., stopped_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, _Any]]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, _Any]]] = ..., runtime: _Optional[_Union[RuntimeType, str]] = ..., image: _Optional[str] = ..., resources: _Optional[_Union[ResourceLimits, _Mapping[str, _Any]]] = ..., network: _Optional[_Union[NetworkMode, str]] = ..., reason: _Optional[str] = ..., owner_id: _Optional[str] = ..., confinement: _Optional[_Union[Confinement, _Mapping[str, _Any]]] = ..., codebase_version: _Optional[int] = ..., env: _Optional[_Mapping[str, str]] = ..., image_user: _Optional[bool] = ...) -> None: ...

class Confinement(_message.Message):
    __slots__ = ("uid", "seccomp", "landlock_abi", "tracking")
    UID_FIELD_NUMBER: _ClassVar[int]
    SECCOMP_FIELD_NUMBER: _ClassVar[int]
    LANDLOCK_ABI_FIELD_NUMBER: _ClassVar[int]
    TRACKING_FIELD_NUMBER: _ClassVar[int]
    uid: int
    seccomp: bool
    landlock_abi: int
    tracking: str
    def __init__(self, uid: _Optional[int] = ..., seccomp: _Optional[bool] = ..., landlock_abi: _Optional[int] = ..., tracking: _Optional[str] = ...) -> None: ...

class CreateSandboxRequest(_message.Message):
    __slots__ = ("codebase_id", "permissions", "expires_in", "labels", "runtime", "image", "resources", "network", "env", "preset", "read_only_paths", "request_id", "start", "snapshot_id", "leased", "image_user")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CODEBASE_ID_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_IN_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    PRESET_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_PATHS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    LEASED_FIELD_NUMBER: _ClassVar[int]
    IMAGE_USER_FIELD_NUMBER: _ClassVar[int]
    codebase_id: str
    permissions: _containers.RepeatedCompositeFieldContainer[_common_pb2.PermissionRule]
    expires_in: _duration_pb2.Duration
    labels: _containers.ScalarMap[str, str]
    runtime: RuntimeType
    image: str
    resources: ResourceLimits
    network: NetworkMode
    env: _containers.ScalarMap[str, str]
    preset: str
    read_only_paths: _containers.RepeatedScalarFieldContainer[str]
    request_id: str
    start: bool
    snapshot_id: str
    leased: bool
    image_user: bool
    def __init__(self, codebase_id: _Optional[str] = ..., permissions: _Optional[_Iterable[_Union[_common_pb2.PermissionRule, _Mapping[str, _Any]]]] = ..., expires_in: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping[str, _Any]]] = ..., labels: _Optional[_Mapping[str, str]] = ..., runtime: _Optional[_Union[RuntimeType, str]] = ..., image: _Optional[str] = ..., resources: _Optional[_Union[ResourceLimits, _Mapping[str, _Any]]] = ..., network: _Optional[_Union[NetworkMode, str]] = ..., env: _Optional[_Mapping[str, str]] = ..., preset: _Optional[str] = ..., read_only_paths: _Optional[_Iterable[str]] = ..., request_id: _Optional[str] = ..., start: _Optional[bool] = ..., snapshot_id: _Optional[str] = ..., leased: _Optional[bool] = ..., image_user: _Optional[bool] = ...) -> None: ...

class GetSandboxRequest(_message.Message):
    __slots__ = ("sandbox_id",)
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    def __init__(self, sandbox_id: _Optional[str] = ...) -> None: ...

class StartSandboxRequest(_message.Message):
    __slots__ = ("sandbox_id",)
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    def __init__(self, sandbox_id: _Optional[str] = ...) -> None: ...

class StopSandboxRequest(_message.Message):
    __slots__ = ("sandbox_id",)
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    def __init__(self, sandbox_id: _Optional[str] = ...) -> None: ...

class DestroySandboxRequest(_message.Message):
    __slots__ = ("sandbox_id", "keep_codebase")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    KEEP_CODEBASE_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    keep_codebase: bool
    def __init__(self, sandbox_id: _Optional[str] = ..., keep_codebase: _Optional[bool] = ...) -> None: ...

class ListSandboxesRequest(_message.Message):
    __slots__ = ("codebase_id", "page_size", "page_token", "labels", "owner_id", "status")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CODEBASE_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    OWNER_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    codebase_id: str
    page_size: int
    page_token: str
    labels: _containers.ScalarMap[str, str]
    owner_id: str
    status: _common_pb2.SandboxStatus
    def __init__(self, codebase_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., owner_id: _Optional[str] = ..., status: _Optional[_Union[_common_pb2.SandboxStatus, str]] = ...) -> None: ...

class ListSandboxesResponse(_message.Message):
    __slots__ = ("sandboxes", "next_page_token")
    SANDBOXES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    sandboxes: _containers.RepeatedCompositeFieldContainer[Sandbox]
    next_page_token: str
    def __init__(self, sandboxes: _Optional[_Iterable[_Union[Sandbox, _Mapping[str, _Any]]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ExecRequest(_message.Message):
    __slots__ = ("sandbox_id", "command", "stdin", "env", "workdir", "timeout", "argv", "stdin_bytes", "options", "request_id")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    STDIN_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    WORKDIR_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    ARGV_FIELD_NUMBER: _ClassVar[int]
    STDIN_BYTES_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    command: str
    stdin: str
    env: _containers.ScalarMap[str, str]
    workdir: str
    timeout: _duration_pb2.Duration
    argv: _containers.RepeatedScalarFieldContainer[bytes]
    stdin_bytes: bytes
    options: ResultOptions
    request_id: str
    def __init__(self, sandbox_id: _Optional[str] = ..., command: _Optional[str] = ..., stdin: _Optional[str] = ..., env: _Optional[_Mapping[str, str]] = ..., workdir: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping[str, _Any]]] = ..., argv: _Optional[_Iterable[bytes]] = ..., stdin_bytes: _Optional[bytes] = ..., options: _Optional[_Union[ResultOptions, _Mapping[str, _Any]]] = ..., request_id: _Optional[str] = ...) -> None: ...

class ResultOptions(_message.Message):
    __slots__ = ("bytes", "max_output_bytes", "changes")
    BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    bytes: bool
    max_output_bytes: int
    changes: bool
    def __init__(self, bytes: _Optional[bool] = ..., max_output_bytes: _Optional[int] = ..., changes: _Optional[bool] = ...) -> None: ...

class ExecResult(_message.Message):
    __slots__ = ("stdout", "stderr", "exit_code", "duration", "stdout_bytes", "stderr_bytes", "bill")
    STDOUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    STDOUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    STDERR_BYTES_FIELD_NUMBER: _ClassVar[int]
    BILL_FIELD_NUMBER: _ClassVar[int]
    stdout: str
    stderr: str
    exit_code: int
    duration: _duration_pb2.Duration
    stdout_bytes: bytes
    stderr_bytes: bytes
    bill: ExecBill
    def __init__(self, stdout: _Optional[str] = ..., stderr: _Optional[str] = ..., exit_code: _Optional[int] = ..., duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping[str, _Any]]] = ..., stdout_bytes: _Optional[bytes] = ..., stderr_bytes: _Optional[bytes] = ..., bill: _Optional[_Union[ExecBill, _Mapping[str, _Any]]] = ...) -> None: ...

class ExecBill(_message.Message):
    __slots__ = ("command_id", "timed_out", "cancelled", "oom_killed", "pids_refused", "session_ended", "reason", "cpu_micros", "peak_memory_bytes", "stdout_total", "stderr_total", "stdout_cut", "stderr_cut", "denied", "denied_more", "changes", "signal")
    COMMAND_ID_FIELD_NUMBER: _ClassVar[int]
    TIMED_OUT_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    OOM_KILLED_FIELD_NUMBER: _ClassVar[int]
    PIDS_REFUSED_FIELD_NUMBER: _ClassVar[int]
    SESSION_ENDED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CPU_MICROS_FIELD_NUMBER: _ClassVar[int]
    PEAK_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    STDOUT_TOTAL_FIELD_NUMBER: _ClassVar[int]
    STDERR_TOTAL_FIELD_NUMBER: _ClassVar[int]
    STDOUT_CUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_CUT_FIELD_NUMBER: _ClassVar[int]
    DENIED_FIELD_NUMBER: _ClassVar[int]
    DENIED_MORE_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    command_id: str
    timed_out: bool
    cancelled: bool
    oom_killed: bool
    pids_refused: bool
    session_ended: bool
    reason: str
    cpu_micros: int
    peak_memory_bytes: int
    stdout_total: int
    stderr_total: int
    stdout_cut: bool
    stderr_cut: bool
    denied: _containers.RepeatedCompositeFieldContainer[DeniedAccess]
    denied_more: int
    changes: _containers.RepeatedCompositeFieldContainer[FileChange]
    signal: int
    def __init__(self, command_id: _Optional[str] = ..., timed_out: _Optional[bool] = ..., cancelled: _Optional[bool] = ..., oom_killed: _Optional[bool] = ..., pids_refused: _Optional[bool] = ..., session_ended: _Optional[bool] = ..., reason: _Optional[str] = ..., cpu_micros: _Optional[int] = ..., peak_memory_bytes: _Optional[int] = ..., stdout_total: _Optional[int] = ..., stderr_total: _Optional[int] = ..., stdout_cut: _Optional[bool] = ..., stderr_cut: _Optional[bool] = ..., denied: _Optional[_Iterable[_Union[DeniedAccess, _Mapping[str, _Any]]]] = ..., denied_more: _Optional[int] = ..., changes: _Optional[_Iterable[_Union[FileChange, _Mapping[str, _Any]]]] = ..., signal: _Optional[int] = ...) -> None: ...

class DeniedAccess(_message.Message):
    __slots__ = ("operation", "path", "needed", "level", "rule", "priority", "count")
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    NEEDED_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    operation: str
    path: str
    needed: str
    level: str
    rule: str
    priority: int
    count: int
    def __init__(self, operation: _Optional[str] = ..., path: _Optional[str] = ..., needed: _Optional[str] = ..., level: _Optional[str] = ..., rule: _Optional[str] = ..., priority: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class FileChange(_message.Message):
    __slots__ = ("kind", "path")
    KIND_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    kind: str
    path: str
    def __init__(self, kind: _Optional[str] = ..., path: _Optional[str] = ..., **kwargs: _Any) -> None: ...

class ExecOutput(_message.Message):
    __slots__ = ("type", "data", "result", "started")
    class OutputType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OUTPUT_TYPE_UNSPECIFIED: _ClassVar[ExecOutput.OutputType]
        OUTPUT_TYPE_STDOUT: _ClassVar[ExecOutput.OutputType]
        OUTPUT_TYPE_STDERR: _ClassVar[ExecOutput.OutputType]
    OUTPUT_TYPE_UNSPECIFIED: ExecOutput.OutputType
    OUTPUT_TYPE_STDOUT: ExecOutput.OutputType
    OUTPUT_TYPE_STDERR: ExecOutput.OutputType
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    type: ExecOutput.OutputType
    data: bytes
    result: ExecResult
    started: str
    def __init__(self, type: _Optional[_Union[ExecOutput.OutputType, str]] = ..., data: _Optional[bytes] = ..., result: _Optional[_Union[ExecResult, _Mapping[str, _Any]]] = ..., started: _Optional[str] = ...) -> None: ...

class ExecInput(_message.Message):
    __slots__ = ("command", "session_command", "stdin", "end_of_stdin", "signal", "cancel")
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    SESSION_COMMAND_FIELD_NUMBER: _ClassVar[int]
    STDIN_FIELD_NUMBER: _ClassVar[int]
    END_OF_STDIN_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    command: ExecRequest
    session_command: SessionExecRequest
    stdin: bytes
    end_of_stdin: bool
    signal: int
    cancel: bool
    def __init__(self, command: _Optional[_Union[ExecRequest, _Mapping[str, _Any]]] = ..., session_command: _Optional[_Union[SessionExecRequest, _Mapping[str, _Any]]] = ..., stdin: _Optional[bytes] = ..., end_of_stdin: _Optional[bool] = ..., signal: _Optional[int] = ..., cancel: _Optional[bool] = ...) -> None: ...

class Session(_message.Message):
    __slots__ = ("id", "sandbox_id", "status", "shell", "created_at", "closed_at", "name", "cwd", "last_used_at", "busy")
    ID_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SHELL_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    CLOSED_AT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    LAST_USED_AT_FIELD_NUMBER: _ClassVar[int]
    BUSY_FIELD_NUMBER: _ClassVar[int]
    id: str
    sandbox_id: str
    status: _common_pb2.SessionStatus
    shell: str
    created_at: _timestamp_pb2.Timestamp
    closed_at: _timestamp_pb2.Timestamp
    name: str
    cwd: str
    last_used_at: _timestamp_pb2.Timestamp
    busy: bool
    def __init__(self, id: _Optional[str] = ..., sandbox_id: _Optional[str] = ..., status: _Optional[_Union[_common_pb2.SessionStatus, str]] = ..., shell: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, _Any]]] = ..., closed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, _Any]]] = ..., name: _Optional[str] = ..., cwd: _Optional[str] = ..., last_used_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, _Any]]] = ..., busy: _Optional[bool] = ...) -> None: ...

class CreateSessionRequest(_message.Message):
    __slots__ = ("sandbox_id", "shell", "env", "name", "cwd", "timeout")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    SHELL_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    shell: str
    env: _containers.ScalarMap[str, str]
    name: str
    cwd: str
    timeout: _duration_pb2.Duration
    def __init__(self, sandbox_id: _Optional[str] = ..., shell: _Optional[str] = ..., env: _Optional[_Mapping[str, str]] = ..., name: _Optional[str] = ..., cwd: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping[str, _Any]]] = ...) -> None: ...

class GetSessionRequest(_message.Message):
    __slots__ = ("session_id", "sandbox_id")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    sandbox_id: str
    def __init__(self, session_id: _Optional[str] = ..., sandbox_id: _Optional[str] = ...) -> None: ...

class DestroySessionRequest(_message.Message):
    __slots__ = ("session_id", "sandbox_id")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    sandbox_id: str
    def __init__(self, session_id: _Optional[str] = ..., sandbox_id: _Optional[str] = ...) -> None: ...

class ListSessionsRequest(_message.Message):
    __slots__ = ("sandbox_id",)
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    def __init__(self, sandbox_id: _Optional[str] = ...) -> None: ...

class ListSessionsResponse(_message.Message):
    __slots__ = ("sessions",)
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[Session]
    def __init__(self, sessions: _Optional[_Iterable[_Union[Session, _Mapping[str, _Any]]]] = ...) -> None: ...

class SessionExecRequest(_message.Message):
    __slots__ = ("session_id", "command", "timeout", "sandbox_id", "env", "cwd", "stdin", "command_bytes", "options", "restart", "request_id")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    STDIN_FIELD_NUMBER: _ClassVar[int]
    COMMAND_BYTES_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    RESTART_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    command: str
    timeout: _duration_pb2.Duration
    sandbox_id: str
    env: _containers.ScalarMap[str, str]
    cwd: str
    stdin: bytes
    command_bytes: bytes
    options: ResultOptions
    restart: bool
    request_id: str
    def __init__(self, session_id: _Optional[str] = ..., command: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping[str, _Any]]] = ..., sandbox_id: _Optional[str] = ..., env: _Optional[_Mapping[str, str]] = ..., cwd: _Optional[str] = ..., stdin: _Optional[bytes] = ..., command_bytes: _Optional[bytes] = ..., options: _Optional[_Union[ResultOptions, _Mapping[str, _Any]]] = ..., restart: _Optional[bool] = ..., request_id: _Optional[str] = ...) -> None: ...

class SessionLogRequest(_message.Message):
    __slots__ = ("session_id", "sandbox_id", "follow")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    sandbox_id: str
    follow: bool
    def __init__(self, session_id: _Optional[str] = ..., sandbox_id: _Optional[str] = ..., follow: _Optional[bool] = ..., **kwargs: _Any) -> None: ...

class LogChunk(_message.Message):
    __slots__ = ("offset", "type", "data", "ended")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    offset: int
    type: ExecOutput.OutputType
    data: bytes
    ended: ProcessState
    def __init__(self, offset: _Optional[int] = ..., type: _Optional[_Union[ExecOutput.OutputType, str]] = ..., data: _Optional[bytes] = ..., ended: _Optional[_Union[ProcessState, _Mapping[str, _Any]]] = ...) -> None: ...

class ProcessState(_message.Message):
    __slots__ = ("status", "exit_code", "signal", "reason")
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATUS_UNSPECIFIED: _ClassVar[ProcessState.Status]
        STATUS_RUNNING: _ClassVar[ProcessState.Status]
        STATUS_EXITED: _ClassVar[ProcessState.Status]
        STATUS_KILLED: _ClassVar[ProcessState.Status]
        STATUS_FAILED: _ClassVar[ProcessState.Status]
    STATUS_UNSPECIFIED: ProcessState.Status
    STATUS_RUNNING: ProcessState.Status
    STATUS_EXITED: ProcessState.Status
    STATUS_KILLED: ProcessState.Status
    STATUS_FAILED: ProcessState.Status
    STATUS_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    status: ProcessState.Status
    exit_code: int
    signal: int
    reason: str
    def __init__(self, status: _Optional[_Union[ProcessState.Status, str]] = ..., exit_code: _Optional[int] = ..., signal: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class LeaseSandboxRequest(_message.Message):
    __slots__ = ("sandbox_id", "bind")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    BIND_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    bind: bool
    def __init__(self, sandbox_id: _Optional[str] = ..., bind: _Optional[bool] = ...) -> None: ...

class LeaseState(_message.Message):
    __slots__ = ("safe_until",)
    SAFE_UNTIL_FIELD_NUMBER: _ClassVar[int]
    safe_until: _timestamp_pb2.Timestamp
    def __init__(self, safe_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, _Any]]] = ...) -> None: ...
