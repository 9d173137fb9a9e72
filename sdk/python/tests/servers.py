"""Servers that tests ask: the private one of this process, and one over TLS that wants a token."""

import contextlib
import dataclasses
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

READY_WITHIN = 60
END_WITHIN = 60


def program():
    name = os.environ.get("RINGFENCE_BINARY")
    if not name:
        raise RuntimeError("RINGFENCE_BINARY must name the program; tests/run.sh does that")
    return name


@dataclasses.dataclass
class Where:
    """What tells a client which server is meant."""

    name: str
    options: dict
    state: pathlib.Path = None

    @property
    def is_embedded(self):
        return not self.options


EMBEDDED = Where("embedded", {})


@contextlib.contextmanager
def served(*options, tls=False, token=False, state=None):
    """A server of its own, on TCP, that leaves nothing. Yields a `Where`."""
    place = pathlib.Path(state or tempfile.mkdtemp(prefix="rf-sdk-"))
    extra = list(map(str, options))
    if tls:
        certificate, key = self_signed(place)
        extra += ["--tls-cert", certificate, "--tls-key", key]
    if token:
        extra += ["--require-token"]
    with open(place / "log", "ab") as log:
        process = subprocess.Popen(
            [program(), "serve", "--listen", "127.0.0.1:0", "--state", place, *extra],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
    try:
        address = _ready(process, place)
        given = {"endpoint": address}
        if tls:
            given.update(endpoint=address.replace("127.0.0.1", "localhost"), secure=True,
                         ca_certificate=str(certificate))
        if token:
            given["token"] = new_token(place)
        where = Where("tls" if tls else "tcp", given, place)
        where.process = process
        yield where
    finally:
        process.terminate()
        process.wait(END_WITHIN)
        process.stdout.close()
        _end_wardens(place)
        shutil.rmtree(place, ignore_errors=True)


def _ready(process, place):
    readable, _, _ = select.select([process.stdout], [], [], READY_WITHIN)
    line = process.stdout.readline().decode() if readable else ""
    if not line.startswith("ready "):
        raise RuntimeError(f"the server did not start: {(place / 'log').read_text()}")
    return line.split()[1]


def new_token(state, account="tests"):
    made = subprocess.run(
        [program(), "token", "create", account, "--json", "--state", state],
        stdout=subprocess.PIPE, check=True)
    return json.loads(made.stdout)["secret"]


def self_signed(place):
    certificate, key = place / "cert.pem", place / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", key, "-out", certificate], check=True, stderr=subprocess.DEVNULL)
    return certificate, key


def processes(needle):
    """The pids of processes whose command line has this in it."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if str(needle).encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


def mounts(needle):
    return [line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
            if str(needle) in line]


def wait_until(true, within=END_WITHIN, what="it"):
    """Looks again and again, until a deadline that only a broken program meets."""
    deadline = time.monotonic() + within
    while True:
        found = true()
        if found:
            return found
        assert time.monotonic() < deadline, f"{what} did not come true in {within} seconds"
        time.sleep(0.02)


def _end_wardens(place):
    """Sandboxes outlive their server; a test that failed may have left some."""
    import signal
    for pid in processes(place):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(AssertionError):
        wait_until(lambda: not mounts(place), 10)
