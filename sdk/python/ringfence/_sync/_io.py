"""Calls and waits, for blocking code. `_async/_io.py` offers the same to asyncio."""

from __future__ import annotations

import os
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import methodcaller
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

from .._aside import LOOK_UP_SECONDS, Aside, Job, kept
from .._endpoint import Endpoint
from .._errors import translated
from .._requests import Requests
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


class Channel:
    """A connection to a server; errors come out as exceptions of this package."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._aside = Aside()
        self._channel = self._aside.do(partial(_opened, endpoint))
        self._metadata = endpoint.metadata
        self._callables: Dict[str, Any] = {}

    def unary(
        self, method: Unary[Request, Response], request: Request, timeout: Optional[float] = None
    ) -> Response:
        kind = self._callable(method, self._channel.unary_unary)
        begin = partial(kind.future, request, timeout=timeout, metadata=self._metadata)
        answer: Response = self._answered(_Call(begin), request)
        return answer

    def stream(
        self, method: ServerStream[Request, Response], request: Request
    ) -> "Stream[Response]":
        call = self._callable(method, self._channel.unary_stream)
        begin = partial(call, request, metadata=self._metadata)
        return Stream(self._aside.do(begin), self._aside, self.endpoint, request)

    def whole(
        self, method: ServerStream[Request, Response], request: Request
    ) -> List[Response]:
        """All that a server sends. The main thread waits once, and not for every piece of it."""
        kind = self._callable(method, self._channel.unary_stream)
        begin = partial(kind, request, metadata=self._metadata)
        answer: List[Response] = self._answered(_Call(begin, list), request)
        return answer

    def send(
        self,
        method: ClientStream[Request, Response],
        requests: Iterable[Request],
        about: Optional[Message] = None,
    ) -> Response:
        given = Requests(requests)
        kind = self._callable(method, self._channel.stream_unary)
        call = _Call(partial(kind.future, given, metadata=self._metadata))
        given.give_up = call.abandon
        try:
            answer: Response = self._answered(call, about)
        except Exception:
            if given.failure is not None:
                raise given.failure from None
            raise
        return answer

    def duplex(
        self, method: Duplex[Request, Response], about: Optional[Message] = None
    ) -> "Conversation[Request, Response]":
        call = self._callable(method, self._channel.stream_stream)
        begin = partial(Conversation, call, self._metadata, self.endpoint, about)
        return self._aside.do(begin)

    def close(self) -> None:
        self._aside.do(self._channel.close)
        self._aside.end()

    def _answered(self, call: "_Call", about: Optional[Message]) -> Any:
        together = getattr(_here, "together", None)
        if together is not None:
            together.add(call)
        try:
            return self._aside.do(call.answer)
        except grpc.RpcError as error:
            raise translated(error, self.endpoint, about) from None
        except BaseException:
            # Ctrl-C: whoever does not wait for the answer does not want it to be worked for.
            call.abandon()
            raise

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


class _Call:
    """One that can be given up by another thread than the one that waits for its answer."""

    def __init__(
        self, begin: Callable[[], Any], wait: Callable[[Any], Any] = methodcaller("result")
    ) -> None:
        self._begin = begin
        self._wait = wait
        self._call: Any = None
        self._abandoned = False

    def answer(self) -> Any:
        self._call = self._begin()
        if self._abandoned:
            self.abandon()
        return self._wait(self._call)

    def abandon(self) -> None:
        self._abandoned = True
        if self._call is not None:
            kept(self._call)
            self._call.cancel()


class Stream(Generic[Response]):
    """What a server sends, one by one."""

    def __init__(
        self, call: Any, aside: Aside, endpoint: Endpoint, about: Optional[Message]
    ) -> None:
        self._call = call
        self._aside = aside
        self._process = os.getpid()
        self._endpoint = endpoint
        self._about = about
        self._left = False

    def __iter__(self) -> Iterator[Response]:
        return self

    def __next__(self) -> Response:
        try:
            message: Response = self._aside.do(self._call.__next__)
        except StopIteration:
            raise
        except grpc.RpcError as error:
            if self._left:
                raise StopIteration from None
            raise translated(error, self._endpoint, self._about) from None
        except BaseException:
            kept(self._call)
            self.cancel()
            raise
        return message

    def cancel(self) -> None:
        """Leaves it; the server stops sending."""
        self._left = True
        if self._process == os.getpid():
            self._call.cancel()


_END = object()


class Conversation(Generic[Request, Response]):
    """Both sides speak when they like. What has come waits until it is asked for."""

    def __init__(
        self, call: Any, metadata: Any, endpoint: Endpoint, about: Optional[Message]
    ) -> None:
        self._endpoint = endpoint
        self._about = about
        self._process = os.getpid()
        self._said: queue.Queue[Any] = queue.Queue()
        self._heard: queue.Queue[Any] = queue.Queue()
        self._call = call(iter(self._said.get, _END), metadata=metadata)
        threading.Thread(target=self._listen, name="ringfence-terminal", daemon=True).start()

    def _listen(self) -> None:
        try:
            for message in self._call:
                self._heard.put(message)
        except grpc.RpcError as error:
            self._heard.put(error)
        finally:
            self._heard.put(_END)
            self._said.put(_END)

    def say(self, request: Request) -> None:
        self._said.put(request)

    def hear(self, timeout: Optional[float] = None) -> Optional[Response]:
        """The next message; None at the end. Raises `queue.Empty` when time is up."""
        found = self._next(timeout)
        if found is _END:
            self._heard.put(_END)
            return None
        if isinstance(found, grpc.RpcError):
            raise translated(found, self._endpoint, self._about) from None
        answer: Response = found
        return answer

    def _next(self, timeout: Optional[float]) -> Any:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = LOOK_UP_SECONDS if deadline is None else deadline - time.monotonic()
            try:
                return self._heard.get(timeout=max(0.0, min(left, LOOK_UP_SECONDS)))
            except queue.Empty:
                if left <= 0:
                    raise

    def leave(self) -> None:
        if self._process == os.getpid():
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


Lock = threading.Lock
"""One at a time. Of the library itself: Ctrl-C does not strike between getting it and having it."""


def in_thread(work: Callable[..., T], *args: Any) -> T:
    """Here it may wait."""
    return work(*args)


def at_once(most: int, jobs: Sequence[Callable[[], T]]) -> List[T]:
    """All of them, so many at a time. The first that fails ends the others."""
    if len(jobs) <= 1:
        return [job() for job in jobs]
    together = _Together()
    with ThreadPoolExecutor(
        min(most, len(jobs)), "ringfence-send", initializer=together.enter
    ) as pool:
        under_way = [pool.submit(job) for job in jobs]
        try:
            return [job.result() for job in under_way]
        except BaseException:
            for job in under_way:
                job.cancel()
            together.abandon()
            raise


_here = threading.local()


class _Together:
    """The calls of several threads that are given up together."""

    def __init__(self) -> None:
        self._calls: List[_Call] = []
        self._abandoned = False

    def enter(self) -> None:
        """The calls of this thread are meant too."""
        _here.together = self

    def add(self, call: _Call) -> None:
        self._calls.append(call)
        if self._abandoned:
            call.abandon()

    def abandon(self) -> None:
        self._abandoned = True
        for call in list(self._calls):
            call.abandon()


def to_the_end(work: Callable[[], None]) -> None:
    """Here nobody cancels."""
    work()


_PATIENCE = 10.0
"""Seconds that an interrupted program waits for an answer that says what must be taken back."""


def all_or_nothing(work: Callable[[], T], undo: Callable[[T], None]) -> T:
    """For what makes something: who is interrupted while it waits never learns of what was made, so
    that is taken back."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    aside = Aside()
    job = aside.begin(work)
    try:
        result = job.result()
    except Exception:
        raise
    except BaseException:
        aside.begin(partial(_take_back, job, undo)).is_over(_PATIENCE)
        raise
    aside.end()
    return result


def _take_back(job: "Job[T]", undo: Callable[[T], None]) -> None:
    try:
        undo(job.result())
    except SandboxError:
        # It failed, or it is gone already.
        pass


TimeUp = queue.Empty
