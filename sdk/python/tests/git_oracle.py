"""What git itself says about a tree, so that nothing of the machine or its user plays a part."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from ringfence._ignore import Ignores


class Git:
    """Git with a repository that is outside of the trees it is asked about."""

    def __init__(self, directory: Path) -> None:
        self._repository = directory / "repository"
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "LC_ALL": "C",
        }
        self._run(["init", "--quiet", "--bare", str(self._repository)], directory)

    def ignored(self, tree: Path, paths: list[bytes]) -> set[bytes]:
        """Those of `paths` that git ignores in `tree`."""
        where = [f"--git-dir={self._repository}", f"--work-tree={tree}"]
        asked = [
            *where,
            "-c",
            "core.bare=false",
            "check-ignore",
            "--no-index",
            "--stdin",
            "-z",
            "-v",
            "-n",
        ]
        output = self._run(asked, tree, b"".join(path + b"\0" for path in paths))
        fields = output.split(b"\0")[:-1]
        answers = zip(fields[2::4], fields[3::4])
        return {path for pattern, path in answers if pattern and not pattern.startswith(b"!")}

    def _run(self, arguments: list[str], cwd: Path, given: bytes = b"") -> bytes:
        done = subprocess.run(
            ["git", *arguments], cwd=cwd, env=self._environment, input=given, capture_output=True
        )
        # check-ignore ends with 1 where nothing is ignored.
        assert done.returncode in (0, 1), done.stderr
        return done.stdout


def paths_of(tree: Path) -> list[bytes]:
    """Every path below `tree`, directories before what is in them."""
    root = os.fsencode(tree)
    found = []
    for directory, directories, files in os.walk(root):
        found += [os.path.join(directory, name) for name in directories + files]
    return sorted(path[len(root) + 1 :] for path in found)


def ignored_by_us(tree: Path, ignores: Ignores | None = None) -> set[bytes]:
    """Every path below `tree` that is left out, with all that is below it."""
    return _ignored_in(os.fsencode(tree), b"", ignores or Ignores(default_ignores=False))


def _ignored_in(directory: bytes, prefix: bytes, ignores: Ignores) -> set[bytes]:
    with os.scandir(directory) as listing:
        entries = list(listing)
    ignores.read(directory, [entry.name for entry in entries])
    found = set()
    for entry in entries:
        name, is_directory = entry.name, entry.is_dir(follow_symlinks=False)
        if ignores.leaves_out(name, is_directory):
            found.add(prefix + name)
            below = paths_of(Path(os.fsdecode(entry.path))) if is_directory else []
            found |= {prefix + name + b"/" + path for path in below}
        elif is_directory:
            found |= _ignored_in(entry.path, prefix + name + b"/", ignores.enter(name))
    return found
