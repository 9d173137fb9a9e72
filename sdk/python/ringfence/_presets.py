"""Rules by name, and rules on top of them.

The built-in ones are the server's; the shared vectors in `api/vectors` hold both to the same list.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ._types import PatternType, Permission, PermissionRule, RuleLike
from .exceptions import InvalidConfigurationError

PRESET_AGENT_SAFE = "agent-safe"
PRESET_READ_ONLY = "read-only"
PRESET_FULL_ACCESS = "full-access"
PRESET_DEVELOPMENT = "development"
PRESET_VIEW_ONLY = "view-only"

_Row = Tuple[str, Permission, int]

_SECRETS: Tuple[_Row, ...] = (
    ("**/.env*", Permission.NONE, 100),
    ("**/secrets/**", Permission.NONE, 100),
    ("**/*.key", Permission.NONE, 100),
    ("**/*.pem", Permission.NONE, 100),
)

_BUILT_IN: Dict[str, Tuple[_Row, ...]] = {
    PRESET_AGENT_SAFE: (
        ("**/*", Permission.READ, 0),
        ("/output/**", Permission.WRITE, 10),
        ("/tmp/**", Permission.WRITE, 10),
        *_SECRETS,
        ("**/credentials*", Permission.NONE, 100),
        ("**/.git/**", Permission.NONE, 50),
    ),
    PRESET_READ_ONLY: (("**/*", Permission.READ, 0),),
    PRESET_FULL_ACCESS: (("**/*", Permission.WRITE, 0),),
    PRESET_DEVELOPMENT: (("**/*", Permission.WRITE, 0), *_SECRETS),
    PRESET_VIEW_ONLY: (("**/*", Permission.VIEW, 0),),
}

_registered: Dict[str, Tuple[PermissionRule, ...]] = {}

_LIFT = 100
"""How far an override is lifted above what it overrides."""

_FIELDS = {"pattern", "permission", "type", "priority"}


def list_presets() -> List[str]:
    """The names of all presets, sorted.

    >>> list_presets()
    ['agent-safe', 'development', 'full-access', 'read-only', 'view-only']
    """
    return sorted([*_BUILT_IN, *_registered])


def get_preset(name: str) -> List[PermissionRule]:
    """The rules of a preset; the list is yours to change.

    >>> [rule.pattern for rule in get_preset("read-only")]
    ['**/*']
    """
    if name in _BUILT_IN:
        return [PermissionRule(pattern, level, priority=priority)
                for pattern, level, priority in _BUILT_IN[name]]
    if name in _registered:
        return [_copy(rule) for rule in _registered[name]]
    raise InvalidConfigurationError(
        f"there is no preset {name!r}; there are {', '.join(list_presets())}")


def get_preset_dicts(name: str) -> List[Dict[str, Any]]:
    """The same as dictionaries."""
    return [rule.to_dict() for rule in get_preset(name)]


def extend_preset(
    base: str,
    additions: Optional[Iterable[RuleLike]] = None,
    overrides: Optional[Iterable[RuleLike]] = None,
) -> List[PermissionRule]:
    """The rules of a preset and more. Additions keep their priority; overrides that are not above
    the base already are lifted above it.

    >>> rules = extend_preset("agent-safe", overrides=[{"pattern": "/.env.example"}])
    >>> rules[-1].priority
    200
    """
    rules = get_preset(base)
    highest = max((rule.priority for rule in rules), default=0)
    rules += [as_rule(rule) for rule in additions or ()]
    for rule in (as_rule(rule) for rule in overrides or ()):
        lifted = rule.priority if rule.priority > highest else highest + _LIFT
        rules.append(PermissionRule(rule.pattern, rule.permission, rule.type, lifted))
    return rules


def register_preset(name: str, rules: Iterable[RuleLike]) -> None:
    """A preset of your own, for this process.

    >>> register_preset("docs-only", [{"pattern": "/docs/**", "permission": "write"}])
    """
    if not name:
        raise InvalidConfigurationError("a preset needs a name")
    if name in _BUILT_IN or name in _registered:
        raise InvalidConfigurationError(f"the preset {name!r} already exists")
    _registered[name] = tuple(as_rules(rules))


def rules_for(
    preset: Optional[str], permissions: Optional[Iterable[RuleLike]]
) -> List[PermissionRule]:
    """What is sent to the server: the preset's rules, then the caller's."""
    return get_preset(preset or PRESET_VIEW_ONLY) + as_rules(permissions)


def as_rules(rules: Optional[Iterable[RuleLike]]) -> List[PermissionRule]:
    if isinstance(rules, (str, Mapping)):
        raise InvalidConfigurationError("rules are a list of PermissionRule or dictionaries")
    return [as_rule(rule) for rule in rules or ()]


def as_rule(rule: RuleLike) -> PermissionRule:
    """A rule of one's own, from whatever it was given as."""
    if isinstance(rule, PermissionRule):
        return _checked(rule.pattern, rule.permission, rule.type, rule.priority)
    if not isinstance(rule, Mapping):
        raise InvalidConfigurationError(f"{rule!r} is not a rule: give a PermissionRule or a dict")
    unknown = sorted(set(rule) - _FIELDS)
    if unknown:
        raise InvalidConfigurationError(
            f"a rule has no {unknown[0]!r}, only {', '.join(sorted(_FIELDS))}")
    return _checked(rule.get("pattern"), rule.get("permission", Permission.READ),
                    rule.get("type", PatternType.GLOB), rule.get("priority", 0))


def _checked(pattern: Any, permission: Any, kind: Any, priority: Any) -> PermissionRule:
    if not isinstance(pattern, str) or not pattern:
        raise InvalidConfigurationError("a rule needs a pattern, such as '/output/**'")
    level = _one_of(Permission, permission, f"permission of {pattern!r}")
    meant = _one_of(PatternType, kind, f"type of {pattern!r}")
    try:
        number = int(priority)
    except (TypeError, ValueError):
        raise InvalidConfigurationError(
            f"the priority of {pattern!r} is a number, not {priority!r}") from None
    return PermissionRule(pattern, level, meant, number)


def _one_of(kind: Any, value: Any, what: str) -> Any:
    try:
        return kind(value)
    except ValueError:
        known: Sequence[str] = [member.value for member in kind]
        raise InvalidConfigurationError(
            f"the {what} is one of {', '.join(known)}, not {value!r}") from None


def _copy(rule: PermissionRule) -> PermissionRule:
    return PermissionRule(rule.pattern, rule.permission, rule.type, rule.priority)
