"""What is done for each row. Every variant does exactly the same, below its own root.

A workload returns seconds by row; several rows share one where the second undoes or
continues the first. Whatever is not the row's own work (warming, preparing, cleaning up,
writing back) happens outside the measured time.
"""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Tuple

from . import disk, processes, tree
from .variants import Variant

TIMEOUT = 120.0
FIND = ["find", "tree", "-name", ".git", "-prune", "-o", "-ls"]
GREP = ["grep", "-rF", "--exclude-dir=.git", tree.NEEDLE, "tree"]
# Through a pipe, because tar does not read the files when it writes to /dev/null itself.
TAR = ["sh", "-c", "tar cf - --exclude=.git tree | cat >/dev/null"]
GIT_STATUS = ["git", "-C", "tree/repo", "status", "--porcelain"]

Times = Dict[str, float]


@dataclass(frozen=True)
class Counts:
    """How often the single operations are done, and for how long short work is repeated."""

    lookups: int
    opens: int
    reads: int
    touches: int
    appends: int
    files: int
    enough_seconds: float


FULL = Counts(
    lookups=200_000,
    opens=20_000,
    reads=200_000,
    touches=1_000_000,
    appends=50_000,
    files=10_000,
    enough_seconds=0.5,
)
QUICK = Counts(
    lookups=20_000,
    opens=5_000,
    reads=30_000,
    touches=500_000,
    appends=20_000,
    files=2_000,
    enough_seconds=0.1,
)


@dataclass
class Bench:
    """What the workloads need besides a variant."""

    disk: Path
    micro: Path
    tarball: Path
    sample: str
    big_mebibytes: int
    counts: Counts
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def operation(self, root: Path, name: str, path: str, count: int = 0) -> float:
        """Seconds one of the loops of `micro.c` takes on a path below `root`."""
        command = [str(self.micro), name, path, str(count)]
        return float(processes.run(command, cwd=root, timeout=TIMEOUT))

    def settle(self, variant: Variant) -> None:
        """Before and after work that writes: nothing of it may fall on the neighbour."""
        disk.settle(variant.writable, self.disk)

    def bring_up_memory(self) -> None:
        """Write a big file on the disk itself and remove it, so that its pages are at hand.

        A virtual machine gives free memory back to its host; a page that the host has to
        provide again costs ten times the write itself.
        """
        self.operation(self.disk, "write-new", "memory.bin", self.big_mebibytes)
        (self.disk / "memory.bin").unlink()
        disk.settle(self.disk)

    @contextmanager
    def fresh_directory(self, variant: Variant) -> Iterator[str]:
        """A directory that no run had before, in the place where every policy allows writing.

        After a failure it stays: removing it might hang in the same way.
        """
        path = f"output/{variant.name}-{next(self._numbers)}"
        processes.run(["mkdir", path], cwd=variant.writable, timeout=TIMEOUT)
        self.settle(variant)
        yield path
        processes.run(["rm", "-rf", path], cwd=variant.writable, timeout=TIMEOUT)
        self.settle(variant)


@dataclass(frozen=True)
class Workload:
    """`slow` ones are done only once in a quick run. `needs` is a program that must be there.

    `patience` is how much longer than usual short work is repeated, where it scatters most.
    """

    rows: Tuple[str, ...]
    run: Callable[[Bench, Variant], Times]
    slow: bool = False
    patience: int = 1
    needs: Optional[str] = None


def warm_command(command: List[str], variant: Variant) -> float:
    """Once to warm, once to measure."""
    processes.run(command, cwd=variant.root, timeout=TIMEOUT)
    return processes.timed(command, cwd=variant.root, timeout=TIMEOUT)


def read_big_file(bench: Bench, variant: Variant) -> Times:
    bench.operation(variant.root, "sequential-read", "big.bin")
    return {
        "seq-read": bench.operation(variant.root, "sequential-read", "big.bin"),
        "rand-read": bench.operation(variant.root, "random-read", "big.bin", bench.counts.reads),
        "mmap-read": bench.operation(variant.root, "mapped-read", "big.bin", bench.counts.touches),
    }


def write_big_file(bench: Bench, variant: Variant) -> Times:
    """The file that is overwritten is the one just written: a first write would measure copy-up."""
    blocks = bench.big_mebibytes
    with bench.fresh_directory(variant) as directory:
        file = f"{directory}/big.bin"
        bench.bring_up_memory()
        written = bench.operation(variant.writable, "write-new", file, blocks)
        bench.settle(variant)
        return {"seq-write": written, "overwrite": bench.operation(variant.writable, "overwrite", file, blocks)}


def append(bench: Bench, variant: Variant) -> Times:
    with bench.fresh_directory(variant) as directory:
        bench.bring_up_memory()
        return {"append": bench.operation(variant.writable, "append", f"{directory}/log", bench.counts.appends)}


def look_up(bench: Bench, variant: Variant) -> Times:
    lookups = bench.counts.lookups
    absent = f"{bench.sample}.absent"
    bench.operation(variant.root, "stat", bench.sample, 1)
    bench.operation(variant.root, "stat-absent", absent, 1)
    return {
        "stat": bench.operation(variant.root, "stat", bench.sample, lookups),
        "stat-absent": bench.operation(variant.root, "stat-absent", absent, lookups),
    }


def open_close(bench: Bench, variant: Variant) -> Times:
    bench.operation(variant.root, "open-close", bench.sample, 10)
    return {"open-close": bench.operation(variant.root, "open-close", bench.sample, bench.counts.opens)}


def git_status(bench: Bench, variant: Variant) -> Times:
    return {"git-status": warm_command(GIT_STATUS, variant)}


def find_warm(bench: Bench, variant: Variant) -> Times:
    return {"find-warm": warm_command(FIND, variant)}


def find_cold(bench: Bench, variant: Variant) -> Times:
    """The program itself is made warm again: it lies on a disk that is not part of this."""
    disk.drop_dentries_and_inodes()
    processes.run(["find", "/proc/self", "-maxdepth", "0", "-ls"], timeout=TIMEOUT)
    return {"find-cold": processes.timed(FIND, cwd=variant.root, timeout=TIMEOUT)}


def grep(bench: Bench, variant: Variant) -> Times:
    return {"grep": warm_command(GREP, variant)}


def tar(bench: Bench, variant: Variant) -> Times:
    return {"tar": warm_command(TAR, variant)}


def create_and_unlink(bench: Bench, variant: Variant) -> Times:
    with bench.fresh_directory(variant) as directory:
        created = bench.operation(variant.writable, "create", directory, bench.counts.files)
        bench.settle(variant)
        return {
            "create": created,
            "unlink": bench.operation(variant.writable, "unlink", directory, bench.counts.files),
        }


def unpack_and_remove(bench: Bench, variant: Variant) -> Times:
    with bench.fresh_directory(variant) as directory:
        unpack = ["tar", "xf", str(bench.tarball), "-C", directory]
        unpacked = processes.timed(unpack, cwd=variant.writable, timeout=TIMEOUT)
        bench.settle(variant)
        remove = ["rm", "-rf", f"{directory}/unpacked"]
        return {"unpack": unpacked, "rm-rf": processes.timed(remove, cwd=variant.writable, timeout=TIMEOUT)}


def build(row: str, command: List[str], output_variable: str) -> Callable[[Bench, Variant], Times]:
    """A build whose output directory is given in an environment variable.

    The sources are read once before, so that no variant pays for being the first.
    """

    def run(bench: Bench, variant: Variant) -> Times:
        processes.run(["grep", "-rc", "x", "projects"], cwd=variant.root, timeout=TIMEOUT)
        with bench.fresh_directory(variant) as directory:
            output = {output_variable: str(variant.writable / directory)}
            return {row: processes.timed(command, cwd=variant.root, env=output, timeout=TIMEOUT)}

    return run


C_BUILD = ["make", "-s", "-j2", "-C", "projects/c"]
COMPILEALL = ["python3", "-m", "compileall", "-q", "-f", "projects/python"]
CARGO_BUILD = ["cargo", "build", "--offline", "-q", "--manifest-path", "projects/rust/Cargo.toml"]

WORKLOADS: Tuple[Workload, ...] = (
    Workload(("seq-read", "rand-read", "mmap-read"), read_big_file),
    Workload(("append",), append),
    Workload(("seq-write", "overwrite"), write_big_file, patience=4),
    Workload(("stat", "stat-absent"), look_up),
    Workload(("git-status",), git_status),
    Workload(("find-warm",), find_warm),
    Workload(("find-cold",), find_cold),
    Workload(("open-close",), open_close),
    Workload(("grep",), grep),
    Workload(("tar",), tar),
    Workload(("create", "unlink"), create_and_unlink),
    Workload(("unpack", "rm-rf"), unpack_and_remove),
    Workload(("c-build",), build("c-build", C_BUILD, "OUT"), slow=True, needs="make"),
    Workload(("compileall",), build("compileall", COMPILEALL, "PYTHONPYCACHEPREFIX"), slow=True),
    Workload(("cargo-build",), build("cargo-build", CARGO_BUILD, "CARGO_TARGET_DIR"), slow=True, needs="cargo"),
)
