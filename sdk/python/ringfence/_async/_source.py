"""A local directory as the codebase of a sandbox."""

from __future__ import annotations

from functools import partial
from typing import Optional, Sequence, Tuple

from .._ignore import DEFAULT_IGNORES, IGNORE_FILES, checked
from .._types import Codebase
from .._walk import scan, warn_skipped
from ..exceptions import InvalidConfigurationError
from ._client import AsyncSandboxClient
from ._io import in_thread


class AsyncSource:
    """One directory. Where the server may use it in place nothing is sent."""

    def __init__(
        self,
        client: AsyncSandboxClient,
        root: str,
        ignore_patterns: Sequence[str],
        default_ignores: bool,
        max_file_size: Optional[int],
    ) -> None:
        self._client = client
        self._root = root
        self._patterns = checked(ignore_patterns)
        self._defaults = default_ignores
        self._max_file_size = max_file_size
        self._made: Optional[Codebase] = None

    async def stored(
        self, name: str, owner_id: str, upload: Optional[bool], progress: Optional[bool]
    ) -> Codebase:
        local = (await self._client.info()).local
        if upload is False and not local:
            raise _far()
        return await (self._in_place(name, owner_id) if local and not upload
                      else self._uploaded(name, owner_id, progress))

    async def _in_place(self, name: str, owner_id: str) -> Codebase:
        self._made = await self._client.create_codebase(
            name, owner_id, local_path=self._root, mask=self._patterns,
            default_mask=DEFAULT_IGNORES if self._defaults else (), ignore_files=IGNORE_FILES,
            fleeting=True)
        return self._made

    async def _uploaded(
        self, name: str, owner_id: str, progress: Optional[bool]
    ) -> Codebase:
        found = await in_thread(
            partial(scan, self._root, ignore_patterns=self._patterns,
                    default_ignores=self._defaults, max_file_size=self._max_file_size))
        warn_skipped(found)
        self._made = await self._client.create_codebase(name, owner_id, fleeting=True)
        return await self._client._push(self._made.id, found, progress)

    def count(self) -> Tuple[int, int]:
        """How many files a sandbox has of it, and how large they are together. The server does not
        look at a directory that it uses in place before something in it is asked for."""
        found = scan(self._root, ignore_patterns=self._patterns, default_ignores=self._defaults,
                     max_file_size=None, digests=False)
        sizes = [entry.size for entry in found.entries if entry.kind == "file"]
        links = sum(entry.kind == "symlink" for entry in found.entries)
        # As the server counts those that it stores.
        return len(sizes) + links, sum(sizes)

    async def take_back(self) -> None:
        if self._made is not None:
            await self._client.delete_codebase(self._made.id)


def _far() -> InvalidConfigurationError:
    return InvalidConfigurationError(
        "upload=False needs a server that may use the directory where it is: an embedded one, or "
        "your own over its Unix socket")
