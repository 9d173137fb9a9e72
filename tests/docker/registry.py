"""A registry on the loopback interface with one image, which takes a moment to be fetched."""

import contextlib
import gzip
import hashlib
import http.server
import io
import json
import os
import platform
import tarfile
import threading
import time

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
PIECE = 64 * 1024
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Registry:
    """Started by `with`. `size` bytes of noise make the image as large."""

    def __init__(self, tree, size=2 << 20, pause=0.02):
        layers = [tree, _noise(size)]
        packed = [gzip.compress(layer, 1) for layer in layers]
        config = json.dumps({
            "architecture": ARCHITECTURES[platform.machine()], "os": "linux", "config": {"Env": ["FETCHED=yes"]},
            "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]}}).encode()
        self.manifest = json.dumps({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, "size": len(config), "digest": digest(config)},
            "layers": [{"mediaType": LAYER, "size": len(each), "digest": digest(each)} for each in packed],
        }).encode()
        self.blobs = {digest(blob): blob for blob in (config, *packed)}
        self.asked = []
        self.pause = pause

    def __enter__(self):
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.host = "127.0.0.1:%d" % self._server.server_port
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def image(self, tag="1"):
        return f"{self.host}/team/image:{tag}"


def _noise(size):
    """A layer that cannot be packed."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tree:
        entry = tarfile.TarInfo("noise")
        entry.size = size
        tree.addfile(entry, io.BytesIO(os.urandom(size)))
    return layer.getvalue()


def _handler(registry):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self):
            self._answer(False)

        def do_GET(self):
            self._answer(True)

        def _answer(self, whole):
            registry.asked.append(self.path)
            last = self.path.rsplit("/", 1)[-1]
            if self.path == "/v2/":
                return self._send(b"{}", "application/json", whole)
            if "/manifests/" in self.path and last in ("1", digest(registry.manifest)):
                return self._send(registry.manifest, MANIFEST, whole)
            if "/blobs/" in self.path and last in registry.blobs:
                return self._send(registry.blobs[last], "application/octet-stream", whole)
            missing = b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}'
            return self._send(missing, "application/json", whole, 404)

        def _send(self, data, kind, whole, status=200):
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.send_header("docker-content-digest", digest(data))
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                for start in range(0, len(data) if whole else 0, PIECE):
                    self.wfile.write(data[start:start + PIECE])
                    time.sleep(registry.pause)

        def log_message(self, *_):
            pass

    return Handler
