"""What is sent in a stream. gRPC only says that there was no more of it, and this knows why."""

from __future__ import annotations

from typing import Callable, Generic, Iterable, Iterator, Optional, TypeVar

T = TypeVar("T")


class Requests(Generic[T]):
    """One after the other. When making the next one fails, the call is given up: what was sent until
    then must not pass for the whole."""

    def __init__(self, requests: Iterable[T]) -> None:
        self._requests = iter(requests)
        self.failure: Optional[Exception] = None
        self.give_up: Callable[[], object] = lambda: None

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        try:
            return next(self._requests)
        except StopIteration:
            raise
        except Exception as error:
            self.failure = error
            self.give_up()
            raise StopIteration from None
