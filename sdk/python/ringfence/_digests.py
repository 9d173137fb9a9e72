"""BLAKE3 digests of many files, read by several threads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Union

from blake3 import blake3

from ringfence._digest_cache import DigestCache
from ringfence._regular import chunks, open_regular

# Fewer files are read sooner than threads are started.
_WORTH_THREADS = 64
_THREADS = min(8, 2 * (os.cpu_count() or 1))
_FILES_AT_ONCE = 32


@dataclass(frozen=True)
class Digested:
    """The digest and size of what was read, which may be newer than what the scan saw."""

    digest: str
    size: int
    status: os.stat_result
    """From before it was read: if it changes meanwhile, no file will ever look like this again."""


Outcome = Union[Digested, OSError]


def digest_files(
    files: Sequence[tuple[bytes, os.stat_result]], cache: DigestCache
) -> list[Outcome]:
    """An outcome for each path and its status, from the cache where it is known."""
    known = [cache.find(status) for _, status in files]
    unknown = [path for (path, _), digest in zip(files, known) if digest is None]
    read = _read_all(unknown)
    outcomes = []
    for (_, status), digest in zip(files, known):
        found = Digested(digest, status.st_size, status) if digest else next(read)
        outcomes.append(found)
        if digest is None and isinstance(found, Digested):
            cache.add(found.status, found.digest)
    return outcomes


def digest_file(path: bytes) -> Digested:
    """Reads a regular file, as far as it went when it was opened; raises `OSError`."""
    with open_regular(path) as (descriptor, status):
        hasher, size = blake3(), 0
        for chunk in chunks(descriptor, status.st_size):
            hasher.update(chunk)
            size += len(chunk)
    return Digested(hasher.hexdigest(), size, status)


def _read_all(paths: Sequence[bytes]) -> Iterator[Outcome]:
    if len(paths) < _WORTH_THREADS:
        return map(_outcome, paths)
    slices = [paths[at : at + _FILES_AT_ONCE] for at in range(0, len(paths), _FILES_AT_ONCE)]
    with ThreadPoolExecutor(_THREADS) as pool:
        return chain.from_iterable(pool.map(_outcomes, slices))


def _outcomes(paths: Sequence[bytes]) -> list[Outcome]:
    return [_outcome(path) for path in paths]


def _outcome(path: bytes) -> Outcome:
    try:
        return digest_file(path)
    except OSError as error:
        return error
