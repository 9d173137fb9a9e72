#!/usr/bin/env python3
"""A shell session used like a notebook: cell by cell, with its state kept from one to the next.

    sh examples/project.sh /tmp/project
    python3 examples/python/notebook_session.py /tmp/project
    python3 examples/python/notebook_session.py /tmp/project --cells my-cells.sh

Cells are shell text, with a line `# %%` between them. A cell `%serve PORT COMMAND` starts a server in
the background, in the directory and with the variables the session has at that moment, and waits
until it listens. All of it ends with the session.
"""

from __future__ import annotations

import argparse
import codecs
import re
import sys
from typing import Dict, List, Optional

from ringfence import CommandTimeoutError, Process, Sandbox, SandboxError, SessionWrapper

CELLS = '''\
cd src
export GREETING=hello
shout() { echo "$1" | tr a-z A-Z; }
# %%
pwd
shout "$GREETING"
# %%
for i in 1 2 3; do echo "step $i"; done
echo "and a word on stderr" >&2
# %%
%serve 8000 python3 -u -m http.server 8000
# %%
python3 - <<'PY'
import urllib.request
with urllib.request.urlopen("http://localhost:8000/app.py") as answer:
    print(answer.status, answer.read().decode().splitlines()[0])
PY
# %%
cat ../deploy.key || echo 'there is no key here'
# %%
echo "still in $PWD, still saying $GREETING"
'''

SERVE = re.compile(r"%serve\s+(\d+)\s+(.+)", re.S)


class Notebook:
    """Runs cells in one session, and shows what they print as they print it."""

    def __init__(self, sandbox: Sandbox, session: SessionWrapper, timeout: float) -> None:
        self._sandbox = sandbox
        self._session = session
        self._timeout = timeout
        self._servers: List[Process] = []

    def run(self, number: int, cell: str) -> bool:
        """Whether the cell succeeded. One that does not end in time costs the session nothing but
        that cell: its state is what it was."""
        print(f"[{number}] {cell.strip().splitlines()[0]}")
        try:
            serve = SERVE.match(cell.strip())
            return self._serve(serve) if serve else self._execute(cell)
        except CommandTimeoutError as error:
            print(f"  ended after {error.timeout_seconds:g} seconds")
            return False

    def _execute(self, cell: str) -> bool:
        stream = self._session.exec_stream(cell, timeout=self._timeout)
        lines = Lines()
        for name, chunk in stream.tagged():
            lines.show(name, chunk)
        lines.end()
        assert stream.result is not None
        for denial in stream.result.denials:
            print(f"  refused by the policy: {denial.operation} {denial.path}")
        if not stream.result.success:
            print(f"  exit code {stream.result.exit_code}")
        return stream.result.success

    def _serve(self, asked: "re.Match[str]") -> bool:
        port, command = int(asked[1]), asked[2]
        server = self._sandbox.start_process(command, session=self._session)
        server.wait_for_port(port, timeout=self._timeout)
        self._servers.append(server)
        print(f"  listens on port {port}")
        return True

    def show_logs(self) -> None:
        for server in self._servers:
            print(f"the log of `{server.command}`:")
            for line in server.logs():
                print(f"  {line}")


class Lines:
    """Pieces of output as lines that say which stream they are from. A piece may end anywhere, also
    within a character."""

    MARKS = {"stdout": "  ", "stderr": "! "}

    def __init__(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders = {name: decoder("replace") for name in self.MARKS}
        self._rests: Dict[str, str] = {name: "" for name in self.MARKS}

    def show(self, name: str, chunk: bytes) -> None:
        *lines, rest = (self._rests[name] + self._decoders[name].decode(chunk)).split("\n")
        self._rests[name] = rest
        for line in lines:
            print(self.MARKS[name] + line, flush=True)

    def end(self) -> None:
        for name, rest in self._rests.items():
            if rest:
                print(self.MARKS[name] + rest)


def split(text: str) -> List[str]:
    return [cell for cell in re.split(r"^# %%.*\n", text, flags=re.M) if cell.strip()]


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(description="Run shell cells in one session of a sandbox.")
    parser.add_argument("directory", help="the project; examples/project.sh makes one")
    parser.add_argument("--cells", metavar="FILE", type=argparse.FileType(),
                        help="cells, with lines `# %%%%` between them (default: a few to look at)")
    parser.add_argument("--shell", default="/bin/sh", help="the session's shell")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for each cell")
    asked = parser.parse_args(arguments)
    cells = split(asked.cells.read() if asked.cells else CELLS)
    try:
        with Sandbox.from_local(asked.directory, preset="agent-safe") as sandbox:
            with sandbox.session(asked.shell) as session:
                notebook = Notebook(sandbox, session, asked.timeout)
                done = [notebook.run(number, cell) for number, cell in enumerate(cells, 1)]
                notebook.show_logs()
    except SandboxError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{sum(done)} of {len(done)} cells succeeded")
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
