"""A real server that can be killed and started again on the same state."""

import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

from wire import Client

READY_WITHIN = 30
END_WITHIN = 20


def program():
    name = os.environ.get("RINGFENCE")
    if not name:
        raise RuntimeError("RINGFENCE must name the server's program; run.sh does that")
    return name


class Server:
    """Started by `with`; leaves no process, mount or file when it ends."""

    def __init__(self, *options, listen="127.0.0.1:0", tokens=()):
        self._options, self._listen = options, listen
        self._accounts = tokens
        self.tokens = {}

    def __enter__(self):
        self.state = pathlib.Path(tempfile.mkdtemp(prefix="rf-"))
        self.unix = f"unix:{self.state}/server/api.sock"
        self.log = self.state / "log"
        self.start()
        for account in self._accounts:
            self.tokens[account] = self.new_token(account)
        return self

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [program(), "serve", *(["--listen", self._listen] if self._listen else []),
                 "--state", self.state, *map(str, self._options)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        readable, _, _ = select.select([self.process.stdout], [], [], READY_WITHIN)
        line = self.process.stdout.readline().decode() if readable else ""
        if not line.startswith("ready "):
            self.process.kill()
            self.process.wait()
            raise RuntimeError(f"the server did not start: {self.log.read_text()}")
        self.endpoint = line.split()[1]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self._wait()

    def stop(self):
        self.process.terminate()
        self._wait()

    def _wait(self):
        try:
            self.process.wait(END_WITHIN)
        finally:
            self.process.stdout.close()

    def new_token(self, account):
        made = subprocess.run([program(), "token", "create", account, "--json", "--state", self.state],
                              stdout=subprocess.PIPE, check=True)
        import json
        return json.loads(made.stdout)["secret"]

    def client(self, token=None):
        return Client(self.endpoint, token)

    def memory(self):
        """What the server alone holds, in bytes."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("the server has ended")

    def __exit__(self, *failed):
        try:
            if self.process.poll() is None:
                for token in [None, *self.tokens.values()]:
                    with Client(self.unix if token is None else self.endpoint, token) as client:
                        client.destroy_all()
        finally:
            if self.process.poll() is None:
                self.stop()
        if failed[0] is None:
            assert not self.left(), "something was left behind"
        shutil.rmtree(self.state, ignore_errors=True)

    def left(self):
        """Mounts and processes of this server, after a moment for what is just ending."""
        deadline = time.monotonic() + END_WITHIN
        while True:
            found = [line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
                     if str(self.state) in line] + wardens(self.state)
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.05)


def wardens(state):
    """The pids of wardens whose sandbox is below this directory."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"\0warden\0" in line and str(state).encode() in line:
                found.append(int(entry.name))
    return found
