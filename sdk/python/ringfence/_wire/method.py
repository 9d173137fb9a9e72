"""A method of the API: where it is, and what goes in and out."""

from __future__ import annotations

from typing import Generic, Type, TypeVar

from google.protobuf.message import Message

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


class Method(Generic[Request, Response]):
    __slots__ = ("path", "request", "response")

    def __init__(self, path: str, request: Type[Request], response: Type[Response]) -> None:
        self.path = path
        self.request = request
        self.response = response

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[1]


class Unary(Method[Request, Response]):
    """One question, one answer."""


class ServerStream(Method[Request, Response]):
    """One question, a stream of answers."""


class ClientStream(Method[Request, Response]):
    """A stream in, one answer."""


class Duplex(Method[Request, Response]):
    """Streams both ways."""
