"""A directory that a server uses in place shows what a scan of it would send."""

import pytest
from ignore_cases import CASES

from ringfence import InvalidConfigurationError, Sandbox, SandboxClient

# In hexadecimal digits, since a name need not be text.
LISTING = "find . -mindepth 1 -printf '%P\\0' | od -An -v -tx1"


@pytest.fixture(scope="module")
def client():
    with SandboxClient() as embedded:
        yield embedded


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_table_holds_in_place(case, client, tmp_path):
    case.build(tmp_path)
    there = paths_inside(
        tmp_path, client, ignore_patterns=case.ignore_patterns, default_ignores=case.default_ignores)
    assert case.problems(lambda path: path.encode("utf-8", "surrogateescape") in there) == []


def test_a_given_pattern_that_can_match_nothing_is_refused(client, project):
    with pytest.raises(InvalidConfigurationError, match="matches nothing"):
        Sandbox.from_local(project, ignore_patterns=["secrets["], client=client)


def paths_inside(root, client, **options):
    with Sandbox.from_local(root, preset="read-only", client=client, **options) as sandbox:
        listed = sandbox.run(LISTING, raise_on_error=True).stdout
    return set(bytes.fromhex("".join(listed.split())).split(b"\0"))
