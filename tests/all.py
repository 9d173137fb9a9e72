"""Runs all suites of Python tests, some beside each other: mostly they wait.

What a suite says is shown when it has ended; the exit code is 1 if one of them failed.
"""

import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
LANES = [
    [["run.sh", "sdk"]],
    [["run.sh", "agentfense"], ["run.sh", "server"]],
    [["in_image.sh"], ["run.sh", "docker"]],
]


def run(lane):
    """One after the other, all of them; says whether they passed."""
    passed = True
    for script, *arguments in lane:
        done = subprocess.run(
            ["sh", HERE / script, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace")
        print(f"\n--- {script} {' '.join(arguments)}\n{done.stdout}", flush=True)
        passed &= done.returncode == 0
    return passed


with ThreadPoolExecutor(len(LANES)) as lanes:
    results = list(lanes.map(run, LANES))
if not all(results):
    sys.exit("some of these tests failed")
