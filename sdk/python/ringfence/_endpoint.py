"""Which server is meant.

Without a word about it: what RINGFENCE_ENDPOINT names; else a Ringfence server on localhost:9000;
else a private one for this process (`_embedded`).
"""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from typing import List, Optional, Set, Tuple

from .exceptions import InvalidConfigurationError

USUAL_PORT = 9000

_KNOCK_SECONDS = 0.5
_LISTENING = "0A"
"""In the kernel's tables of sockets."""


@dataclass(frozen=True)
class Endpoint:
    """A server's address, and what is needed to speak to it."""

    target: str
    """As gRPC has it."""
    shown: str
    """As people have it."""
    secure: bool = False
    token: Optional[str] = None
    ca_certificate: Optional[bytes] = None
    embedded: bool = False

    @property
    def is_unix(self) -> bool:
        return self.target.startswith("unix:")

    @property
    def metadata(self) -> List[Tuple[str, str]]:
        return [("authorization", f"Bearer {self.token}")] if self.token else []

    @property
    def options(self) -> List[Tuple[str, object]]:
        options: List[Tuple[str, object]] = [
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1),
            # A connection that died without a word is noticed.
            ("grpc.keepalive_time_ms", 30_000),
            ("grpc.keepalive_timeout_ms", 20_000),
        ]
        if self.is_unix:
            # A path is no host name, and gRPC would send it as one.
            options.append(("grpc.default_authority", "localhost"))
        return options

    @property
    def hint(self) -> str:
        if self.embedded:
            return "the private server of this process has ended"
        if self.secure:
            return "is it a server with TLS, and is its certificate trusted (ca_certificate=…)?"
        return "is `ringfence serve` running there, without TLS (else give secure=True)?"


def explicit(
    endpoint: Optional[str],
    secure: bool = False,
    token: Optional[str] = None,
    ca_certificate: Optional[str] = None,
) -> Optional[Endpoint]:
    """The endpoint that was named, by the caller or the environment."""
    named = endpoint or os.environ.get("RINGFENCE_ENDPOINT") or None
    return parsed(named, secure, token, ca_certificate) if named else None


def usual(token: Optional[str] = None) -> Optional[Endpoint]:
    """What may be a server on the usual port: something listens there, of this user or of root. Any
    other user of this machine could listen there too, and would be sent the project."""
    try:
        socket.create_connection(("127.0.0.1", USUAL_PORT), _KNOCK_SECONDS).close()
    except OSError:
        # Nearly always, and at once; to ask the kernel for all its sockets takes milliseconds.
        return None
    users = _listeners(USUAL_PORT)
    # One that has gone since may be back, as somebody else's, when the project is sent.
    if users is not None and not (users and users <= {0, os.getuid()}):
        return None
    return parsed(f"localhost:{USUAL_PORT}", False, token, None)


def _listeners(port: int) -> Optional[Set[int]]:
    """The users who listen on a port; None where the kernel does not tell."""
    rows: List[List[str]] = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as lines:
                rows += [line.split() for line in lines]
        except OSError:
            continue
    listening = (row for row in rows if row[3] == _LISTENING)
    found = {int(row[7]) for row in listening if int(row[1].rpartition(":")[2], 16) == port}
    return found if rows else None


def parsed(
    named: str, secure: bool, token: Optional[str], ca_certificate: Optional[str]
) -> Endpoint:
    token = _token(token or os.environ.get("RINGFENCE_TOKEN"))
    scheme, _, rest = named.rpartition("://")
    if scheme == "unix" or named.startswith("unix:"):
        return Endpoint(target="unix:" + _unix_path(named), shown=named, token=token)
    address = rest.rstrip("/")
    if scheme not in ("", "http", "https") or not _is_address(address):
        raise InvalidConfigurationError(
            f"{named!r} is no endpoint: give HOST:PORT, https://HOST:PORT or unix:///PATH")
    secure = secure or scheme == "https"
    if token and not secure and not _is_this_machine(address):
        raise InvalidConfigurationError(
            f"a token is not sent to {address} for everybody to read: give secure=True (or https://)")
    if ca_certificate and not secure:
        raise InvalidConfigurationError("a ca_certificate is for TLS: give secure=True too")
    certificate = _certificate(ca_certificate) if secure else None
    return Endpoint(address, named, secure, token, certificate)


def _is_address(text: str) -> bool:
    found = re.fullmatch(r"(?:\[[0-9A-Fa-f:.%]+\]|[\w.-]+):([0-9]{1,5})", text)
    return found is not None and 0 < int(found[1]) < 65536


def _is_this_machine(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    return host in ("localhost", "::1") or re.fullmatch(r"127(\.[0-9]{1,3}){3}", host) is not None


def _token(text: Optional[str]) -> Optional[str]:
    """Without the newline that comes with it from a file."""
    token = text.strip() if isinstance(text, str) else text
    if token and (not isinstance(token, str) or not re.fullmatch("[!-~]{1,1024}", token)):
        raise InvalidConfigurationError("the token is none: tokens are letters, digits and signs")
    return token or None


def _unix_path(named: str) -> str:
    path = named[len("unix:"):]
    path = path[2:] if path.startswith("//") else path
    if not path.startswith("/") or "\0" in path:
        raise InvalidConfigurationError(f"{named!r} must name an absolute path: unix:///PATH")
    return path


def _certificate(named: Optional[str]) -> Optional[bytes]:
    file = named or os.environ.get("RINGFENCE_TLS_CA")
    if not file:
        return None
    try:
        with open(file, "rb") as opened:
            certificate = opened.read()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidConfigurationError(f"cannot read the certificate {file}: {why}") from None
    if b"-----BEGIN CERTIFICATE-----" not in certificate:
        raise InvalidConfigurationError(f"there is no certificate in {file}, which must be PEM")
    return certificate
