"""The order of things, and where the times go."""

from __future__ import annotations

from fs import processes
from fs.measure import progress
from running.measure import Results, visit
from running.memory import MEGABYTE

from .site import Place, Site
from .tasks import crowd_task, programs_with_one_sandbox, tasks, upload_tasks
from .trees import measure_trees


def measure(place: Place, results: Results) -> None:
    """Short work many times, then what takes long a few times."""
    counts = place.counts
    measure_memory(place, results)
    # The first program of all compiles the modules that it imports.
    programs_with_one_sandbox(place)
    with place.site() as site:
        open_all(site)
        visit(list(tasks(site)), counts.repeats, results, "Python")
        close_all(site)
        crowds = [crowd_task(site, size) for size in counts.crowds]
        visit(crowds, counts.heavy_repeats, results, "many at once from Python")
        visit(list(upload_tasks(site)), counts.heavy_repeats, results, "uploads from Python")
    measure_trees(place, results)


def measure_memory(place: Place, results: Results) -> None:
    """First, and by a program of its own: what it holds must not come from other work."""
    size = max(place.counts.crowds)
    progress(f"memory of a program with {size} sandboxes")
    try:
        with place.worker("ringfence") as client:
            resident = client.ask("crowd-memory", "resident", base=str(place.small), size=size)
    except processes.CommandFailed as error:
        results.notes.append(f"memory: {error}")
        return
    results.held["client-new"] = resident["before"] / MEGABYTE
    results.held["client-crowd"] = resident["during"] / MEGABYTE


def open_all(site: Site) -> None:
    """Sandboxes and sessions that stay while the short tasks are visited."""
    small = str(site.place.small)
    for client in (site.embedded, site.ours, site.published):
        client.order("open", base=small)
    site.embedded.order("async-open", base=small)


def close_all(site: Site) -> None:
    for client in (site.embedded, site.ours, site.published):
        client.order("close")
    site.embedded.order("async-close")
