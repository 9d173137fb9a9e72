"""The Python of a page: `python documents.py PAGE` runs it as a reader would, from top to bottom.

All ```python blocks of a page run in one namespace, in the working directory. What a block prints is
what the ```text block right behind it says, where a line of `...` stands for any number of lines and
`...` within a line for any text, and empty lines at the end do not count; a block with none behind it
prints nothing. A block that cannot run here says so in its fence, as ```python no-run.
"""

import contextlib
import dataclasses
import io
import pathlib
import re
import sys
import traceback
from typing import Optional

FENCE = re.compile(r"^```(.*?)\n(.*?)^```$", re.M | re.S)


@dataclasses.dataclass
class Block:
    line: int
    code: str
    runs: bool
    output: Optional[str] = None

    @property
    def first_line(self):
        return self.code.split("\n", 1)[0]


def blocks(text):
    """The blocks of a page, in order."""
    found, last = [], None
    for fence in FENCE.finditer(text):
        kind, content = fence[1].strip(), fence[2]
        is_behind = last is not None and not text[last_end:fence.start()].strip()
        if kind == "text" and is_behind:
            last.output = content
        last, last_end = None, fence.end()
        if kind.split(" ")[0] == "python":
            if kind not in ("python", "python no-run"):
                raise ValueError(f"no block is called {kind!r}")
            line = text.count("\n", 0, fence.start(2)) + 1
            last = Block(line, content, runs=kind == "python")
            found.append(last)
    return found


def fits(expected, printed):
    """Whether output is what a page says it is."""
    parts = []
    for line in expected.rstrip("\n").split("\n"):
        if line == "...":
            parts.append("(?:.*\n)*")
        else:
            parts.append(".*".join(re.escape(part) for part in line.split("...")) + "\n")
    return re.fullmatch("".join(parts), printed.rstrip("\n") + "\n") is not None


def run(page):
    """Runs the blocks of a page up to the first that does not do what it says; whether all did."""
    namespace = {"__name__": "__main__"}
    for block in blocks(pathlib.Path(page).read_text(encoding="utf-8")):
        if block.runs and not _does_what_it_says(block, page, namespace):
            return False
    return True


def _does_what_it_says(block, page, namespace):
    # Lines are counted as in the page, so that a traceback points there.
    code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
    except BaseException:
        traceback.print_exc(file=sys.stderr)
        print(f"{page}:{block.line}: raised, after it had printed:\n{printed.getvalue()}", file=sys.stderr)
        return False
    if not fits(block.output or "", printed.getvalue()):
        print(f"{page}:{block.line}: printed\n{printed.getvalue()}\nand not\n{block.output or 'nothing'}",
              file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(0 if run(sys.argv[1]) else 1)
