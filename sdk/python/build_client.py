"""Builds the wheel without the program, for platforms that have no server: `build_client.py OUT`.

Everything that is said about the package comes from `pyproject.toml` through the same build backend as
for the wheels with the program, so the two cannot differ; only the tag is another. The same sources
make the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import sys
import tempfile
import zipfile

import maturin  # type: ignore[import-not-found, unused-ignore]

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = "ringfence"
# What belongs to a package when it is installed; caches and editors leave other things.
SUFFIXES = {".py", ".pyi", ".typed"}
# The earliest time that a zip file can tell.
TIME = (1980, 1, 1, 0, 0, 0)
WHEEL = b"Wheel-Version: 1.0\nGenerator: build_client\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def main(out: str) -> None:
    destination = pathlib.Path(out).resolve()
    destination.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        metadata = described(pathlib.Path(scratch))
        files = {**package_files(), **metadata}
    info = next(iter(metadata)).split("/")[0]
    files[f"{info}/RECORD"] = record(files, info)
    wheel = destination / f"{info[: -len('.dist-info')]}-py3-none-any.whl"
    write(wheel, files)
    print(wheel)


def described(scratch: pathlib.Path) -> dict[str, bytes]:
    """The backend's own `METADATA` and licences."""
    os.chdir(HERE)
    name = maturin.prepare_metadata_for_build_wheel(str(scratch))
    found = files_below(scratch / name, scratch)
    found[f"{name}/WHEEL"] = WHEEL
    return found


def package_files() -> dict[str, bytes]:
    found = files_below(HERE / PACKAGE, HERE)
    return {name: content for name, content in found.items() if pathlib.PurePosixPath(name).suffix in SUFFIXES}


def files_below(directory: pathlib.Path, root: pathlib.Path) -> dict[str, bytes]:
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def record(files: dict[str, bytes], info: str) -> bytes:
    """Every file with its digest and size, as installers want it."""
    lines = [f"{name},sha256={digest(content)},{len(content)}" for name, content in files.items()]
    return "\n".join([*lines, f"{info}/RECORD,,", ""]).encode()


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def write(wheel: pathlib.Path, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: build_client.py OUT")
    main(sys.argv[1])
