#!/usr/bin/env python3
"""Runs the steps of a project in one sandbox, within limits, and reports.

    sh examples/project.sh /tmp/project
    python3 examples/python/ci_runner.py /tmp/project --report report.json

Steps are given as NAME=COMMAND and share the files of the sandbox; what one of them builds, the next
finds. The project itself is not changed. The exit code is 0 if all steps succeeded, 1 if one did not,
2 if nothing could be run.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Optional, Tuple

from ringfence import CommandTimeoutError, ExecResult, ResourceLimits, Sandbox, SandboxError

Step = Tuple[str, str]

STEPS: List[Step] = [
    ("compile", "python3 -m compileall -q src"),
    ("test", "python3 -m unittest tests/test_app.py"),
    ("package", "mkdir -p output && tar -cf output/src.tar src && ls output"),
]


@dataclass
class Outcome:
    """What became of a step, in the words of the report."""

    name: str
    command: str
    status: str
    exit_code: Optional[int] = None
    seconds: float = 0.0
    peak_memory_mb: Optional[float] = None
    reason: Optional[str] = None
    denied: Tuple[str, ...] = ()


def run_step(sandbox: Sandbox, step: Step, timeout: float) -> Outcome:
    """Runs one step, and shows what it prints while it prints it."""
    name, command = step
    print(f"--- {name}: {command}", flush=True)
    stream = sandbox.exec_stream(command, timeout=timeout, env={"CI": "true"})
    try:
        for chunk in stream:
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
    except CommandTimeoutError as error:
        return Outcome(name, command, "timeout", seconds=error.timeout_seconds)
    # The stream is at its end, so there is a result.
    assert stream.result is not None
    return outcome(step, stream.result)


def outcome(step: Step, result: ExecResult) -> Outcome:
    return Outcome(
        *step,
        status="passed" if result.success else "failed",
        exit_code=result.exit_code,
        seconds=round(result.duration.total_seconds(), 3) if result.duration else 0.0,
        peak_memory_mb=round(result.usage.peak_memory_bytes / 1e6, 1) if result.usage else None,
        # An exit code of 137 says that it was killed; this says by which limit.
        reason=result.reason,
        denied=tuple(dict.fromkeys(denial.path for denial in result.denials)),
    )


def run_all(sandbox: Sandbox, steps: List[Step], timeout: float, keep_going: bool) -> List[Outcome]:
    outcomes: List[Outcome] = []
    for step in steps:
        failed = any(done.status != "passed" for done in outcomes)
        if failed and not keep_going:
            outcomes.append(Outcome(*step, status="skipped"))
        else:
            outcomes.append(run_step(sandbox, step, timeout))
    return outcomes


def report(sandbox: Sandbox, outcomes: List[Outcome]) -> Dict[str, Any]:
    """For machines: the steps, what they changed, and what was in force while they ran."""
    return {
        "passed": all(outcome.status == "passed" for outcome in outcomes),
        "steps": [asdict(outcome) for outcome in outcomes],
        "changes": [f"{change.kind} {change.path}" for change in sandbox.changes()],
        "limits": sandbox.info.resources.to_dict() if sandbox.info.resources else {},
        "network": sandbox.info.network,
        "record_intact": sandbox.verify_audit().intact,
    }


def show(outcomes: List[Outcome]) -> None:
    print("\nstep         status     seconds")
    for outcome in outcomes:
        print(f"{outcome.name:<12} {outcome.status:<10} {outcome.seconds:7.2f}")
        if outcome.reason:
            print(f"             {outcome.reason}")
        for path in outcome.denied:
            print(f"             refused by the policy: {path}")


def a_step(text: str) -> Step:
    name, sign, command = text.partition("=")
    if not (name and sign and command):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=COMMAND")
    return name, command


def parsed(arguments: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run the steps of a project in a sandbox.")
    parser.add_argument("directory", help="the project; examples/project.sh makes one")
    parser.add_argument("--step", action="append", type=a_step, metavar="NAME=COMMAND",
                        help="a step; can be given several times (default: compile, test, package)")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for each step")
    parser.add_argument("--memory-mb", type=int, default=512, help="for all processes together")
    parser.add_argument("--pids", type=int, default=200, help="processes and threads at once")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failed step")
    parser.add_argument("--report", metavar="FILE", help="write a report as JSON")
    parser.add_argument("--artifacts", metavar="DIR", help="copy what is in /output to here")
    return parser.parse_args(arguments)


def main(arguments: Optional[List[str]] = None) -> int:
    asked = parsed(arguments)
    limits = ResourceLimits(memory_bytes=asked.memory_mb << 20, pids_limit=asked.pids)
    try:
        with Sandbox.from_local(
                asked.directory, preset="development", resources=limits) as sandbox:
            outcomes = run_all(sandbox, asked.step or STEPS, asked.timeout, asked.keep_going)
            made = report(sandbox, outcomes)
            if asked.artifacts and sandbox.exists("/output"):
                count = sandbox.download_dir("/output", asked.artifacts)
                print(f"\n{count} file(s) copied to {asked.artifacts}")
    except SandboxError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    show(outcomes)
    if asked.report:
        with open(asked.report, "w", encoding="utf-8") as file:
            json.dump(made, file, indent=2)
    return 0 if made["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
