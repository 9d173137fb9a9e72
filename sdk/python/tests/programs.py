"""Python programs in processes of their own, and what they leave on the machine."""

import contextlib
import glob
import os
import pathlib
import queue
import random
import signal
import subprocess
import sys
import threading
import time

import servers

WITHIN = 60
"""Seconds that only a program that hangs needs."""

PRELUDE = '''
import asyncio, faulthandler, os, signal, sys, threading, time
faulthandler.register(signal.SIGUSR1, all_threads=True)
from ringfence import *
from ringfence import _embedded

PROJECT, MARK = sys.argv[1:3]
LONG = f"sleep {MARK}"

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def made(**options):
    return Sandbox.from_local(PROJECT, **OPTIONS, **options)

async def amade(**options):
    return await AsyncSandbox.from_local(PROJECT, **OPTIONS, **options)

def wait_for_word():
    return sys.stdin.readline()

def server():
    return _embedded._server._process.pid

def say_when_in(name):
    """Says so when this thread, or one that is not yet, comes to a function of this name."""
    def look(frame, event, _):
        if event == "call" and frame.f_code.co_name == name:
            sys.setprofile(None)
            threading.setprofile(None)
            say("inside")
    threading.setprofile(look)
    sys.setprofile(look)
'''


_OF_PYTHON = "ignore:This process:DeprecationWarning"
"""What newer ones say about every program that has threads and forks."""


class Program:
    """One that runs. What it prints comes line by line; what it leaves can be asked for."""

    def __init__(self, place, text, options=None):
        self.mark = f"86400.{random.randrange(10 ** 9):09}"
        self.state = place / f"state-{self.mark}"
        self.state.mkdir()
        project = place / "project"
        project.mkdir(exist_ok=True)
        (project / "hello.txt").write_text("hello\n")
        file = place / f"program-{self.mark}.py"
        file.write_text(f"OPTIONS = {options or {}!r}\n{PRELUDE}\n{text}")
        self._errors = open(place / f"stderr-{self.mark}", "w+b")
        self.process = subprocess.Popen(
            [sys.executable, "-W", _OF_PYTHON, str(file), str(project), self.mark],
            env=dict(os.environ, RINGFENCE_STATE=str(self.state)),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors)
        self._sandboxes = set()
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with self.process.stdout as out:
            for line in out:
                self._lines.put(line.decode().rstrip("\n"))
        self._lines.put(None)

    def line(self):
        """The next that it prints; None when nothing more can come."""
        try:
            found = self._lines.get(timeout=WITHIN)
        except queue.Empty:
            raise AssertionError(f"it says nothing more; its stderr: {self.stderr()}") from None
        self._look()
        return found

    def says(self, *wanted):
        """Waits for these lines, and no others."""
        for each in wanted:
            line = self.line()
            assert line == each, f"{line!r} is not {each!r}; its stderr: {self.stderr()}"

    def runs(self):
        """Waits until a sandbox runs the long command."""
        servers.wait_until(self.commands, WITHIN, "the command")
        self._look()

    def commands(self):
        """The long commands that run."""
        return servers.processes(f"sleep {self.mark}") + servers.processes(f"sleep\0{self.mark}")

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def go_on(self):
        """Lets it pass its `wait_for_word()`."""
        self.process.stdin.write(b"go on\n")
        self.process.stdin.flush()

    def kill(self):
        self.process.kill()

    def ends(self, code=0, stderr=""):
        """Waits for its end, which must be this one; with an empty `stderr` there is no noise."""
        try:
            found = self.process.wait(WITHIN)
        except subprocess.TimeoutExpired:
            # It says where.
            self.process.send_signal(signal.SIGUSR1)
            time.sleep(1)
            raise AssertionError(f"it hangs; its stderr: {self.stderr()}") from None
        said = self.stderr()
        assert found == code, said
        assert said == "" if not stderr else stderr in said, said

    def stderr(self):
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def leaves_nothing(self):
        servers.wait_until(lambda: not self.left(), WITHIN, f"the end of {self.left()}")

    def left(self):
        """What there is of it: processes, mounts, directories, cgroups."""
        self._look()
        return [
            *(f"process {pid}: {command(pid)}" for pid in self._processes()),
            *servers.mounts(self.state.name),
            *map(str, (self.state / "processes").glob("*")),
            *(cgroup for cgroup in glob.glob("/sys/fs/cgroup/**/sb_*", recursive=True)
              if os.path.basename(cgroup) in self._sandboxes),
        ]

    def _look(self):
        self._sandboxes |= {path.name for path in self.state.glob("processes/*/sandboxes/*")}

    def _processes(self):
        """Those that were started with its state directory, or see something of it mounted."""
        needle = self.state.name.encode()
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if any(needle in (entry / file).read_bytes()
                           for file in ("environ", "cmdline", "mountinfo")):
                        yield int(entry.name)

    def end(self):
        """After a test, also one that failed. What was not killed cleans up after itself."""
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(AssertionError):
            servers.wait_until(lambda: not any(self._processes()), 10)
        for pid in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.stdin.close()
        self._errors.close()


def command(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return "gone"
