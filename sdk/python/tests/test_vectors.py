"""The shared vectors of the policy: what this package decides itself, and what a sandbox decides."""

import json
import pathlib

import pytest

import ringfence
from ringfence import InvalidConfigurationError, Permission, PermissionRule, Sandbox

VECTORS = json.loads(
    (pathlib.Path(__file__).parents[3] / "api/vectors/policy.json").read_text())


def rule(written):
    return PermissionRule(
        written["pattern"], Permission(written.get("level", "read")),
        ringfence.PatternType(written.get("type", "glob")), written.get("priority", 0))


def named(cases):
    return [pytest.param(case, id=case["name"]) for case in cases]


def test_the_levels_are_those_of_the_policy_lowest_first():
    assert [level.value for level in Permission] == VECTORS["levels"]


def test_the_presets_are_those_of_the_server():
    listed = {preset["name"]: [rule(one) for one in preset["rules"]]
              for preset in VECTORS["presets"]}
    built_in = [name for name in ringfence.list_presets() if name in listed]
    assert built_in == sorted(listed)
    for name, rules in listed.items():
        assert ringfence.get_preset(name) == rules
        assert [PermissionRule(**one) for one in ringfence.get_preset_dicts(name)] == rules


@pytest.mark.parametrize("case", named(VECTORS["extend"]))
def test_a_preset_is_extended(case):
    def extended():
        return ringfence.extend_preset(
            case["base"], [rule(one) for one in case["additions"]],
            [rule(one) for one in case["overrides"]])

    if "error" in case:
        with pytest.raises(InvalidConfigurationError, match=case["base"]):
            extended()
    else:
        base = ringfence.get_preset(case["base"])
        assert extended() == base + [rule(one) for one in case["added"]]


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory, own_state):
    with Sandbox.from_local(tmp_path_factory.mktemp("empty"), auto_start=False) as made:
        yield made


def text(path):
    """Paths that are no text cannot be asked about."""
    return path if isinstance(path, str) else None


def level(sandbox, path):
    return sandbox.explain(path).permission.value


@pytest.mark.parametrize("case", VECTORS["paths"], ids=lambda case: repr(case["path"]))
def test_a_path_is_normalised_or_refused(sandbox, case):
    if text(case["path"]) is None:
        return
    if "error" in case:
        with pytest.raises(InvalidConfigurationError):
            sandbox.explain(case["path"])
    else:
        assert sandbox.explain(case["path"]).path == case["is"]


@pytest.mark.parametrize(
    "case", VECTORS["matches"], ids=lambda case: f"{case.get('type', 'glob')} {case['pattern']}")
def test_a_pattern_matches_what_it_should(sandbox, case):
    matching = {"pattern": case["pattern"], "type": case.get("type", "glob"),
                "permission": "write", "priority": 1}
    sandbox._client.set_policy(sandbox.id, [{"pattern": "**", "permission": "view"}, matching])
    for path in filter(None, map(text, case["yes"])):
        assert level(sandbox, path) == "write", path
    for path in filter(None, map(text, case["no"])):
        assert level(sandbox, path) == "view", path


@pytest.mark.parametrize(
    "case", VECTORS["malformed"], ids=lambda case: f"{case.get('type', 'glob')} {case['pattern']}")
def test_a_malformed_pattern_is_refused_and_changes_nothing(sandbox, case):
    before = sandbox.policy()
    with pytest.raises(InvalidConfigurationError):
        sandbox._client.set_policy(
            sandbox.id, [{"pattern": case["pattern"], "type": case.get("type", "glob")}])
    assert sandbox.policy() == before


@pytest.mark.parametrize("case", named(VECTORS["decisions"]))
def test_the_rules_decide(sandbox, case):
    rules = ringfence.get_preset(case["preset"]) if "preset" in case else []
    rules += [rule(one) for one in case.get("rules", ())]
    sandbox._client.set_policy(sandbox.id, rules)
    for expected in case["paths"]:
        if text(expected["path"]) is None:
            continue
        found = sandbox.explain(expected["path"])
        assert found.permission.value == expected["level"], expected
        decided = rules[expected["rule"]] if expected.get("rule") is not None else None
        assert found.rule == decided, expected
