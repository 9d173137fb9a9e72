"""The files of a sandbox, as they are now."""

from __future__ import annotations

import os
from functools import partial
from typing import Callable, Coroutine, Any, List, Optional, Sequence, Union

from .. import _local as local
from .._message import encoded
from .._types import FileInfo
from .._walk import MAX_FILE_SIZE, Entry, scan, warn_skipped
from ..exceptions import FileNotFoundError
from ._handle import AsyncHandle
from ._io import at_once, in_thread

_AT_ONCE = 8


class AsyncFiles(AsyncHandle):
    """Paths are below the workspace: `/workspace/x`, `/x` and `x` are the same file. You see and may
    do everything; `view="agent"` shows and allows what the policy lets code inside see and do."""

    async def read_file(self, path: str, *, view: str = "owner") -> str:
        """A file as text, which must be UTF-8.

        Raises:
            FileNotFoundError: there is none, or the policy hides it.
            PermissionDeniedError: the policy refuses it.
        """
        return (await self.read_file_bytes(path, view=view)).decode()

    async def read_file_bytes(self, path: str, *, view: str = "owner") -> bytes:
        """A file as bytes."""
        return await self._client.read_sandbox_file(self.id, path, view=view)

    async def write_file(
        self,
        path: str,
        content: Union[str, bytes],
        *,
        mode: Optional[int] = None,
        view: str = "owner",
    ) -> None:
        """Replaces a file, or makes it and the directories above it."""
        await self._client.write_sandbox_file(
            self.id, path, encoded(content, "content"), mode=mode, view=view)

    async def list_files(
        self, path: str = "/", recursive: bool = False, *, view: str = "owner"
    ) -> List[str]:
        """What is in a directory, directories with a `/` at their end; or, recursively, all files
        below it. Relative to the directory, sorted."""
        found = await self._client.list_sandbox_files(self.id, path, recursive, view=view)
        return [file.path + ("/" if file.is_dir and not recursive else "") for file in found]

    async def stat(self, path: str, *, view: str = "owner") -> FileInfo:
        """What is there: a file, a directory, or a symbolic link itself."""
        return await self._client.stat_sandbox_file(self.id, path, view=view)

    async def exists(self, path: str, *, view: str = "owner") -> bool:
        """Whether anything is there."""
        try:
            await self.stat(path, view=view)
        except FileNotFoundError:
            return False
        return True

    async def mkdir(self, path: str, *, view: str = "owner") -> None:
        """Makes a directory, and those above it."""
        await self._client.make_sandbox_directory(self.id, path, view=view)

    async def symlink(self, path: str, target: str, *, view: str = "owner") -> None:
        """Makes a symbolic link to `target`."""
        await self._client.make_sandbox_symlink(self.id, path, target, view=view)

    async def remove(self, path: str, recursive: bool = False, *, view: str = "owner") -> None:
        """Removes a file or an empty directory; with `recursive`, everything below it too."""
        await self._client.remove_sandbox_file(self.id, path, recursive, view=view)

    async def rename(self, source: str, target: str, *, view: str = "owner") -> None:
        """Gives a file or a directory another name."""
        await self._client.rename_sandbox_file(self.id, source, target, view=view)

    async def upload_dir(
        self,
        source: Union[str, "os.PathLike[str]"],
        path: str = "/",
        *,
        ignore_patterns: Optional[Sequence[str]] = None,
        default_ignores: bool = True,
        max_file_size: Optional[int] = MAX_FILE_SIZE,
        view: str = "owner",
    ) -> int:
        """Writes a directory of this machine into the workspace, on top of what is there; how many
        files. What is left out is what `from_local` leaves out."""
        root = local.existing_directory(source)
        found = await in_thread(
            partial(scan, root, ignore_patterns=ignore_patterns or (),
                    default_ignores=default_ignores, max_file_size=max_file_size, digests=False))
        warn_skipped(found)
        for entry in found.entries:
            if entry.kind == "directory":
                await self.mkdir(local.joined(path, entry.path), view=view)
        others = [entry for entry in found.entries if entry.kind != "directory"]
        await at_once(
            _AT_ONCE, [partial(self._put, root, path, entry, view) for entry in others])
        return sum(entry.kind == "file" for entry in others)

    async def _put(self, root: str, path: str, entry: Entry, view: str) -> None:
        target = local.joined(path, entry.path)
        if entry.kind == "symlink":
            if await self.exists(target, view=view):
                await self.remove(target, view=view)
            await self.symlink(target, entry.target or "", view=view)
            return
        content = await in_thread(local.read, os.path.join(root, entry.path))
        await self.write_file(target, content, mode=entry.mode, view=view)

    async def download_dir(
        self,
        path: str = "/",
        target: Union[str, "os.PathLike[str]"] = ".",
        *,
        view: str = "owner",
    ) -> int:
        """Writes a directory of the workspace to this machine, on top of what is there; how many
        files. Nothing outside of `target` is ever written: symbolic links that lead out of it are
        left out with a warning, and links that are there are not followed. What ceases to be there
        meanwhile, or has a name that is no text, is left out with a warning too."""
        place = local.Place(os.fspath(target))
        jobs: List[Callable[[], Coroutine[Any, Any, bool]]] = []
        directories = [""]
        while directories:
            below = directories.pop()
            for file in await self._listed(place, path, below, view):
                name = local.joined(below, local.plain_name(file.name))
                if file.is_dir:
                    directories.append(name)
                elif file.kind == "symlink":
                    place.make_symlink(name, file.target or "")
                elif file.kind == "file":
                    jobs.append(partial(self._fetch, place, path, name, file.mode, view))
        written = await at_once(_AT_ONCE, jobs)
        place.warn()
        return sum(written)

    async def _listed(
        self, place: local.Place, path: str, below: str, view: str
    ) -> List[FileInfo]:
        try:
            found = await self._client.list_sandbox_files(
                self.id, local.joined(path, below), view=view)
        except FileNotFoundError:
            if not below:
                raise
            place.leave_out(below)
            return []
        place.make_directory(below)
        return found

    async def _fetch(
        self, place: local.Place, path: str, name: str, mode: int, view: str
    ) -> bool:
        try:
            content = await self.read_file_bytes(local.joined(path, name), view=view)
        except FileNotFoundError:
            place.leave_out(name)
            return False
        await in_thread(place.write, name, content, mode)
        return True
