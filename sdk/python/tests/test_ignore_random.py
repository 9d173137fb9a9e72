"""Made-up ignore files over one tree, about which git and we must agree. The seeds are fixed."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from git_oracle import Git, ignored_by_us, paths_of
from needs import needs

pytestmark = needs("git")

# Names that patterns made of the pieces below can tell apart.
TOP = b"a ab foo \xc3\xa9 !a".split()
MIDDLE = b"b abc foobar [a]".split()
LEAVES = rb"a ab abc bar foobar a.b A x-y #a !a [a] a] * ** \ a\ - ^ {a,b}".split()
LEAVES += [b"\xc3\xa9", b"\xff\xfe", b" ", b"a ", b"a\tb", b"a\r"]

PLAIN = [*b"a b ab foo bar . - {a,b} \xc3\xa9 \xff".split(), b" ", b"\t"]
STARS = b"* * ** *** ? **/ /** /**/ */ /*".split()
ESCAPES = [*rb"\ \* \a \/ \\ **\/".split(), b"\\ "]
BRACKETS = rb"[ab] [!a] [^a] [a-c] [c-a] []a] [!]] [a-] [\]] [/] [--a] [a\-c] [!a-z] [a-\c]".split()
BRACKETS += b"[[:alpha:]] [[:lower:]-] [[:digit:][:upper:]] [a-[:alpha:]] [![:alpha:]]".split()
BRACKETS += b"[ ] [!c-a] [[:nope:]] [[:] [[::]] [\x80-\xff]".split()


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("random") / "tree"
    directories = [os.path.join(os.fsencode(root), directory) for directory in _directories()]
    for path in directories:
        os.makedirs(path)
    for path in directories:
        for leaf in LEAVES:
            if not os.path.lexists(os.path.join(path, leaf)):
                open(os.path.join(path, leaf), "wb").close()
    os.symlink(b"a.d", os.path.join(os.fsencode(root), b"link"))
    return root


def _directories() -> Iterator[bytes]:
    for top in TOP:
        yield top + b".d"
        for middle in MIDDLE:
            yield top + b".d/" + middle
            yield top + b".d/" + middle + b"/" + top


class Lines:
    """Lines of ignore files, half of them a path of the tree with parts of it made wild."""

    def __init__(self, seed: int, paths: list[bytes]) -> None:
        self._random = random.Random(seed)
        self._paths = paths

    def ignore_file(self) -> bytes:
        bom = b"\xef\xbb\xbf" if self._random.random() < 0.1 else b""
        lines = [self._line() for _ in range(self._random.randint(1, 6))]
        end = self._random.choice([b"\n", b"\n", b"\r\n"])
        return bom + end.join(lines) + self._random.choice([b"", end])

    def places(self) -> list[bytes]:
        """The root and some directories."""
        return [b"", *self._random.sample(list(_directories()), 2)]

    def _line(self) -> bytes:
        body = self._made_wild() if self._random.random() < 0.5 else self._made_up()
        start = self._random.choice([b"", b"", b"", b"!", b"!", b"/", b"!/", b"\\", b"**/"])
        end = self._random.choice([b"", b"", b"", b"", b"/", b" ", b"\\ ", b"  ", b"/**", b"*"])
        return start + body + end

    def _made_wild(self) -> bytes:
        line = self._random.choice(self._paths)
        if self._random.random() < 0.3:
            line = os.path.basename(line)
        for _ in range(self._random.randint(0, 3)):
            at = self._random.randint(0, len(line))
            until = at + self._random.choice([0, 1, 1, 1, 2, 5])
            line = line[:at] + self._piece() + line[until:]
        return line

    def _made_up(self) -> bytes:
        return b"".join(self._piece() for _ in range(self._random.randint(1, 5)))

    def _piece(self) -> bytes:
        return self._random.choice(self._random.choice([PLAIN, STARS, STARS, ESCAPES, BRACKETS]))


def write_ignore_files(tree: Path, seed: int) -> list[bytes]:
    lines = Lines(seed, paths_of(tree))
    written = [os.path.join(os.fsencode(tree), place, b".gitignore") for place in lines.places()]
    for path in written:
        with open(path, "wb") as file:
            file.write(lines.ignore_file())
    return written


@pytest.mark.parametrize("batch", range(10))
def test_made_up_patterns_mean_what_they_mean_to_git(
    tree: Path, tmp_path: Path, batch: int
) -> None:
    git = Git(tmp_path)
    for seed in range(batch * 50, batch * 50 + 50):
        written = write_ignore_files(tree, seed)
        assert ignored_by_us(tree) == git.ignored(tree, paths_of(tree)), f"seed {seed}"
        for path in written:
            os.unlink(path)
