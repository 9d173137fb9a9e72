"""The rows of the report: what is measured and what ringfence promises for it."""

from __future__ import annotations

from typing import Tuple

from running.rows import Contest, Holding, Row

# So many sandboxes are made, used and ended at once by one program.
CROWDS = (1, 10, 100)


def through(door: str, shown: str) -> Tuple[Row, ...]:
    """What a program waits for again and again, in units of a spawn."""
    return (
        Row(f"run-{door}", f'`run("true")`, {shown}', f"run/{door}", 3, 1.5),
        Row(f"session-{door}", f'`session.exec(":")`, {shown}, p50', f"session/{door}", 0.6, 0.35),
        Row(f"session-{door}-p99", "the same, p99", f"session/{door}", 1.5, 0.7, 0.99),
    )


ROWS: Tuple[Row, ...] = (
    Row("nothing", "host: `python3 -c pass`", "program/nothing"),
    Row("import", "a program that imports ringfence and ends", "program/import"),
    Row("program", "a program with one sandbox, from start to end", "program/whole"),
    Row("first", "the first sandbox of a program, up to its first result", "program/usable", 30, 10),
    Row("first-block", "the same, up to the end of its block", "program/block"),
    Row("next", "the next ones, up to the first result, 10 files", "small/usable", 30, 10),
    Row("next-large", "the same, large tree", "large/usable", 30, 10),
    Row("end", "end of the block", "small/destroy", 10, 4),
    Row("end-large", "the same, large tree", "large/destroy", 10, 4),
    *through("embedded", "embedded"),
    Row("session-open", "`session()`, embedded", "session-open/embedded", 5, 3),
    *through("async", "embedded, asyncio"),
    *through("tcp", "TCP"),
    Row("run-published", 'peer: `run("true")` of the published client, TCP', "run/published"),
    Row("session-published", 'peer: `session.exec(":")` of the published client, TCP', "session/published"),
)

# Against the published client on the same server.
PEERS: Tuple[Contest, ...] = (
    Contest("upload + start, {files} files of 10 KB", "start/published", "start/tcp", 5, None),
    Contest("upload of 1 MB", "upload/published", "upload/tcp", 2, None),
    Contest("download of 1 MB", "download/published", "download/tcp", 2, None),
    Contest('`run("true")`', "run/published", "run/tcp", None, None),
    Contest('`session.exec(":")`', "session/published", "session/tcp", None, None),
)

# Against ourselves the first time, when the server knew nothing.
AGAIN: Tuple[Contest, ...] = (
    Contest("`from_local`", "tree/first", "tree/second", 10, None),
    Contest("`from_local` without the digest cache", "tree/first", "tree/uncached", None, None),
    Contest("`ringfence codebase push`", "push/first", "push/second", 10, None),
)

HOLDINGS: Tuple[Holding, ...] = (
    Holding("client-new", "client that has imported ringfence, resident", "MB"),
    Holding("client-crowd", "client with {crowd} sandboxes open (asyncio), resident", "MB"),
    Holding("sent-again", "files sent by the second `from_local` of the tree", "", 0, 0),
    Holding("read-again", "read by the client meanwhile", "MB"),
    Holding("read-first", "read by the client the first time", "MB"),
)
