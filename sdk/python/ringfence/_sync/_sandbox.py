# Made from _async/_sandbox.py by generate.py.
"""A sandbox, from a local directory to its end."""

from __future__ import annotations

import os
from functools import partial
from types import TracebackType
from typing import Callable, Iterable, List, Mapping, Optional, Sequence, Tuple, Type, Union

from .. import _local as local
from .._presets import PRESET_VIEW_ONLY, rules_for
from .._progress import FetchProgress
from .._types import (
    Codebase,
    PermissionRule,
    ResourceLimits,
    RuleLike,
    RuntimeType,
    SandboxInfo,
    SandboxStatus,
    Seconds,
    Snapshot,
)
from .._walk import MAX_FILE_SIZE
from ..exceptions import (
    CodebaseNotFoundError,
    ConnectionError,
    SandboxError,
    SandboxNotFoundError,
)
from ._client import SandboxClient
from ._files import Files
from ._io import to_the_end
from ._layer import Layer
from ._lease import Lease
from ._source import Source
from ._work import Work

Path = Union[str, "os.PathLike[str]"]


class Sandbox(Work, Files, Layer):
    """A sandbox. Make one with `from_local`, `from_codebase` or `connect`; a `with` block ends it.

    >>> with Sandbox.from_local("./project", preset="agent-safe") as sandbox:
    ...     result = sandbox.run("pytest")  # doctest: +SKIP
    """

    def __init__(
        self,
        client: SandboxClient,
        info: SandboxInfo,
        codebase: Codebase,
        *,
        owns: bool = False,
        owns_codebase: bool = False,
        owns_client: bool = True,
        count: Optional[Callable[[], Tuple[int, int]]] = None,
    ) -> None:
        super().__init__(client, info)
        self._codebase = codebase
        self._owns = owns
        self._owns_codebase = owns_codebase
        self._owns_client = owns_client
        self._count = count
        self._lease: Optional[Lease] = None

    @classmethod
    def from_local(
        cls,
        path: Path,
        preset: Optional[str] = PRESET_VIEW_ONLY,
        permissions: Optional[Iterable[RuleLike]] = None,
        runtime: RuntimeType = RuntimeType.BWRAP,
        image: Optional[str] = None,
        resources: Optional[ResourceLimits] = None,
        endpoint: Optional[str] = None,
        secure: bool = False,
        owner_id: Optional[str] = None,
        codebase_name: Optional[str] = None,
        ignore_patterns: Optional[Sequence[str]] = None,
        labels: Optional[Mapping[str, str]] = None,
        auto_start: bool = True,
        *,
        network: str = "none",
        env: Optional[Mapping[str, str]] = None,
        expires_in: Optional[Seconds] = None,
        default_ignores: bool = True,
        max_file_size: Optional[int] = MAX_FILE_SIZE,
        upload: Optional[bool] = None,
        progress: Optional[bool] = None,
        read_only_paths: Sequence[str] = (),
        image_user: bool = False,
        token: Optional[str] = None,
        ca_certificate: Optional[str] = None,
        client: Optional[SandboxClient] = None,
    ) -> "Sandbox":
        """A sandbox on a directory of this machine. The directory itself is not changed by it.

        With an embedded server the directory is used where it is; otherwise what the server lacks of
        it is sent. Left out are what `.gitignore` and `.sandboxignore` say, caches and `.env`, and
        `ignore_patterns`; of uploads, files over 50 MB too, with a warning that names them.

        >>> with Sandbox.from_local(
        ...     "./project",
        ...     preset="read-only",
        ...     permissions=[{"pattern": "/output/**", "permission": "write"}],
        ... ) as sandbox:  # doctest: +SKIP
        ...     sandbox.run("python3 analyse.py")

        Args:
            path: the directory.
            preset: rules to begin with; None means `view-only`.
            permissions: further rules; of equals the later one decides.
            runtime, image: `RuntimeType.DOCKER` runs it in a container of an image.
            image_user: run everything as the user that the image names, instead of one that nobody
                else is.
            resources: limits on memory, processors and processes.
            endpoint, secure, token, ca_certificate: as for `SandboxClient`; or `client`, one
                that is there and stays open.
            ignore_patterns: gitignore-style; they have the last word, `!name` brings something back.
            default_ignores: leave out `.git`, `.env`, `node_modules`, caches and the like.
            max_file_size: bytes; larger files are not uploaded. None: all are.
            upload: True sends a copy even if the directory could be used where it is.
            progress: show a bar; by default on a terminal, if it takes a while.
            auto_start: start it.

        Raises:
            InvalidConfigurationError: the path, preset, a rule or another argument; a `ValueError`.
            ConnectionError: there is no server at `endpoint`.
            UploadError: the files could not be sent.
        """
        root = local.existing_directory(path)
        rules = rules_for(preset, permissions)
        used = client or SandboxClient(
            endpoint, secure, token=token, ca_certificate=ca_certificate)
        source = Source(
            used, root, ignore_patterns or (), default_ignores, max_file_size)
        try:
            _fetched(used, runtime, image, progress)
            codebase = source.stored(
                codebase_name or local.name_of(root), owner_id or local.user(), upload, progress)
            info = used.create_sandbox(
                codebase.id, rules, labels, expires_in, runtime, image, resources,
                network=network, env=env, read_only_paths=read_only_paths, image_user=image_user,
                start=auto_start)
        except BaseException:
            to_the_end(partial(_undone, source, used, client is None))
            raise
        return cls(
            used, info, codebase, owns=True, owns_codebase=True, owns_client=client is None,
            count=source.count if codebase.local_path else None)

    @classmethod
    def from_codebase(
        cls,
        codebase_id: str,
        preset: Optional[str] = PRESET_VIEW_ONLY,
        permissions: Optional[Iterable[RuleLike]] = None,
        runtime: RuntimeType = RuntimeType.BWRAP,
        image: Optional[str] = None,
        resources: Optional[ResourceLimits] = None,
        endpoint: Optional[str] = None,
        secure: bool = False,
        labels: Optional[Mapping[str, str]] = None,
        auto_start: bool = True,
        *,
        network: str = "none",
        env: Optional[Mapping[str, str]] = None,
        expires_in: Optional[Seconds] = None,
        snapshot: Optional[Union[str, Snapshot]] = None,
        progress: Optional[bool] = None,
        read_only_paths: Sequence[str] = (),
        image_user: bool = False,
        token: Optional[str] = None,
        ca_certificate: Optional[str] = None,
        client: Optional[SandboxClient] = None,
    ) -> "Sandbox":
        """A sandbox on files that are on the server. They stay there when it ends.

        Args:
            snapshot: begin with the files of this snapshot of the codebase.
            progress: show a bar while an image is fetched; by default on a terminal.
        """
        rules = rules_for(preset, permissions)
        used = client or SandboxClient(
            endpoint, secure, token=token, ca_certificate=ca_certificate)
        try:
            codebase = used.get_codebase(codebase_id)
            _fetched(used, runtime, image, progress)
            info = used.create_sandbox(
                codebase_id, rules, labels, expires_in, runtime, image, resources,
                network=network, env=env, read_only_paths=read_only_paths, image_user=image_user,
                start=auto_start,
                snapshot_id=snapshot.id if isinstance(snapshot, Snapshot) else snapshot)
        except BaseException:
            if client is None:
                to_the_end(used.close)
            raise
        return cls(used, info, codebase, owns=True, owns_client=client is None)

    @classmethod
    def connect(
        cls,
        sandbox_id: str,
        endpoint: Optional[str] = None,
        secure: bool = False,
        *,
        token: Optional[str] = None,
        ca_certificate: Optional[str] = None,
        client: Optional[SandboxClient] = None,
    ) -> "Sandbox":
        """A sandbox that is there. Leaving a `with` block of it does not end it; `destroy()` does."""
        used = client or SandboxClient(
            endpoint, secure, token=token, ca_certificate=ca_certificate)
        try:
            info = used.get_sandbox(sandbox_id)
            codebase = used.get_codebase(info.codebase_id)
        except BaseException:
            if client is None:
                to_the_end(used.close)
            raise
        return cls(used, info, codebase, owns_client=client is None)

    @property
    def codebase_id(self) -> str:
        return self._info.codebase_id

    @property
    def status(self) -> SandboxStatus:
        """As it was when it was last asked for; `refresh()` asks."""
        return self._info.status

    @property
    def runtime(self) -> RuntimeType:
        return self._info.runtime

    @property
    def info(self) -> SandboxInfo:
        """All that is on record: rules, labels, limits, times, what is enforced."""
        return self._info

    @property
    def codebase(self) -> Codebase:
        """The files it stands on. Those of a directory that is used where it is are counted when
        this is first asked for."""
        if self._count is not None and not self._codebase.file_count:
            self._codebase.file_count, self._codebase.size = self._count()
        return self._codebase

    @property
    def permissions(self) -> List[PermissionRule]:
        return self._info.permissions

    def start(self) -> "Sandbox":
        """Starts it, if it does not run."""
        self._info = self._client.start_sandbox(self.id)
        return self

    def stop(self) -> "Sandbox":
        """Ends everything that runs in it. Its files stay, and it can be started again."""
        self._info = self._client.stop_sandbox(self.id)
        return self

    def refresh(self) -> "Sandbox":
        """Asks the server what it has on record."""
        self._info = self._client.get_sandbox(self.id)
        self._codebase = self._client.get_codebase(self.codebase_id)
        return self

    def destroy(self, delete_codebase: Optional[bool] = None) -> None:
        """Ends it and removes what is its own.

        Args:
            delete_codebase: whether its codebase goes too; by default if it was made for it.
        """
        self._end_lease()
        try:
            self._client.destroy_sandbox(
                self.id, keep_codebase=delete_codebase is False)
        except SandboxNotFoundError:
            # Its time may have been over; but what never was here cannot be destroyed.
            if not self._owns:
                raise
        except ConnectionError:
            if not self._client._is_embedded:
                raise
        if delete_codebase and not self._owns_codebase:
            try:
                self._client.delete_codebase(self.codebase_id)
            except CodebaseNotFoundError:
                pass
        if self._owns_client:
            self._client._end(SandboxNotFoundError(self.id, "it was destroyed"))

    def fork(
        self, *, labels: Optional[Mapping[str, str]] = None, auto_start: bool = True
    ) -> "Sandbox":
        """Another sandbox with the same files and rules, that goes its own way. Nothing is copied.

        >>> with sandbox.fork() as attempt:  # doctest: +SKIP
        ...     attempt.run("git apply risky.patch && pytest")
        """
        info = self._client.fork_sandbox(self.id, labels=labels)
        client = self._client._another()
        made = type(self)(client, info, self._codebase, owns=True, count=self._count)
        try:
            # One of a leased sandbox is leased itself, and would not wait for a block.
            made._hold(bind=False)
            if auto_start:
                made.start()
        except BaseException:
            to_the_end(made.destroy)
            raise
        return made

    def restore(self, snapshot: Union[str, Snapshot]) -> "Sandbox":
        """Back to the files of a snapshot. It must not run: `stop()` it first."""
        snapshot_id = snapshot.id if isinstance(snapshot, Snapshot) else snapshot
        self._info = self._client.restore_snapshot(self.id, snapshot_id)
        return self

    def close(self) -> None:
        """Lets go of the connection. The sandbox stays."""
        self._end_lease()
        if self._owns_client:
            self._client.close()

    def _hold(self, bind: bool) -> None:
        """Should this process die, the server ends the sandbox by itself. A private server ends
        with the process anyway."""
        if not (self._client.info()).embedded:
            self._end_lease()
            self._lease = Lease(self._client._open(), self.id, bind)
            self._lease.begin()

    def _end_lease(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.end()

    def __enter__(self) -> "Sandbox":
        if self._owns:
            try:
                self._hold(bind=True)
            except BaseException:
                # The block is never left that is not entered.
                to_the_end(self.destroy)
                raise
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if not self._client._is_own:
            # A forked child leaves the block too; the sandbox is its parent's.
            return
        try:
            to_the_end(self.destroy if self._owns else self.close)
        except SandboxError:
            # What went wrong in the block is what counts.
            if error is None:
                raise

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} ({self.status.value})>"


def _fetched(
    client: SandboxClient,
    runtime: RuntimeType,
    image: Optional[str],
    progress: Optional[bool],
) -> None:
    """Whoever waits for an image can see how far it is."""
    if runtime is RuntimeType.DOCKER and image:
        with FetchProgress(image, progress) as bar:
            client.fetch_image(image, bar.step)


def _undone(source: Source, client: SandboxClient, owns_client: bool) -> None:
    """Takes back what was begun."""
    try:
        source.take_back()
    except SandboxError:
        # What is left of it goes by itself.
        pass
    if owns_client:
        client.close()
