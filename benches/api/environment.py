"""A Python with the published client in it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Optional

from fs import processes
from fs.measure import progress
from running.measure import Results

ROOT = Path(__file__).resolve().parents[2]
# Made by the tests of the published client, which pin everything it needs.
OF_THE_TESTS = ROOT / "target" / "venv-agentfense"
PINNED = ROOT / "tests" / "agentfense" / "requirements.txt"
CLIENT = "agentfense==0.2.1"


def published_client(scratch: Path, may_install: bool, results: Results) -> Optional[Path]:
    """The one of the tests, or a new one below `scratch`."""
    there = OF_THE_TESTS / "bin" / "python"
    if (OF_THE_TESTS / "installed.txt").is_file():
        return there
    if not may_install:
        results.unavailable["published/start"] = f"quick, and there is no {OF_THE_TESTS.name} yet"
        return None
    try:
        return install(scratch / "published")
    except processes.CommandFailed as error:
        progress(f"the published client: skipped, {error}")
        results.unavailable["published/start"] = f"it could not be installed: {error}"
        return None


def install(directory: Path) -> Path:
    progress("installing the published client")
    processes.run([sys.executable, "-m", "venv", str(directory)])
    pip = [str(directory / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    processes.run([*pip, CLIENT, "--constraint", str(PINNED)])
    return directory / "bin" / "python"
