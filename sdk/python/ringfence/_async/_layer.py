"""What was changed in a sandbox, what becomes of it, and what may be done."""

from __future__ import annotations

from typing import Iterable, List, Optional

from .._presets import rules_for
from .._types import (
    ApplyResult,
    AuditCheck,
    Change,
    Explanation,
    PermissionRule,
    RuleLike,
    Snapshot,
)
from ._handle import AsyncHandle
from ._record import AsyncAuditStream


class AsyncLayer(AsyncHandle):
    async def changes(self) -> List[Change]:
        """What is not as it was when the sandbox was made."""
        return await self._client.changes(self.id)

    async def diff(self) -> str:
        """The same as a unified diff; binary files are only named."""
        return await self._client.diff(self.id)

    async def apply(self, *, force: bool = False, dry_run: bool = False) -> ApplyResult:
        """Writes the changes back: to your directory if the sandbox uses it in place (embedded
        server; stop it first), else to the codebase on the server.

        >>> (await (await sandbox.stop()).apply()).applied  # doctest: +SKIP

        Args:
            force: also where the other side was changed meanwhile.
            dry_run: only say what would be done.

        Raises:
            ApplyConflictError: changed on both sides; nothing was written.
            SandboxRunningError: call `stop()` first.
        """
        return await self._client.apply(self.id, force=force, dry_run=dry_run)

    async def snapshot(self, name: str = "") -> Snapshot:
        """Keeps the files as they are now. Nothing is copied, and the sandbox goes on."""
        return await self._client.create_snapshot(self.id, name)

    async def snapshots(self) -> List[Snapshot]:
        """Its snapshots."""
        return await self._client.list_snapshots(self.id)

    async def policy(self) -> List[PermissionRule]:
        """The rules in force."""
        return await self._client.get_policy(self.id)

    async def set_policy(
        self, preset: Optional[str] = None, permissions: Optional[Iterable[RuleLike]] = None
    ) -> List[PermissionRule]:
        """Other rules, in force for new opens as soon as this returns."""
        return await self._client.set_policy(self.id, rules_for(preset, permissions))

    async def explain(self, path: str) -> Explanation:
        """What code inside may do with a path, and which rule decided.

        >>> (await sandbox.explain("/.env")).permission  # doctest: +SKIP
        <Permission.NONE: 'none'>
        """
        return (await self._client.explain(self.id, [path]))[0]

    def audit(
        self, follow: bool = False, *, denied: bool = False, after: int = 0
    ) -> AsyncAuditStream:
        """The record: what was run, read, written and refused, in order.

        >>> [event.data["path"] async for event in sandbox.audit(denied=True)]  # doctest: +SKIP
        """
        return self._client.audit(self.id, follow, denied=denied, after=after)

    async def verify_audit(self) -> AuditCheck:
        """Whether the record is as it was written."""
        return await self._client.verify_audit(self.id)
