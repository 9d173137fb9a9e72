"""The table of what is left out holds for directories that are sent, as it does for those in place."""

import pytest
from ignore_cases import CASES
from ringfence import Sandbox, SandboxClient, SkippedFilesWarning

NEVER_SENT = "names that are no text"
"""Such a name fits into no message; a warning says so."""


@pytest.fixture(scope="module")
def client(tls_server):
    with SandboxClient(**tls_server.options) as made:
        yield made


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name != NEVER_SENT], ids=lambda case: case.name)
def test_the_table_holds_for_what_is_sent(case, client, tmp_path):
    case.build(tmp_path)
    with Sandbox.from_local(
            tmp_path, auto_start=False, ignore_patterns=case.ignore_patterns,
            default_ignores=case.default_ignores, client=client) as sandbox:
        assert case.problems(sandbox.exists) == []


def test_what_has_no_text_for_a_name_is_not_sent_and_named(client, tmp_path):
    next(case for case in CASES if case.name == NEVER_SENT).build(tmp_path)
    with pytest.warns(SkippedFilesWarning, match=r"xfe .*not UTF-8"):
        with Sandbox.from_local(tmp_path, auto_start=False, client=client) as sandbox:
            assert sandbox.list_files() == [".gitignore", "b"]
