"""The limits that the guides set are told, leave alone what keeps to them, and hold."""

from datetime import timedelta

import pytest
from ringfence import ResourceLimits

from projects import WEB

WAIT = 100

LIMITS = ResourceLimits(memory_bytes=128 << 20, cpu_quota=50_000, pids_limit=20)


@pytest.fixture
def limited(open_sandbox):
    return open_sandbox(WEB, preset="development", resources=LIMITS)


def test_limits_are_told_and_what_keeps_to_them_is_not_troubled(limited):
    assert limited.info.resources == LIMITS
    result = limited.run("make deps test", timeout=WAIT)
    assert result.exit_code == 0 and result.duration < timedelta(seconds=WAIT)


def test_the_limit_on_memory_holds(limited):
    result = limited.run("python3 -c 'len(bytearray(400 << 20))'", timeout=WAIT)
    assert result.exit_code == 137 and "memory" in result.reason
    assert limited.run("echo alive").stdout == "alive\n", "only what took too much is ended"
    assert limited.run("python3 -c 'len(bytearray(32 << 20))'", timeout=WAIT).exit_code == 0


FORKS = """
import os, signal
children = []
try:
    for n in range(50):
        child = os.fork()
        if not child:
            signal.pause()
        children.append(child)
except BlockingIOError:
    print("enough after", len(children))
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


def test_the_limit_on_processes_holds(limited):
    result = limited.exec("python3 -", stdin=FORKS, timeout=WAIT)
    assert result.stdout.startswith("enough after "), result.output
    assert int(result.stdout.split()[-1]) < 20
    assert limited.run("echo alive").stdout == "alive\n"


BUSY = """
import time
began, used = time.monotonic(), time.process_time
while used() < 0.5:
    pass
print(time.monotonic() - began)
"""


def test_the_limit_on_processor_time_holds(limited):
    """Half a second of work takes a second with half a processor, on any machine."""
    result = limited.exec("python3 -", stdin=BUSY, timeout=WAIT)
    assert float(result.stdout) > 0.8, "it had more than its half"
    assert result.usage.cpu_time >= timedelta(seconds=0.5)


def test_without_a_limit_nothing_is_held_back(open_sandbox):
    free = open_sandbox(WEB, preset="read-only")
    assert free.info.resources is None
    assert free.run("python3 -c 'len(bytearray(400 << 20))'", timeout=WAIT).exit_code == 0
