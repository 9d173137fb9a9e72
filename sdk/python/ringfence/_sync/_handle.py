# Made from _async/_handle.py by generate.py.
"""What a sandbox's methods share."""

from __future__ import annotations

from .._types import SandboxInfo
from ._client import SandboxClient


class Handle:
    """A sandbox, and who is asked about it."""

    def __init__(self, client: SandboxClient, info: SandboxInfo) -> None:
        self._client = client
        self._info = info

    @property
    def id(self) -> str:
        return self._info.id
