"""What `pip install ringfence` gives: both wheels are built, looked into, and used where nothing else is."""

from __future__ import annotations

import os
import pathlib
import platform
import re
import struct
import tempfile
import zipfile
from collections.abc import Iterator

import pytest

import servers
from environments import Environment, interpreters, run
from needs import needs_free

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "sdk" / "python" / "ringfence"
PT_INTERP = 3
DESCRIBED = {"METADATA", "WHEEL", "RECORD", "licenses/LICENSE-APACHE", "licenses/LICENSE-MIT"}
# A build that finds nothing in `target`, on a busy machine.
pytestmark = pytest.mark.timeout(1800)

RUN_ONE = """
import sys
from ringfence import Sandbox

with Sandbox.from_local(sys.argv[1], preset="read-only") as sandbox:
    print(sandbox.run("cat hello.txt").stdout, end="")
"""
EXPECT_HINT = """
import sys
from ringfence import Sandbox, SandboxError

try:
    Sandbox.from_local(sys.argv[1], preset="read-only")
except SandboxError as error:
    print(error)
"""
FIND = "from ringfence._binary import find_binary; print(find_binary())"


@pytest.fixture(scope="session")
def scratch() -> Iterator[pathlib.Path]:
    """Removed at the end, since programs and environments are large."""
    with tempfile.TemporaryDirectory(prefix="rf-wheel-") as place:
        yield pathlib.Path(place)


@pytest.fixture(scope="session")
def wheels(scratch: pathlib.Path) -> pathlib.Path:
    """Built from sources that were used before, which leaves caches beside them."""
    out = scratch / "wheels"
    stray = PACKAGE / "__pycache__" / "stray.cpython-39.pyc"
    stray.parent.mkdir(exist_ok=True)
    stray.touch()
    run(["sh", str(ROOT / "scripts" / "wheels.sh"), "dev", str(out), "--strip", "false"], cwd=scratch)
    stray.unlink()
    return out


@pytest.fixture(scope="session")
def platform_wheel(wheels: pathlib.Path) -> pathlib.Path:
    return only(wheels.glob("*linux*.whl"))


@pytest.fixture(scope="session")
def client_wheel(wheels: pathlib.Path) -> pathlib.Path:
    return only(wheels.glob("*-any.whl"))


@pytest.fixture(scope="session", params=list(interpreters().items()), ids=lambda python: python[0])
def python(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The version and the path of each interpreter in turn."""
    found: tuple[str, str] = request.param
    return found


@pytest.fixture(scope="session")
def with_program(python: tuple[str, str], platform_wheel: pathlib.Path, scratch: pathlib.Path) -> Environment:
    environment = Environment(python[1], scratch / f"program-{python[0]}")
    environment.install(str(platform_wheel))
    return environment


@pytest.fixture(scope="session")
def client_only(python: tuple[str, str], client_wheel: pathlib.Path, scratch: pathlib.Path) -> Environment:
    """With the oldest dependencies that it asks for, while the other has the newest there are."""
    environment = Environment(python[1], scratch / f"client-{python[0]}")
    environment.install(str(client_wheel), *oldest_dependencies(client_wheel, python[0]))
    return environment


def oldest_dependencies(wheel: pathlib.Path, python: str) -> list[str]:
    """For a Python that the package names; newer ones may need newer dependencies too."""
    metadata = content(wheel, f"ringfence-{version()}.dist-info/METADATA").decode()
    wanted = re.findall(r"^Requires-Dist: (.+)$", metadata, re.MULTILINE)
    assert len(wanted) == 3 and all(">=" in one for one in wanted), wanted
    named = f"Classifier: Programming Language :: Python :: {python}\n" in metadata
    return [one.replace(">=", "==") for one in wanted] if named else []


@pytest.fixture
def project(tmp_path: pathlib.Path) -> str:
    (tmp_path / "hello.txt").write_text("hello\n")
    return str(tmp_path)


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """Where a server listens that sees none of the client's files."""
    with servers.served("--stop-sandboxes") as where:
        yield where.options["endpoint"]


def only(found: Iterator[pathlib.Path]) -> pathlib.Path:
    (one,) = found
    return one


def version() -> str:
    stated = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert stated is not None
    return stated[1]


def names(wheel: pathlib.Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def content(wheel: pathlib.Path, name: str) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(name)


def of_package(wheel: pathlib.Path) -> dict[str, bytes]:
    return {name: content(wheel, name) for name in names(wheel) if name.startswith("ringfence/")}


def of_sources() -> dict[str, bytes]:
    paths = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(PACKAGE.parent).as_posix(): path.read_bytes() for path in paths}


def described(wheel: pathlib.Path) -> set[str]:
    """What a wheel says about itself, without the directory's name."""
    info = f"ringfence-{version()}.dist-info/"
    return {name[len(info) :] for name in names(wheel) if name.startswith(info)}


def is_static(program: bytes) -> bool:
    """Whether an ELF file of 64 bits asks for no interpreter, and so for no library."""
    (table,) = struct.unpack_from("<Q", program, 0x20)
    size, count = struct.unpack_from("<HH", program, 0x36)
    kinds = [struct.unpack_from("<I", program, table + i * size)[0] for i in range(count)]
    return PT_INTERP not in kinds


def test_the_platform_wheel_has_the_package_the_program_and_nothing_else(platform_wheel: pathlib.Path) -> None:
    base = f"ringfence-{version()}"
    tops = {name.split("/")[0] for name in names(platform_wheel)}
    assert tops == {"ringfence", f"{base}.data", f"{base}.dist-info"}
    assert {name for name in names(platform_wheel) if ".data/" in name} == {f"{base}.data/scripts/ringfence"}
    assert of_package(platform_wheel) == of_sources()
    assert described(platform_wheel) == DESCRIBED


def test_the_client_wheel_has_the_package_and_nothing_else(client_wheel: pathlib.Path) -> None:
    assert client_wheel.name == f"ringfence-{version()}-py3-none-any.whl"
    assert {name.split("/")[0] for name in names(client_wheel)} == {"ringfence", f"ringfence-{version()}.dist-info"}
    assert of_package(client_wheel) == of_sources()
    assert described(client_wheel) == DESCRIBED


def test_both_wheels_are_typed_and_say_the_same(platform_wheel: pathlib.Path, client_wheel: pathlib.Path) -> None:
    assert "ringfence/py.typed" in names(platform_wheel) & names(client_wheel)
    metadata = f"ringfence-{version()}.dist-info/METADATA"
    assert content(platform_wheel, metadata) == content(client_wheel, metadata)


def test_the_platform_wheel_is_for_every_linux_with_this_processor(platform_wheel: pathlib.Path) -> None:
    processor = platform.machine()
    *name, tags = platform_wheel.stem.split("-")
    assert name == ["ringfence", version(), "py3", "none"]
    assert set(tags.split(".")) == {f"manylinux_2_17_{processor}", f"manylinux2014_{processor}"}
    assert is_static(content(platform_wheel, f"ringfence-{version()}.data/scripts/ringfence"))


def test_the_same_sources_make_the_same_client_wheel(client_wheel: pathlib.Path, tmp_path: pathlib.Path) -> None:
    tools = ROOT / "target" / "venv-wheels" / "bin"
    build = [str(tools / "python"), str(PACKAGE.parent / "build_client.py"), str(tmp_path)]
    run(build, cwd=tmp_path, variables={"PATH": f"{tools}:{os.environ['PATH']}"})
    assert only(tmp_path.glob("*.whl")).read_bytes() == client_wheel.read_bytes()


def test_an_installed_package_runs_its_program(with_program: Environment) -> None:
    assert with_program.script("ringfence", "--version") == f"ringfence {version()}\n"
    assert with_program.python("-c", "import ringfence; print(ringfence.__version__)") == f"{version()}\n"
    assert with_program.python("-c", FIND) == f"{with_program.prefix}/bin/ringfence\n"


def test_an_installed_package_needs_no_server(with_program: Environment, project: str) -> None:
    assert with_program.python("-c", RUN_ONE, project) == "hello\n"


@pytest.mark.parametrize("option", ["--target", "--prefix"])
def test_a_package_installed_aside_finds_its_own_program(
    with_program: Environment, platform_wheel: pathlib.Path, tmp_path: pathlib.Path, option: str
) -> None:
    with_program.install("--no-deps", "--ignore-installed", option, str(tmp_path), str(platform_wheel))
    site = only(tmp_path.rglob("py.typed")).parents[1]
    assert with_program.python("-c", FIND, PYTHONPATH=str(site)) == f"{tmp_path}/bin/ringfence\n"


@needs_free(9000)  # A server there is used, and none has to be started.
def test_without_a_program_it_says_how_to_go_on(client_only: Environment, project: str) -> None:
    said = client_only.python("-c", EXPECT_HINT, project, PATH=os.defpath)
    assert "endpoint= or RINGFENCE_ENDPOINT" in said, said


def test_without_a_program_a_server_elsewhere_does_it(client_only: Environment, endpoint: str, project: str) -> None:
    assert client_only.python("-c", RUN_ONE, project, RINGFENCE_ENDPOINT=endpoint) == "hello\n"
