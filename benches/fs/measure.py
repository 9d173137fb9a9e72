"""Visits workloads and variants, and keeps the times."""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Tuple

from . import policies, processes, variants
from .rows import POLICY_SENSITIVE
from .variants import Site, Variant
from .workloads import TIMEOUT, WORKLOADS, Bench, Times, Workload

MOST_RUNS = 3


@dataclass
class Results:
    """Everything that was measured: seconds[row][variant][repetition]."""

    seconds: Dict[str, Dict[str, List[float]]] = field(default_factory=dict)
    policy_change_ms: List[float] = field(default_factory=list)
    skipped: Dict[str, str] = field(default_factory=dict)
    notes: List[str] = field(default_factory=list)

    def add(self, row: str, variant: str, seconds: float) -> None:
        self.seconds.setdefault(row, {}).setdefault(variant, []).append(seconds)

    def discard(self, row: str, variant: str, reason: str) -> None:
        """Take a variant out of a row: a ratio needs every repetition."""
        self.seconds.get(row, {}).pop(variant, None)
        self.notes.append(f"{row}, {variant}: {reason}")


@dataclass(frozen=True)
class Plan:
    """Which rows, how often, and whether to save time: slow rows once, references only where needed."""

    rows: Tuple[str, ...]
    repeats: int
    quick: bool


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure(bench: Bench, mounted: List[Variant], plan: Plan, results: Results) -> None:
    """Workload by workload, so that what one leaves in the caches meets every variant alike."""
    for number, workload in enumerate(WORKLOADS):
        if not set(workload.rows) & set(plan.rows):
            continue
        if workload.needs and processes.missing(workload.needs):
            results.notes.append(f"{', '.join(workload.rows)}: skipped, {workload.needs} is not installed")
            continue
        repeats = 1 if plan.quick and workload.slow else plan.repeats
        taking_part = [variant for variant in mounted if is_wanted(variant, workload, plan)]
        measure_workload(bench, workload, taking_part, repeats, number, results)


def is_wanted(variant: Variant, workload: Workload, plan: Plan) -> bool:
    if not plan.quick or variant.name not in variants.RULE_REFERENCES:
        return True
    return bool(set(workload.rows) & set(POLICY_SENSITIVE))


def measure_workload(
    bench: Bench, workload: Workload, mounted: List[Variant], repeats: int, number: int, results: Results
) -> None:
    """The order rotates from repetition to repetition, so no variant is always first."""
    remaining = [variant for variant in mounted if is_able(variant, workload, results)]
    for repeat in range(repeats):
        progress(f"{', '.join(workload.rows)}: {repeat + 1} of {repeats}")
        for variant in rotated(remaining, number + repeat):
            try:
                for row, seconds in steady_times(bench, workload, variant).items():
                    results.add(row, variant.name, seconds)
            except processes.CommandFailed as error:
                progress(f"  {variant.name}: {error}")
                remaining = [other for other in remaining if other is not variant]
                if isinstance(error, processes.TimedOut) and variant.server is not None:
                    variant.server.stop(patience=0)
                for row in workload.rows:
                    results.discard(row, variant.name, str(error))


def steady_times(bench: Bench, workload: Workload, variant: Variant) -> Times:
    """The medians of several runs where one is short: milliseconds scatter, seconds do not."""
    enough = bench.counts.enough_seconds * workload.patience
    runs: List[Times] = []
    spent = 0.0
    while not runs or (spent < enough and len(runs) < MOST_RUNS):
        runs.append(workload.run(bench, variant))
        spent += sum(runs[-1].values())
    return {row: statistics.median(run[row] for run in runs) for row in workload.rows}


def is_able(variant: Variant, workload: Workload, results: Results) -> bool:
    """Whether a variant can take part; the reason is noted if it cannot."""
    for row in workload.rows:
        if row in variant.unavailable:
            results.notes.append(f"{row}, {variant.name}: not possible, {variant.unavailable[row]}")
            return False
    if variant.server is not None and not variant.server.is_running():
        results.notes.append(
            f"{', '.join(workload.rows)}, {variant.name}: its server has ended: {variant.server.last_words()}"
        )
        return False
    return True


def rotated(mounted: List[Variant], by: int) -> List[Variant]:
    start = by % max(1, len(mounted))
    return mounted[start:] + mounted[:start]


def measure_policy_change(bench: Bench, site: Site, repeats: int, results: Results) -> None:
    """How long a name that a new policy hides can still be seen while all names are cached."""
    file = site.ram / "changing-policy.toml"
    rules = policies.hundred_rules()
    policies.write_policy(file, rules)
    try:
        variant = variants.mount_ringfence(site, "policy-change", ["--policy", str(file)])
        for repeat in range(repeats):
            progress(f"policy-change: {repeat + 1} of {repeats}")
            results.policy_change_ms.append(1000 * hide_once(bench, variant, file, rules))
    except (variants.CannotMount, processes.CommandFailed, OSError) as error:
        results.notes.append(f"policy-change: {error}")


def hide_once(bench: Bench, variant: Variant, file: Path, rules: List[policies.Rule]) -> float:
    """Hide one name, then show it again for the next repetition."""
    assert variant.server is not None
    processes.run(["find", "tree", "-ls"], cwd=variant.root, timeout=TIMEOUT)
    policies.write_policy(file, rules, hidden=bench.sample)
    seconds = bench.operation(variant.root, "hide", bench.sample, variant.server.pid)
    policies.write_policy(file, rules)
    bench.operation(variant.root, "show", bench.sample, variant.server.pid)
    return seconds
