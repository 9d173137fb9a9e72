"""Virtual environments that know nothing of this repository, for what a user would install."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator

OLDEST = 9
# Far more than there are; a Python that does not exist is not found.
NEWEST = 30


class Environment:
    """An empty virtual environment, whose programs run in a directory of their own and see nothing of
    what the tests themselves were started with."""

    def __init__(self, python: str, place: pathlib.Path) -> None:
        self.prefix = place / "venv"
        self.elsewhere = place / "elsewhere"
        self.elsewhere.mkdir(parents=True)
        run([python, "-m", "venv", str(self.prefix)], cwd=place)

    def install(self, *what: str) -> None:
        # From the interpreter, since a script's first line has an end that a long path does not fit in.
        self.python("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", *what)

    def python(self, *arguments: str, **variables: str) -> str:
        own = {"RINGFENCE_STATE": str(self.elsewhere / "state"), **variables}
        return run([str(self.prefix / "bin" / "python"), *arguments], cwd=self.elsewhere, variables=own)

    def script(self, name: str, *arguments: str) -> str:
        return run([str(self.prefix / "bin" / name), *arguments], cwd=self.elsewhere)


def run(command: list[str], cwd: pathlib.Path, variables: dict[str, str] | None = None) -> str:
    """What it prints; if it fails, the assertion says what it complained about."""
    done = subprocess.run(command, cwd=cwd, env={**clean(), **(variables or {})}, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def clean() -> dict[str, str]:
    """Without what points into this repository or at somebody's server."""
    ours = ("RINGFENCE", "PYTHON", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def interpreters() -> dict[str, str]:
    """Every supported Python of this machine by its version, the running one in any case."""
    running = "{}.{}".format(*sys.version_info)
    return {**dict(found()), running: sys.executable}


def found() -> Iterator[tuple[str, str]]:
    for minor in range(OLDEST, NEWEST):
        path = shutil.which(f"python3.{minor}")
        if path and makes_environments(path):
            yield f"3.{minor}", path


def makes_environments(python: str) -> bool:
    """A name on the PATH may be an empty promise, and Debian splits what is needed from the rest."""
    tried = subprocess.run([python, "-c", "import ensurepip, venv"], env=clean(), capture_output=True)
    return tried.returncode == 0
