# Made from _async/_push.py by generate.py.
"""A directory on its way to a codebase: what is in it first, then what of that the server lacks."""

from __future__ import annotations

from functools import partial
from typing import Dict, List, Optional

from .. import _staging as staging
from .._progress import Progress
from .._walk import Entry, Scan
from .._wire import methods, v1
from ..exceptions import CodebaseNotFoundError, SandboxError, UploadError
from ._io import Channel, at_once

STREAMS = 4
"""Under way at once."""


class Push:
    """One directory, one codebase."""

    def __init__(
        self, channel: Channel, codebase_id: str, found: Scan, progress: Optional[bool]
    ) -> None:
        self._channel = channel
        self._codebase_id = codebase_id
        self._found = found
        self._manifest = staging.manifest(found)
        self._progress = progress
        self.files_sent = 0

    def all(self) -> v1.Codebase:
        try:
            return self._stored()
        except (UploadError, CodebaseNotFoundError):
            raise
        except SandboxError as error:
            raise UploadError(
                self._found.root, self._codebase_id, str(error), code=error.code,
                grpc_code=error.grpc_code) from error

    def _stored(self) -> v1.Codebase:
        self._send_missing()
        commit = v1.CommitUploadRequest(codebase_id=self._codebase_id, entries=self._manifest)
        try:
            return self._channel.unary(methods.CommitUpload, commit)
        except SandboxError as error:
            if error.code != "INVALID_ARGUMENT":
                raise
            # What the server thought it had was not what it was; it knows better now.
            if not self._send_missing():
                raise
            return self._channel.unary(methods.CommitUpload, commit)

    def _send_missing(self) -> int:
        request = v1.NegotiateUploadRequest(codebase_id=self._codebase_id, entries=self._manifest)
        answer = self._channel.unary(methods.NegotiateUpload, request)
        by_digest: Dict[str, Entry] = {
            entry.blake3: entry for entry in self._found.entries if entry.blake3}
        missing = [by_digest[digest] for digest in answer.missing if digest in by_digest]
        with Progress(missing, self._progress) as progress:
            shares = staging.shares(missing, STREAMS)
            at_once(STREAMS, [partial(self._send, share, progress) for share in shares])
        self.files_sent += len(missing)
        return len(missing)

    def _send(self, share: List[Entry], progress: Progress) -> None:
        chunks = staging.chunks(self._codebase_id, self._found.root, share, progress)
        about = v1.GetCodebaseRequest(codebase_id=self._codebase_id)
        answer = self._channel.send(methods.StageFiles, chunks, about)
        for entry, digest in zip(share, answer.blake3):
            if digest != entry.blake3:
                raise UploadError(
                    entry.path, self._codebase_id,
                    message=f"{entry.path} was changed while it was sent; try again")
