"""What of a directory is left out, by ignore files and patterns with git's meaning.

From the weakest to the strongest word:

1. `DEFAULT_IGNORES`,
2. `.gitignore` and `.sandboxignore` of every directory; a deeper directory wins over the ones above
   it, and in one directory `.sandboxignore` wins over `.gitignore`,
3. the patterns that the caller gives, which count as lines of a file at the root.

The defaults protect secrets, so a `.gitignore` cannot bring back what they leave out: its `!.env`
was meant for git and not for a sandbox. A `.sandboxignore` and the caller can.

`.git/info/exclude` and the user's own excludes do not count. They belong to one machine, and the
same project must give the same sandbox everywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import count

from ringfence._gitpattern import (
    Deep,
    NeverMatches,
    Pattern,
    Star,
    Token,
    expression,
    parse_line,
    tokens,
)
from ringfence._regular import chunks, open_regular
from ringfence.exceptions import InvalidConfigurationError

DEFAULT_IGNORES = (
    ".git",
    "__pycache__",
    "*.pyc",
    "*.pyo",
    ".DS_Store",
    "Thumbs.db",
    "node_modules",
    ".venv",
    "venv",
    ".env",
    "*.egg-info",
    ".tox",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
)

GITIGNORE = b".gitignore"
SANDBOXIGNORE = b".sandboxignore"
IGNORE_FILES = (GITIGNORE.decode(), SANDBOXIGNORE.decode())

# Nobody vouches for the text of an ignore file, so what is read of it is bounded. A server that
# uses a directory in place reads as much.
LARGEST_IGNORE_FILE = 1 << 20


def checked(patterns: Iterable[str]) -> tuple[str, ...]:
    """Patterns as they were given; what is none is refused, and so is a single one: its letters
    would each be a pattern, and `*` leaves out everything."""
    if isinstance(patterns, (str, bytes)):
        raise InvalidConfigurationError(
            f"ignore_patterns is a list of patterns, not the single one {patterns!r}")
    found = tuple(patterns)
    for pattern in found:
        if not isinstance(pattern, str):
            raise InvalidConfigurationError(f"an ignore pattern is text, not {pattern!r}")
    return found


class Ignores:
    """What is left out among the entries of one directory; `enter` gives the same for one in it."""

    __slots__ = ("_given", "_defaults", "_gitignore", "_levels", "_prefix")

    def __init__(
        self,
        ignore_patterns: Iterable[str] = (),
        *,
        default_ignores: bool = True,
        gitignore: bool = True,
    ) -> None:
        if isinstance(ignore_patterns, (str, bytes)):
            raise TypeError("ignore_patterns is a list of patterns, not a single one")
        given = tuple(ignore_patterns)
        _check(given)
        self._given = _compile_lines(given)
        self._defaults = _compile_lines(DEFAULT_IGNORES if default_ignores else ())
        self._gitignore = gitignore
        self._levels: tuple[_Level, ...] = ()
        self._prefix = b""

    def enter(self, name: bytes) -> Ignores:
        """The same one directory further down; its ignore files are added with `read`."""
        below = object.__new__(Ignores)
        below._given, below._defaults = self._given, self._defaults
        below._gitignore = self._gitignore
        below._levels = self._levels
        below._prefix = self._prefix + name + b"/"
        return below

    def read(self, directory: bytes, names: Iterable[bytes]) -> None:
        """Adds the ignore files among `names`, the regular files of this directory."""
        present = set(names)
        if self._gitignore and GITIGNORE in present:
            self.add(GITIGNORE, _read_ignore_file(os.path.join(directory, GITIGNORE)))
        if SANDBOXIGNORE in present:
            self.add(SANDBOXIGNORE, _read_ignore_file(os.path.join(directory, SANDBOXIGNORE)))

    def add(self, file: bytes, text: bytes) -> None:
        """Puts an ignore file of this directory in front of those that are there."""
        rules = compile_text(text)
        if rules:
            level = _Level(rules, len(self._prefix), file == SANDBOXIGNORE)
            self._levels = (level, *self._levels)

    def leaves_out(self, name: bytes, is_directory: bool) -> bool:
        """Whether the entry `name` of this directory is left out.

        Nothing below a directory that is left out may be asked for: as in git it cannot come back.
        """
        path = self._prefix + name
        given = self._given.verdict(name, path, is_directory)
        if given is not None:
            return given
        kept, defaults_lifted = False, False
        for level in self._levels:
            found = level.rules.verdict(name, path[level.start :], is_directory)
            if found is None:
                continue
            if found and not kept:
                return True
            kept = True
            if level.lifts_defaults:
                defaults_lifted = not found
                break
        return not defaults_lifted and bool(self._defaults.verdict(name, path, is_directory))


class Rules:
    """The patterns of one ignore file, compiled.

    Neighbours with the same sign are one run: which of them matches makes no difference. The last
    run that matches decides, so they are asked from the last to the first. Most names are matched
    by nothing at all, which is found out by asking all patterns together.
    """

    __slots__ = ("_all", "_runs")

    def __init__(self, patterns: list[Pattern]) -> None:
        self._runs = [_Run(run) for run in reversed(_runs(patterns))]
        self._all = self._runs[0] if len(self._runs) == 1 else _Run(patterns)

    def __bool__(self) -> bool:
        return bool(self._runs)

    def verdict(self, name: bytes, path: bytes, is_directory: bool) -> bool | None:
        """True: left out; False: kept; None: no pattern matches. `path` is relative to the file."""
        if not self._all.matches(name, path, is_directory):
            return None
        return next(run.leaves_out for run in self._runs if run.matches(name, path, is_directory))


@lru_cache(maxsize=256)
def compile_text(text: bytes) -> Rules:
    """The rules in an ignore file's text; large projects have the same small file many times."""
    if text.startswith(b"\xef\xbb\xbf"):
        text = text[3:]
    parsed = map(parse_line, text.split(b"\n"))
    return Rules([pattern for pattern in parsed if pattern])


def _compile_lines(lines: Iterable[str]) -> Rules:
    return compile_text(_bytes("\n".join(lines)))


def _check(patterns: Iterable[str]) -> None:
    """Whoever gives a pattern wants something left out, so one that can match nothing is a mistake.

    A server refuses it too, for a directory that it uses in place.
    """
    for pattern in patterns:
        for parsed in filter(None, map(parse_line, _bytes(pattern).split(b"\n"))):
            try:
                tokens(parsed)
            except NeverMatches as reason:
                message = f"the pattern {pattern!r} matches nothing: {reason}"
                raise InvalidConfigurationError(message) from None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class _Level:
    __slots__ = ("rules", "start", "lifts_defaults")

    def __init__(self, rules: Rules, start: int, lifts_defaults: bool) -> None:
        self.rules = rules
        self.start = start
        self.lifts_defaults = lifts_defaults


class _Run:
    __slots__ = ("leaves_out", "_directories", "_others")

    def __init__(self, patterns: list[Pattern]) -> None:
        self.leaves_out = bool(patterns) and not patterns[0].negated
        self._directories = _Table(patterns)
        self._others = _Table([pattern for pattern in patterns if not pattern.only_directories])

    def matches(self, name: bytes, path: bytes, is_directory: bool) -> bool:
        return (self._directories if is_directory else self._others).matches(name, path)


def _runs(patterns: Iterable[Pattern]) -> list[list[Pattern]]:
    made: list[list[Pattern]] = []
    for pattern in patterns:
        if made and made[-1][0].negated == pattern.negated:
            made[-1].append(pattern)
        else:
            made.append([pattern])
    return made


class _Table:
    """Patterns of which any may match: looked up where they are plain, else in two expressions."""

    __slots__ = ("_names", "_endings", "_paths", "_name_matches", "_path_matches")

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._names: set[bytes] = set()
        self._endings: tuple[bytes, ...] = ()
        self._paths: set[bytes] = set()
        numbers = count()
        name_expressions: list[bytes] = []
        path_expressions: list[bytes] = []
        for pattern in patterns:
            try:
                parts, anchored = _simplest(tokens(pattern), pattern.anchored)
            except NeverMatches:
                continue
            if not self._add_plain(parts, anchored):
                expressions = path_expressions if anchored else name_expressions
                expressions.append(expression(parts, numbers))
        self._name_matches = _any_of(name_expressions)
        self._path_matches = _any_of(path_expressions)

    def _add_plain(self, parts: list[Token], anchored: bool) -> bool:
        last = parts[-1]
        if not isinstance(last, bytes):
            return False
        if len(parts) == 1:
            (self._paths if anchored else self._names).add(last)
            return True
        if len(parts) == 2 and isinstance(parts[0], Star) and not anchored:
            self._endings += (last,)
            return True
        return False

    def matches(self, name: bytes, path: bytes) -> bool:
        return (
            name in self._names
            or name.endswith(self._endings)
            or path in self._paths
            or (self._name_matches is not None and self._name_matches(name) is not None)
            or (self._path_matches is not None and self._path_matches(path) is not None)
        )


def _simplest(parts: list[Token], anchored: bool) -> tuple[list[Token], bool]:
    """Reads `**/name` as `name`, which means the same and need not look at paths."""
    if not anchored or parts[0] != Deep(slash=True) or len(parts) == 1:
        return parts, anchored
    rest = parts[1:]
    if any(isinstance(part, Deep) or isinstance(part, bytes) and b"/" in part for part in rest):
        return parts, anchored
    return rest, False


_Match = Callable[[bytes], "re.Match[bytes] | None"]


def _any_of(expressions: list[bytes]) -> _Match | None:
    if not expressions:
        return None
    return re.compile(b"|".join(expressions), re.DOTALL).fullmatch


def _read_ignore_file(path: bytes) -> bytes:
    """The text of an ignore file; as for git none if it is unreadable or no regular file."""
    try:
        with open_regular(path) as (descriptor, _):
            return b"".join(chunks(descriptor, LARGEST_IGNORE_FILE))
    except OSError:
        return b""
