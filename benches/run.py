#!/usr/bin/env python3
"""Measures ringfence against native, overlayfs, fuse-overlayfs, bindfs, bubblewrap and docker.

Five groups: the filesystem, starting and running, memory, the API, the Python SDK. Reports and never judges: the exit
status is 0 whenever it could run, 2 when it could not.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

import api.measure
import api.memory
import api.report
import api.site
import document
import python.environment
import python.measure
import python.report
import python.site
import running.measure
import running.memory
import running.report
from api import environment
from api import tasks as api_tasks
from python import tasks as python_tasks
from fs import disk, figures, machine, measure, processes, projects, report, tree, variants, workloads
from fs.measure import progress
from fs.rows import ROW_BY_NAME, with_prerequisites
from running import docker, driver, tasks
from running.rows import OUTPUTS

HERE = Path(__file__).resolve().parent
INSTALL = HERE.parent / "scripts" / "install-deps.sh"
# Above this load a round trip to a FUSE server costs half or twice of what it costs on an idle machine.
BUSY = 0.5
NEEDED = ("gcc", "git", "mkfs.ext4", "tar", "find", "grep", "bwrap")
GROUPS = ("filesystem", "running", "memory", "api", "python")
# The disk for the other groups: the tree without the big file.
RUNNING_DISK = 4 << 30
SMALL = tree.Shape(files=10, directories=3, bytes=40_000)


class CannotRun(Exception):
    """One sentence that says why nothing was measured."""


def parse_arguments(arguments: Optional[List[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, help="the ringfence program; without it only the peers are measured")
    parser.add_argument("--out", type=Path, default=Path("target/bench"), help="directory for the report")
    parser.add_argument("--quick", action="store_true", help="a smaller tree and fewer repetitions, under two minutes")
    parser.add_argument("--repeat", type=int, help="repetitions (default 3, quick 2)")
    parser.add_argument(
        "--only", nargs="+", metavar="GROUP_OR_ROW", default=list(GROUPS), choices=[*GROUPS, *ROW_BY_NAME],
        help=f"groups to measure ({', '.join(GROUPS)}), or rows of the filesystem: {', '.join(ROW_BY_NAME)}",
    )
    parser.add_argument("--driver", type=Path, help="bench_driver (default: examples/bench_driver beside the binary)")
    parser.add_argument(
        "--variants", type=variant_names, default=list(variants.ALL),
        help="comma-separated; native is always among them: " + ", ".join(variants.ALL),
    )
    options = parser.parse_args(arguments)
    options.repeat = max(1, options.repeat or (2 if options.quick else 3))
    if options.driver is None and options.binary is not None:
        options.driver = options.binary.parent / "examples" / "bench_driver"
    options.selection = select(options.only)
    return options


class Selection(NamedTuple):
    """What is to be measured: rows of the filesystem, and whether the other groups."""

    rows: Tuple[str, ...]
    running: bool
    memory: bool
    api: bool
    python: bool


def select(names: List[str]) -> Selection:
    rows = tuple(ROW_BY_NAME) if "filesystem" in names else tuple(name for name in names if name in ROW_BY_NAME)
    return Selection(with_prerequisites(rows), *(group in names for group in GROUPS[1:]))


def variant_names(given: str) -> List[str]:
    names = given.split(",")
    unknown = set(names) - set(variants.ALL)
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown variant: {', '.join(sorted(unknown))}")
    return [name for name in variants.ALL if name in names or name == variants.NATIVE]


def sizes_of(options: argparse.Namespace) -> tree.Sizes:
    return tree.QUICK if options.quick else tree.FULL


def counts_of(options: argparse.Namespace) -> workloads.Counts:
    return workloads.QUICK if options.quick else workloads.FULL


def check_machine(options: argparse.Namespace) -> None:
    """Install what can be installed; stop only for what nothing works without."""
    if os.geteuid() != 0:
        raise CannotRun("The benchmarks mount filesystems and need root.")
    subprocess.run(["sh", str(INSTALL), "bench"], stdout=sys.stderr, check=False)
    lacking = processes.missing(*NEEDED)
    if lacking:
        raise CannotRun(f"These programs are needed and missing: {', '.join(lacking)}.")
    disks = [sizes_of(options).disk] if options.selection.rows else [RUNNING_DISK]
    needed = max(disks) * 3 // 2
    if disk.free_memory_bytes() < needed:
        raise CannotRun(f"The disk and what is cached of it need {needed >> 30} GiB of free memory.")


def end_on_signals() -> None:
    """Turn the signals that end a program into an exception, so that everything is cleaned up.

    Only the first one counts: a second must not interrupt the clean-up.
    """

    def end(number: int, _frame: object) -> None:
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, end)


@contextmanager
def prepared(options: argparse.Namespace) -> Iterator[Tuple[variants.Site, workloads.Bench]]:
    """The disk in RAM with the tree on it, the archive and the compiled loops."""
    sizes = sizes_of(options)
    with ExitStack() as cleanup:
        ram = cleanup.enter_context(disk.ram_directory())
        root = cleanup.enter_context(disk.ext4_in_ram(ram, sizes.disk))
        binary = options.binary.resolve() if options.binary else None
        site = variants.Site(ram, root, root / "base", binary, cleanup)
        progress("making the tree")
        tree.make_base(site.base, sizes)
        projects.make_projects(site.base / "projects", projects.QUICK if options.quick else projects.FULL)
        tree.make_tarball(ram / "archive.tar", sizes.tarball, ram)
        processes.run(["gcc", "-O2", "-o", str(ram / "micro"), str(HERE / "fs" / "micro.c")])
        disk.settle(root)
        yield site, workloads.Bench(
            disk=root,
            micro=ram / "micro",
            tarball=ram / "archive.tar",
            sample=sample_file(site.base),
            big_mebibytes=sizes.big_file >> 20,
            counts=counts_of(options),
        )


def sample_file(base: Path) -> str:
    """A file as deep as most are, for the loops over one name."""
    files = sorted(path for path in base.glob("tree/vendor/*/*/*/*.c") if path.is_file())
    return str(files[0].relative_to(base))


def run(options: argparse.Namespace) -> None:
    check_machine(options)
    disk.enter_private_mount_namespace()
    processes.go_first()
    end_on_signals()
    load = os.getloadavg()[0]
    if load > BUSY:
        progress(f"the machine is busy (load {load:.1f}): expect the figures to scatter")
    parts = []
    if options.selection.rows:
        parts.append(run_filesystem(options, load))
    if options.selection.running or options.selection.memory:
        parts += run_sandboxes(options)
    if options.selection.api:
        parts += run_api(options)
    if options.selection.python:
        parts += run_python(options)
    document.write(parts, machine.describe(options.binary), options.out)
    for part in parts:
        print(f"{part.title}\n\n{part.tables}\n")
    progress(f"report: {options.out / 'report.md'}")


def run_filesystem(options: argparse.Namespace, load: float) -> document.Part:
    started = time.monotonic()
    results = measure.Results()
    plan = measure.Plan(options.selection.rows, options.repeat, options.quick)
    with prepared(options) as (site, bench):
        mounted, results.skipped = variants.mount_all(site, options.variants)
        for name, reason in results.skipped.items():
            progress(f"{name}: skipped, {reason}")
        measure.measure(bench, mounted, plan, results)
        if "policy-change" in plan.rows and set(options.variants) & set(variants.RINGFENCE):
            measure.measure_policy_change(bench, site, options.repeat, results)
    finished = report.Run(
        settings=settings(options, time.monotonic() - started, load),
        variants=[variant.name for variant in mounted],
        lines=figures.lines(results, plan.rows),
        results=results,
    )
    return report.part(finished)


def run_sandboxes(options: argparse.Namespace) -> List[document.Part]:
    """Starting, running and memory: the material, the driver and docker, then what was asked for."""
    if options.binary is None:
        progress("starting and running: skipped, no ringfence binary was given (--binary)")
        return []
    tasks.check(options.binary, options.driver)
    started, load = time.monotonic(), os.getloadavg()[0]
    counts = tasks.QUICK if options.quick else tasks.FULL
    results = running.measure.Results()
    with ExitStack() as cleanup:
        ram = cleanup.enter_context(disk.ram_directory())
        root = cleanup.enter_context(disk.ext4_in_ram(ram, RUNNING_DISK))
        progress("making the directories")
        make_directories(root, sizes_of(options))
        if options.selection.memory:
            # First, and with a driver of its own: what it holds must not come from other work.
            with sandbox_site(options, root, ram / "memory.log", counts) as site:
                running.memory.measure_memory(site, results)
        if options.selection.running:
            peer = start_docker(cleanup, ram, results)
            with sandbox_site(options, root, ram / "running.log", counts, peer) as site:
                running.measure.measure(site, results)
    how = {**how_it_was(options, started, load), **tasks.describe(counts)}
    finished = running.report.Run(how, counts, results)
    parts = [running.report.running_part(finished)] if options.selection.running else []
    return parts + ([running.report.memory_part(finished)] if options.selection.memory else [])


def how_it_was(options: argparse.Namespace, started: float, load: float) -> Dict[str, str]:
    sizes = sizes_of(options)
    return {
        "mode": "quick" if options.quick else "full",
        "large tree": f"{sizes.files} files, {sizes.directories} directories",
        "duration": f"{time.monotonic() - started:.0f} s",
        "load before": f"{load:.1f}" + (", busy: the figures scatter" if load > BUSY else ""),
    }


def run_api(options: argparse.Namespace) -> List[document.Part]:
    """The same through a server, each part with a server of its own."""
    if options.binary is None:
        progress("the API: skipped, no ringfence binary was given (--binary)")
        return []
    tasks.check(options.binary, options.driver)
    started, load, sizes = time.monotonic(), os.getloadavg()[0], sizes_of(options)
    counts = replace(api_tasks.QUICK if options.quick else api_tasks.FULL, tree=sizes.files)
    results = running.measure.Results()
    with ExitStack() as cleanup:
        ram = cleanup.enter_context(disk.ram_directory())
        root = cleanup.enter_context(disk.ext4_in_ram(ram, RUNNING_DISK))
        progress("making the directories")
        make_directories(root, sizes)
        place = api.site.Place(options.binary.resolve(), options.driver.resolve(), root, ram)
        # First, and with a server of its own: what it holds must not come from other work.
        with place.site("api-memory", counts) as site:
            api.memory.measure_memory(site, results)
        published = environment.published_client(ram, not options.quick, results)
        with place.site("api", counts, published) as site:
            api.measure.measure(site, results)
    how = {**how_it_was(options, started, load), **api_tasks.describe(counts)}
    return [api.report.api_part(running.report.Run(how, counts, results))]


def run_python(options: argparse.Namespace) -> List[document.Part]:
    """The same through the Python SDK: embedded, and over TCP beside the published client."""
    if options.binary is None:
        progress("Python: skipped, no ringfence binary was given (--binary)")
        return []
    tasks.check(options.binary, options.driver)
    started, load, sizes = time.monotonic(), os.getloadavg()[0], sizes_of(options)
    counts = replace(python_tasks.QUICK if options.quick else python_tasks.FULL, tree=sizes.files)
    results = running.measure.Results()
    interpreter = python.environment.interpreter(results)
    if interpreter is not None:
        with ExitStack() as cleanup:
            ram = cleanup.enter_context(disk.ram_directory())
            root = cleanup.enter_context(disk.ext4_in_ram(ram, RUNNING_DISK))
            progress("making the directories")
            make_directories(root, sizes)
            programs = (options.binary.resolve(), options.driver.resolve(), interpreter)
            python.measure.measure(python.site.Place(*programs, root, ram, counts), results)
    how = {**how_it_was(options, started, load), **python_tasks.describe(counts)}
    return [python.report.python_part(running.report.Run(how, counts, results))]


def make_directories(root: Path, sizes: tree.Sizes) -> None:
    """A small directory, a large tree and files to print."""
    generator = random.Random(tree.SEED)
    text = tree.source_text(generator)
    tree.fill(root / "small", SMALL, text, generator)
    tree.fill(root / "large" / "vendor", sizes.vendor, text, generator)
    tree.fill(root / "large" / "repo", sizes.repository, text, generator)
    (root / "outputs").mkdir()
    for output in OUTPUTS:
        size = output.megabytes * 10**6
        (root / "outputs" / tasks.output_file(output)).write_bytes((text * (size // len(text) + 1))[:size])
    disk.settle(root)


@contextmanager
def sandbox_site(
    options: argparse.Namespace, root: Path, log: Path, counts: tasks.Counts, peer: Optional[docker.Docker] = None
) -> Iterator[tasks.Site]:
    scratch = root / log.stem
    scratch.mkdir()
    binary = options.binary.resolve()
    program = options.driver.resolve()
    with ExitStack() as cleanup:
        worker = cleanup.enter_context(driver.driver(program, binary, scratch, log))
        in_containers = None
        if peer is not None:
            other, its_log = scratch / "containers", log.with_name(f"{log.stem}-containers.log")
            other.mkdir()
            in_containers = cleanup.enter_context(driver.driver(program, binary, other, its_log, peer))
        yield tasks.Site(
            small=root / "small",
            large=root / "large",
            outputs=root / "outputs",
            binary=binary,
            state=root / "state",
            scratch=scratch,
            driver=worker,
            docker=peer,
            containers=in_containers,
            counts=counts,
        )


def start_docker(cleanup: ExitStack, ram: Path, results: running.measure.Results) -> Optional[docker.Docker]:
    try:
        return cleanup.enter_context(docker.docker(ram))
    except docker.CannotStart as error:
        progress(f"docker: skipped, {error}")
        results.unavailable["docker"] = str(error)
        return None


def settings(options: argparse.Namespace, duration: float, load: float) -> Dict[str, str]:
    """How much work stands behind the figures."""
    sizes, counts = sizes_of(options), counts_of(options)
    return {
        "mode": "quick" if options.quick else "full",
        "repetitions": str(options.repeat) + (", builds once" if options.quick else ""),
        "duration": f"{duration:.0f} s",
        "load before": f"{load:.1f}" + (", busy: the figures scatter" if load > BUSY else ""),
        "tree": f"{sizes.files} files, {sizes.directories} directories, {sizes.bytes // 10**6} MB, "
        f"{sizes.repository.files} of the files in a git repository",
        "big file": f"{sizes.big_file >> 20} MiB",
        "loops": f"{counts.lookups} stats, {counts.opens} opens, {counts.reads} reads, {counts.touches} touches, "
        f"{counts.appends} appends, {counts.files} small files of 1 KiB",
        "tarball": f"{sizes.tarball.files + sizes.tarball.directories} entries, {sizes.tarball.bytes // 10**6} MB",
    }


def main() -> int:
    try:
        run(parse_arguments())
    except CannotRun as error:
        print(error, file=sys.stderr)
        return 2
    except processes.CommandFailed as error:
        print(f"The benchmarks could not run: {error}.", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
