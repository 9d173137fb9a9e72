"""An ext4 filesystem on a loop device in RAM, and mounts that are always taken away again.

Ordinary disks swing by a factor of ten in the cost of creating files; memory does not.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Iterator, List

from . import processes

CLONE_NEWNS = 0x00020000


def enter_private_mount_namespace() -> None:
    """Keep every mount of this run invisible to the rest of the machine.

    When the last process of the namespace ends, however it ends, the kernel unmounts
    everything in it and releases the loop device and the memory.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"unshare: {os.strerror(code)}")
    processes.run(["mount", "--make-rprivate", "/"])


@contextmanager
def ram_directory() -> Iterator[Path]:
    """A tmpfs of our own in a fresh directory."""
    directory = Path(tempfile.mkdtemp(prefix="ringfence-bench-"))
    with ExitStack() as cleanup:
        cleanup.callback(directory.rmdir)
        mount(cleanup, ["-t", "tmpfs", "-o", "size=90%,mode=700", "ringfence-bench"], directory)
        yield directory


@contextmanager
def ext4_in_ram(ram: Path, size: int) -> Iterator[Path]:
    """A fresh ext4 whose image is a sparse file in `ram`.

    Inode tables and journal are written at once: left to the kernel, it would do so in the
    background during the first measurements.
    """
    image, mountpoint = ram / "ext4.img", ram / "disk"
    with image.open("wb") as file:
        file.truncate(size)
    processes.run(
        ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", str(image)]
    )
    mountpoint.mkdir()
    with ExitStack() as cleanup:
        mount(cleanup, ["-t", "ext4", "-o", "loop", str(image)], mountpoint)
        yield mountpoint


def mount(cleanup: ExitStack, arguments: List[str], mountpoint: Path) -> None:
    """Mount, and unmount when `cleanup` is unwound."""
    processes.run(["mount", *arguments, str(mountpoint)])
    cleanup.callback(unmount, mountpoint)


def unmount(mountpoint: Path, patience: float = 5) -> None:
    """Unmount; a killed process may hold the mount for a moment, a stuck one for ever."""
    deadline = time.monotonic() + patience
    while is_mounted(mountpoint):
        try:
            processes.run(["umount", str(mountpoint)])
        except processes.CommandFailed:
            if time.monotonic() > deadline:
                processes.run(["umount", "--lazy", str(mountpoint)])
                return
            time.sleep(0.1)


def is_mounted(mountpoint: Path) -> bool:
    """Look it up in the mount table: a stat of a hung mount would hang as well."""
    wanted = str(mountpoint).encode()
    table = Path("/proc/self/mountinfo").read_bytes().splitlines()
    return any(line.split()[4] == wanted for line in table)


def settle(*filesystems: Path) -> None:
    """Write back what is dirty, so that one variant's writes do not land in the next one's time."""
    for filesystem in filesystems:
        processes.run(["sync", "--file-system", str(filesystem)], timeout=120)


def drop_dentries_and_inodes() -> None:
    """Make names cold and leave file contents in memory."""
    Path("/proc/sys/vm/drop_caches").write_text("2\n")


def free_memory_bytes() -> int:
    """Memory that could be used without swapping."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0

