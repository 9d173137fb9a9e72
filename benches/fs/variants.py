"""The filesystems that are compared, mounted side by side over the same tree."""

from __future__ import annotations

import hashlib
import os
import select
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Dict, List, Optional, Tuple

from . import disk, policies, processes

NATIVE = "native"
KERNEL_PEER = "overlayfs"
FUSE_PEERS = ("fuse-overlayfs", "bindfs")
PRESETS = ("development", "agent-safe", "full-access")
RINGFENCE = (*PRESETS, "100-rules")
# Only there to tell what rules cost; a quick run leaves them out where no row needs them.
RULE_REFERENCES = ("full-access", "100-rules")
ALL = (NATIVE, KERNEL_PEER, *FUSE_PEERS, *RINGFENCE)

READY_WITHIN = 15.0

# Names, types and sizes of everything, and the contents of the projects. `.git` is left
# out because agent-safe hides it.
LISTING = (
    "find tree projects -name .git -prune -o -type f -printf 'f %s %p\\n' -o -printf '%y %p\\n' | sort && "
    "find projects -type f | sort | xargs cat"
)


class CannotMount(Exception):
    """The reason why a variant is left out."""


@dataclass
class Site:
    """Where the variants find their material and put their layers."""

    ram: Path
    disk: Path
    base: Path
    binary: Optional[Path]
    cleanup: ExitStack


@dataclass
class Variant:
    """A tree that a workload can run in. `unavailable` maps rows it cannot do to the reason.

    `writable` has the directory `output`. It is the root, except on native: native reads the
    very files that are the base of the others, because a copy of the big file lies in pages of
    other sizes and is read up to twice as fast or slow, and so it has to write elsewhere.
    """

    name: str
    root: Path
    writable: Path
    server: Optional[processes.Server] = None
    unavailable: Dict[str, str] = field(default_factory=dict)


def mount_all(site: Site, names: List[str]) -> Tuple[List[Variant], Dict[str, str]]:
    """Mount what can be mounted; return it and the reasons for the rest."""
    mounted: List[Variant] = []
    skipped: Dict[str, str] = {}
    reference = listing_digest(site.base)
    for name in names:
        try:
            variant = mount_variant(site, name)
            if listing_digest(variant.root) != reference:
                raise CannotMount("does not show the same files as the native tree")
            mounted.append(variant)
        except (CannotMount, processes.CommandFailed, OSError) as error:
            skipped[name] = str(error)
    return mounted, skipped


def listing_digest(root: Path) -> str:
    """A variant that shows less would do less work and look fast."""
    listing = processes.run(["sh", "-c", LISTING], cwd=root, timeout=120)
    return hashlib.sha256(listing.encode(errors="replace")).hexdigest()


def mount_variant(site: Site, name: str) -> Variant:
    mounters: Dict[str, Callable[[Site], Variant]] = {
        NATIVE: use_native,
        KERNEL_PEER: mount_overlayfs,
        "fuse-overlayfs": mount_fuse_overlayfs,
        "bindfs": mount_bindfs,
        "100-rules": mount_hundred_rules,
    }
    if name in PRESETS:
        return mount_preset(site, name)
    return mounters[name](site)


def use_native(site: Site) -> Variant:
    writable = make_layer(site, NATIVE, "writable")
    (writable / "output").mkdir()
    return Variant(NATIVE, site.base, writable)


def mount_overlayfs(site: Site) -> Variant:
    root = make_mountpoint(site, KERNEL_PEER)
    disk.mount(site.cleanup, ["-t", "overlay", "-o", overlay_options(site, KERNEL_PEER), "overlay"], root)
    return Variant(KERNEL_PEER, root, root)


def mount_fuse_overlayfs(site: Site) -> Variant:
    name = "fuse-overlayfs"
    root = make_mountpoint(site, name)
    return mount_peer(site, name, root, ["-f", "-o", overlay_options(site, name), str(root)])


def mount_bindfs(site: Site) -> Variant:
    """bindfs has no layers and writes in place: it gets a copy of the base."""
    root, copy = make_mountpoint(site, "bindfs"), site.disk / "copy"
    processes.run(["cp", "-a", str(site.base), str(copy)])
    disk.settle(site.disk)
    return mount_peer(site, "bindfs", root, ["-f", str(copy), str(root)])


def mount_peer(site: Site, program: str, root: Path, arguments: List[str]) -> Variant:
    """Start a peer's server in the foreground and wait for its mount to appear."""
    if processes.missing(program):
        raise CannotMount(f"{program} is not installed")
    server = start_server(site, [program, *arguments], root)
    deadline = time.monotonic() + READY_WITHIN
    while not disk.is_mounted(root):
        if not server.is_running() or time.monotonic() > deadline:
            raise CannotMount(f"{program} did not mount: {server.last_words()}")
        time.sleep(0.01)
    return Variant(program, root, root, server)


def mount_preset(site: Site, preset: str) -> Variant:
    variant = mount_ringfence(site, preset, ["--preset", preset])
    if preset == "agent-safe":
        variant.unavailable["git-status"] = "agent-safe hides .git"
    return variant


def mount_hundred_rules(site: Site) -> Variant:
    file = site.ram / "hundred-rules.toml"
    policies.write_policy(file, policies.hundred_rules())
    return mount_ringfence(site, "100-rules", ["--policy", str(file)])


def mount_ringfence(site: Site, name: str, policy: List[str]) -> Variant:
    """Start `ringfence mount` and wait until it says that it is ready."""
    if site.binary is None:
        raise CannotMount("no ringfence binary was given (--binary)")
    if not os.access(site.binary, os.X_OK):
        raise CannotMount(f"{site.binary.name} is not there or cannot be executed")
    root, layer = make_mountpoint(site, name), make_layer(site, name, "layer")
    command = [str(site.binary), "mount", "--base", str(site.base), "--layer", str(layer), *policy, str(root)]
    server = start_server(site, command, root)
    wait_until_ready(server)
    return Variant(name, root, root, server)


def wait_until_ready(server: processes.Server) -> None:
    deadline = time.monotonic() + READY_WITHIN
    said = b""
    while not any(line.startswith(b"ready") for line in said.splitlines(keepends=True) if line.endswith(b"\n")):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([server.stdout_fd], [], [], left)[0]:
            raise CannotMount(f"ringfence mount was not ready within {READY_WITHIN:.0f} s")
        piece = os.read(server.stdout_fd, 4096)
        if not piece:
            raise CannotMount(f"ringfence mount ended: {server.last_words()}")
        said += piece


def start_server(site: Site, command: List[str], root: Path) -> processes.Server:
    """Start it so that it is stopped, and its mount taken away, before the disk goes."""
    server = processes.Server(command, site.ram / f"{root.name}.log")
    site.cleanup.callback(disk.unmount, root)
    site.cleanup.callback(server.stop)
    return server


def make_mountpoint(site: Site, name: str) -> Path:
    mountpoint = site.ram / "mounts" / name
    mountpoint.mkdir(parents=True)
    return mountpoint


def make_layer(site: Site, name: str, part: str) -> Path:
    layer = site.disk / "layers" / name / part
    layer.mkdir(parents=True)
    return layer


def overlay_options(site: Site, name: str) -> str:
    upper, work = make_layer(site, name, "upper"), make_layer(site, name, "work")
    return f"lowerdir={site.base},upperdir={upper},workdir={work}"
