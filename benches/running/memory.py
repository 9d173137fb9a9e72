"""What sandboxes hold while nothing is timed, and what they leave behind."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Dict, Iterable, List, Set

from fs import disk, processes
from fs.measure import progress

from .measure import Results
from .tasks import TRUE, Site

MEGABYTE = 1e6
GIGABYTES_4 = 4e9
PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
# The first commands and sandboxes fill caches and pools that then stay as they are.
WARM_EXECS = 500
WARM_LIVES = 20
SETTLE_SECONDS = 1.0


def measure_idle(site: Site, results: Results) -> None:
    """One sandbox, then many; each has run a command before and does nothing now."""
    progress("memory: idle sandboxes")
    driver, count = site.driver, site.counts.idle
    before = disk.free_memory_bytes()
    (first,) = driver.open(site.small, 1)
    driver.times("exec", argv=[TRUE], count=1)
    time.sleep(SETTLE_SECONDS)
    parts = {pid: proportional_bytes(pid) for pid in with_descendants([first], parents())}
    results.held["idle"] = sum(parts.values()) / MEGABYTE
    results.notes.append("one idle sandbox, PSS: " + described(parts))
    wardens = driver.open(site.small, count - 1)
    time.sleep(SETTLE_SECONDS)
    total = sum(proportional_bytes(pid) for pid in with_descendants(wardens, parents()))
    lost = max(1, before - disk.free_memory_bytes())
    results.held["idle-total"] = total / MEGABYTE
    results.held["idle-each"] = total / count / MEGABYTE
    results.held["idle-host"] = lost / count / MEGABYTE
    # The cautious one of the two: the first leaves out the kernel, the second shared program text.
    results.held["capacity"] = GIGABYTES_4 * count / max(lost, total)
    driver.close()


def measure_exec_growth(site: Site, results: Results) -> None:
    """The warden and init of one sandbox over many commands."""
    progress(f"memory: {site.counts.execs} execs")
    driver = site.driver
    wardens = driver.open(site.small, 1)
    driver.times("exec", argv=[TRUE], count=WARM_EXECS)
    family = with_descendants(wardens, parents())
    before = sum(map(resident_bytes, family))
    held_before = sum(map(open_files, family))
    driver.times("exec", argv=[TRUE], count=site.counts.execs)
    after = sum(map(resident_bytes, family))
    results.held["exec-growth"] = (after - before) / MEGABYTE
    results.notes.append(
        f"over {site.counts.execs} execs: resident {before / MEGABYTE:.2f} to {after / MEGABYTE:.2f} MB, "
        f"descriptors {held_before} to {sum(map(open_files, family))}"
    )
    driver.close()


def measure_life_growth(site: Site, results: Results) -> None:
    """Whoever starts sandboxes, over many of them; and what of them is left on the host."""
    progress(f"memory: {site.counts.kept_lives} sandboxes")
    driver, base = site.driver, str(site.small)
    driver.times("life", base=base, count=WARM_LIVES)
    before = traces(site)
    resident = resident_bytes(driver.pid)
    driver.open(site.small, 1)
    unseen = not_above(traces(site), before)
    driver.close()
    driver.times("life", base=base, count=site.counts.kept_lives)
    results.held["life-growth"] = (resident_bytes(driver.pid) - resident) / MEGABYTE
    if unseen:
        # What does not show while a sandbox lives would not show if it stayed.
        results.notes.append(f"leftovers: not counted, a live sandbox shows no {', '.join(unseen)}")
        return
    after = traces(site)
    results.held["leftovers"] = sum(after[kind] - before[kind] for kind in before)


def traces(site: Site) -> Dict[str, int]:
    """What there is of this driver's sandboxes on the host, whoever has become its parent."""
    mark, scratch = f"bench{site.driver.pid}-", str(site.scratch)
    mounts: Set[str] = set()
    members = 0
    for entry in PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # Mounts of a sandbox are seen only by processes in its own namespace.
            mounts.update(lines_with(scratch, (entry / "mountinfo").read_text()))
            started_with = (entry / "cmdline").read_text(errors="replace")
            members += mark in (entry / "cgroup").read_text() or scratch in started_with
        except OSError:
            pass  # it has ended meanwhile
    return {
        "mounts": len(mounts),
        "processes": members,
        "cgroups": sum(1 for path in CGROUPS.glob("**/ringfence/*") if path.name.startswith(mark)),
        "descriptors": open_files(site.driver.pid),
        "directories": sum(1 for path in site.scratch.iterdir() if path.name.isdigit()),
    }


def lines_with(word: str, text: str) -> List[str]:
    return [line for line in text.splitlines() if word in line]


def not_above(now: Dict[str, int], before: Dict[str, int]) -> List[str]:
    """The kinds of which there are no more than before."""
    return [kind for kind in before if now[kind] <= before[kind]]


def proportional_bytes(pid: int) -> int:
    """Memory a process holds, shared pages divided by the number of those who share them."""
    try:
        return field_bytes((PROC / str(pid) / "smaps_rollup").read_text(), "Pss")
    except OSError:
        return 0


def resident_bytes(pid: int) -> int:
    return field_bytes((PROC / str(pid) / "status").read_text(), "VmRSS")


def field_bytes(text: str, name: str) -> int:
    """The value of a line such as `Pss:  123 kB`."""
    for line in text.splitlines():
        words = line.split()
        if words and words[0] == f"{name}:":
            return int(words[1]) * 1024
    return 0


def open_files(pid: int) -> int:
    return len(os.listdir(PROC / str(pid) / "fd"))


def parents() -> Dict[int, int]:
    """The parent of every process."""
    found = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                found[int(entry.name)] = parent_in((entry / "stat").read_text())
            except OSError:
                pass  # it has ended meanwhile
    return found


def parent_in(stat: str) -> int:
    """The fourth field of /proc/PID/stat; the second may contain spaces and parentheses."""
    return int(stat.rpartition(")")[2].split()[1])


def with_descendants(roots: Iterable[int], parent_of: Dict[int, int]) -> List[int]:
    """The processes and everything that came from them."""
    children: Dict[int, List[int]] = {}
    for pid, parent in parent_of.items():
        children.setdefault(parent, []).append(pid)
    found: List[int] = []
    seen: Set[int] = set()
    waiting = list(roots)
    while waiting:
        pid = waiting.pop(0)
        if pid not in seen:
            seen.add(pid)
            found.append(pid)
            waiting += sorted(children.get(pid, []))
    return found


def described(parts: Dict[int, int]) -> str:
    """The parts of a sandbox by name and size."""
    return ", ".join(f"{role(pid)} {size / MEGABYTE:.2f} MB" for pid, size in parts.items())


def role(pid: int) -> str:
    """The name of the program, or the part of ringfence it is."""
    try:
        words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return "gone"
    name = os.path.basename(words[0]).decode(errors="replace")
    is_part = len(words) > 1 and words[1] in (b"warden", b"init")
    return words[1].decode() if is_part else name


def measure_memory(site: Site, results: Results) -> None:
    for part in (measure_idle, measure_exec_growth, measure_life_growth):
        try:
            part(site, results)
        except (processes.CommandFailed, OSError) as error:
            results.notes.append(f"memory: {error}")
