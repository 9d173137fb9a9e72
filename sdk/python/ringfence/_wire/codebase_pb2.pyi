from typing import Any as _Any
import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from ringfence._wire import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FileKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FILE_KIND_UNSPECIFIED: _ClassVar[FileKind]
    FILE_KIND_FILE: _ClassVar[FileKind]
    FILE_KIND_DIRECTORY: _ClassVar[FileKind]
    FILE_KIND_SYMLINK: _ClassVar[FileKind]
    FILE_KIND_OTHER: _ClassVar[FileKind]
FILE_KIND_UNSPECIFIED: FileKind
FILE_KIND_FILE: FileKind
FILE_KIND_DIRECTORY: FileKind
FILE_KIND_SYMLINK: FileKind
FILE_KIND_OTHER: FileKind

class Codebase(_message.Message):
    __slots__ = ("id", "name", "owner_id", "size", "file_count", "created_at", "updated_at", "local_path", "version", "fleeting")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OWNER_ID_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    FILE_COUNT_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    LOCAL_PATH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FLEETING_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    owner_id: str
    size: int
    file_count: int
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    local_path: str
    version: int
    fleeting: bool
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., owner_id: _Optional[str] = ..., size: _Optional[int] = ..., file_count: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, _Any]]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, _Any]]] = ..., local_path: _Optional[str] = ..., version: _Optional[int] = ..., fleeting: _Optional[bool] = ...) -> None: ...

class CreateCodebaseRequest(_message.Message):
    __slots__ = ("name", "owner_id", "local_path", "mask", "ignore_files", "request_id", "fleeting", "default_mask")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OWNER_ID_FIELD_NUMBER: _ClassVar[int]
    LOCAL_PATH_FIELD_NUMBER: _ClassVar[int]
    MASK_FIELD_NUMBER: _ClassVar[int]
    IGNORE_FILES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    FLEETING_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_MASK_FIELD_NUMBER: _ClassVar[int]
    name: str
    owner_id: str
    local_path: str
    mask: _containers.RepeatedScalarFieldContainer[str]
    ignore_files: _containers.RepeatedScalarFieldContainer[str]
    request_id: str
    fleeting: bool
    default_mask: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., owner_id: _Optional[str] = ..., local_path: _Optional[str] = ..., mask: _Optional[_Iterable[str]] = ..., ignore_files: _Optional[_Iterable[str]] = ..., request_id: _Optional[str] = ..., fleeting: _Optional[bool] = ..., default_mask: _Optional[_Iterable[str]] = ...) -> None: ...

class GetCodebaseRequest(_message.Message):
    __slots__ = ("codebase_id",)
    CODEBASE_ID_FIELD_NUMBER: _ClassVar[int]
    codebase_id: str
    def __init__(self, codebase_id: _Optional[str] = ...) -> None: ...

class DeleteCodebaseRequest(_message.Message):
    __slots__ = ("codebase_id",)
    CODEBASE_ID_FIELD_NUMBER: _ClassVar[int]
    codebase_id: str
    def __init__(self, codebase_id: _Optional[str] = ...) -> None: ...

class ListCodebasesRequest(_message.Message):
    __slots__ = ("owner_id", "page_size", "page_token")
    OWNER_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    owner_id: str
    page_size: int
    page_token: str
    def __init__(self, owner_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListCodebasesResponse(_message.Message):
    __slots__ = ("codebases", "next_page_token")
    CODEBASES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    codebases: _containers.RepeatedCompositeFieldContainer[Codebase]
    next_page_token: str
    def __init__(self, codebases: _Optional[_Iterable[_Union[Codebase, _Mapping[str, _Any]]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UploadChunk(_message.Message):
    __slots__ = ("metadata", "data")
    class Metadata(_message.Message):
        __slots__ = ("codebase_id", "file_path", "total_size", "mode", "request_id", "staged")
        CODEBASE_ID_FIELD_NUMBER: _ClassVar[int]
        FILE_PATH_FIELD_NUMBER: _ClassVar[int]
        TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
        MODE_FIELD_NUMBER: _ClassVar[int]
        REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
        STAGED_FIELD_NUMBER: _ClassVar[int]
        codebase_id: str
        file_path: str
        total_size: int
        mode: int
        request_id: str
        staged: bool
        def __init__(self, codebase_id: _Optional[str] = ..., file_path: _Optional[str] = ..., total_size: _Optional[int] = ..., mode: _Optional[int] = ..., request_id: _Optional[str] = ..., staged: _Optional[bool] = ...) -> None: ...
    METADATA_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    metadata: UploadChunk.Metadata
    data: bytes
    def __init__(self, metadata: _Optional[_Union[UploadChunk.Metadata, _Mapping[str, _Any]]] = ..., data: _Optional[bytes] = ...) -> None: ...

class UploadResult(_message.Message):
    __slots__ = ("codebase_id", "file_path", "size", "checksum", "blake3")
    CODEBASE_ID_FIELD_NUMBER: _ClassVar[int]
    FILE_PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    BLAKE3_FIELD_NUMBER: _ClassVar[int]
    codebase_id: str
    file_path: str
    size: int
    checksum: str
    blake3: str
    def __init__(self, codebase_id: _Optional[str] = ..., file_path: _Optional[str] = ..., size: _Optional[int] = ..., checksum: _Optional[str] = ..., blake3: _Optional[str] = ...) -> None: ...

class DownloadFileRequest(_message.Message):
    __slots__ = ("codebase_id", "file_path", "offset", "length")
    CODEBASE_ID_FIELD_NUMBER: _ClassVar[int]
    FILE_PATH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    codebase_id: str
    file_path: str
    offset: int
    length: int
    def __init__(self, codebase_id: _Optional[str] = ..., file_path: _Optional[str] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...

class FileChunk(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class ListFilesRequest(_message.Message):
    __slots__ = ("codebase_id", "path", "recursive")
    CODEBASE_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    codebase_id: str
    path: str
    recursive: bool
    def __init__(self, codebase_id: _Optional[str] = ..., path: _Optional[str] = ..., recursive: _Optional[bool] = ...) -> None: ...

class ListFilesResponse(_message.Message):
    __slots__ = ("files",)
    FILES_FIELD_NUMBER: _ClassVar[int]
    files: _containers.RepeatedCompositeFieldContainer[FileInfo]
    def __init__(self, files: _Optional[_Iterable[_Union[FileInfo, _Mapping[str, _Any]]]] = ...) -> None: ...

class FileInfo(_message.Message):
    __slots__ = ("path", "name", "is_dir", "size", "modified_at", "full_path", "mode", "kind", "target", "raw_path")
    PATH_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    IS_DIR_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    MODIFIED_AT_FIELD_NUMBER: _ClassVar[int]
    FULL_PATH_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    RAW_PATH_FIELD_NUMBER: _ClassVar[int]
    path: str
    name: str
    is_dir: bool
    size: int
    modified_at: _timestamp_pb2.Timestamp
    full_path: str
    mode: int
    kind: FileKind
    target: str
    raw_path: bytes
    def __init__(self, path: _Optional[str] = ..., name: _Optional[str] = ..., is_dir: _Optional[bool] = ..., size: _Optional[int] = ..., modified_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping[str, _Any]]] = ..., full_path: _Optional[str] = ..., mode: _Optional[int] = ..., kind: _Optional[_Union[FileKind, str]] = ..., target: _Optional[str] = ..., raw_path: _Optional[bytes] = ...) -> None: ...

class ManifestEntry(_message.Message):
    __slots__ = ("path", "mode", "size", "blake3", "symlink_target", "is_dir")
    PATH_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    BLAKE3_FIELD_NUMBER: _ClassVar[int]
    SYMLINK_TARGET_FIELD_NUMBER: _ClassVar[int]
    IS_DIR_FIELD_NUMBER: _ClassVar[int]
    path: str
    mode: int
    size: int
    blake3: str
    symlink_target: str
    is_dir: bool
    def __init__(self, path: _Optional[str] = ..., mode: _Optional[int] = ..., size: _Optional[int] = ..., blake3: _Optional[str] = ..., symlink_target: _Optional[str] = ..., is_dir: _Optional[bool] = ...) -> None: ...

class NegotiateUploadRequest(_message.Message):
    __slots__ = ("codebase_id", "entries")
    CODEBASE_ID_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    codebase_id: str
    entries: _containers.RepeatedCompositeFieldContainer[ManifestEntry]
    def __init__(self, codebase_id: _Optional[str] = ..., entries: _Optional[_Iterable[_Union[ManifestEntry, _Mapping[str, _Any]]]] = ...) -> None: ...

class NegotiateUploadResponse(_message.Message):
    __slots__ = ("missing",)
    MISSING_FIELD_NUMBER: _ClassVar[int]
    missing: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, missing: _Optional[_Iterable[str]] = ...) -> None: ...

class StageChunk(_message.Message):
    __slots__ = ("codebase_id", "pieces")
    class Piece(_message.Message):
        __slots__ = ("data", "end")
        DATA_FIELD_NUMBER: _ClassVar[int]
        END_FIELD_NUMBER: _ClassVar[int]
        data: bytes
        end: bool
        def __init__(self, data: _Optional[bytes] = ..., end: _Optional[bool] = ...) -> None: ...
    CODEBASE_ID_FIELD_NUMBER: _ClassVar[int]
    PIECES_FIELD_NUMBER: _ClassVar[int]
    codebase_id: str
    pieces: _containers.RepeatedCompositeFieldContainer[StageChunk.Piece]
    def __init__(self, codebase_id: _Optional[str] = ..., pieces: _Optional[_Iterable[_Union[StageChunk.Piece, _Mapping[str, _Any]]]] = ...) -> None: ...

class StageResult(_message.Message):
    __slots__ = ("blake3", "bytes")
    BLAKE3_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    blake3: _containers.RepeatedScalarFieldContainer[str]
    bytes: int
    def __init__(self, blake3: _Optional[_Iterable[str]] = ..., bytes: _Optional[int] = ...) -> None: ...

class CommitUploadRequest(_message.Message):
    __slots__ = ("codebase_id", "entries", "request_id")
    CODEBASE_ID_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    codebase_id: str
    entries: _containers.RepeatedCompositeFieldContainer[ManifestEntry]
    request_id: str
    def __init__(self, codebase_id: _Optional[str] = ..., entries: _Optional[_Iterable[_Union[ManifestEntry, _Mapping[str, _Any]]]] = ..., request_id: _Optional[str] = ...) -> None: ...
