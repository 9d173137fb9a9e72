from typing import Any as _Any
import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from ringfence._wire import codebase_pb2 as _codebase_pb2
from ringfence._wire import common_pb2 as _common_pb2
from ringfence._wire import sandbox_pb2 as _sandbox_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Process(_message.Message):
    __slots__ = ("id", "sandbox_id", "pid", "command", "session_id", "state", "created_at", "ended_at", "log_end")
    ID_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    LOG_END_FIELD_NUMBER: _ClassVar[int]
    id: str
    sandbox_id: str
    pid: int
    command: str
    session_id: str
    state: _sandbox_pb2.ProcessState
    created_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    log_end: int
    def __init__(self, id: _Optional[str] = ..., sandbox_id: _Optional[str] = ..., pid: _Optional[int] = ..., command: _Optional[str] = ..., session_id: _Optional[str] = ..., state: _Optional[_Union[_sandbox_pb2.ProcessState, _Mapping[str, _Any]]] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, _Any]]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, _Any]]] = ..., log_end: _Optional[int] = ...) -> None: ...

class StartProcessRequest(_message.Message):
    __slots__ = ("sandbox_id", "command", "argv", "session", "env", "cwd", "id")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    ARGV_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    command: str
    argv: _containers.RepeatedScalarFieldContainer[bytes]
    session: str
    env: _containers.ScalarMap[str, str]
    cwd: str
    id: str
    def __init__(self, sandbox_id: _Optional[str] = ..., command: _Optional[str] = ..., argv: _Optional[_Iterable[bytes]] = ..., session: _Optional[str] = ..., env: _Optional[_Mapping[str, str]] = ..., cwd: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class GetProcessRequest(_message.Message):
    __slots__ = ("sandbox_id", "process_id")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PROCESS_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    process_id: str
    def __init__(self, sandbox_id: _Optional[str] = ..., process_id: _Optional[str] = ...) -> None: ...

class ListProcessesRequest(_message.Message):
    __slots__ = ("sandbox_id",)
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    def __init__(self, sandbox_id: _Optional[str] = ...) -> None: ...

class ListProcessesResponse(_message.Message):
    __slots__ = ("processes",)
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    processes: _containers.RepeatedCompositeFieldContainer[Process]
    def __init__(self, processes: _Optional[_Iterable[_Union[Process, _Mapping[str, _Any]]]] = ...) -> None: ...

class KillAllProcessesResponse(_message.Message):
    __slots__ = ("count",)
    COUNT_FIELD_NUMBER: _ClassVar[int]
    count: int
    def __init__(self, count: _Optional[int] = ...) -> None: ...

class ProcessLogRequest(_message.Message):
    __slots__ = ("sandbox_id", "process_id", "follow")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PROCESS_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    process_id: str
    follow: bool
    def __init__(self, sandbox_id: _Optional[str] = ..., process_id: _Optional[str] = ..., follow: _Optional[bool] = ..., **kwargs: _Any) -> None: ...

class WaitProcessRequest(_message.Message):
    __slots__ = ("sandbox_id", "process_id", "timeout", "exit", "text", "pattern", "port")
    class Port(_message.Message):
        __slots__ = ("port", "http_path", "status_from", "status_to")
        PORT_FIELD_NUMBER: _ClassVar[int]
        HTTP_PATH_FIELD_NUMBER: _ClassVar[int]
        STATUS_FROM_FIELD_NUMBER: _ClassVar[int]
        STATUS_TO_FIELD_NUMBER: _ClassVar[int]
        port: int
        http_path: str
        status_from: int
        status_to: int
        def __init__(self, port: _Optional[int] = ..., http_path: _Optional[str] = ..., status_from: _Optional[int] = ..., status_to: _Optional[int] = ...) -> None: ...
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PROCESS_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    EXIT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    process_id: str
    timeout: _duration_pb2.Duration
    exit: bool
    text: str
    pattern: str
    port: WaitProcessRequest.Port
    def __init__(self, sandbox_id: _Optional[str] = ..., process_id: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping[str, _Any]]] = ..., exit: _Optional[bool] = ..., text: _Optional[str] = ..., pattern: _Optional[str] = ..., port: _Optional[_Union[WaitProcessRequest.Port, _Mapping[str, _Any]]] = ...) -> None: ...

class WaitProcessResponse(_message.Message):
    __slots__ = ("process", "line")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    process: Process
    line: bytes
    def __init__(self, process: _Optional[_Union[Process, _Mapping[str, _Any]]] = ..., line: _Optional[bytes] = ...) -> None: ...

class KillProcessRequest(_message.Message):
    __slots__ = ("sandbox_id", "process_id", "signal")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PROCESS_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    process_id: str
    signal: int
    def __init__(self, sandbox_id: _Optional[str] = ..., process_id: _Optional[str] = ..., signal: _Optional[int] = ...) -> None: ...

class Terminal(_message.Message):
    __slots__ = ("id", "sandbox_id", "pid", "command", "session_id", "state", "rows", "columns", "created_at", "watchers")
    ID_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    WATCHERS_FIELD_NUMBER: _ClassVar[int]
    id: str
    sandbox_id: str
    pid: int
    command: str
    session_id: str
    state: _sandbox_pb2.ProcessState
    rows: int
    columns: int
    created_at: _timestamp_pb2.Timestamp
    watchers: int
    def __init__(self, id: _Optional[str] = ..., sandbox_id: _Optional[str] = ..., pid: _Optional[int] = ..., command: _Optional[str] = ..., session_id: _Optional[str] = ..., state: _Optional[_Union[_sandbox_pb2.ProcessState, _Mapping[str, _Any]]] = ..., rows: _Optional[int] = ..., columns: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, _Any]]] = ..., watchers: _Optional[int] = ...) -> None: ...

class OpenTerminalRequest(_message.Message):
    __slots__ = ("sandbox_id", "command", "argv", "session", "env", "cwd", "rows", "columns", "id", "end_when_left", "record")
    class EnvEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    ARGV_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    END_WHEN_LEFT_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    command: str
    argv: _containers.RepeatedScalarFieldContainer[bytes]
    session: str
    env: _containers.ScalarMap[str, str]
    cwd: str
    rows: int
    columns: int
    id: str
    end_when_left: bool
    record: bool
    def __init__(self, sandbox_id: _Optional[str] = ..., command: _Optional[str] = ..., argv: _Optional[_Iterable[bytes]] = ..., session: _Optional[str] = ..., env: _Optional[_Mapping[str, str]] = ..., cwd: _Optional[str] = ..., rows: _Optional[int] = ..., columns: _Optional[int] = ..., id: _Optional[str] = ..., end_when_left: _Optional[bool] = ..., record: _Optional[bool] = ...) -> None: ...

class ListTerminalsRequest(_message.Message):
    __slots__ = ("sandbox_id",)
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    def __init__(self, sandbox_id: _Optional[str] = ...) -> None: ...

class ListTerminalsResponse(_message.Message):
    __slots__ = ("terminals",)
    TERMINALS_FIELD_NUMBER: _ClassVar[int]
    terminals: _containers.RepeatedCompositeFieldContainer[Terminal]
    def __init__(self, terminals: _Optional[_Iterable[_Union[Terminal, _Mapping[str, _Any]]]] = ...) -> None: ...

class TerminalInput(_message.Message):
    __slots__ = ("attach", "data", "size")
    class Attach(_message.Message):
        __slots__ = ("sandbox_id", "terminal_id")
        SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
        TERMINAL_ID_FIELD_NUMBER: _ClassVar[int]
        sandbox_id: str
        terminal_id: str
        def __init__(self, sandbox_id: _Optional[str] = ..., terminal_id: _Optional[str] = ...) -> None: ...
    class Size(_message.Message):
        __slots__ = ("rows", "columns")
        ROWS_FIELD_NUMBER: _ClassVar[int]
        COLUMNS_FIELD_NUMBER: _ClassVar[int]
        rows: int
        columns: int
        def __init__(self, rows: _Optional[int] = ..., columns: _Optional[int] = ...) -> None: ...
    ATTACH_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    attach: TerminalInput.Attach
    data: bytes
    size: TerminalInput.Size
    def __init__(self, attach: _Optional[_Union[TerminalInput.Attach, _Mapping[str, _Any]]] = ..., data: _Optional[bytes] = ..., size: _Optional[_Union[TerminalInput.Size, _Mapping[str, _Any]]] = ...) -> None: ...

class TerminalOutput(_message.Message):
    __slots__ = ("data", "live", "ended")
    DATA_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    live: bool
    ended: _sandbox_pb2.ProcessState
    def __init__(self, data: _Optional[bytes] = ..., live: _Optional[bool] = ..., ended: _Optional[_Union[_sandbox_pb2.ProcessState, _Mapping[str, _Any]]] = ...) -> None: ...

class ResizeTerminalRequest(_message.Message):
    __slots__ = ("sandbox_id", "terminal_id", "rows", "columns")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    TERMINAL_ID_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    terminal_id: str
    rows: int
    columns: int
    def __init__(self, sandbox_id: _Optional[str] = ..., terminal_id: _Optional[str] = ..., rows: _Optional[int] = ..., columns: _Optional[int] = ...) -> None: ...

class CloseTerminalRequest(_message.Message):
    __slots__ = ("sandbox_id", "terminal_id")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    TERMINAL_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    terminal_id: str
    def __init__(self, sandbox_id: _Optional[str] = ..., terminal_id: _Optional[str] = ...) -> None: ...
