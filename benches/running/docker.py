"""A docker daemon of our own: own data, own socket, own namespaces, gone at the end."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import tarfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Set

from fs import processes

IMAGE = "ringfence-bench"
CONTAINER = "ringfence-bench-idle"
READY_WITHIN = 30.0
CGROUPS = Path("/sys/fs/cgroup")
CGROUP = "ringfence-bench-docker"
API = "/v1.41"


class CannotStart(Exception):
    """The reason why docker is left out."""


class Docker:
    """A daemon that runs, with an image and an idle container."""

    def __init__(self, client: str, address: Path, server: processes.Server) -> None:
        self._client = client
        self._address = address
        self._server = server

    @property
    def environment(self) -> Dict[str, str]:
        """With it our own driver makes its sandboxes in containers of this daemon."""
        return {"DOCKER_HOST": f"unix://{self._address}", "RINGFENCE_BENCH_IMAGE": IMAGE}

    def beside(self, command: List[str]) -> List[str]:
        """The command in the namespaces of the daemon, where processes have the same numbers for both."""
        above = self._server.pid
        first = Path(f"/proc/{above}/task/{above}/children").read_text().split()[0]
        return ["nsenter", "--target", first, "--mount", "--pid", "--", *command]

    def command(self, *arguments: str) -> List[str]:
        return [self._client, "--host", f"unix://{self._address}", *arguments]

    def exec_command(self) -> List[str]:
        return self.command("exec", CONTAINER, "/bin/true")

    def run_command(self) -> List[str]:
        return self.command("run", "--rm", "--network", "none", IMAGE, "/bin/true")

    def exec_through_api(self) -> None:
        """What `docker exec` asks for, without starting a client for it."""
        settings = {"Cmd": ["/bin/true"], "AttachStdout": True, "AttachStderr": True}
        made = self._ask("POST", f"/containers/{CONTAINER}/exec", settings)
        self._ask("POST", f"/exec/{made['Id']}/start", {"Detach": False, "Tty": False})
        self._check(self._ask("GET", f"/exec/{made['Id']}/json")["ExitCode"])

    def run_through_api(self) -> None:
        settings = {"Image": IMAGE, "Cmd": ["/bin/true"], "HostConfig": {"NetworkMode": "none"}}
        container = self._ask("POST", "/containers/create", settings)["Id"]
        self._ask("POST", f"/containers/{container}/start")
        status = self._ask("POST", f"/containers/{container}/wait")["StatusCode"]
        self._ask("DELETE", f"/containers/{container}")
        self._check(status)

    def _ask(self, method: str, path: str, content: Optional[object] = None):
        connection = UnixConnection(self._address)
        try:
            body = None if content is None else json.dumps(content)
            connection.request(method, API + path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            said = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise processes.CommandFailed(f"docker {path}: {error}") from None
        finally:
            connection.close()
        if response.status >= 400:
            raise processes.CommandFailed(f"docker {path}: {said.decode(errors='replace').strip()}")
        return json.loads(said) if response.getheader("Content-Type") == "application/json" else None

    def _check(self, status: int) -> None:
        if status != 0:
            raise processes.CommandFailed(f"docker: the command ended with {status}")


class UnixConnection(http.client.HTTPConnection):
    """HTTP on a Unix socket."""

    def __init__(self, address: Path) -> None:
        super().__init__("docker", timeout=60)
        self._address = address

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._address))


@contextmanager
def docker(ram: Path) -> Iterator[Docker]:
    """Start the daemon in `ram`; stop it, and everything it started, at the end."""
    # The client that came with the daemon, if there are several.
    client = shutil.which("docker", path=f"/usr/bin:{os.environ.get('PATH', '')}")
    if client is None or processes.missing("dockerd"):
        raise CannotStart("docker is not installed")
    place = ram / "docker"
    place.mkdir()
    # Each step by itself, so that an interruption of one does not keep the next from being done.
    with ExitStack() as cleanup:
        cleanup.callback(remove_cgroups)
        server = processes.Server(daemon_command(place), ram / "dockerd.log")
        cleanup.callback(server.stop, patience=20)
        made = Docker(client, place / "docker.sock", server)
        wait_until_ready(made, server)
        cleanup.callback(remove_container, made)
        try:
            prepare(made, place)
        except processes.CommandFailed as error:
            raise CannotStart(str(error)) from None
        yield made


def remove_container(made: Docker) -> None:
    """It ignores the signal that a daemon's end begins with, and would be waited for."""
    try:
        processes.run(made.command("rm", "--force", CONTAINER), timeout=30)
    except processes.CommandFailed:
        pass  # there is none, or the daemon has ended


def daemon_command(place: Path) -> List[str]:
    """Nothing outside `place` is touched: no bridge, no packet filter rules, a /run of its own.

    Containers and their keepers do not end with the daemon. So it gets a pid namespace, whose first
    process dies with this benchmark, however that ends, and takes everything along.
    """
    daemon = [
        "dockerd", "--data-root", str(place / "data"), "--exec-root", str(place / "exec"),
        "--pidfile", str(place / "docker.pid"), "--host", f"unix://{place / 'docker.sock'}",
        "--bridge=none", "--iptables=false", "--ip6tables=false", "--cgroup-parent", f"/{CGROUP}",
    ]  # fmt: skip
    reaper = [] if processes.missing("tini") else ["tini", "--"]
    inside = ["sh", "-c", 'mount -t tmpfs run /run && exec "$@"', "sh", *reaper, *daemon]
    return ["unshare", "--mount", "--pid", "--mount-proc", "--kill-child", "--", *inside]


def remove_cgroups() -> None:
    """What the daemon leaves: empty groups, in every hierarchy. One that is in use stays."""
    for top in (CGROUPS / CGROUP, *CGROUPS.glob(f"*/{CGROUP}")):
        for group, _, _ in os.walk(top, topdown=False):
            try:
                os.rmdir(group)
            except OSError:
                pass


def wait_until_ready(made: Docker, server: processes.Server) -> None:
    deadline = time.monotonic() + READY_WITHIN
    while True:
        try:
            processes.run(made.command("version"), timeout=READY_WITHIN)
            return
        except processes.CommandFailed:
            if not server.is_running() or time.monotonic() > deadline:
                raise CannotStart(f"dockerd did not start: {server.last_words()}") from None
            time.sleep(0.1)


def files_of_image() -> Set[str]:
    """Programs and what they are linked with, each at the place where it is looked for."""
    programs = [f"/bin/{name}" for name in ("true", "sh", "bash", "sleep")]
    linked = processes.run(["ldd", *programs], timeout=60).replace("=>", " ").split()
    return {*programs, *(word for word in linked if word.startswith("/") and not word.endswith(":"))}


def prepare(made: Docker, place: Path) -> None:
    """An image of this host's own shells and `true`, and a container of it that sleeps."""
    archive = place / "image.tar"
    with tarfile.open(archive, "w", dereference=True) as tar:
        for name in sorted(files_of_image()):
            tar.add(name, name.lstrip("/"), recursive=False)
    processes.run(made.command("import", str(archive), IMAGE), timeout=60)
    idle = ["run", "--detach", "--network", "none", "--name", CONTAINER, IMAGE, "/bin/sleep", "1000000"]
    processes.run(made.command(*idle), timeout=60)
