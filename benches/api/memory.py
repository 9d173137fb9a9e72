"""What the server holds: with many sandboxes, and after much work."""

from __future__ import annotations

import time

from fs import processes
from fs.measure import progress
from running.measure import Results
from running.memory import (
    MEGABYTE,
    SETTLE_SECONDS,
    WARM_EXECS,
    WARM_LIVES,
    open_files,
    proportional_bytes,
    resident_bytes,
)
from running.tasks import TRUE

from .tasks import Site


def measure_memory(site: Site, results: Results) -> None:
    """In this order: a server that has done nothing yet comes first."""
    results.held["server-new"] = proportional_bytes(site.served.pid) / MEGABYTE
    for part in (measure_growth, measure_full):
        try:
            part(site, results)
        except (processes.CommandFailed, OSError) as error:
            results.notes.append(f"memory: {error}")


def measure_growth(site: Site, results: Results) -> None:
    """The server over many commands, and over many sandboxes."""
    served, counts = site.served, site.counts
    served.open(site.small, 1)
    descriptors = grown(
        site, results, "server-exec-growth", counts.execs, WARM_EXECS, "exec", argv=[TRUE]
    )
    served.close()
    descriptors += grown(
        site, results, "server-life-growth", counts.kept_lives, WARM_LIVES, "life", base=str(site.small)
    )
    results.held["server-descriptors"] = descriptors


def grown(
    site: Site, results: Results, name: str, count: int, warm: int, ask: str, **details: object
) -> int:
    """Asks so often; the memory is put down, the number of descriptors that are more is returned."""
    progress(f"memory of the server: {count} times {ask}")
    served, pid = site.served, site.served.pid
    served.times(ask, via="tcp", count=warm, **details)
    time.sleep(SETTLE_SECONDS)
    resident, descriptors = resident_bytes(pid), open_files(pid)
    served.times(ask, via="tcp", count=count, **details)
    time.sleep(SETTLE_SECONDS)
    after = resident_bytes(pid)
    results.held[name] = (after - resident) / MEGABYTE
    results.notes.append(
        f"server over {count} times {ask}: resident {resident / MEGABYTE:.2f} to {after / MEGABYTE:.2f} MB"
    )
    return open_files(pid) - descriptors


def measure_full(site: Site, results: Results) -> None:
    """So many on record, some of which run."""
    served, counts = site.served, site.counts
    progress(f"memory of the server: {counts.recorded} sandboxes")
    served.open(site.small, counts.running)
    served.open(site.small, counts.recorded - counts.running, start=False)
    time.sleep(SETTLE_SECONDS)
    results.held["server-full"] = proportional_bytes(served.pid) / MEGABYTE
    served.close()
