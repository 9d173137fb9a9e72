"""A client's connection: made when it is first needed, to the server that is meant."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Optional, Type, TypeVar

from .. import _embedded, _endpoint
from .._endpoint import Endpoint
from .._types import ServerInfo
from .._version import API, OLDEST_SERVER_API, VERSION
from .._wire import methods, v1
from ..exceptions import ConnectionError, IncompatibleServerError, SandboxError
from ._io import AsyncChannel, AsyncLock, in_thread

_ANSWER_SECONDS = 10.0
_USUAL_ANSWER_SECONDS = 2.0

Self = TypeVar("Self", bound="AsyncConnection")


class AsyncConnection:
    """What all calls go through."""

    def __init__(
        self,
        endpoint: Optional[str] = None,
        secure: bool = False,
        *,
        token: Optional[str] = None,
        ca_certificate: Optional[str] = None,
    ) -> None:
        self._named = _endpoint.explicit(endpoint, secure, token, ca_certificate)
        self._token = token
        self._lock = AsyncLock()
        self._channel: Optional[AsyncChannel] = None
        self._info: Optional[ServerInfo] = None
        self._process = os.getpid()
        self._closed_because: Optional[SandboxError] = None

    async def info(self) -> ServerInfo:
        """The server that is spoken to."""
        await self._open()
        assert self._info is not None
        return self._info

    async def close(self) -> None:
        """Lets go of the connection. Sandboxes stay."""
        await self._end(SandboxError("the client was closed"))

    async def _end(self, reason: SandboxError) -> None:
        self._closed_because = self._closed_because or reason
        channel, self._channel = self._channel, None
        if channel is not None and self._is_own:
            await channel.close()

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.close()

    async def _another(self: Self) -> Self:
        """A client of the same server, that can be closed by itself."""
        channel = await self._open()
        made = type(self)()
        made._named = channel.endpoint
        return made

    @property
    def _is_own(self) -> bool:
        """Not one that a forked child has from its parent."""
        return self._process == os.getpid()

    @property
    def _is_embedded(self) -> bool:
        """Whether the server is the private one of this process, which takes all it has with it."""
        return self._info is not None and self._info.embedded

    def _check_own(self) -> None:
        if not self._is_own:
            raise SandboxError(
                "this was made before the process was forked; make a new one in the child")

    async def _open(self) -> AsyncChannel:
        if self._channel is not None and self._is_own:
            return self._channel
        self._check_own()
        if self._closed_because is not None:
            raise self._closed_because
        async with self._lock:
            if self._channel is None:
                self._channel = await self._found()
            return self._channel

    async def _found(self) -> AsyncChannel:
        if self._named is not None:
            return await self._greeted(self._named, _ANSWER_SECONDS)
        usual = await in_thread(_endpoint.usual, self._token)
        if usual is not None:
            try:
                return await self._greeted(usual, _USUAL_ANSWER_SECONDS)
            except SandboxError:
                # Another program, or a server that is not for us: not what anybody asked for.
                pass
        return await self._greeted(await in_thread(_embedded.endpoint), _ANSWER_SECONDS)

    async def _greeted(self, endpoint: Endpoint, patience: float) -> AsyncChannel:
        channel = AsyncChannel(endpoint)
        try:
            answer = await channel.unary(methods.Info, v1.InfoRequest(), patience)
            _check(answer, endpoint)
        except BaseException:
            await channel.close()
            raise
        self._info = ServerInfo(
            version=answer.version,
            account=answer.account,
            runtimes=list(answer.runtimes),
            local=answer.local,
            endpoint=endpoint.shown,
            embedded=endpoint.embedded,
        )
        return channel


def _check(answer: v1.InfoResponse, endpoint: Endpoint) -> None:
    if answer.server != "ringfence":
        raise ConnectionError(
            endpoint.shown, message=f"what answers at {endpoint.shown} is no Ringfence server")
    if answer.api < OLDEST_SERVER_API:
        raise IncompatibleServerError(
            endpoint.shown, answer.version,
            f"the server at {endpoint.shown} ({answer.version}) is too old for ringfence {VERSION}; "
            "upgrade the server")
    if answer.oldest_api > API:
        raise IncompatibleServerError(
            endpoint.shown, answer.version,
            f"the server at {endpoint.shown} ({answer.version}) is too new for ringfence {VERSION}; "
            "upgrade this package (pip install --upgrade ringfence)")
