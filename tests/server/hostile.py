"""A directory of the host that no call may reach, and sandboxes whose agents try."""

import contextlib
import itertools
import os
import pathlib
import uuid

import grpc

from wire import v1


class Canary:
    """Files outside of every workspace. Whatever is read from them is known by its content."""

    def __init__(self, place):
        self.place = pathlib.Path(place)
        self.content = f"canary {uuid.uuid4()}"
        # Nobody asks for this one, so whoever names it has looked into the directory.
        self.unasked = f"unasked-{uuid.uuid4()}"
        self.place.mkdir()
        for name in ("secret", self.unasked):
            (self.place / name).write_text(self.content)
        (self.place / "below").mkdir()
        (self.place / "below" / "secret").write_text(self.content)
        self._before = self._look()

    def _look(self):
        """Everything about it that a call could change."""
        found = {}
        for path in sorted(self.place.rglob("*")) + [self.place]:
            status = path.lstat()
            content = path.read_bytes() if path.is_file() else None
            found[str(path)] = (status.st_mode, status.st_uid, status.st_ino, status.st_nlink,
                                status.st_mtime_ns, content)
        return found

    def assert_untouched(self):
        assert self._look() == self._before

    def assert_not_in(self, said):
        text = said if isinstance(said, bytes) else str(said).encode()
        assert self.content.encode() not in text, "it was read"
        assert self.unasked.encode() not in text, "its directory was listed"


def links(canary):
    """Names in the workspace and where they point: to files, and to directories with a `secret`."""
    outside, up = str(canary.place), "../" * 40
    to_files = {
        "absolute": f"{outside}/secret", "up": f"{up}{outside[1:]}/secret",
        "chained": "absolute", "dangling": f"{outside}/made", "root": f"/proc/self/root{outside}/secret",
        "cwd": f"/proc/self/cwd/{up}{outside[1:]}/secret", "loop": "loop", "ping": "pong", "pong": "ping",
        "dots": f"./.././{up}{outside[1:]}/secret", "slash": f"{outside}/secret/"}
    to_directories = {
        "d_absolute": outside, "d_up": f"{up}{outside[1:]}", "d_chained": "d_absolute",
        "d_root": f"/proc/self/root{outside}", "d_itself": ".", "d_parent": "..", "d_host": "/",
        "d_below": f"{outside}/below/.."}
    return to_files, to_directories


def plant(client, sandbox, canary):
    to_files, to_directories = links(canary)
    lines = [f"ln -sfn '{target}' '{name}'" for name, target in {**to_files, **to_directories}.items()]
    done = client.run(sandbox, "; ".join(["set -e", *lines]))
    assert done.exit_code == 0, done.stderr
    return list(to_files), list(to_directories)


class Prober:
    """Makes calls that may be refused, and looks at everything they say."""

    def __init__(self, client, canary, sandbox, codebase):
        self.client, self.canary = client, canary
        self.sandbox, self.codebase = sandbox, codebase
        self.answered = 0

    @contextlib.contextmanager
    def _attempt(self, also=None):
        try:
            yield
            self.answered += 1
        except grpc.RpcError as error:
            known = (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT,
                     grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.FAILED_PRECONDITION,
                     grpc.StatusCode.ALREADY_EXISTS, also)
            assert error.code() in known, error
            self.canary.assert_not_in(str(error.details()))

    def call(self, method, message, also=None):
        with self._attempt(also):
            said = method(message)
            said = list(said) if hasattr(said, "cancel") else said
            self.canary.assert_not_in(said)

    def read(self, path):
        files = self.client.workspace
        for view in (v1.VIEW_OWNER, v1.VIEW_AGENT):
            self.call(files.ReadFile, v1.ReadFileRequest(sandbox_id=self.sandbox, path=path, view=view))
            self.call(files.StatFile, v1.FileRequest(sandbox_id=self.sandbox, path=path, view=view))
            for recursive in (False, True):
                self.call(files.ListDirectory, v1.ListDirectoryRequest(
                    sandbox_id=self.sandbox, path=path, view=view, recursive=recursive))
        stored = self.client.codebase
        self.call(stored.DownloadFile, v1.DownloadFileRequest(codebase_id=self.codebase, file_path=path))
        self.call(stored.ListFiles, v1.ListFilesRequest(codebase_id=self.codebase, path=path))

    def write(self, path):
        begin = v1.WriteFileChunk.Begin(sandbox_id=self.sandbox, path=path, parents=True)
        self.call(self.client.workspace.WriteFile, iter(
            [v1.WriteFileChunk(begin=begin), v1.WriteFileChunk(data=b"hostile")]))
        with self._attempt():
            self.client.upload(self.codebase, path, b"hostile")

    def make(self, path):
        self.call(self.client.workspace.MakeDirectory,
                  v1.FileRequest(sandbox_id=self.sandbox, path=path))
        self.call(self.client.workspace.MakeSymlink, v1.MakeSymlinkRequest(
            sandbox_id=self.sandbox, path=f"{path}-link", target=path, parents=True))

    def move(self, source, target):
        self.call(self.client.workspace.RenameFile, v1.RenameFileRequest(
            sandbox_id=self.sandbox, to=target, **{"from": source}))

    def remove(self, path):
        self.call(self.client.workspace.RemoveFile, v1.RemoveFileRequest(
            sandbox_id=self.sandbox, path=path, recursive=True))

    def whole(self, also=None):
        """What looks at all of the workspace. It may fail with `also` too."""
        files, mine = self.client.workspace, {"sandbox_id": self.sandbox}
        self.call(files.Changes, v1.ChangesRequest(**mine), also)
        self.call(files.Diff, v1.ChangesRequest(**mine), also)
        self.call(files.Apply, v1.ApplyRequest(**mine, dry_run=True), also)
        self.call(self.client.codebase.ListFiles,
                  v1.ListFilesRequest(codebase_id=self.codebase, recursive=True), also)
        self.call(files.ListDirectory, v1.ListDirectoryRequest(**mine, recursive=True), also)


def swapped(place, name, target, stop):
    """On the host: what is at `name` is a directory, then a symlink, then a directory …"""
    directory, link = place / f"{name}-directory", place / f"{name}-link"
    directory.mkdir()
    (directory / "secret").write_text("inside\n")
    link.symlink_to(target)
    for number in itertools.count():
        if stop.is_set():
            return
        each = (directory, link)[number % 2]
        try:
            os.rename(each, place / name)
            os.rename(place / name, each)
        except OSError:
            # An apply has put its own in that place, or replaced ours.
            with contextlib.suppress(OSError):
                os.rename(place / name, place / f"{name}-applied-{number}")
