# Made from _async/_codebases.py by generate.py.
"""Stored files: codebases, and getting directories into them."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Iterator, List, Optional, Sequence

from .. import _convert as convert
from .. import _local as local
from .._message import message
from .._types import Codebase, FileInfo, UploadResult
from .._walk import MAX_FILE_SIZE, Scan, scan, warn_skipped
from .._wire import methods, v1
from ._connection import Connection
from ._io import all_or_nothing, in_thread
from ._push import Push

CHUNK = 256 * 1024


class Codebases(Connection):
    def create_codebase(
        self,
        name: str,
        owner_id: str,
        *,
        local_path: Optional[str] = None,
        mask: Sequence[str] = (),
        default_mask: Sequence[str] = (),
        ignore_files: Sequence[str] = (),
        fleeting: bool = False,
    ) -> Codebase:
        """A new codebase, without files; or one that is a directory of the server's host, used where
        it is (`local_path`, on the Unix socket of your own server only).

        Args:
            mask: gitignore-style patterns of what is left out of that directory.
            default_mask: the same, but a `.sandboxignore` and `mask` can bring something back.
            ignore_files: names of files in it that list more of them (`.gitignore`).
            fleeting: it goes with the last sandbox that stands on it.
        """
        channel = self._open()
        request = message(
            v1.CreateCodebaseRequest,
            name=name, owner_id=owner_id, local_path=local_path or "", mask=mask,
            default_mask=default_mask, ignore_files=ignore_files, fleeting=fleeting,
            request_id=uuid.uuid4().hex)
        made = all_or_nothing(
            partial(channel.unary, methods.CreateCodebase, request),
            lambda made: self.delete_codebase(made.id))
        return convert.codebase_in(made)

    def get_codebase(self, codebase_id: str) -> Codebase:
        """What is on record about a codebase."""
        channel = self._open()
        request = message(v1.GetCodebaseRequest, codebase_id=codebase_id)
        return convert.codebase_in(channel.unary(methods.GetCodebase, request))

    def list_codebases(self, owner_id: Optional[str] = None) -> List[Codebase]:
        """All of them, or those of an owner."""
        channel = self._open()
        request = message(v1.ListCodebasesRequest, owner_id=owner_id or "")
        answer = channel.unary(methods.ListCodebases, request)
        return [convert.codebase_in(codebase) for codebase in answer.codebases]

    def delete_codebase(self, codebase_id: str) -> None:
        """Removes a codebase that no sandbox or snapshot stands on."""
        channel = self._open()
        request = message(v1.DeleteCodebaseRequest, codebase_id=codebase_id)
        channel.unary(methods.DeleteCodebase, request)

    def upload_file(
        self,
        codebase_id: str,
        file_path: str,
        content: bytes,
        chunk_size: int = CHUNK,
        *,
        mode: Optional[int] = None,
    ) -> UploadResult:
        """Stores one file. It is there as a whole, or as it was before."""
        channel = self._open()
        about = message(v1.DownloadFileRequest, codebase_id=codebase_id, file_path=file_path)
        metadata = message(
            v1.UploadChunk.Metadata,
            codebase_id=codebase_id, file_path=file_path, total_size=len(content), mode=mode)
        answer = channel.send(
            methods.UploadFiles, _chunks(metadata, content, chunk_size), about)
        return UploadResult(
            answer.codebase_id, answer.file_path, answer.size, answer.checksum, answer.blake3)

    def upload_directory(
        self,
        codebase_id: str,
        path: str,
        *,
        ignore_patterns: Optional[Sequence[str]] = None,
        default_ignores: bool = True,
        max_file_size: Optional[int] = MAX_FILE_SIZE,
        progress: Optional[bool] = None,
    ) -> Codebase:
        """Makes a directory the new version of a codebase, sending only what the server lacks.

        >>> client.upload_directory(codebase.id, "./project")  # doctest: +SKIP
        """
        found = in_thread(
            _scanned, local.existing_directory(path), ignore_patterns or (), default_ignores,
            max_file_size)
        return self._push(codebase_id, found, progress)

    def _push(
        self, codebase_id: str, found: Scan, progress: Optional[bool] = None
    ) -> Codebase:
        push = Push(self._open(), codebase_id, found, progress)
        return convert.codebase_in(push.all())

    def download_file(self, codebase_id: str, file_path: str) -> bytes:
        """The contents of a stored file."""
        channel = self._open()
        request = message(v1.DownloadFileRequest, codebase_id=codebase_id, file_path=file_path)
        return b"".join(
            [chunk.data for chunk in channel.whole(methods.DownloadFile, request)])

    def list_files(
        self, codebase_id: str, path: str = "", recursive: bool = False
    ) -> List[FileInfo]:
        """What is in a directory, or all files below it."""
        channel = self._open()
        request = message(
            v1.ListFilesRequest, codebase_id=codebase_id, path=path, recursive=recursive)
        answer = channel.unary(methods.ListFiles, request)
        return [convert.file_in(file) for file in answer.files]


def _chunks(
    metadata: v1.UploadChunk.Metadata, content: bytes, size: int
) -> Iterator[v1.UploadChunk]:
    yield v1.UploadChunk(metadata=metadata)
    for start in range(0, len(content), size):
        yield v1.UploadChunk(data=content[start:start + size])


def _scanned(
    path: str, ignore_patterns: Sequence[str], default_ignores: bool, max_file_size: Optional[int]
) -> Scan:
    found = scan(path, ignore_patterns=ignore_patterns, default_ignores=default_ignores,
                 max_file_size=max_file_size)
    warn_skipped(found)
    return found
