#!/usr/bin/env python3
"""Writes what is generated in this package: `python generate.py [--check]`.

    ringfence/_wire   messages and methods, from the protos in `api/` (needs grpcio-tools)
    ringfence/_sync   the blocking classes, from those of `ringfence/_async`

Both are checked in. `--check` changes nothing and fails if they are not what would be written.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
API = HERE.parent.parent / "api" / "sandbox" / "v1"
PACKAGE = HERE / "ringfence"

# The package of the messages is renamed: programs may load another client of the same protocol
# beside this one, and a name can be registered with protobuf only once. Names of packages are not
# sent; those of methods are, and stay.
PROTO_PACKAGE = "sandbox.v1"
OWN_PACKAGE = "ringfence.wire"

# The seams between both worlds are written by hand, once for each.
BY_HAND = {"__init__.py", "_io.py"}

TO_SYNC = [
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"__aiter__", "__iter__"),
    (r"__anext__", "__next__"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\bAsync([A-Z]\w*)", r"\1"),
    (r"\basyncio\.run\((.*)\)", r"\1"),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"\bCoroutine\[Any, Any, (\w+)\]", r"\1"),
    (r"\b_async\b", "_sync"),
]


def protos() -> dict[str, str]:
    """The text of each proto, by its name."""
    files = [*sorted(API.glob("*.proto")), HERE / "status.proto"]
    return {file.stem: file.read_text() for file in files}


def renamed(text: str) -> str:
    text = text.replace(f"package {PROTO_PACKAGE};", f"package {OWN_PACKAGE};")
    return re.sub(r'import "sandbox/v1/', 'import "ringfence/_wire/', text)


def messages(texts: dict[str, str]) -> dict[str, str]:
    """The modules that protoc makes, without the check that ties them to its own version."""
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        sources = place / "ringfence" / "_wire"
        sources.mkdir(parents=True)
        for stem, text in texts.items():
            (sources / f"{stem}.proto").write_text(renamed(text))
        subprocess.run(
            [sys.executable, "-m", "grpc_tools.protoc", f"-I{place}", f"--python_out={place}",
             f"--pyi_out={place}", *sorted(map(str, sources.glob("*.proto")))],
            check=True)
        made = [*sources.glob("*_pb2.py"), *sources.glob("*_pb2.pyi")]
        return {file.name: typed(without_gate(file.read_text())) for file in made}


def without_gate(text: str) -> str:
    text = re.sub(r"_runtime_version\.ValidateProtobufRuntimeVersion\(.*?\)\n", "", text, flags=re.S)
    text = re.sub(r"from google\.protobuf import runtime_version as _runtime_version\n", "", text)
    return re.sub(r"# Protobuf Python Version: .*\n", "", text)


def typed(text: str) -> str:
    """Stubs say less than strict checking asks for."""
    fuller = re.sub(r"\b_Mapping\b(?!\[)(?=[\],])", "_Mapping[str, _Any]", text)
    fuller = fuller.replace("**kwargs)", "**kwargs: _Any)")
    return fuller if fuller == text else f"from typing import Any as _Any\n{fuller}"


def exported(texts: dict[str, str]) -> str:
    """One module with everything, as `v1`."""
    lines = ['"""Every message and enum of the API. Made by generate.py."""', ""]
    for stem, text in sorted(texts.items()):
        names = re.findall(r"^(?:message|enum) (\w+) ", text, flags=re.M)
        for body in re.findall(r"^enum \w+ \{\n(.*?)^\}", text, flags=re.M | re.S):
            names += re.findall(r"^  (\w+) = ", body, flags=re.M)
        names.sort()
        if names:
            listed = "".join(f"    {name} as {name},\n" for name in names)
            lines.append(f"from .{stem}_pb2 import (\n{listed})")
    return "\n".join(lines) + "\n"


METHOD = re.compile(r"rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\);")
KINDS = {(False, False): "Unary", (False, True): "ServerStream", (True, False): "ClientStream",
         (True, True): "Duplex"}


def methods(texts: dict[str, str]) -> str:
    lines = ['"""Every method of the API. Made by generate.py."""', "",
             "from . import v1", "from .method import ClientStream, Duplex, ServerStream, Unary", ""]
    for text in texts.values():
        for service, body in re.findall(r"^service (\w+) \{\n(.*?)^\}", text, flags=re.M | re.S):
            for name, sends, request, answers, response in METHOD.findall(body):
                kind = KINDS[bool(sends), bool(answers)]
                lines.append(f"{name} = {kind}(\n"
                             f'    "/{PROTO_PACKAGE}.{service}/{name}", v1.{request}, v1.{response})')
    return "\n".join(lines) + "\n"


def wire() -> dict[pathlib.Path, str]:
    texts = protos()
    made = {**messages(texts), "v1.py": exported(texts), "methods.py": methods(texts)}
    return {PACKAGE / "_wire" / name: text for name, text in made.items()}


def sync() -> dict[pathlib.Path, str]:
    made = {}
    for file in sorted((PACKAGE / "_async").glob("*.py")):
        if file.name not in BY_HAND:
            made[PACKAGE / "_sync" / file.name] = as_sync(file)
    return made


def as_sync(file: pathlib.Path) -> str:
    text = file.read_text()
    for pattern, replacement in TO_SYNC:
        text = re.sub(pattern, replacement, text)
    return f"# Made from _async/{file.name} by generate.py.\n{text}"


def differing(made: dict[pathlib.Path, str]) -> list[pathlib.Path]:
    return [path for path, text in made.items() if not path.exists() or path.read_text() != text]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", choices=["wire", "sync"])
    asked = parser.parse_args()
    made: dict[pathlib.Path, str] = {}
    if asked.only != "sync":
        made.update(wire())
    if asked.only != "wire":
        made.update(sync())
    stale = differing(made)
    if asked.check:
        for path in stale:
            print(f"{path.relative_to(HERE)} is not what generate.py writes", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(made[path])
        print(f"wrote {path.relative_to(HERE)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
