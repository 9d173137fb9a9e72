"""Work that is not the main thread's.

Ctrl-C strikes in the main thread, between any two steps. What gRPC has in hand does not survive
that: a channel that was struck while a call began waits for ever when it is closed. So the main
thread has such work done by others, and does nothing but wait for them, where it can be struck.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import weakref
from queue import SimpleQueue
from typing import Any, Callable, Generic, List, Optional, TypeVar

T = TypeVar("T")

_END_SECONDS = 5.0

LOOK_UP_SECONDS = 0.25
"""Linux may give a signal to any thread, and then nothing wakes the main one, which acts on it."""


class Job(Generic[T]):
    """Something to do, and what came of it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Optional[Callable[[], T]] = work
        self._result: Any = None
        self._error: Optional[BaseException] = None
        self._over = threading.Event()

    def do(self) -> None:
        work, self._work = self._work, None
        try:
            assert work is not None
            self._result = work()
        except BaseException as error:
            self._error = error
        self._over.set()

    def result(self) -> T:
        """Waits for it."""
        while not self._over.wait(LOOK_UP_SECONDS):
            pass
        try:
            if self._error is not None:
                raise self._error
            result: T = self._result
            return result
        finally:
            # An error holds on to this frame, which would hold on to the error.
            del self

    def is_over(self, within: float) -> bool:
        return self._over.wait(within)


def kept(call: Any) -> None:
    """Keeps a call of gRPC that was given up from ever being collected.

    It takes a lock when it is collected, which gRPC's own thread takes too when it hears that the
    call is over. At the end of the interpreter that thread stands still, perhaps with the lock, and
    whoever collects then would wait for ever.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(call))


Inbox = SimpleQueue[Optional[Job[Any]]]
"""Of one thread; None ends it."""


class Hand(threading.Thread):
    """A thread that works for another one, which waits for it."""


class Aside:
    """Threads that do what the main one should not; other threads do it themselves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._over = False
        self._idle: List[Inbox] = []
        self._threads: List[threading.Thread] = []

    def do(self, work: Callable[[], T]) -> T:
        if threading.current_thread() is not threading.main_thread():
            return work()
        return self.begin(work).result()

    def begin(self, work: Callable[[], T]) -> Job[T]:
        job = Job(work)
        try:
            self._free().put(job)
        except RuntimeError:
            # The interpreter is about to end, and starts no thread any more.
            job.do()
        return job

    def end(self) -> None:
        """Lets the threads go, when they have done what they are at."""
        self._dismiss()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_END_SECONDS)

    def __del__(self) -> None:
        # At the very end they stand still, one perhaps with the lock.
        if not sys.is_finalizing():
            self._dismiss()

    def _dismiss(self) -> None:
        with self._lock:
            self._over = True
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)

    def _free(self) -> Inbox:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        inbox: Inbox = SimpleQueue()
        thread = Hand(
            target=_serve, args=(inbox, weakref.ref(self)), name="ringfence-call", daemon=True)
        thread.start()
        self._threads.append(thread)
        return inbox

    def _is_wanted(self, inbox: Inbox) -> bool:
        with self._lock:
            if not self._over:
                self._idle.append(inbox)
            return not self._over


def _serve(inbox: Inbox, owner: "weakref.ref[Aside]") -> None:
    """One thread. It does not keep its owner, which lets it go when nobody else keeps that."""
    while True:
        job = inbox.get()
        if job is None:
            return
        job.do()
        del job
        aside = owner()
        if aside is None or not aside._is_wanted(inbox):
            return
        del aside
