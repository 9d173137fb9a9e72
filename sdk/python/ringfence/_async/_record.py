"""What happened, and who may call."""

from __future__ import annotations

from typing import AsyncIterator, List, Optional

from .. import _convert as convert
from .._message import message
from .._types import AuditCheck, AuditEvent, Token
from .._wire import methods, v1
from ._connection import AsyncConnection
from ._streams import AsyncLeavable, Open


class AsyncAuditStream(AsyncLeavable[v1.AuditEvent]):
    """The events of a record, in order."""

    def __init__(self, open: Open, request: v1.AuditRequest) -> None:
        super().__init__(open, methods.Audit, request)

    async def _events(self) -> AsyncIterator[AuditEvent]:
        async for message in await self._messages():
            yield convert.event_in(message)

    def __aiter__(self) -> AsyncIterator[AuditEvent]:
        return self._events()


class AsyncRecords(AsyncConnection):
    def audit(
        self, sandbox_id: str, follow: bool = False, *, denied: bool = False, after: int = 0
    ) -> AsyncAuditStream:
        """What happened in a sandbox, also after its end.

        Args:
            follow: go on as things happen, until the sandbox is destroyed.
            denied: only what was refused.
            after: only what came after the event of that number.
        """
        request = message(
            v1.AuditRequest, sandbox_id=sandbox_id, follow=follow, denied=denied, after=after)
        return AsyncAuditStream(self._open, request)

    async def verify_audit(self, sandbox_id: str) -> AuditCheck:
        """Whether a record is as it was written."""
        channel = await self._open()
        request = message(v1.VerifyAuditRequest, sandbox_id=sandbox_id)
        answer = await channel.unary(methods.VerifyAudit, request)
        return AuditCheck(answer.intact, answer.events, answer.problem or None)

    async def create_token(self, account: str, label: str = "") -> Token:
        """Lets somebody in; the secret is in the answer, this once. On your own server's Unix socket
        only, as the other calls about tokens."""
        channel = await self._open()
        request = message(v1.CreateTokenRequest, account=account, label=label)
        answer = await channel.unary(methods.CreateToken, request)
        return convert.token_in(answer.token, answer.secret)

    async def list_tokens(self, account: Optional[str] = None) -> List[Token]:
        """The tokens of an account, or of all."""
        channel = await self._open()
        request = message(v1.ListTokensRequest, account=account or "")
        answer = await channel.unary(methods.ListTokens, request)
        return [convert.token_in(token) for token in answer.tokens]

    async def revoke_token(self, token_id: str) -> None:
        """From now on it is refused."""
        channel = await self._open()
        await channel.unary(methods.RevokeToken, message(v1.RevokeTokenRequest, token_id=token_id))
