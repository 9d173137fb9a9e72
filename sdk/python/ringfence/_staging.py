"""Files on the wire: what is in a directory, and their contents in messages of a good size."""

from __future__ import annotations

import os
from typing import Iterator, List, Sequence

from ._progress import Progress
from ._regular import chunks as chunks_of
from ._regular import open_regular
from ._walk import Entry, Scan
from ._wire import v1
from .exceptions import UploadError

MESSAGE = 1024 * 1024
"""How much of the files goes into one message."""


def manifest(found: Scan) -> List[v1.ManifestEntry]:
    return [_listed(entry) for entry in found.entries]


def _listed(entry: Entry) -> v1.ManifestEntry:
    if entry.kind == "symlink":
        return v1.ManifestEntry(path=entry.path, symlink_target=entry.target or "")
    if entry.kind == "directory":
        return v1.ManifestEntry(path=entry.path, mode=entry.mode, is_dir=True)
    return v1.ManifestEntry(
        path=entry.path, mode=entry.mode, size=entry.size, blake3=entry.blake3 or "")


def shares(entries: Sequence[Entry], most: int) -> List[List[Entry]]:
    """The files dealt out by size, so that all streams end at about the same time."""
    dealt: List[List[Entry]] = [[] for _ in range(most)]
    sizes = [0] * most
    for entry in sorted(entries, key=lambda entry: -entry.size):
        least = sizes.index(min(sizes))
        dealt[least].append(entry)
        # A file costs something even if it is empty.
        sizes[least] += entry.size + 4096
    return [share for share in dealt if share]


def chunks(
    codebase_id: str, root: str, entries: Sequence[Entry], progress: Progress
) -> Iterator[v1.StageChunk]:
    """The contents of files, one after the other; many small ones share a message."""
    chunk, filled = v1.StageChunk(codebase_id=codebase_id), 0
    for entry in entries:
        for data, end in _pieces(root, entry, codebase_id):
            chunk.pieces.add(data=data, end=end)
            filled += len(data) + 16
            if filled >= MESSAGE:
                yield chunk
                progress.sent(filled)
                chunk, filled = v1.StageChunk(), 0
    if chunk.pieces or chunk.codebase_id:
        yield chunk
        progress.sent(filled)


def _pieces(root: str, entry: Entry, codebase_id: str) -> Iterator[tuple[bytes, bool]]:
    """What a file had when it was looked at, and no more: one that grows has no end. What it has
    instead now is noticed by its digest."""
    sent = 0
    try:
        with open_regular(os.fsencode(os.path.join(root, entry.path))) as (descriptor, _):
            for data in chunks_of(descriptor, entry.size, MESSAGE):
                sent += len(data)
                yield data, sent >= entry.size
    except OSError as error:
        why = error.strerror or error
        raise UploadError(
            entry.path, codebase_id, message=f"cannot read {entry.path}: {why}") from None
    if sent < entry.size or not entry.size:
        yield b"", True
