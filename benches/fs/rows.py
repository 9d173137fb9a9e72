"""The rows of the report: what is measured and what ringfence promises for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple


@dataclass(frozen=True)
class Row:
    """One line of the table. `must` and `aim` are upper bounds in `unit`."""

    name: str
    title: str
    must: float
    aim: float
    unit: str = "ratio"


ROWS: Tuple[Row, ...] = (
    Row("seq-read", "sequential read, warm", 1.15, 1.05),
    Row("rand-read", "random read 4 KiB, warm", 1.15, 1.05),
    Row("mmap-read", "mmap random read", 1.3, 1.1),
    Row("append", "append 4 KiB", 1.4, 1.1),
    Row("overwrite", "overwrite in place", 1.4, 1.1),
    Row("seq-write", "sequential write, new file", 2.0, 1.2),
    Row("stat", "stat, warm", 1.3, 1.2),
    Row("stat-absent", "stat of an absent name, warm", 1.3, 1.2),
    Row("git-status", "git status, warm", 1.3, 1.05),
    Row("find-warm", "find -ls, warm", 2.0, 1.2),
    Row("find-cold", "find -ls, cold", 4.0, 2.0),
    Row("open-close", "open + close", 16, 8),
    Row("grep", "grep -r, warm", 8, 4),
    Row("tar", "tar c to a pipe", 5, 2.5),
    Row("create", "create small files", 7, 4),
    Row("unpack", "unpack a tarball", 8, 4),
    Row("unlink", "unlink small files", 5, 3),
    Row("rm-rf", "rm -rf of an unpacked tree", 5, 3),
    Row("c-build", "C build, make -j2", 1.10, 1.03),
    Row("compileall", "python3 -m compileall", 1.10, 1.03),
    Row("cargo-build", "cargo build", 1.10, 1.03),
    Row("rules-10", "ten rules against none", 1.10, 1.03, "against no rules"),
    Row("rules-100", "100 rules against none", 1.2, 1.05, "against no rules"),
    Row("policy-change", "policy change visible, names cached", 50, 1, "ms"),
)

ROW_BY_NAME = {row.name: row for row in ROWS}

# The work on which policies are compared with each other: the operations that ask for a level.
POLICY_SENSITIVE = ("grep", "tar", "git-status", "find-cold", "open-close")

# Rows computed from other rows: (variant compared, variant it is compared with).
DERIVED = {
    "rules-10": ("development", "full-access"),
    "rules-100": ("100-rules", "full-access"),
}


def with_prerequisites(names: Tuple[str, ...]) -> Tuple[str, ...]:
    """Add the measured rows that the derived ones among `names` are computed from."""
    wanted = set(names)
    if wanted & set(DERIVED):
        wanted |= set(POLICY_SENSITIVE)
    return tuple(row.name for row in ROWS if row.name in wanted)
