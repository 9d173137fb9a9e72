"""Policy files for the variants that are not a preset."""

from __future__ import annotations

from pathlib import Path
from typing import List, NamedTuple, Optional


class Rule(NamedTuple):
    """One rule of a policy file."""

    pattern: str
    kind: str
    level: str
    priority: int = 0


EVERYTHING = Rule("**/*", "glob", "write")


def hundred_rules() -> List[Rule]:
    """Everything writable, and 99 rules of all kinds that match nothing in the tree.

    They change no answer, so the variant does the same work as one without rules and only
    the cost of deciding is left.
    """
    makers = (
        lambda n: Rule(f"**/private-{n}/**", "glob", "none", 100),
        lambda n: Rule(f"**/*.sealed{n}", "glob", "none", 100),
        lambda n: Rule(f"/tree/*/{{closed,hidden}}-{n}/*.[ch]", "glob", "view", 10),
        lambda n: Rule(f"/tree/vendor/vault-{n}", "directory", "read", 10),
        lambda n: Rule(f"/tree/repo/ledger-{n}.txt", "file", "none", 100),
    )
    return [EVERYTHING] + [makers[n % len(makers)](n) for n in range(99)]


def write_policy(file: Path, rules: List[Rule], hidden: Optional[str] = None) -> None:
    """Write `rules`, and one more that hides the path `hidden`.

    The file appears under its name in one step, as an editor would save it.
    """
    if hidden is not None:
        rules = [*rules, Rule(f"/{hidden}", "file", "none", 1000)]
    fresh = file.with_suffix(".new")
    fresh.write_text("\n".join(_as_toml(rule) for rule in rules))
    fresh.replace(file)


def _as_toml(rule: Rule) -> str:
    return (
        f"[[rule]]\npattern = '{rule.pattern}'\ntype = '{rule.kind}'\n"
        f"level = '{rule.level}'\npriority = {rule.priority}\n"
    )
