"""The private server of this process: started when it is first needed, gone with the process.

The server watches the process it belongs to and ends when that ends, however it ends; nothing here
is needed for that. What is done at an orderly exit makes it happen before the exit, not after. A
forked child has a server of its own: what it does at its exit is none of its parent's business.
"""

from __future__ import annotations

import atexit
import os
import select
import subprocess
import tempfile
import threading
import time
from typing import IO, List, Optional

from ._aside import Aside, Hand
from ._binary import BinaryNotFound, find_binary
from ._endpoint import Endpoint
from .exceptions import ConnectionError

_READY_SECONDS = 30.0
_END_SECONDS = 20.0
_SHOWN = "the private server of this process"


class _Server:
    """One that runs."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._said = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [_program(), "serve", "--for-process", str(self.owner), "--log-level", "warn"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._said,
            # Ctrl-C in a terminal is for the program, which decides what becomes of its server.
            start_new_session=True,
        )
        self.socket = self._ready()

    @property
    def is_there(self) -> bool:
        return self.owner == os.getpid() and self._process.poll() is None

    def end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()

    def _ready(self) -> str:
        assert self._process.stdout is not None
        with self._process.stdout as stdout:
            line = _line(stdout, time.monotonic() + _READY_SECONDS)
        if line.startswith("ready "):
            return line[len("ready "):].rstrip("\n")
        self._process.kill()
        self._process.wait()
        raise ConnectionError(_SHOWN, self._complaint(), message="the private server did not start")

    def _complaint(self) -> str:
        self._said.seek(0)
        text = self._said.read().decode(errors="replace").strip()
        return text[-2000:] or "it said nothing"


def _program() -> str:
    try:
        return find_binary()
    except BinaryNotFound as error:
        raise ConnectionError(_SHOWN, message=str(error)) from None


def _line(stdout: IO[bytes], deadline: float) -> str:
    collected = b""
    while not collected.endswith(b"\n"):
        left = max(0.0, deadline - time.monotonic())
        readable, _, _ = select.select([stdout], [], [], left)
        piece = os.read(stdout.fileno(), 4096) if readable else b""
        if not piece:
            break
        collected += piece
    return os.fsdecode(collected)


_lock = threading.Lock()
_over = False
_server: Optional[_Server] = None
_inherited: List[_Server] = []
"""Of the processes this one was forked from. Kept, because a handle that is let go of asks after its
process."""


def endpoint() -> Endpoint:
    """Where the private server is; starts it if there is none. One that is being started while its
    program is interrupted is there for the next who asks."""
    return Aside().do(_running)


def _running() -> Endpoint:
    global _server
    with _lock:
        if _server is None or not _server.is_there:
            _server = _Server()
        return Endpoint(target=f"unix:{_server.socket}", shown=_SHOWN, embedded=True)


def rest_if_over() -> None:
    """At exit the server ends before daemon threads do. What they wait for will not come, and to
    tell them so would only make them complain."""
    thread = threading.current_thread()
    if _over and thread.daemon and not isinstance(thread, Hand):
        threading.Event().wait()


def _end() -> None:
    global _server, _over
    _over = True
    with _lock:
        server, _server = _server, None
    if server is not None and server.is_there:
        server.end()


def _forget() -> None:
    """In a child: another thread may have held the lock when the parent was copied."""
    global _server, _lock, _over
    _lock = threading.Lock()
    _over = False
    if _server is not None:
        _inherited.append(_server)
    _server = None


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
