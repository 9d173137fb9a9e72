# Made from _async/_sandboxes.py by generate.py.
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
from ._connection import Connection
from ._io import all_or_nothing


class Sandboxes(Connection):
    def create_sandbox(
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
        channel = self._open()
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
        made = all_or_nothing(
            partial(channel.unary, methods.CreateSandbox, request),
            lambda made: self.destroy_sandbox(made.id, keep_codebase=True))
        return convert.sandbox_in(made)

    def fetch_image(
        self, image: str, on_step: Optional[Callable[[ImageStep], None]] = None
    ) -> None:
        """Makes sure that the container engine of the server has an image. Making a sandbox does the
        same, without a word until it is there.

        Args:
            on_step: called with each step, if it has to be fetched.
        """
        channel = self._open()
        request = message(v1.FetchImageRequest, image=image)
        stream = channel.stream(methods.FetchImage, request)
        try:
            for step in stream:
                if on_step is not None and not step.ready:
                    on_step(convert.step_in(step))
        finally:
            stream.cancel()

    def get_sandbox(self, sandbox_id: str) -> SandboxInfo:
        """What is on record about a sandbox."""
        channel = self._open()
        request = message(v1.GetSandboxRequest, sandbox_id=sandbox_id)
        return convert.sandbox_in(channel.unary(methods.GetSandbox, request))

    def list_sandboxes(
        self,
        codebase_id: Optional[str] = None,
        *,
        labels: Optional[Mapping[str, str]] = None,
        owner_id: Optional[str] = None,
        status: Optional[SandboxStatus] = None,
    ) -> List[SandboxInfo]:
        """All of them, or those that fit."""
        channel = self._open()
        wanted = f"SANDBOX_STATUS_{status.name}" if status else None
        request = message(
            v1.ListSandboxesRequest,
            codebase_id=codebase_id or "", labels=labels or {}, owner_id=owner_id or "",
            status=wanted)
        answer = channel.unary(methods.ListSandboxes, request)
        return [convert.sandbox_in(sandbox) for sandbox in answer.sandboxes]

    def start_sandbox(self, sandbox_id: str) -> SandboxInfo:
        """Starts it, if it does not run."""
        channel = self._open()
        request = message(v1.StartSandboxRequest, sandbox_id=sandbox_id)
        return convert.sandbox_in(channel.unary(methods.StartSandbox, request))

    def stop_sandbox(self, sandbox_id: str) -> SandboxInfo:
        """Ends everything that runs in it. Its files stay."""
        channel = self._open()
        request = message(v1.StopSandboxRequest, sandbox_id=sandbox_id)
        return convert.sandbox_in(channel.unary(methods.StopSandbox, request))

    def destroy_sandbox(self, sandbox_id: str, *, keep_codebase: bool = False) -> None:
        """Ends it and removes what is its own; a codebase made to go with it goes, unless kept."""
        channel = self._open()
        request = message(
            v1.DestroySandboxRequest, sandbox_id=sandbox_id, keep_codebase=keep_codebase)
        channel.unary(methods.DestroySandbox, request)

    def fork_sandbox(
        self, sandbox_id: str, *, labels: Optional[Mapping[str, str]] = None
    ) -> SandboxInfo:
        """Another sandbox with the same files and rules. It is not started."""
        channel = self._open()
        request = message(
            v1.ForkSandboxRequest,
            sandbox_id=sandbox_id, labels=labels or {}, request_id=uuid.uuid4().hex)
        made = all_or_nothing(
            partial(channel.unary, methods.ForkSandbox, request),
            lambda made: self.destroy_sandbox(made.id, keep_codebase=True))
        return convert.sandbox_in(made)

    def renew_lease(self, sandbox_id: str, *, bind: bool = False) -> None:
        """Keeps a leased sandbox for another minute; `bind` makes it a leased one."""
        channel = self._open()
        request = message(v1.LeaseSandboxRequest, sandbox_id=sandbox_id, bind=bind)
        channel.unary(methods.RenewLease, request)
