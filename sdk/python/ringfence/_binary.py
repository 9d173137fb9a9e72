"""Where the `ringfence` program is, which is the server that a Python process starts for itself.

The wheels for Linux carry it and pip puts it among the scripts. The wheel for all other platforms has
none; that is the one failure to expect here, and it is said in words that help.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator

_NAME = "ringfence"
# What it says of itself, as `ringfence 0.1.0`.
_VERSION = re.compile(rb"ringfence \d+\.\d+\.\d+")
# A program that has not said its version by then is not ours, however busy the machine is.
_VERSION_WITHIN = 20.0


class BinaryNotFound(Exception):
    """There is no program to start a server with."""


def find_binary() -> str:
    """The absolute path of the program: the one that is named, the one installed with this package, or
    else one on the PATH."""
    named = os.environ.get("RINGFENCE_BINARY")
    if named:
        return _checked(named)
    for path in _installed():
        if _can_run(path):
            return path
    for path in _on_path():
        if _can_run(path) and _is_ours(path):
            return path
    raise BinaryNotFound(
        f"this installation of ringfence is client-only, without a server for {sysconfig.get_platform()}: "
        "connect to a server with endpoint= or RINGFENCE_ENDPOINT, or name the program of one in RINGFENCE_BINARY"
    )


def _checked(named: str) -> str:
    path = os.path.abspath(named)
    if not _can_run(path):
        raise BinaryNotFound(f"RINGFENCE_BINARY names {path}, which is not a program that can be run")
    return path


def _can_run(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _installed() -> Iterator[str]:
    """Where pip may have put it, the place that belongs to this very package first: several may be
    visible at once, and client and server are made for each other."""
    package = os.path.dirname(os.path.abspath(__file__))
    for directory in (*_of_package(package), *_of_environment()):
        yield os.path.join(directory, _NAME)


def _of_package(package: str) -> Iterator[str]:
    """With `pip install --target` scripts are beside the package, with `--prefix` (and in every
    environment) three up, as in `PREFIX/lib/python3.9/site-packages`."""
    site = os.path.dirname(package)
    yield os.path.join(site, "bin")
    library = os.path.dirname(site)
    if os.path.basename(library).startswith("python"):
        yield os.path.join(os.path.dirname(os.path.dirname(library)), "bin")


def _of_environment() -> Iterator[str]:
    """For a package that is not where its program is, such as an editable install."""
    yield sysconfig.get_path("scripts")
    yield os.path.join(sys.prefix, "bin")
    user = f"{os.name}_user"
    if user in sysconfig.get_scheme_names():
        yield sysconfig.get_path("scripts", user)


def _on_path() -> Iterator[str]:
    """Only absolute directories: what lies in the working directory may be what the sandbox is for."""
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if os.path.isabs(directory):
            yield os.path.join(directory, _NAME)


def _is_ours(path: str) -> bool:
    """Anybody may call a program `ringfence`, and a directory of the PATH says nothing about it."""
    try:
        said = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_VERSION_WITHIN,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return said.returncode == 0 and _VERSION.match(said.stdout) is not None
