"""What the figures were measured on and with."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Dict, List, Optional

from . import processes

VERSION_COMMANDS: Dict[str, List[str]] = {
    "fuse-overlayfs": ["fuse-overlayfs", "--version"],
    "bindfs": ["bindfs", "--version"],
    "git": ["git", "--version"],
    "gcc": ["gcc", "--version"],
    "cargo": ["cargo", "--version"],
    "tar": ["tar", "--version"],
    "find": ["find", "--version"],
    "grep": ["grep", "--version"],
}


def describe(binary: Optional[Path]) -> Dict[str, str]:
    """Name and value of everything a reader needs to judge the figures."""
    facts = {
        "kernel": platform.release(),
        "system": system_name(),
        "processor": f"{processor_name()}, {os.cpu_count()} cores",
        "memory": f"{memory_gibibytes():.0f} GiB",
        "python3": platform.python_version(),
    }
    for program, command in VERSION_COMMANDS.items():
        facts[program] = version(program, command)
    if binary is not None:
        facts["ringfence"] = version("ringfence", [str(binary), "--version"])
    return facts


def version(program: str, command: List[str]) -> str:
    """The line of a version text that names the program, or the first one."""
    if processes.missing(command[0]):
        return "not installed"
    try:
        lines = processes.run(command, timeout=10).splitlines()
    except processes.CommandFailed as error:
        return f"unknown ({error})"
    named = [line for line in lines if line.startswith(program)]
    return (named or lines or ["unknown"])[0].strip()


def system_name() -> str:
    for line in read_lines("/etc/os-release"):
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return platform.system()


def processor_name() -> str:
    for line in read_lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def memory_gibibytes() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def read_lines(path: str) -> List[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
