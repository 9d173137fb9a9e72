"""Calls and waits, for asyncio. `_sync/_io.py` offers the same to blocking code."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from typing import (
    Any,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Dict,
    Generic,
    Iterable,
    List,
    Optional,
    Sequence,
    Set,
    TypeVar,
)

import grpc
import grpc.aio
from google.protobuf.message import Message

from .._endpoint import Endpoint
from .._errors import translated
from .._wire.method import (
    ClientStream,
    Duplex,
    Method,
    Request,
    Response,
    ServerStream,
    Unary,
)
from ..exceptions import SandboxError

T = TypeVar("T")


class AsyncChannel:
    """A connection to a server; errors come out as exceptions of this package."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._channel = _opened(endpoint)
        self._metadata = endpoint.metadata
        self._callables: Dict[str, Any] = {}

    async def unary(
        self, method: Unary[Request, Response], request: Request, timeout: Optional[float] = None
    ) -> Response:
        call = self._callable(method, self._channel.unary_unary)
        try:
            answer: Response = await call(request, timeout=timeout, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise translated(error, self.endpoint, request) from None
        return answer

    def stream(
        self, method: ServerStream[Request, Response], request: Request
    ) -> "AsyncStream[Response]":
        call = self._callable(method, self._channel.unary_stream)
        return AsyncStream(call(request, metadata=self._metadata), self.endpoint, request)

    async def send(
        self,
        method: ClientStream[Request, Response],
        requests: Iterable[Request],
        about: Optional[Message] = None,
    ) -> Response:
        call = self._callable(method, self._channel.stream_unary)
        try:
            answer: Response = await call(requests, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise translated(error, self.endpoint, about) from None
        return answer

    def duplex(
        self, method: Duplex[Request, Response], about: Optional[Message] = None
    ) -> "AsyncConversation[Request, Response]":
        call = self._callable(method, self._channel.stream_stream)
        return AsyncConversation(call(metadata=self._metadata), self.endpoint, about)

    async def close(self) -> None:
        await self._channel.close()

    def _callable(self, method: Method[Any, Any], kind: Callable[..., Any]) -> Any:
        found = self._callables.get(method.path)
        if found is None:
            found = kind(
                method.path,
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            )
            self._callables[method.path] = found
        return found


_there_are: "weakref.WeakSet[grpc.aio.Channel]" = weakref.WeakSet()
_there_were = False


def _opened(endpoint: Endpoint) -> grpc.aio.Channel:
    if _there_were:
        raise SandboxError(
            "this process was forked while an AsyncSandbox was open, which gRPC for asyncio does not "
            "survive; use Sandbox in it, or start it by multiprocessing's \"spawn\"")
    channel = _channel(endpoint)
    _there_are.add(channel)
    return channel


def _channel(endpoint: Endpoint) -> grpc.aio.Channel:
    if endpoint.secure:
        credentials = grpc.ssl_channel_credentials(endpoint.ca_certificate)
        return grpc.aio.secure_channel(endpoint.target, credentials, options=endpoint.options)
    return grpc.aio.insecure_channel(endpoint.target, options=endpoint.options)


def _forked() -> None:
    """In a child: what channels of all loops share has a thread, and that is not here."""
    global _there_were
    _there_were = _there_were or len(_there_are) > 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class AsyncStream(Generic[Response]):
    """What a server sends, one by one."""

    def __init__(self, call: Any, endpoint: Endpoint, about: Optional[Message]) -> None:
        self._call = call
        self._endpoint = endpoint
        self._about = about
        self._process = os.getpid()
        self._left = False

    def __aiter__(self) -> AsyncIterator[Response]:
        return self

    async def __anext__(self) -> Response:
        try:
            message = await self._call.read()
        except grpc.aio.AioRpcError as error:
            if self._left:
                raise StopAsyncIteration from None
            raise translated(error, self._endpoint, self._about) from None
        except asyncio.CancelledError:
            if self._left:
                raise StopAsyncIteration from None
            raise
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        found: Response = message
        return found

    def cancel(self) -> None:
        """Leaves it; the server stops sending."""
        self._left = True
        if self._process == os.getpid():
            self._call.cancel()


_END = object()


class AsyncConversation(Generic[Request, Response]):
    """Both sides speak when they like. What has come waits until it is asked for."""

    def __init__(self, call: Any, endpoint: Endpoint, about: Optional[Message]) -> None:
        self._call = call
        self._endpoint = endpoint
        self._about = about
        self._heard: asyncio.Queue[Any] = asyncio.Queue()
        self._listening = asyncio.ensure_future(self._listen())

    async def _listen(self) -> None:
        try:
            while True:
                message = await self._call.read()
                if message is grpc.aio.EOF:
                    break
                self._heard.put_nowait(message)
        except grpc.aio.AioRpcError as error:
            self._heard.put_nowait(translated(error, self._endpoint, self._about))
        finally:
            self._heard.put_nowait(_END)

    async def say(self, request: Request) -> None:
        try:
            await self._call.write(request)
        except grpc.aio.AioRpcError as error:
            raise translated(error, self._endpoint, self._about) from None
        except asyncio.InvalidStateError:
            # The other side has hung up; why is heard, not said.
            pass

    async def hear(self, timeout: Optional[float] = None) -> Optional[Response]:
        """The next message; None at the end. Raises `asyncio.TimeoutError` when time is up."""
        found = await asyncio.wait_for(self._heard.get(), timeout)
        if found is _END:
            self._heard.put_nowait(_END)
            return None
        if isinstance(found, Exception):
            raise found
        answer: Response = found
        return answer

    async def leave(self) -> None:
        self._call.cancel()
        self._listening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._listening


class AsyncFlag:
    """Something that may come to be."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    @property
    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self, seconds: float) -> None:
        """Until it is set, or that long."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)


class AsyncBackground:
    """Work that goes on beside its caller, and does not keep the program from ending."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._task = asyncio.ensure_future(work())

    async def end(self) -> None:
        """Waits for the work, which has been told to end."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task


class AsyncLock:
    """One at a time. Made when it is first used, in the loop that uses it."""

    def __init__(self) -> None:
        self._lock: Optional[asyncio.Lock] = None

    async def __aenter__(self) -> None:
        if self._lock is None:
            self._lock = asyncio.Lock()
        await self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        assert self._lock is not None
        self._lock.release()


async def in_thread(work: Callable[..., T], *args: Any) -> T:
    """What would keep the loop waiting."""
    return await asyncio.get_running_loop().run_in_executor(None, work, *args)


async def at_once(most: int, jobs: Sequence[Callable[[], Awaitable[T]]]) -> List[T]:
    """All of them, so many at a time. The first that fails ends the others."""
    places = asyncio.Semaphore(most)

    async def placed(job: Callable[[], Awaitable[T]]) -> T:
        async with places:
            return await job()

    tasks = [asyncio.ensure_future(placed(job)) for job in jobs]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


async def to_the_end(work: Callable[[], Awaitable[None]]) -> None:
    """Finishes what must not be left half done, also when the caller is cancelled meanwhile."""
    task = asyncio.ensure_future(work())
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


_PATIENCE = 10.0
"""Seconds that a cancelled task waits for an answer that says what must be taken back."""

_taken_back: Set["asyncio.Future[None]"] = set()
"""Loops do not hold on to their tasks."""


async def all_or_nothing(
    work: Callable[[], Awaitable[T]], undo: Callable[[T], Awaitable[None]]
) -> T:
    """For what makes something: who is cancelled while it waits never learns of what was made, so
    that is taken back. Doing the work twice must make one thing."""
    task = asyncio.ensure_future(work())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        undone = asyncio.ensure_future(_take_back(task, work, undo))
        _taken_back.add(undone)
        undone.add_done_callback(_taken_back.discard)
        await asyncio.wait([undone], timeout=_PATIENCE)
        raise


async def _take_back(
    task: "asyncio.Future[T]",
    work: Callable[[], Awaitable[T]],
    undo: Callable[[T], Awaitable[None]],
) -> None:
    with contextlib.suppress(SandboxError):
        await asyncio.wait([task])
        # Before Python 3.11, Ctrl-C cancels all tasks, this one too: its answer is asked for again.
        await undo(await work() if task.cancelled() else task.result())


TimeUp = asyncio.TimeoutError
