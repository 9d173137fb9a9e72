"""The table of what is left out holds for sandboxes: on a directory in place, and on one that was sent."""

import pytest
from ringfence import Sandbox

from ignore_cases import CASES, DIFFERENT_IN_PLACE

NEVER_SENT = {"names that are no text"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_sandbox_has_what_the_table_says(where, case, tmp_path):
    if case.name in (DIFFERENT_IN_PLACE if where.is_embedded else NEVER_SENT):
        pytest.skip("the table names it as different here")
    case.build(tmp_path)
    with Sandbox.from_local(
            tmp_path, auto_start=False, ignore_patterns=case.ignore_patterns,
            default_ignores=case.default_ignores, **where.options) as sandbox:
        assert case.problems(sandbox.exists) == []
