# Made from _async/_lease.py by generate.py.
"""What keeps a sandbox alive for as long as somebody is there."""

from __future__ import annotations

from typing import Optional

from .._wire import methods, v1
from ..exceptions import SandboxError, SandboxNotFoundError
from ._io import Background, Channel, Flag, Stream

_AGAIN_SECONDS = 1.0


class Lease:
    """Held by a stream, which lasts also while this program is too busy to say anything. When it
    breaks it is taken up again; the server waits a minute for that."""

    def __init__(self, channel: Channel, sandbox_id: str, bind: bool) -> None:
        self._channel = channel
        self._request = v1.LeaseSandboxRequest(sandbox_id=sandbox_id, bind=bind)
        self._over = Flag()
        self._stream: Optional[Stream[v1.LeaseState]] = None
        self._holding: Optional[Background] = None

    def begin(self) -> None:
        """Returns when it is held: what comes next may keep this program busy for long."""
        self._stream = self._channel.stream(methods.LeaseSandbox, self._request)
        for _ in self._stream:
            break
        self._holding = Background(self._hold)

    def _hold(self) -> None:
        while not self._over.is_set:
            try:
                self._held()
            except SandboxNotFoundError:
                return
            except (SandboxError, ValueError):
                # The server is away for a moment; or the channel was closed, and then it is over.
                pass
            self._over.wait(_AGAIN_SECONDS)
            self._stream = None

    def _held(self) -> None:
        """Until the stream breaks."""
        if self._stream is None:
            self._stream = self._channel.stream(methods.LeaseSandbox, self._request)
        if self._over.is_set:
            self._stream.cancel()
        for _ in self._stream:
            pass

    def end(self) -> None:
        self._over.set()
        if self._stream is not None:
            self._stream.cancel()
        if self._holding is not None:
            self._holding.end()
