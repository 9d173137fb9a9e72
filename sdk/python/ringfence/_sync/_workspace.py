# Made from _async/_workspace.py by generate.py.
"""The files of a sandbox, what was changed in it, and what becomes of that."""

from __future__ import annotations

from typing import Iterable, Iterator, List, Optional, Sequence

from .. import _convert as convert
from .._message import message, starting
from .._presets import as_rules
from .._types import (
    ApplyResult,
    Change,
    Explanation,
    FileInfo,
    PermissionRule,
    RuleLike,
    SandboxInfo,
    Snapshot,
)
from .._wire import methods, v1
from ._connection import Connection

CHUNK = 1024 * 1024


class Workspaces(Connection):
    """`/workspace/x`, `/x` and `x` are the same file. `view="agent"` applies the policy."""

    def read_sandbox_file(
        self, sandbox_id: str, path: str, *, view: str = "owner", offset: int = 0, length: int = 0
    ) -> bytes:
        """The contents of a file; from `offset` on, and `length` bytes if that is not 0."""
        channel = self._open()
        request = message(
            v1.ReadFileRequest,
            sandbox_id=sandbox_id, path=path, view=convert.view_out(view), offset=offset,
            length=length)
        return b"".join(
            [chunk.data for chunk in channel.whole(methods.ReadFile, request)])

    def write_sandbox_file(
        self,
        sandbox_id: str,
        path: str,
        content: bytes,
        *,
        view: str = "owner",
        mode: Optional[int] = None,
        parents: bool = True,
    ) -> FileInfo:
        """Replaces a file, or makes it and the directories above it."""
        channel = self._open()
        begin = message(
            v1.WriteFileChunk.Begin,
            sandbox_id=sandbox_id, path=path, view=convert.view_out(view), mode=mode,
            parents=parents)
        answer = channel.send(methods.WriteFile, _chunks(begin, content), begin)
        return convert.file_in(answer)

    def stat_sandbox_file(
        self, sandbox_id: str, path: str, *, view: str = "owner"
    ) -> FileInfo:
        """What is there; a symbolic link itself, not where it points to."""
        channel = self._open()
        request = message(
            v1.FileRequest, sandbox_id=sandbox_id, path=path, view=convert.view_out(view))
        return convert.file_in(channel.unary(methods.StatFile, request))

    def list_sandbox_files(
        self, sandbox_id: str, path: str = "/", recursive: bool = False, *, view: str = "owner"
    ) -> List[FileInfo]:
        """What is in a directory, or all files below it."""
        channel = self._open()
        request = message(
            v1.ListDirectoryRequest,
            sandbox_id=sandbox_id, path=path, view=convert.view_out(view), recursive=recursive)
        answer = channel.unary(methods.ListDirectory, request)
        return [convert.file_in(file) for file in answer.files]

    def make_sandbox_directory(
        self, sandbox_id: str, path: str, *, view: str = "owner"
    ) -> FileInfo:
        """Makes a directory, and those above it."""
        channel = self._open()
        request = message(
            v1.FileRequest, sandbox_id=sandbox_id, path=path, view=convert.view_out(view))
        return convert.file_in(channel.unary(methods.MakeDirectory, request))

    def make_sandbox_symlink(
        self,
        sandbox_id: str,
        path: str,
        target: str,
        *,
        view: str = "owner",
        parents: bool = True,
    ) -> FileInfo:
        """Makes a symbolic link; it may point anywhere, and is followed inside only."""
        channel = self._open()
        request = message(
            v1.MakeSymlinkRequest,
            sandbox_id=sandbox_id, path=path, target=target, view=convert.view_out(view),
            parents=parents)
        return convert.file_in(channel.unary(methods.MakeSymlink, request))

    def remove_sandbox_file(
        self, sandbox_id: str, path: str, recursive: bool = False, *, view: str = "owner"
    ) -> None:
        """Removes a file or an empty directory; with `recursive`, everything below it too."""
        channel = self._open()
        request = message(
            v1.RemoveFileRequest,
            sandbox_id=sandbox_id, path=path, view=convert.view_out(view), recursive=recursive)
        channel.unary(methods.RemoveFile, request)

    def rename_sandbox_file(
        self, sandbox_id: str, source: str, target: str, *, view: str = "owner"
    ) -> FileInfo:
        """Gives a file or a directory another name."""
        channel = self._open()
        request = message(
            v1.RenameFileRequest, sandbox_id=sandbox_id, to=target, view=convert.view_out(view),
            **starting(source))
        return convert.file_in(channel.unary(methods.RenameFile, request))

    def changes(self, sandbox_id: str) -> List[Change]:
        """What is not as it was."""
        channel = self._open()
        request = message(v1.ChangesRequest, sandbox_id=sandbox_id)
        answer = channel.unary(methods.Changes, request)
        return [convert.change_in(change) for change in answer.changes]

    def diff(self, sandbox_id: str) -> str:
        """The same as a unified diff; binary files are only named."""
        channel = self._open()
        request = message(v1.ChangesRequest, sandbox_id=sandbox_id)
        return (channel.unary(methods.Diff, request)).diff.decode(errors="replace")

    def apply(
        self, sandbox_id: str, *, force: bool = False, dry_run: bool = False
    ) -> ApplyResult:
        """Writes the changes to the codebase."""
        channel = self._open()
        request = message(v1.ApplyRequest, sandbox_id=sandbox_id, force=force, dry_run=dry_run)
        return convert.applied_in(channel.unary(methods.Apply, request))

    def create_snapshot(self, sandbox_id: str, name: str = "") -> Snapshot:
        """Keeps the files as they are now. Nothing is copied, and the sandbox goes on."""
        channel = self._open()
        request = message(v1.CreateSnapshotRequest, sandbox_id=sandbox_id, name=name)
        return convert.snapshot_in(channel.unary(methods.CreateSnapshot, request))

    def list_snapshots(
        self, sandbox_id: Optional[str] = None, *, codebase_id: Optional[str] = None
    ) -> List[Snapshot]:
        """Those of a sandbox, or of all sandboxes of a codebase."""
        channel = self._open()
        request = message(
            v1.ListSnapshotsRequest, sandbox_id=sandbox_id or "", codebase_id=codebase_id or "")
        answer = channel.unary(methods.ListSnapshots, request)
        return [convert.snapshot_in(snapshot) for snapshot in answer.snapshots]

    def delete_snapshot(self, snapshot_id: str) -> None:
        """Lets go of a snapshot that no sandbox stands on."""
        channel = self._open()
        request = message(v1.DeleteSnapshotRequest, snapshot_id=snapshot_id)
        channel.unary(methods.DeleteSnapshot, request)

    def restore_snapshot(self, sandbox_id: str, snapshot_id: str) -> SandboxInfo:
        """Back to the files of a snapshot. The sandbox must not run."""
        channel = self._open()
        request = message(v1.RestoreSnapshotRequest, sandbox_id=sandbox_id, snapshot_id=snapshot_id)
        return convert.sandbox_in(channel.unary(methods.RestoreSnapshot, request))

    def get_policy(self, sandbox_id: str) -> List[PermissionRule]:
        """The rules in force."""
        channel = self._open()
        request = message(v1.GetPolicyRequest, sandbox_id=sandbox_id)
        answer = channel.unary(methods.GetPolicy, request)
        return [convert.rule_in(rule) for rule in answer.permissions]

    def set_policy(
        self, sandbox_id: str, permissions: Iterable[RuleLike]
    ) -> List[PermissionRule]:
        """Other rules, in force for new opens as soon as this returns."""
        channel = self._open()
        rules = convert.rules_out(as_rules(permissions))
        request = message(v1.SetPolicyRequest, sandbox_id=sandbox_id, permissions=rules)
        answer = channel.unary(methods.SetPolicy, request)
        return [convert.rule_in(rule) for rule in answer.permissions]

    def explain(self, sandbox_id: str, paths: Sequence[str]) -> List[Explanation]:
        """What may be done with paths, and why."""
        channel = self._open()
        request = message(v1.ExplainRequest, sandbox_id=sandbox_id, paths=paths)
        answer = channel.unary(methods.Explain, request)
        return [convert.explanation_in(explanation) for explanation in answer.explanations]


def _chunks(begin: v1.WriteFileChunk.Begin, content: bytes) -> Iterator[v1.WriteFileChunk]:
    yield v1.WriteFileChunk(begin=begin)
    for start in range(0, len(content), CHUNK):
        yield v1.WriteFileChunk(data=content[start:start + CHUNK])
