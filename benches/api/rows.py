"""The rows of the report: what is measured and what ringfence promises for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from running.rows import NO_GROWTH, Contest, Holding, Row

# How the server is reached. What is promised is promised for both.
DOORS = ("tcp", "unix")


def through(door: str) -> Tuple[Row, ...]:
    """What a caller waits for, in units of a spawn."""
    shown = {"tcp": "TCP", "unix": "Unix socket"}[door]
    return (
        Row(f"exec-{door}", f"exec of `true`, {shown}", f"exec/{door}", 3, 1.5),
        Row(f"session-{door}", f"session exec of a builtin, {shown}, p50", f"session/{door}", 0.6, 0.35),
        Row(f"session-{door}-p99", "the same, p99", f"session/{door}", 1.5, 0.7, 0.99),
        Row(f"session-open-{door}", f"session create, {shown}", f"session-open/{door}", 5, 3),
    )


ROWS: Tuple[Row, ...] = (
    Row("start", "create + start + first exec, 10 files", "small/usable", 30, 10),
    Row("start-large", "the same, large tree", "large/usable", 30, 10),
    *through("tcp"),
    *through("unix"),
    Row("destroy", "destroy", "small/destroy", 10, 4),
    Row("destroy-large", "the same, large tree", "large/destroy", 10, 4),
    Row("straight", "session exec straight to the warden", "straight"),
    Row("info", "Info, TCP", "info/tcp"),
    Row("get", "GetSandbox, TCP", "get/tcp"),
    Row("echo", "peer: a bare tonic server, TCP", "echo/tcp"),
    Row("get-unix", "GetSandbox, Unix socket", "get/unix"),
    Row("echo-unix", "peer: a bare tonic server, Unix socket", "echo/unix"),
)


@dataclass(frozen=True)
class Overhead:
    """A call's time over that of the bare server, less what is spent elsewhere (`without`)."""

    title: str
    series: str
    echo: str
    without: Optional[str] = None
    must: float = 1.5
    aim: float = 1.2


def overheads(door: str) -> Tuple[Overhead, ...]:
    shown = {"tcp": "TCP", "unix": "Unix socket"}[door]
    echo = f"echo/{door}"
    return (
        Overhead(f"Info, {shown}", f"info/{door}", echo),
        Overhead(f"GetSandbox, {shown}", f"get/{door}", echo),
        Overhead(f"session exec less the warden's time, {shown}", f"session/{door}", echo, "straight"),
    )


OVERHEADS: Tuple[Overhead, ...] = overheads("tcp") + overheads("unix")


@dataclass(frozen=True)
class Copy:
    """A fork or a snapshot: milliseconds, which must not depend on how many files were changed."""

    name: str
    title: str
    must: float = 5
    aim: float = 1


COPIES: Tuple[Copy, ...] = (Copy("fork", "fork of a running sandbox"), Copy("snapshot", "snapshot of a running sandbox"))
# So many files were changed before.
CHANGED = (100, 10_000)

# Against the published client on the same server, and against ourselves the first time.
CONTESTS: Tuple[Contest, ...] = (
    Contest("upload + start, {files} files of 10 KB", "published/start", "push/start", 5, None),
    Contest("upload of 1 MB", "published/upload", "upload", 2, None),
    Contest("download of 1 MB", "published/download", "download", 2, None),
    Contest("push of an unchanged tree of {tree} files, against the first", "push/first", "push/second", 10, None),
)

HOLDINGS: Tuple[Holding, ...] = (
    Holding("server-new", "server that was just started, PSS", "MB"),
    Holding("server-full", "server with {recorded} sandboxes, {running} of them running, PSS", "MB", 100, 50),
    Holding("server-exec-growth", "server after {execs} more execs", "MB", NO_GROWTH, NO_GROWTH),
    Holding("server-life-growth", "server after {lives} more sandboxes", "MB", NO_GROWTH, NO_GROWTH),
    Holding("server-descriptors", "descriptors of the server after them, more than before", "", 0, 0),
    Holding("sent-again", "files sent by the second push of the tree", "", 0, 0),
)
