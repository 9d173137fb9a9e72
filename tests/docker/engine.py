"""A container engine of our own: own data, own socket, own pid file, no network, gone at the end.

    engine.py COMMAND...    runs a command beside one, which it finds in DOCKER_HOST
"""

import contextlib
import hashlib
import http.client
import io
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE.parent.parent / "target" / "tmp"
IMAGES = ("full", "busybox", "musl", "empty")
READY_WITHIN = 60


def name_of(image):
    return f"ringfence-test-{image}:1"


def tree_of(image):
    """The files of an image, as a tar."""
    return subprocess.run([sys.executable, HERE / "images.py", image], capture_output=True, check=True).stdout


class _OverUnix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _is_zombie(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    return True


class Engine:
    """Started by `with`. It can be stopped and started again in between, with the same data.

    `bridged`: in a network namespace of its own, where its containers can have a network."""

    def __init__(self, bridged=False):
        self._bridged = bridged

    def __enter__(self):
        TARGET.mkdir(parents=True, exist_ok=True)
        self._place = pathlib.Path(tempfile.mkdtemp(prefix="docker.", dir=TARGET))
        # The path of a socket must be short.
        self._short = pathlib.Path(tempfile.mkdtemp(prefix="rf-docker-"))
        self.socket = str(self._short / "docker.sock")
        self.host = f"unix://{self.socket}"
        self._process = None
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stop()
        self._unmount()
        for _ in range(20):
            for place in (self._place, self._short):
                shutil.rmtree(place, ignore_errors=True)
            if not self._place.exists() and not self._short.exists():
                return
            # What a container had mounted may take a moment to go.
            time.sleep(0.25)

    def _unmount(self):
        """Engines leave a name of their network behind, and a killed one what its containers had."""
        mounted = [line.split()[4] for line in open("/proc/self/mountinfo")]
        for place in reversed(mounted):
            if place.startswith((f"{self._short}/", f"{self._place}/")):
                subprocess.run(["umount", "--lazy", place], check=False)

    def start(self):
        path = os.environ["PATH"] + ":/usr/sbin:/sbin"
        command = [
            "dockerd", "--host", self.host, "--data-root", self._place / "data",
            "--exec-root", self._short / "exec", "--pidfile", self._short / "pid",
            "--iptables=false", "--ip6tables=false", "--log-level", "error"]
        command = ["unshare", "--net", *command] if self._bridged else [*command, "--bridge", "none"]
        with open(self._place / "log", "a") as log:
            self._process = subprocess.Popen(
                command, env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True)
        deadline = time.monotonic() + READY_WITHIN
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the engine did not start:\n" + (self._place / "log").read_text()[-4000:])
            time.sleep(0.05)

    def stop(self, how=signal.SIGTERM):
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None
        self._stop_second()

    def _stop_second(self):
        """The engine has a process of its own below it, which outlives it if it is killed."""
        file = self._short / "exec" / "containerd" / "containerd.pid"
        with contextlib.suppress(OSError, ValueError):
            pid = int(file.read_text())
            if b"containerd" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
                while pathlib.Path(f"/proc/{pid}").exists() and not _is_zombie(pid):
                    time.sleep(0.02)
            file.unlink()

    @property
    def pid(self):
        return self._process.pid

    def answers(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.ask("GET", "/_ping")[0] == 200
        return False

    def ask(self, method, path, body=None, content="application/json"):
        connection = _OverUnix(self.socket)
        try:
            connection.request(method, path, body, {"content-type": content})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def containers(self):
        """All there are, by name."""
        listed = json.loads(self.ask("GET", "/containers/json?all=1")[1])
        return {each["Names"][0].lstrip("/"): each for each in listed}

    def load(self, image, name=None, changes=()):
        """Makes an image of a tree from this machine's files. `changes` are lines as in a Dockerfile."""
        with tempfile.TemporaryFile(dir=TARGET) as tree:
            subprocess.run([sys.executable, HERE / "images.py", image], stdout=tree, check=True)
            tree.seek(0)
            self.load_tree(name or name_of(image), tree, changes)

    def load_tree(self, name, tree, changes=()):
        repository, _, tag = name.partition(":")
        changed = "".join("&changes=" + urllib.parse.quote(line) for line in changes)
        path = f"/images/create?fromSrc=-&repo={repository}&tag={tag}{changed}"
        self._sent(name, path, tree)

    def _sent(self, name, path, tree):
        status, said = self.ask("POST", path, tree, "application/x-tar")
        if status != 200 or b'"error"' in said:
            raise RuntimeError(f"no image {name}: {said.decode()}")

    def load_foreign(self, name, architecture):
        """An image that says that it was made for another machine."""
        config = {"architecture": architecture, "os": "linux", "config": {},
                  "rootfs": {"type": "layers", "diff_ids": []}}
        layer = io.BytesIO()
        with tarfile.open(fileobj=layer, mode="w") as tree:
            tree.addfile(tarfile.TarInfo("file"))
        config["rootfs"]["diff_ids"].append("sha256:" + hashlib.sha256(layer.getvalue()).hexdigest())
        parts = {"config.json": json.dumps(config).encode(), "layer.tar": layer.getvalue(),
                 "manifest.json": json.dumps(
                     [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()}
        whole = io.BytesIO()
        with tarfile.open(fileobj=whole, mode="w") as archive:
            for part, content in parts.items():
                entry = tarfile.TarInfo(part)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        self._sent(name, "/images/load", whole.getvalue())


def main(command):
    with Engine() as engine:
        for image in IMAGES:
            engine.load(image)
        return subprocess.run(command, env={**os.environ, "DOCKER_HOST": engine.host}).returncode


if __name__ == "__main__":
    # An end by a signal is an end like any other.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main(sys.argv[1:]))
