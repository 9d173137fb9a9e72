"""What a sandbox's methods share."""

from __future__ import annotations

from .._types import SandboxInfo
from ._client import AsyncSandboxClient


class AsyncHandle:
    """A sandbox, and who is asked about it."""

    def __init__(self, client: AsyncSandboxClient, info: SandboxInfo) -> None:
        self._client = client
        self._info = info

    @property
    def id(self) -> str:
        return self._info.id
