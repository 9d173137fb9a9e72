"""The rows of the report: what is measured and what ringfence promises for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

# The unit of all times: start `true` on the host and wait for its end.
UNIT = "spawn"


@dataclass(frozen=True)
class Row:
    """One line of a table. `series` names the times it is made of.

    `must` and `aim` are upper bounds in units of a spawn; rows without them are for comparison.
    """

    name: str
    title: str
    series: str
    must: Optional[float] = None
    aim: Optional[float] = None
    quantile: float = 0.5


ROWS: Tuple[Row, ...] = (
    Row("start", "create + start + first exec, 10 files", "small/usable", 30, 10),
    Row("start-large", "the same, large tree", "large/usable", 30, 10),
    Row("mount", "of which mount to usable", "mount", 1.5, 0.7),
    Row("exec", "exec of `true`, no shell", "exec", 3, 1.5),
    Row("exec-shell", "exec of `sh -c true`", "exec-shell"),
    Row("session-exec", "session exec of a builtin, p50", "session-exec", 0.6, 0.35),
    Row("session-exec-p99", "session exec of a builtin, p99", "session-exec", 1.5, 0.7, 0.99),
    Row("session-open", "session create", "session-open", 5, 3),
    Row("destroy", "destroy", "small/destroy", 10, 4),
    Row("destroy-large", "the same, large tree", "large/destroy", 10, 4),
    Row("command-line", "`ringfence run DIR -- true`", "command-line"),
    Row("spawn-shell", "host: `sh -c true`", "spawn-shell"),
    Row("fork", "host: `true` by fork instead of vfork", "fork"),
    Row("bwrap", "peer: `bwrap --unshare-all` per command", "bwrap"),
    Row("docker-exec-api", "peer: docker exec through its API", "docker-exec-api"),
    Row("docker-exec", "peer: `docker exec`", "docker-exec"),
    Row("docker-run-api", "peer: docker create, start, wait, remove through its API", "docker-run-api"),
    Row("docker-run", "peer: `docker run --rm --network none`", "docker-run"),
)


@dataclass(frozen=True)
class Contest:
    """How many times faster than a peer one of our series is. `must` and `aim` are lower bounds."""

    title: str
    peer: str
    ours: str
    must: Optional[float] = 20
    aim: Optional[float] = 50


CONTESTS: Tuple[Contest, ...] = (
    Contest("`docker exec` against exec", "docker-exec", "exec"),
    Contest("docker exec through its API against exec", "docker-exec-api", "exec"),
    Contest("`docker run` against create, exec, destroy", "docker-run", "small/whole"),
    Contest("docker run through its API against the same", "docker-run-api", "small/whole"),
    Contest("`docker run` against `ringfence run`", "docker-run", "command-line"),
)


# The same sandbox in a container, beside bubblewrap and beside what containers are usually asked with.
IN_CONTAINERS: Tuple[Contest, ...] = (
    Contest("exec, beside bwrap", "exec", "container/exec", 1 / 1.3, None),
    Contest("session exec, beside bwrap", "session-exec", "container/session-exec", 1 / 1.3, None),
    Contest("exec, beside `docker exec`", "docker-exec", "container/exec", 15, None),
    Contest("exec, beside docker exec through its API", "docker-exec-api", "container/exec", 15, None),
    Contest("session exec, beside `docker exec`", "docker-exec", "container/session-exec", 15, None),
    Contest("create, exec, destroy, beside `docker run`", "docker-run", "container/whole", None, None),
)


@dataclass(frozen=True)
class Output:
    """A command that prints much, in megabytes a second; `must` and `aim` are lower bounds."""

    name: str
    title: str
    kind: str
    megabytes: int
    must: float = 200
    aim: float = 1000


OUTPUTS: Tuple[Output, ...] = (
    Output("seq-10", "`seq`, 10 MB", "seq", 10),
    Output("cat-10", "`cat` of a file, 10 MB", "cat", 10),
    Output("seq-100", "`seq`, 100 MB", "seq", 100),
    Output("cat-100", "`cat` of a file, 100 MB", "cat", 100),
)
# Who prints: the host into a pipe, a command, a command in a session.
PRINTERS = ("host", "exec", "session")

# So many sandboxes are created, used and destroyed at once.
CROWDS = (1, 10, 50, 100)


@dataclass(frozen=True)
class Holding:
    """Something that is counted and not timed. Bounds are upper ones unless `at_least`."""

    name: str
    title: str
    unit: str
    must: Optional[float] = None
    aim: Optional[float] = None
    at_least: bool = False


# A growth below this is the allocator's, not a leak: 50 bytes for each of 10 000 commands.
NO_GROWTH = 0.5

HOLDINGS: Tuple[Holding, ...] = (
    Holding("idle", "warden + bwrap + init, one idle sandbox, PSS", "MB", 6, 2),
    Holding("idle-each", "the same, each of {crowd} idle sandboxes", "MB", 6, 2),
    Holding("idle-total", "{crowd} idle sandboxes, PSS of all", "MB"),
    Holding("idle-host", "memory the host lost to each of them, kernel included", "MB"),
    Holding("capacity", "idle sandboxes on 4 GB, by the larger of both", "", 300, 1000, at_least=True),
    Holding("exec-growth", "warden and init after {execs} more execs", "MB", NO_GROWTH, NO_GROWTH),
    Holding("life-growth", "caller after {lives} more sandboxes", "MB", NO_GROWTH, NO_GROWTH),
    Holding("leftovers", "mounts, processes, cgroups, descriptors and directories left by them", "", 0, 0),
)
