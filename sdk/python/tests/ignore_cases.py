"""What is kept of a directory and what is left out, as a table.

The same table holds for a scan, for git where a case is about `.gitignore` alone, and for a
directory that a server uses in place: `build` it, and ask for `problems`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """A path that ends in a slash is a directory; bytes that are no text are surrogates."""

    name: str
    ignore_files: dict[str, str]
    kept: list[str]
    left_out: list[str]
    ignore_patterns: list[str] = field(default_factory=list)
    default_ignores: bool = False

    @property
    def is_gits(self) -> bool:
        """Whether git knows everything that plays a part."""
        names = {os.path.basename(path) for path in self.ignore_files}
        return names <= {".gitignore"} and not self.ignore_patterns and not self.default_ignores

    def build(self, root: Path) -> None:
        for path in [*self.kept, *self.left_out]:
            _make(root, path)
        for path, text in self.ignore_files.items():
            os.makedirs(root / os.path.dirname(path), exist_ok=True)
            (root / path).write_bytes(text.encode("utf-8", "surrogateescape"))

    def problems(self, exists: Callable[[str], bool]) -> list[str]:
        """What is not as the table says, where `exists` tells which paths are there."""
        missing = [f"{path!r} is missing" for path in self.kept if not exists(path.rstrip("/"))]
        there = [f"{path!r} is there" for path in self.left_out if exists(path.rstrip("/"))]
        return missing + there


def _make(root: Path, path: str) -> None:
    whole = os.path.join(os.fsencode(root), path.encode("utf-8", "surrogateescape"))
    os.makedirs(os.path.dirname(whole), exist_ok=True)
    if not path.endswith("/"):
        open(whole, "xb").close()


def _git(name: str, text: str, kept: list[str], left_out: list[str]) -> Case:
    return Case(name, {".gitignore": text}, kept, left_out)


NAMES_AND_PATHS = [
    _git("a name holds at every depth", "a\n", ["b", "x/ab", "x/b"], ["a", "x/a", "x/y/a"]),
    _git(
        "a directory goes with all that is in it",
        "out\n",
        ["out.txt"],
        ["out/a", "out/b/c", "x/out/d"],
    ),
    _git("a slash at the start is the root", "/a\n", ["x/a", "ba"], ["a"]),
    _git("a slash in the middle is the root", "x/a\n", ["a", "y/x/a", "x/b"], ["x/a"]),
    _git("a slash at the end is no anchor", "a/\n", ["a.d/a"], ["a/f", "x/a/f", "x/y/a/"]),
    _git("a slash at the end is a directory", "a/\nb/\n", ["x/a", "b.d/b"], ["a/f"]),
    _git("case matters", "README\n", ["readme", "Readme"], ["README"]),
    _git("a dot is a letter", ".a\na.b\n", ["a", "b", "axb"], [".a", "a.b"]),
    _git(
        "braces, parentheses and pluses are letters",
        "{a,b}\n(c)\nd+\n",
        ["a", "b", "c", "d", "dd"],
        ["{a,b}", "(c)", "d+"],
    ),
    _git("slashes alone match nothing", "/\n//\n///\n", ["a", "x/a"], []),
    _git("two slashes never meet", "x//a\n//b\n", ["x/a", "b"], []),
]

STARS = [
    _git("a star is any number of characters", "*.o\n", ["o", "a.oo"], [".o", "a.o", "x/b.c.o"]),
    _git("a star does not cross a slash", "x/*.o\n", ["x/y/a.o", "a.o"], ["x/a.o"]),
    _git(
        "stars on both sides",
        "*ab*\n",
        ["a", "b", "a-b"],
        ["ab", "xab", "abx", "aab", "aabb", "xabab"],
    ),
    _git("a star takes no more than it must", "*a*a\n", ["a", "ab"], ["aa", "aba", "aaa"]),
    _git(
        "many stars",
        "*a*bc*d\n",
        ["abd", "dcba", "abcde"],
        ["abcd", "aabbcd", "xaxbcxd", "abbcbcd"],
    ),
    _git(
        "many stars in a path",
        "x*y*/a*b*c\n",
        ["x/abc", "yx/abc", "xy/acb"],
        ["xy/abc", "xyy/aabbc", "xayb/abcbc"],
    ),
    _git("a star and a slash", "*/a\n", ["a", "x/y/a"], ["x/a", "y/a"]),
    _git("a star is a directory's name", "x/*/a\n", ["x/a", "x/y/z/a"], ["x/y/a"]),
    _git(
        "a question mark is one character",
        "a?\n?/b\n",
        ["a", "abc", "xx/b", "b"],
        ["ab", "a.", "x/b"],
    ),
    _git("a question mark is no slash", "x?a\n", ["x/a"], ["x.a"]),
    _git("a question mark is one byte", "a?\nb??\n", ["aé", "bx"], ["ax", "bé"]),
    _git(
        "stars at the start",
        "**/a\n**/x/b\n",
        ["b", "xa", "ax/b"],
        ["a", "x/a", "x/y/a", "x/b", "y/x/b"],
    ),
    _git("stars at the end", "x/**\n", ["x/", "y/x/a"], ["x/a", "x/y/b"]),
    _git("stars in the middle", "x/**/a\n", ["a", "y/x/a", "x/ba"], ["x/a", "x/y/a", "x/y/z/a"]),
    _git(
        "stars in the middle twice",
        "x/**/y/**/a\n",
        ["x/a", "y/a", "x/ya"],
        ["x/y/a", "x/1/y/a", "x/1/y/2/3/a", "x/y/y/a"],
    ),
    _git(
        "stars in the middle take the first that fits",
        "**/y/z/**/a/b\n",
        ["y/a/b", "z/a/b"],
        ["y/z/a/b", "y/y/z/z/a/b", "y/z/y/z/a/a/b"],
    ),
    _git("stars may be nothing", "**/a/**/a/b\n", ["a/b", "b/a"], ["a/a/b", "x/a/y/a/b"]),
    _git("stars after stars", "x/**/**/a\n", ["a"], ["x/a", "x/y/a", "x/y/z/a"]),
    _git(
        "stars within a name are one star",
        "a**b\nx/c**d\n",
        ["a/b", "x/c/d"],
        ["ab", "a-b", "x/cd", "x/c-d"],
    ),
    _git(
        "stars after a plain start are stars at the start",
        "foo**/bar\n",
        ["foo/", "bar"],
        ["foo/bar", "foox/bar", "foox/y/bar", "foobar"],
    ),
    _git(
        "stars after a wild start are one star",
        "f?o**/bar\n",
        ["foox/y/bar", "foobar"],
        ["foo/bar", "foox/bar"],
    ),
    _git("stars before an escaped slash", "x/**\\/a\n", ["x/a"], ["x/y/a", "x/y/z/a"]),
    _git("three stars", "***/a\nx/***\n", ["x/", "b"], ["a", "y/a", "x/y/b"]),
    _git("stars and a directory", "**/a/\n", ["b/a"], ["a/f", "x/a/f"]),
    _git("all", "*\n", [], ["a", "x/b"]),
    _git("stars alone", "**\n", [], ["a", "x/b"]),
    _git("stars and a slash", "**/\n", ["a"], ["x/b", "x/y/c"]),
]

BRACKETS = [
    _git("a set", "[ab]c\n", ["c", "abc", "dc"], ["ac", "bc"]),
    _git(
        "a set that is turned around", "[!ab]\n[^ab]x\n", ["a", "b", "ax", "bx"], ["c", "-", "cx"]
    ),
    _git("a range", "[b-d]\n", ["a", "e", "-"], ["b", "c", "d"]),
    _git("a range that runs backwards is its start", "[d-b]\n", ["b", "c", "-"], ["d"]),
    _git("no range at the edges", "[a-]\n[-b]x\n", ["c", "cx"], ["a", "-", "-x", "bx"]),
    _git("a range that ends in an escape", "[a-\\c]\n", ["d", "\\"], ["a", "b", "c"]),
    _git("no range after a range", "[a-c-e]\n", ["d"], ["a", "c", "-", "e"]),
    _git("an escape within a set", "[\\]\\-x]\n", ["\\"], ["]", "-", "x"]),
    _git("a bracket that comes first", "[]a]\n[!]b]x\n", ["b", "]x", "bx"], ["]", "a", "cx"]),
    _git("an open bracket in a set", "[[a]\n", ["b", "[["], ["[", "a"]),
    _git(
        "a set is never a slash", "x[/]a\nx[!b]a\nx[.-0]a\n", ["x/a", "xba"], ["x.a", "x0a", "x-a"]
    ),
    _git("an open bracket matches nothing", "a[\n[b\nc[d-\n", ["a[", "[b", "b", "c[d-"], []),
    _git("a named class", "[[:digit:]]\n[[:alpha:]_]x\n", ["a", "12", "1x"], ["1", "ax", "_x"]),
    _git("a named class that is turned around", "[![:digit:]]\n", ["1", "9"], ["a", "-"]),
    _git("no range from a named class", "[[:digit:]-z]\n", ["b", "y"], ["4", "-", "z"]),
    _git("an unknown class matches nothing", "[[:word:]]\na[[::]]\n", ["w", "a:", "a:]", "a"], []),
    _git("a class that is not closed is a set", "a[[:x]\n", ["a"], ["a[", "a:", "ax"]),
    _git("a set is of bytes", "[é]\n[é][é]x\n", ["é"], ["éx"]),
]

LINES = [
    _git("comments and empty lines", "# a\n\n#b\n   \n", ["a", "# a", "#b", "b"], []),
    _git("an escaped hash or exclamation mark", "\\#a\n\\!b\n", ["a", "b"], ["#a", "!b"]),
    _git("a hash later is a letter", "a#b\nc #d\n", ["a", "c"], ["a#b", "c #d"]),
    _git(
        "spaces at the end",
        "a  \nb\\ \nc\\  \nd\\\\ \n",
        ["a  ", "b", "b\\", "c", "c  "],
        ["a", "b ", "c ", "d\\"],
    ),
    _git("spaces at the start and tabs stay", " a\nb\t\n", ["a", "b"], [" a", "b\t"]),
    _git(
        "lines that end as on Windows", "a\r\n/x/b\r\n*.o\r\n\r\n", ["b", "c"], ["a", "x/b", "c.o"]
    ),
    _git("the last line needs no end", "a\nb", ["c"], ["a", "b"]),
    _git("the last line ends as on Windows", "a\r\nb\r", ["c"], ["a", "b"]),
    _git("a mark of the byte order", "\ufeffa\nb\n", ["c"], ["a", "b"]),
    _git("a backslash at the end matches nothing", "a\\\nb/\\\n", ["a", "a\\", "b/\\", "b/c"], []),
    _git("a backslash before a letter is nothing", "\\a\\b\nc\\*\n", ["cd"], ["ab", "c*"]),
    _git("a backslash before the last slash matches nothing", "a\\/\n", ["a/f"], []),
    _git(
        "names that are no text",
        "\udcff*\nb?\n",
        ["b", "\udcfe"],
        ["\udcff", "\udcff\udcfe", "b\udcff"],
    ),
    _git("a line that is cut short", "a\0b\n", ["b", "ab"], ["a"]),
]

NEGATION = [
    _git("a later line wins", "*.log\n!keep.log\n", ["keep.log", "x/keep.log"], ["a.log"]),
    _git("a later line wins again", "!a\na\n*.b\n!*.b\nc.b\n", ["d.b"], ["a", "c.b"]),
    _git("nothing comes back below a directory", "x/\n!x/a\n", [], ["x/a", "x/b"]),
    _git("but what is in a directory comes back", "x/*\n!x/a\n", ["x/a"], ["x/b"]),
    _git("all but", "/*\n!/x\n/x/*\n!/x/y\n", ["x/y/a"], ["b", "x/c", "z/d"]),
    _git("only directories come back", "*\n!*/\n!*.c\n", ["a.c", "x/b.c"], ["a", "x/b"]),
    _git("a negation is anchored too", "*.o\n!/a.o\n", ["a.o"], ["x/a.o", "b.o"]),
    _git("an exclamation mark alone is nothing", "a\n!\n!/\n", ["b"], ["a"]),
    _git("two exclamation marks", "a\n!!a\n!b\n", ["!a", "b"], ["a"]),
]

LEVELS = [
    Case(
        "a deeper file wins",
        {".gitignore": "*.log\n", "x/.gitignore": "!a.log\n", "x/y/.gitignore": "a.log\n"},
        ["x/a.log", "x/z/a.log"],
        ["a.log", "b.log", "x/b.log", "x/y/a.log"],
    ),
    Case(
        "a deeper file is anchored in its directory",
        {"x/.gitignore": "/a\ny/b\n"},
        ["a", "y/b", "x/z/a", "x/z/y/b"],
        ["x/a", "x/y/b"],
    ),
    Case(
        "a deeper file says nothing of what is above",
        {"x/.gitignore": "a\n"},
        ["a", "y/a"],
        ["x/a", "x/z/a"],
    ),
    Case(
        "a file in a directory that is left out is not read",
        {".gitignore": "x\n", "x/.gitignore": "!a\n!.gitignore\n"},
        [],
        ["x/a"],
    ),
    Case("an ignore file may leave itself out", {".gitignore": ".gitignore\na\n"}, ["b"], ["a"]),
]

SANDBOXIGNORE = [
    Case(
        ".sandboxignore has the same syntax at every level",
        {".sandboxignore": "/a\n*.b\n", "x/.sandboxignore": "!k.b\n/c/\n"},
        ["x/a", "x/k.b", "c/f"],
        ["a", "x/y.b", "x/c/f"],
    ),
    Case(
        ".sandboxignore brings back what .gitignore leaves out",
        {".gitignore": "a\nb\n", ".sandboxignore": "!a\n"},
        ["a", "x/a"],
        ["b"],
    ),
    Case(
        ".gitignore does not bring back what .sandboxignore beside it leaves out",
        {".gitignore": "!a\n", ".sandboxignore": "a\n"},
        ["b"],
        ["a", "x/a"],
    ),
    Case(
        "a deeper .gitignore wins over .sandboxignore",
        {".sandboxignore": "!a\nb\n", "x/.gitignore": "a\n!b\n"},
        ["a", "x/b"],
        ["b", "x/a"],
    ),
]

GIVEN = [
    Case(
        "the caller's patterns have the last word",
        {".gitignore": "a\n!b\n", "x/.gitignore": "!b\n", "x/.sandboxignore": "!c\nd\n"},
        ["a", "x/a", "x/d"],
        ["b", "x/b", "x/c"],
        ["!a", "b", "c", "!d"],
    ),
    Case(
        "the caller's patterns are of the root",
        {"x/.gitignore": "!a\n"},
        ["b", "x/b"],
        ["x/a", "y/b"],
        ["x/a", "/y/b"],
    ),
    Case("the caller's later pattern wins", {}, ["k.log"], ["a.log"], ["*.log", "!k.log"]),
    Case("the caller's patterns are lines", {}, ["a", "# a"], ["b "], ["# a", "", "b\\ "]),
]

DEFAULTS = [
    Case(
        "the defaults leave out caches, dependencies and secrets",
        {},
        ["a.py", ".gitattributes", "venvs/a", ".envrc", "x/environment"],
        [".git/HEAD", "x/.git", "x/__pycache__/a.pyc", "b.pyc", "x/c.pyo", ".DS_Store", "Thumbs.db"]
        + [
            "node_modules/a/index.js",
            "x/node_modules/b",
            ".venv/a",
            "venv/a",
            ".env",
            "x/.env",
            "a.egg-info/PKG",
        ]
        + [".tox/a", ".pytest_cache/a", ".mypy_cache/a", ".ruff_cache/a"],
        default_ignores=True,
    ),
    Case("without the defaults all is kept", {}, [".git/HEAD", ".env", "node_modules/a"], []),
    Case(
        "a .gitignore does not bring back what the defaults leave out",
        {".gitignore": "!.env\n", "x/.gitignore": "!.env\n!node_modules\n!*.pyc\n"},
        ["x/a"],
        [".env", "x/.env", "x/node_modules/a", "x/b.pyc"],
        default_ignores=True,
    ),
    Case(
        "the caller brings back what the defaults leave out",
        {".gitignore": ".env\n"},
        [".env", "x/.env", "x/node_modules/a"],
        ["node_modules/a", "b.pyc"],
        ["!.env", "!/x/node_modules"],
        default_ignores=True,
    ),
    Case(
        "a .sandboxignore brings back what the defaults leave out",
        {".sandboxignore": "!.env\n", "x/.sandboxignore": "!node_modules/\n"},
        [".env", "x/.env", "x/node_modules/a"],
        ["node_modules/a", "x/b.pyc"],
        default_ignores=True,
    ),
    Case(
        "a .gitignore below it does not take that away, unless it says so",
        {".sandboxignore": "!.env\n", "x/.gitignore": "!.env\n", "y/.gitignore": ".env\n"},
        [".env", "x/.env"],
        ["y/.env"],
        default_ignores=True,
    ),
    Case(
        "the nearest .sandboxignore decides",
        {".sandboxignore": "!.env\n", "x/.sandboxignore": ".env\n", "x/y/.gitignore": "!.env\n"},
        [".env"],
        ["x/.env", "x/y/.env"],
        default_ignores=True,
    ),
]

CASES = [
    *NAMES_AND_PATHS,
    *STARS,
    *BRACKETS,
    *LINES,
    *NEGATION,
    *LEVELS,
    *SANDBOXIGNORE,
    *GIVEN,
    *DEFAULTS,
]
