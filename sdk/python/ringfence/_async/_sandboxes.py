"""Sandboxes: making, starting, ending, and keeping them."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Callable, Iterable, List, Mapping, Optional, Sequence

from .. import _convert as convert
from .._message import message
from .._presets import as_rules
from .._types import ImageStep, ResourceLimits, RuleLike, RuntimeType, SandboxInfo, SandboxStatus, Seconds
from .._wire import methods, v1
from ._connection import AsyncConnection
from ._io import all_or_nothing


class AsyncSandboxes(AsyncConnection):
    async def create_sandbox(
        self,
        codebase_id: str,
        permissions: Optional[Iterable[RuleLike]] = None,
        labels: Optional[Mapping[str, str]] = None,
        expires_in: Optional[Seconds] = None,
        runtime: RuntimeType = RuntimeType.BWRAP,
        image: Optional[str] = None,
        resources: Optional[ResourceLimits] = None,
        *,
        network: str = "none",
        env: Optional[Mapping[str, str]] = None,
        read_only_paths: Sequence[str] = (),
        image_user: bool = False,
        snapshot_id: Optional[str] = None,
        start: bool = False,
        leased: bool = False,
    ) -> SandboxInfo:
        """A new sandbox on a codebase. Without rules, nothing of it can be seen inside.

        Args:
            expires_in: it is destroyed after that long.
            read_only_paths: further directories of the host, on your own server only.
            image_user: run everything as the user that the image names, instead of one that nobody
                else is.
            snapshot_id: begin with the files of this snapshot.
            start: start it as well.
            leased: it is destroyed when nobody has renewed its lease for a minute.
        """
        channel = await self._open()
        request = message(
            v1.CreateSandboxRequest,
            codebase_id=codebase_id,
            permissions=convert.rules_out(as_rules(permissions)),
            labels=labels or {},
            expires_in=convert.duration_out(convert.seconds(expires_in, "expiry")),
            runtime=convert.runtime_out(runtime),
            image=image or "",
            image_user=image_user,
            resources=convert.limits_out(resources),
            network=convert.network_out(network),
            env=convert.env_out(env),
            read_only_paths=read_only_paths,
            snapshot_id=snapshot_id or "",
            start=start,
            leased=leased,
            request_id=uuid.uuid4().hex,
        )
        made = await all_or_nothing(
            partial(channel.unary, methods.CreateSandbox, request),
            lambda made: self.destroy_sandbox(made.id, keep_codebase=True))
        return convert.sandbox_in(made)

    async def fetch_image(
        self, image: str, on_step: Optional[Callable[[ImageStep], None]] = None
    ) -> None:
        """Makes sure that the container engine of the server has an image. Making a sandbox does the
        same, without a word until it is there.

        Args:
            on_step: called with each step, if it has to be fetched.
        """
        channel = await self._open()
        request = message(v1.FetchImageRequest, image=image)
        stream = channel.stream(methods.FetchImage, request)
        try:
            async for step in stream:
                if on_step is not None and not step.ready:
                    on_step(convert.step_in(step))
        finally:
            stream.cancel()

    async def get_sandbox(self, sandbox_id: str) -> SandboxInfo:
        """What is on record about a sandbox."""
        channel = await self._open()
        request = message(v1.GetSandboxRequest, sandbox_id=sandbox_id)
        return convert.sandbox_in(await channel.unary(methods.GetSandbox, request))

    async def list_sandboxes(
        self,
        codebase_id: Optional[str] = None,
        *,
        labels: Optional[Mapping[str, str]] = None,
        owner_id: Optional[str] = None,
        status: Optional[SandboxStatus] = None,
    ) -> List[SandboxInfo]:
        """All of them, or those that fit."""
        channel = await self._open()
        wanted = f"SANDBOX_STATUS_{status.name}" if status else None
        request = message(
            v1.ListSandboxesRequest,
            codebase_id=codebase_id or "", labels=labels or {}, owner_id=owner_id or "",
            status=wanted)
        answer = await channel.unary(methods.ListSandboxes, request)
        return [convert.sandbox_in(sandbox) for sandbox in answer.sandboxes]

    async def start_sandbox(self, sandbox_id: str) -> SandboxInfo:
        """Starts it, if it does not run."""
        channel = await self._open()
        request = message(v1.StartSandboxRequest, sandbox_id=sandbox_id)
        return convert.sandbox_in(await channel.unary(methods.StartSandbox, request))

    async def stop_sandbox(self, sandbox_id: str) -> SandboxInfo:
        """Ends everything that runs in it. Its files stay."""
        channel = await self._open()
        request = message(v1.StopSandboxRequest, sandbox_id=sandbox_id)
        return convert.sandbox_in(await channel.unary(methods.StopSandbox, request))

    async def destroy_sandbox(self, sandbox_id: str, *, keep_codebase: bool = False) -> None:
        """Ends it and removes what is its own; a codebase made to go with it goes, unless kept."""
        channel = await self._open()
        request = message(
            v1.DestroySandboxRequest, sandbox_id=sandbox_id, keep_codebase=keep_codebase)
        await channel.unary(methods.DestroySandbox, request)

    async def fork_sandbox(
        self, sandbox_id: str, *, labels: Optional[Mapping[str, str]] = None
    ) -> SandboxInfo:
        """Another sandbox with the same files and rules. It is not started."""
        channel = await self._open()
        request = message(
            v1.ForkSandboxRequest,
            sandbox_id=sandbox_id, labels=labels or {}, request_id=uuid.uuid4().hex)
        made = await all_or_nothing(
            partial(channel.unary, methods.ForkSandbox, request),
            lambda made: self.destroy_sandbox(made.id, keep_codebase=True))
        return convert.sandbox_in(made)

    async def renew_lease(self, sandbox_id: str, *, bind: bool = False) -> None:
        """Keeps a leased sandbox for another minute; `bind` makes it a leased one."""
        channel = await self._open()
        request = message(v1.LeaseSandboxRequest, sandbox_id=sandbox_id, bind=bind)
        await channel.unary(methods.RenewLease, request)
