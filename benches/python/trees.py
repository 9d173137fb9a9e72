"""The large tree, for the first time and again: `from_local`, and the command line beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Dict, List

from api.pushes import push
from api.server import Served
from fs import processes
from fs.measure import progress, rotated
from running.driver import Driver
from running.measure import Results
from running.memory import MEGABYTE

if TYPE_CHECKING:
    from .site import Place

# Microseconds, files sent, bytes read.
Tree = Dict[str, float]
# What is over quickly is done more than once.
AGAIN = 3


@dataclass(frozen=True)
class Pushing:
    """What `ringfence codebase push` needs to know."""

    binary: Path
    served: Served


def measure_trees(place: "Place", results: Results) -> None:
    """Each way has a server of its own, which then knows nothing, and comes first in turn."""
    ways = {"tree": by_client, "push": by_command}
    for repeat in range(place.counts.tree_repeats):
        progress(f"the large tree: {repeat + 1} of {place.counts.tree_repeats}")
        for name in rotated(list(ways), repeat):
            try:
                with place.server(f"{name}-{repeat}") as server:
                    ways[name](place, server, results)
            except processes.CommandFailed as error:
                results.unavailable[f"{name}/second"] = str(error)


def by_client(place: "Place", server: Served, results: Results) -> None:
    """Everything new at first, the cache of digests too."""
    cache = str(place.root / f"cache-{server.pid}")
    with place.worker("ringfence", server.address, XDG_CACHE_HOME=cache) as client:
        first = from_local(client, place.large, cached=True)
        later = [from_local(client, place.large, cached=True) for _ in range(AGAIN)]
        uncached = [from_local(client, place.large, cached=False) for _ in range(AGAIN)]
    put_down(results, first, later, uncached)


def put_down(results: Results, first: Tree, later: List[Tree], uncached: List[Tree]) -> None:
    """The times, and the worst of what was sent and read again."""
    results.add("tree/first", [first["micros"]])
    results.add("tree/second", [each["micros"] for each in later])
    results.add("tree/uncached", [each["micros"] for each in uncached])
    results.held["sent-again"] = max(each["sent"] for each in later + uncached)
    results.held["read-again"] = max(each["read"] for each in later) / MEGABYTE
    results.held["read-first"] = first["read"] / MEGABYTE


def from_local(client: Driver, base: Path, cached: bool) -> Tree:
    return client.ask("tree", "tree", base=str(base), cached=cached)


def by_command(place: "Place", server: Served, results: Results) -> None:
    pushing = Pushing(place.binary, server)
    first = push(pushing, place.large)
    later = [push(pushing, place.large, first.codebase) for _ in range(AGAIN)]
    results.add("push/first", [first.micros])
    results.add("push/second", [each.micros for each in later])
