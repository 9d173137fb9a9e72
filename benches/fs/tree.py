"""A source tree that looks like one: names, sizes, depth and text, the same at every run."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import List

from . import processes

SEED = 20240229
# A fixed day in the past. Files younger than git's index would be hashed at every `git status`.
MODIFIED = 1_700_000_000
MAX_DEPTH = 9
LARGEST_FILE = 600_000
WORDS = (
    "alpha buffer cache driver engine filter gateway handler index journal kernel layer matrix "
    "network object parser queue reader stream token update vector window worker yield zone"
).split()
SUFFIXES = (".c", ".h", ".rs", ".py", ".js", ".ts", ".md", ".json", ".toml", ".txt")

# What grep looks for: in a few files only, so that reading is the work and not printing.
NEEDLE = "needle_in_the_tree"


@dataclass(frozen=True)
class Shape:
    """How much of everything."""

    files: int
    directories: int
    bytes: int


@dataclass(frozen=True)
class Sizes:
    """The material of one run, and the size of the disk for it."""

    vendor: Shape
    repository: Shape
    tarball: Shape
    big_file: int
    disk: int

    @property
    def files(self) -> int:
        return self.vendor.files + self.repository.files

    @property
    def directories(self) -> int:
        return self.vendor.directories + self.repository.directories

    @property
    def bytes(self) -> int:
        return self.vendor.bytes + self.repository.bytes


FULL = Sizes(
    vendor=Shape(17_000, 2_800, 240_000_000),
    repository=Shape(8_000, 1_200, 110_000_000),
    tarball=Shape(4_000, 400, 48_000_000),
    big_file=1 << 30,
    disk=8 << 30,
)
QUICK = Sizes(
    vendor=Shape(3_000, 500, 36_000_000),
    repository=Shape(2_000, 300, 24_000_000),
    tarball=Shape(1_000, 100, 12_000_000),
    big_file=128 << 20,
    disk=2 << 30,
)


def make_base(base: Path, sizes: Sizes) -> None:
    """Fill `base` with the tree, the git repository in it, the big file and an empty output directory."""
    generator = random.Random(SEED)
    text = source_text(generator)
    fill(base / "tree" / "vendor", sizes.vendor, text, generator)
    fill(base / "tree" / "repo", sizes.repository, text, generator)
    commit_everything(base / "tree" / "repo")
    make_big_file(base / "big.bin", sizes.big_file, generator)
    (base / "output").mkdir()


def make_tarball(archive: Path, shape: Shape, scratch: Path) -> None:
    """Make an uncompressed archive, so that unpacking it is file system work only."""
    generator = random.Random(SEED + 1)
    fill(scratch / "unpacked", shape, source_text(generator), generator)
    processes.run(["tar", "cf", str(archive), "-C", str(scratch), "unpacked"])
    processes.run(["rm", "-rf", str(scratch / "unpacked")])


def fill(root: Path, shape: Shape, text: bytes, generator: random.Random) -> None:
    """Create `shape.directories` directories below `root` and spread the files over them."""
    directories = make_directories(root, shape.directories, generator)
    for number, size in enumerate(file_sizes(shape, generator)):
        directory = generator.choice(directories)
        name = f"{generator.choice(WORDS)}_{number}{generator.choice(SUFFIXES)}"
        path = os.path.join(directory, name)
        write_source_file(path, size, number, text, generator)
        if number % 100 == 99:
            os.symlink(name, f"{path}.link")


def make_directories(root: Path, count: int, generator: random.Random) -> List[str]:
    """A random tree of directories, at most MAX_DEPTH deep."""
    root.mkdir(parents=True)
    directories, depths = [str(root)], [0]
    while len(directories) <= count:
        parent = generator.randrange(len(directories))
        if depths[parent] == MAX_DEPTH:
            continue
        name = f"{generator.choice(WORDS)}-{len(directories)}"
        directories.append(os.path.join(directories[parent], name))
        depths.append(depths[parent] + 1)
        os.mkdir(directories[-1])
    return directories


def file_sizes(shape: Shape, generator: random.Random) -> List[int]:
    """Sizes as in real trees: most files small, a few large, the given sum."""
    weights = [generator.lognormvariate(0, 1.2) for _ in range(shape.files)]
    scale = shape.bytes / sum(weights)
    return [min(LARGEST_FILE, max(40, int(weight * scale))) for weight in weights]


def write_source_file(path: str, size: int, number: int, text: bytes, generator: random.Random) -> None:
    """A heading of its own, then a piece of the common text that starts at a random line."""
    heading = f"// file {number}\n"
    if number % 1000 == 0:
        heading += f"// {NEEDLE}\n"
    start = text.index(b"\n", generator.randrange(len(text) - LARGEST_FILE - 200)) + 1
    with open(path, "wb", buffering=0) as file:
        file.write(heading.encode() + text[start : start + size - len(heading)])
    os.utime(path, (MODIFIED, MODIFIED))


def source_text(generator: random.Random, functions: int = 20_000) -> bytes:
    """A few megabytes of made-up source code."""
    pieces = []
    for number in range(functions):
        verb, noun, other = generator.sample(WORDS, 3)
        pieces.append(
            f"static int {verb}_{noun}_{number}(struct {noun} *{noun}, size_t count)\n{{\n"
            f"    /* The {other} keeps the {noun} alive until {verb} returns. */\n"
            f"    for (size_t i = {generator.randrange(99)}; i < count; i++)\n"
            f"        if ({noun}->{other}[i] != {generator.randrange(9999)})\n"
            f"            return {verb}_{other}({noun}, i);\n    return 0;\n}}\n\n"
        )
    return "".join(pieces).encode()


def commit_everything(repository: Path) -> None:
    """One commit, objects in one pack: `.git` then has few files, as after a clone."""
    git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "core.compression=1"]
    processes.run([*git, "init", "-q", "-b", "main"], cwd=repository)
    processes.run([*git, "config", "gc.auto", "0"], cwd=repository)
    processes.run([*git, "add", "-A"], cwd=repository)
    processes.run([*git, "commit", "-q", "-m", "everything"], cwd=repository)
    processes.run([*git, "repack", "-a", "-d", "-q", "--window=0"], cwd=repository)


def make_big_file(path: Path, size: int, generator: random.Random) -> None:
    """Bytes that no layer could compress or store sparsely."""
    block = generator.randbytes(1 << 20)
    with path.open("wb", buffering=0) as file:
        for _ in range(size // len(block)):
            file.write(block)
