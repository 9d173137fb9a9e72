#!/usr/bin/env python3
"""Prepares a sandbox once, and tests it in many configurations at the same time.

    sh examples/project.sh /tmp/project
    python3 examples/python/test_matrix.py /tmp/project

Each configuration runs in a fork of the prepared sandbox: it begins with the same files, and what it
changes is its own. A fork copies nothing, so it costs as much for a large project as for a small one.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from dataclasses import dataclass
from typing import Dict, List, Optional

from ringfence import AsyncSandbox, CommandTimeoutError, ExecResult, SandboxError

PREPARE = "mkdir -p output && python3 -m compileall -q src && echo prepared > output/state"
TEST = "python3 -m unittest tests/test_app.py && cat output/state && echo $MATRIX_NAME > output/state"

MATRIX = [
    "plain",
    "optimised:PYTHONOPTIMIZE=1",
    "warnings:PYTHONWARNINGS=error",
    "hash-seed:PYTHONHASHSEED=42",
    "utf8:PYTHONUTF8=1,LC_ALL=C",
    "no-cache:PYTHONDONTWRITEBYTECODE=1",
]


@dataclass
class Configuration:
    name: str
    env: Dict[str, str]


@dataclass
class Verdict:
    configuration: Configuration
    passed: bool
    summary: str


def configuration(text: str) -> Configuration:
    """`NAME` or `NAME:VARIABLE=VALUE,VARIABLE=VALUE`."""
    name, _, rest = text.partition(":")
    pairs = [pair.partition("=") for pair in rest.split(",") if pair]
    if not name or not all(key and sign for key, sign, _ in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME:VARIABLE=VALUE,…")
    return Configuration(name, {"MATRIX_NAME": name, **{key: value for key, _, value in pairs}})


async def tried(
    prepared: AsyncSandbox, configuration: Configuration, command: str, turns: asyncio.Semaphore
) -> Verdict:
    """One configuration, in a fork that goes when its block is left, however it is left."""
    async with turns, await prepared.fork(labels={"matrix": configuration.name}) as sandbox:
        try:
            result = await sandbox.run(command, timeout=300, env=configuration.env)
        except CommandTimeoutError as error:
            return Verdict(configuration, False, f"no end in {error.timeout_seconds:g} seconds")
    return Verdict(configuration, result.success, last_line(result))


def last_line(result: ExecResult) -> str:
    lines = result.output.strip().splitlines()
    return lines[-1] if lines else f"exit code {result.exit_code}"


async def matrix(
    directory: str, prepare: str, test: str, configurations: List[Configuration], at_once: int
) -> List[Verdict]:
    turns = asyncio.Semaphore(at_once)
    async with await AsyncSandbox.from_local(directory, preset="development") as prepared:
        await prepared.run(prepare, timeout=600, raise_on_error=True)
        # Ctrl-C cancels all of them, and each takes its fork with it.
        verdicts = await asyncio.gather(
            *(tried(prepared, each, test, turns) for each in configurations))
        state = (await prepared.run("cat output/state", raise_on_error=True)).stdout.strip()
        print(f"the prepared sandbox is as it was: {state}")
    return verdicts


def show(verdicts: List[Verdict]) -> None:
    for verdict in verdicts:
        mark = "passed" if verdict.passed else "FAILED"
        print(f"{verdict.configuration.name:<12} {mark}  {verdict.summary}")


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(description="Test a project in many configurations at once.")
    parser.add_argument("directory", help="the project; examples/project.sh makes one")
    parser.add_argument("--configuration", action="append", type=configuration,
                        metavar="NAME:VARIABLE=VALUE,…", help="can be given several times")
    parser.add_argument("--prepare", default=PREPARE, help="run once, before all configurations")
    parser.add_argument("--test", default=TEST, help="run in each configuration")
    parser.add_argument("--at-once", type=int, default=8, help="how many run at the same time")
    asked = parser.parse_args(arguments)
    configurations = asked.configuration or [configuration(text) for text in MATRIX]
    try:
        verdicts = asyncio.run(
            matrix(asked.directory, asked.prepare, asked.test, configurations, asked.at_once))
    except SandboxError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    show(verdicts)
    return 0 if all(verdict.passed for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
