from typing import Any as _Any
import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from ringfence._wire import codebase_pb2 as _codebase_pb2
from ringfence._wire import common_pb2 as _common_pb2
from ringfence._wire import sandbox_pb2 as _sandbox_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class View(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VIEW_UNSPECIFIED: _ClassVar[View]
    VIEW_OWNER: _ClassVar[View]
    VIEW_AGENT: _ClassVar[View]
VIEW_UNSPECIFIED: View
VIEW_OWNER: View
VIEW_AGENT: View

class FileRequest(_message.Message):
    __slots__ = ("sandbox_id", "path", "view")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    path: str
    view: View
    def __init__(self, sandbox_id: _Optional[str] = ..., path: _Optional[str] = ..., view: _Optional[_Union[View, str]] = ...) -> None: ...

class ReadFileRequest(_message.Message):
    __slots__ = ("sandbox_id", "path", "view", "offset", "length")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    path: str
    view: View
    offset: int
    length: int
    def __init__(self, sandbox_id: _Optional[str] = ..., path: _Optional[str] = ..., view: _Optional[_Union[View, str]] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...

class WriteFileChunk(_message.Message):
    __slots__ = ("begin", "data")
    class Begin(_message.Message):
        __slots__ = ("sandbox_id", "path", "view", "mode", "parents")
        SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
        PATH_FIELD_NUMBER: _ClassVar[int]
        VIEW_FIELD_NUMBER: _ClassVar[int]
        MODE_FIELD_NUMBER: _ClassVar[int]
        PARENTS_FIELD_NUMBER: _ClassVar[int]
        sandbox_id: str
        path: str
        view: View
        mode: int
        parents: bool
        def __init__(self, sandbox_id: _Optional[str] = ..., path: _Optional[str] = ..., view: _Optional[_Union[View, str]] = ..., mode: _Optional[int] = ..., parents: _Optional[bool] = ...) -> None: ...
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    begin: WriteFileChunk.Begin
    data: bytes
    def __init__(self, begin: _Optional[_Union[WriteFileChunk.Begin, _Mapping[str, _Any]]] = ..., data: _Optional[bytes] = ...) -> None: ...

class ListDirectoryRequest(_message.Message):
    __slots__ = ("sandbox_id", "path", "view", "recursive")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    path: str
    view: View
    recursive: bool
    def __init__(self, sandbox_id: _Optional[str] = ..., path: _Optional[str] = ..., view: _Optional[_Union[View, str]] = ..., recursive: _Optional[bool] = ...) -> None: ...

class MakeSymlinkRequest(_message.Message):
    __slots__ = ("sandbox_id", "path", "target", "view", "parents")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    PARENTS_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    path: str
    target: str
    view: View
    parents: bool
    def __init__(self, sandbox_id: _Optional[str] = ..., path: _Optional[str] = ..., target: _Optional[str] = ..., view: _Optional[_Union[View, str]] = ..., parents: _Optional[bool] = ...) -> None: ...

class RemoveFileRequest(_message.Message):
    __slots__ = ("sandbox_id", "path", "view", "recursive")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    path: str
    view: View
    recursive: bool
    def __init__(self, sandbox_id: _Optional[str] = ..., path: _Optional[str] = ..., view: _Optional[_Union[View, str]] = ..., recursive: _Optional[bool] = ...) -> None: ...

class RenameFileRequest(_message.Message):
    __slots__ = ("sandbox_id", "to", "view")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    to: str
    view: View
    def __init__(self, sandbox_id: _Optional[str] = ..., to: _Optional[str] = ..., view: _Optional[_Union[View, str]] = ..., **kwargs: _Any) -> None: ...

class ChangesRequest(_message.Message):
    __slots__ = ("sandbox_id",)
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    def __init__(self, sandbox_id: _Optional[str] = ...) -> None: ...

class ChangesResponse(_message.Message):
    __slots__ = ("changes",)
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[_sandbox_pb2.FileChange]
    def __init__(self, changes: _Optional[_Iterable[_Union[_sandbox_pb2.FileChange, _Mapping[str, _Any]]]] = ...) -> None: ...

class DiffResponse(_message.Message):
    __slots__ = ("diff",)
    DIFF_FIELD_NUMBER: _ClassVar[int]
    diff: bytes
    def __init__(self, diff: _Optional[bytes] = ...) -> None: ...

class ApplyRequest(_message.Message):
    __slots__ = ("sandbox_id", "force", "dry_run")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    force: bool
    dry_run: bool
    def __init__(self, sandbox_id: _Optional[str] = ..., force: _Optional[bool] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class ApplyResponse(_message.Message):
    __slots__ = ("applied", "conflicts", "refused", "written")
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    CONFLICTS_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_FIELD_NUMBER: _ClassVar[int]
    applied: _containers.RepeatedCompositeFieldContainer[_sandbox_pb2.FileChange]
    conflicts: _containers.RepeatedScalarFieldContainer[str]
    refused: _containers.RepeatedCompositeFieldContainer[_sandbox_pb2.FileChange]
    written: bool
    def __init__(self, applied: _Optional[_Iterable[_Union[_sandbox_pb2.FileChange, _Mapping[str, _Any]]]] = ..., conflicts: _Optional[_Iterable[str]] = ..., refused: _Optional[_Iterable[_Union[_sandbox_pb2.FileChange, _Mapping[str, _Any]]]] = ..., written: _Optional[bool] = ...) -> None: ...

class Snapshot(_message.Message):
    __slots__ = ("id", "sandbox_id", "codebase_id", "name", "created_at")
    ID_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    CODEBASE_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    id: str
    sandbox_id: str
    codebase_id: str
    name: str
    created_at: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., sandbox_id: _Optional[str] = ..., codebase_id: _Optional[str] = ..., name: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, _Any]]] = ...) -> None: ...

class CreateSnapshotRequest(_message.Message):
    __slots__ = ("sandbox_id", "name")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    name: str
    def __init__(self, sandbox_id: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class ListSnapshotsRequest(_message.Message):
    __slots__ = ("sandbox_id", "codebase_id")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    CODEBASE_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    codebase_id: str
    def __init__(self, sandbox_id: _Optional[str] = ..., codebase_id: _Optional[str] = ...) -> None: ...

class ListSnapshotsResponse(_message.Message):
    __slots__ = ("snapshots",)
    SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    snapshots: _containers.RepeatedCompositeFieldContainer[Snapshot]
    def __init__(self, snapshots: _Optional[_Iterable[_Union[Snapshot, _Mapping[str, _Any]]]] = ...) -> None: ...

class DeleteSnapshotRequest(_message.Message):
    __slots__ = ("snapshot_id",)
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    snapshot_id: str
    def __init__(self, snapshot_id: _Optional[str] = ...) -> None: ...

class RestoreSnapshotRequest(_message.Message):
    __slots__ = ("sandbox_id", "snapshot_id")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    snapshot_id: str
    def __init__(self, sandbox_id: _Optional[str] = ..., snapshot_id: _Optional[str] = ...) -> None: ...

class ForkSandboxRequest(_message.Message):
    __slots__ = ("sandbox_id", "labels", "request_id")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    labels: _containers.ScalarMap[str, str]
    request_id: str
    def __init__(self, sandbox_id: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., request_id: _Optional[str] = ...) -> None: ...

class GetPolicyRequest(_message.Message):
    __slots__ = ("sandbox_id",)
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    def __init__(self, sandbox_id: _Optional[str] = ...) -> None: ...

class SetPolicyRequest(_message.Message):
    __slots__ = ("sandbox_id", "preset", "permissions")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PRESET_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    preset: str
    permissions: _containers.RepeatedCompositeFieldContainer[_common_pb2.PermissionRule]
    def __init__(self, sandbox_id: _Optional[str] = ..., preset: _Optional[str] = ..., permissions: _Optional[_Iterable[_Union[_common_pb2.PermissionRule, _Mapping[str, _Any]]]] = ...) -> None: ...

class PolicyResponse(_message.Message):
    __slots__ = ("permissions",)
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    permissions: _containers.RepeatedCompositeFieldContainer[_common_pb2.PermissionRule]
    def __init__(self, permissions: _Optional[_Iterable[_Union[_common_pb2.PermissionRule, _Mapping[str, _Any]]]] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("sandbox_id", "paths")
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PATHS_FIELD_NUMBER: _ClassVar[int]
    sandbox_id: str
    paths: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, sandbox_id: _Optional[str] = ..., paths: _Optional[_Iterable[str]] = ...) -> None: ...

class ExplainResponse(_message.Message):
    __slots__ = ("explanations",)
    EXPLANATIONS_FIELD_NUMBER: _ClassVar[int]
    explanations: _containers.RepeatedCompositeFieldContainer[Explanation]
    def __init__(self, explanations: _Optional[_Iterable[_Union[Explanation, _Mapping[str, _Any]]]] = ...) -> None: ...

class Explanation(_message.Message):
    __slots__ = ("path", "permission", "rule", "reason")
    PATH_FIELD_NUMBER: _ClassVar[int]
    PERMISSION_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    path: str
    permission: _common_pb2.Permission
    rule: _common_pb2.PermissionRule
    reason: str
    def __init__(self, path: _Optional[str] = ..., permission: _Optional[_Union[_common_pb2.Permission, str]] = ..., rule: _Optional[_Union[_common_pb2.PermissionRule, _Mapping[str, _Any]]] = ..., reason: _Optional[str] = ...) -> None: ...
