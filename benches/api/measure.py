"""The order of things, and where the times go."""

from __future__ import annotations

from running.measure import Results, visit

from . import pushes
from .tasks import Site, copy_tasks, crowd_task, output_tasks, tasks


def measure(site: Site, results: Results) -> None:
    """Short work many times, then what takes long a few times."""
    counts = site.counts
    site.served.open(site.outputs, 1)
    visit(list(tasks(site)), counts.repeats, results, "through the API")
    visit(list(output_tasks(site)), counts.heavy_repeats, results, "output through the API")
    site.served.close()
    crowds = [crowd_task(site, size) for size in counts.crowds]
    visit(crowds, counts.heavy_repeats, results, "many at once through the API")
    visit(list(copy_tasks(site)), counts.heavy_repeats, results, "forks and snapshots")
    visit(list(pushes.tasks(site)), counts.heavy_repeats, results, "uploads")
    pushes.measure_tree(site, results)
