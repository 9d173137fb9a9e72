# Made from _async/_layer.py by generate.py.
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
from ._handle import Handle
from ._record import AuditStream


class Layer(Handle):
    def changes(self) -> List[Change]:
        """What is not as it was when the sandbox was made."""
        return self._client.changes(self.id)

    def diff(self) -> str:
        """The same as a unified diff; binary files are only named."""
        return self._client.diff(self.id)

    def apply(self, *, force: bool = False, dry_run: bool = False) -> ApplyResult:
        """Writes the changes back: to your directory if the sandbox uses it in place (embedded
        server; stop it first), else to the codebase on the server.

        >>> ((sandbox.stop()).apply()).applied  # doctest: +SKIP

        Args:
            force: also where the other side was changed meanwhile.
            dry_run: only say what would be done.

        Raises:
            ApplyConflictError: changed on both sides; nothing was written.
            SandboxRunningError: call `stop()` first.
        """
        return self._client.apply(self.id, force=force, dry_run=dry_run)

    def snapshot(self, name: str = "") -> Snapshot:
        """Keeps the files as they are now. Nothing is copied, and the sandbox goes on."""
        return self._client.create_snapshot(self.id, name)

    def snapshots(self) -> List[Snapshot]:
        """Its snapshots."""
        return self._client.list_snapshots(self.id)

    def policy(self) -> List[PermissionRule]:
        """The rules in force."""
        return self._client.get_policy(self.id)

    def set_policy(
        self, preset: Optional[str] = None, permissions: Optional[Iterable[RuleLike]] = None
    ) -> List[PermissionRule]:
        """Other rules, in force for new opens as soon as this returns."""
        return self._client.set_policy(self.id, rules_for(preset, permissions))

    def explain(self, path: str) -> Explanation:
        """What code inside may do with a path, and which rule decided.

        >>> (sandbox.explain("/.env")).permission  # doctest: +SKIP
        <Permission.NONE: 'none'>
        """
        return (self._client.explain(self.id, [path]))[0]

    def audit(
        self, follow: bool = False, *, denied: bool = False, after: int = 0
    ) -> AuditStream:
        """The record: what was run, read, written and refused, in order.

        >>> [event.data["path"] for event in sandbox.audit(denied=True)]  # doctest: +SKIP
        """
        return self._client.audit(self.id, follow, denied=denied, after=after)

    def verify_audit(self) -> AuditCheck:
        """Whether the record is as it was written."""
        return self._client.verify_audit(self.id)
