"""A real server for the time of a test run."""

import os
import pathlib
import select
import shutil
import socket
import subprocess
import tempfile
import time

READY_WITHIN = 20
END_WITHIN = 10


def program():
    """The server's program, as the environment names it."""
    name = os.environ.get("RINGFENCE")
    if not name:
        raise RuntimeError("RINGFENCE must name the server's program; run.sh does that")
    return name


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """Started by `with`; leaves no process, mount or file when it ends."""

    def __init__(self, *options, listen=None):
        self._options = options
        self._listen = listen or f"127.0.0.1:{free_port()}"

    def __enter__(self):
        # Sandboxes outlive their server otherwise.
        serve = [program(), "serve", "--stop-sandboxes", "--listen", self._listen, *self._options]
        self._state = pathlib.Path(tempfile.mkdtemp(prefix="ringfence-"))
        self.log = self._state.with_name(self._state.name + ".log")
        with open(self.log, "wb") as log:
            self._process = subprocess.Popen(
                [*serve, "--state", self._state],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self.endpoint = self._wait_until_ready()
        return self

    def _wait_until_ready(self):
        readable, _, _ = select.select([self._process.stdout], [], [], READY_WITHIN)
        line = self._process.stdout.readline().decode() if readable else ""
        if not line.startswith("ready "):
            self._end()
            raise RuntimeError(f"the server did not start: {self.log.read_text()}")
        return line.split()[1]

    def __exit__(self, *_):
        self._end()
        assert not self.mounts(), "mounts were left behind"
        shutil.rmtree(self._state)
        self.log.unlink()

    def _end(self):
        self._process.terminate()
        try:
            self._process.wait(END_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            self._process.stdout.close()

    def mounts(self):
        """What is mounted below the server's state, after a moment for what is being unmounted."""
        deadline = time.monotonic() + END_WITHIN
        while True:
            table = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
            found = [line for line in table if str(self._state) in line]
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.05)
