"""Calls and waits, for blocking code. `_async/_io.py` offers the same to asyncio."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import (
    Any,
    Callable,
    Dict,
    Generic,
    Iterable,
    Iterator,
    List,
    Optional,
    Sequence,
    TypeVar,
)

import grpc
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

T = TypeVar("T")


class Channel:
    """A connection to a server; errors come out as exceptions of this package."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._channel = _opened(endpoint)
        self._metadata = endpoint.metadata
        self._callables: Dict[str, Any] = {}

    def unary(
        self, method: Unary[Request, Response], request: Request, timeout: Optional[float] = None
    ) -> Response:
        call = self._callable(method, self._channel.unary_unary)
        # Ctrl-C while it waits lets go of the call, which ends it on the server too.
        try:
            answer: Response = call(request, timeout=timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            raise translated(error, self.endpoint, request) from None
        return answer

    def stream(
        self, method: ServerStream[Request, Response], request: Request
    ) -> "Stream[Response]":
        call = self._callable(method, self._channel.unary_stream)
        return Stream(call(request, metadata=self._metadata), self.endpoint, request)

    def send(
        self,
        method: ClientStream[Request, Response],
        requests: Iterable[Request],
        about: Optional[Message] = None,
    ) -> Response:
        call = self._callable(method, self._channel.stream_unary)
        try:
            answer: Response = call(iter(requests), metadata=self._metadata)
        except grpc.RpcError as error:
            raise translated(error, self.endpoint, about) from None
        return answer

    def duplex(
        self, method: Duplex[Request, Response], about: Optional[Message] = None
    ) -> "Conversation[Request, Response]":
        call = self._callable(method, self._channel.stream_stream)
        return Conversation(call, self._metadata, self.endpoint, about)

    def close(self) -> None:
        self._channel.close()

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


def _opened(endpoint: Endpoint) -> grpc.Channel:
    if endpoint.secure:
        credentials = grpc.ssl_channel_credentials(endpoint.ca_certificate)
        return grpc.secure_channel(endpoint.target, credentials, options=endpoint.options)
    return grpc.insecure_channel(endpoint.target, options=endpoint.options)


class Stream(Generic[Response]):
    """What a server sends, one by one."""

    def __init__(self, call: Any, endpoint: Endpoint, about: Optional[Message]) -> None:
        self._call = call
        self._endpoint = endpoint
        self._about = about
        self._left = False

    def __iter__(self) -> Iterator[Response]:
        return self

    def __next__(self) -> Response:
        try:
            message: Response = next(self._call)
        except grpc.RpcError as error:
            if self._left:
                raise StopIteration from None
            raise translated(error, self._endpoint, self._about) from None
        return message

    def cancel(self) -> None:
        """Leaves it; the server stops sending."""
        self._left = True
        self._call.cancel()


_END = object()


class Conversation(Generic[Request, Response]):
    """Both sides speak when they like. What has come waits until it is asked for."""

    def __init__(
        self, call: Any, metadata: Any, endpoint: Endpoint, about: Optional[Message]
    ) -> None:
        self._endpoint = endpoint
        self._about = about
        self._said: queue.Queue[Any] = queue.Queue()
        self._heard: queue.Queue[Any] = queue.Queue()
        self._call = call(iter(self._said.get, _END), metadata=metadata)
        threading.Thread(target=self._listen, name="ringfence-terminal", daemon=True).start()

    def _listen(self) -> None:
        try:
            for message in self._call:
                self._heard.put(message)
        except grpc.RpcError as error:
            self._heard.put(translated(error, self._endpoint, self._about))
        finally:
            self._heard.put(_END)
            self._said.put(_END)

    def say(self, request: Request) -> None:
        self._said.put(request)

    def hear(self, timeout: Optional[float] = None) -> Optional[Response]:
        """The next message; None at the end. Raises `queue.Empty` when time is up."""
        found = self._heard.get(timeout=timeout)
        if found is _END:
            self._heard.put(_END)
            return None
        if isinstance(found, Exception):
            raise found
        answer: Response = found
        return answer

    def leave(self) -> None:
        self._said.put(_END)
        self._call.cancel()


class Flag:
    """Something that may come to be."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    @property
    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        """Until it is set, or that long."""
        self._event.wait(seconds)


class Background:
    """Work that goes on beside its caller, and does not keep the program from ending."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=work, name="ringfence-lease", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Waits for the work, which has been told to end."""
        self._thread.join(5.0)


class Lock:
    """One at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def in_thread(work: Callable[..., T], *args: Any) -> T:
    """Here it may wait."""
    return work(*args)


def at_once(most: int, jobs: Sequence[Callable[[], T]]) -> List[T]:
    """All of them, so many at a time. After the first that fails no other is begun."""
    if len(jobs) <= 1:
        return [job() for job in jobs]
    with ThreadPoolExecutor(min(most, len(jobs)), "ringfence-send") as pool:
        under_way = [pool.submit(job) for job in jobs]
        try:
            return [job.result() for job in under_way]
        except BaseException:
            for job in under_way:
                job.cancel()
            raise


def to_the_end(work: Callable[[], None]) -> None:
    """Here nobody cancels."""
    work()


TimeUp = queue.Empty
