"""One line of an ignore file, as git reads it.

Everything here is bytes, because git matches bytes: `?` is one byte of a name, and a name need not
be text. A line becomes a `Pattern`, and a pattern becomes tokens. Most patterns are plain names and
need no more; what is left becomes a regular expression.

The expressions come from files that nobody vouches for, so they are built to take polynomial time:
wherever an early match can do no worse than a later one, going back is cut off (see `_once`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Union

SPECIAL = re.compile(rb"[*?\[\\]")
SLASH = ord("/")


@dataclass(frozen=True)
class Pattern:
    """A line taken apart: `glob` has neither the `!` nor the slashes at its ends."""

    glob: bytes
    negated: bool
    only_directories: bool
    anchored: bool
    """Has a slash at its start or in its middle, and so holds for a path and not for any name."""


@dataclass(frozen=True)
class Wild:
    """`?` or a bracket: one byte out of a class of a regular expression."""

    expression: bytes


@dataclass(frozen=True)
class Star:
    """`*`: anything within one name."""


@dataclass(frozen=True)
class Deep:
    """`**`: anything, over directories; `slash` if it takes the slash after it along."""

    slash: bool


Token = Union[bytes, Wild, Star, Deep]


class NeverMatches(Exception):
    """The glob is broken in a way that makes git match nothing with it; says in which."""


def parse_line(line: bytes) -> Pattern | None:
    """The pattern of one line without its line feed, or `None` for an empty line or a comment."""
    if line.startswith(b"#"):
        return None
    line = _without_trailing_spaces(line[:-1] if line.endswith(b"\r") else line)
    negated = line.startswith(b"!")
    glob = line[1:] if negated else line
    only_directories = glob.endswith(b"/")
    if only_directories:
        glob = glob[:-1]
    anchored = b"/" in glob
    if glob.startswith(b"/"):
        glob = glob[1:]
    return Pattern(glob, negated, only_directories, anchored) if glob else None


def _without_trailing_spaces(line: bytes) -> bytes:
    """Cuts spaces off the end, up to one that a backslash keeps."""
    # Git reads lines as C strings.
    line = line.split(b"\0", 1)[0]
    end = len(line.rstrip(b" "))
    backslashes = end - len(line[:end].rstrip(b"\\"))
    if backslashes % 2 and end < len(line):
        end += 1
    return line[:end]


def tokens(pattern: Pattern) -> list[Token]:
    """What the glob is made of; raises `NeverMatches`."""
    glob, found = pattern.glob, SPECIAL.search(pattern.glob)
    if not found:
        return [glob]
    # Git compares what is before the first special character by itself, and the rest as if it were
    # a pattern of its own: in `foo**/bar` the stars count as being at the start.
    start = found.start()
    made: list[Token] = [glob[:start]] if start else []
    at = start
    while at < len(glob):
        token, at = _next_token(glob, at, start, pattern.anchored)
        if isinstance(token, bytes) and made and isinstance(made[-1], bytes):
            made[-1] += token
        else:
            made.append(token)
    return made


def _next_token(glob: bytes, at: int, start: int, anchored: bool) -> tuple[Token, int]:
    char = glob[at : at + 1]
    if char == b"*":
        return _stars(glob, at, start, anchored)
    if char == b"?":
        return Wild(b"[^/]"), at + 1
    if char == b"[":
        return _bracket(glob, at + 1)
    if char == b"\\":
        at += 1
        if at == len(glob):
            raise NeverMatches("it ends with a backslash")
    return glob[at : at + 1], at + 1


def _stars(glob: bytes, at: int, start: int, anchored: bool) -> tuple[Token, int]:
    after = at
    while glob[after : after + 1] == b"*":
        after += 1
    starts_a_name = at == start or glob[at - 1] == SLASH
    if not anchored or after - at == 1 or not starts_a_name:
        return Star(), after
    if glob[after : after + 1] == b"/":
        return Deep(slash=True), after + 1
    if after == len(glob) or glob[after : after + 2] == b"\\/":
        return Deep(slash=False), after
    return Star(), after


_ASCII = range(128)
_LETTERS = {c for c in _ASCII if chr(c).isalpha()}
_DIGITS = set(b"0123456789")
# Git's own idea of white space has neither vertical tabs nor form feeds.
_CLASSES = {
    b"alnum": _LETTERS | _DIGITS,
    b"alpha": _LETTERS,
    b"blank": set(b" \t"),
    b"cntrl": {c for c in _ASCII if c < 32 or c == 127},
    b"digit": _DIGITS,
    b"graph": set(range(33, 127)),
    b"lower": {c for c in _LETTERS if chr(c).islower()},
    b"print": set(range(32, 127)),
    b"punct": set(range(33, 127)) - _LETTERS - _DIGITS,
    b"space": set(b" \t\n\r"),
    b"upper": {c for c in _LETTERS if chr(c).isupper()},
    b"xdigit": set(b"0123456789abcdefABCDEF"),
}


_OPEN = "a bracket is not closed"


def _bracket(glob: bytes, at: int) -> tuple[Token, int]:
    """The bracket whose inside begins at `at`, and where it ends."""
    negated = glob[at : at + 1] in (b"!", b"^")
    at += negated
    chars: set[int] = set()
    before: int | None = None
    first = True
    # A closing bracket that comes first is one of the characters.
    while first or glob[at : at + 1] != b"]":
        first = False
        before, at = _bracket_item(glob, at, before, chars)
    if negated:
        chars = set(range(256)) - chars
    # A bracket never stands for a slash.
    chars.discard(SLASH)
    if not chars:
        raise NeverMatches("a bracket stands for no character")
    return Wild(b"[" + b"".join(b"\\x%02x" % c for c in sorted(chars)) + b"]"), at + 1


def _bracket_item(
    glob: bytes, at: int, before: int | None, chars: set[int]
) -> tuple[int | None, int]:
    """Adds one item to `chars`; returns what a range may start from, and where the next item is."""
    if glob[at : at + 2] == b"[:":
        end = glob.find(b"]", at + 2)
        if end < 0:
            raise NeverMatches(_OPEN)
        if end >= at + 3 and glob[end - 1 : end] == b":":
            chars |= _named_class(glob[at + 2 : end - 1])
            return None, end + 1
    is_range = glob[at : at + 1] == b"-" and glob[at + 1 : at + 2] not in (b"", b"]")
    if is_range and before is not None:
        last, at = _bracket_char(glob, at + 1)
        chars |= set(range(before, last + 1))
        return None, at
    char, at = _bracket_char(glob, at)
    chars.add(char)
    return char, at


def _named_class(name: bytes) -> set[int]:
    if name not in _CLASSES:
        raise NeverMatches("it has a class of characters that does not exist")
    return _CLASSES[name]


def _bracket_char(glob: bytes, at: int) -> tuple[int, int]:
    if glob[at : at + 1] == b"\\":
        at += 1
    if at >= len(glob):
        raise NeverMatches(_OPEN)
    return glob[at], at + 1


def expression(parts: list[Token], numbers: Iterator[int]) -> bytes:
    """A regular expression for a whole path (or name); `numbers` keeps group names apart."""
    deeps = [at for at, part in enumerate(parts) if isinstance(part, Deep)]
    bounds = [*deeps, len(parts)]
    made = _within(parts[: bounds[0]], numbers)
    for start, end in zip(deeps, bounds[1:]):
        deep = parts[start]
        assert isinstance(deep, Deep)
        rest = _within(parts[start + 1 : end], numbers)
        skipped = b"(?:.*?/)??" if deep.slash else b".*?"
        last = end == len(parts)
        made += skipped + rest if last else _once(skipped + rest, numbers)
    return made


def _within(parts: list[Token], numbers: Iterator[int]) -> bytes:
    """The expression for parts without `**`."""
    made, at = b"", 0
    while at < len(parts):
        part = parts[at]
        at += 1
        if not isinstance(part, Star):
            made += _fixed(part)
            continue
        fixed = _up_to_star(parts, at)
        at += len(fixed)
        after = b"".join(map(_fixed, fixed))
        # Another star in the same name makes the first place where `after` fits the best one.
        same_name = not any(isinstance(part, bytes) and b"/" in part for part in fixed)
        once = same_name and at < len(parts)
        made += _once(b"[^/]*?" + after, numbers) if once else b"[^/]*" + after
    return made


def _up_to_star(parts: list[Token], at: int) -> list[Token]:
    return list(takewhile(lambda part: not isinstance(part, Star), parts[at:]))


def _fixed(part: Token) -> bytes:
    if isinstance(part, bytes):
        return re.escape(part)
    assert isinstance(part, Wild)
    return part.expression


def _once(expr: bytes, numbers: Iterator[int]) -> bytes:
    """An expression that, once it has matched, is not tried in another way.

    A lookahead does not go back into itself. Python has atomic groups of its own only since 3.11.
    """
    name = b"once%d" % next(numbers)
    return b"(?=(?P<%s>%s))(?P=%s)" % (name, expr, name)
