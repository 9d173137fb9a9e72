"""The guides' examples as they are written: on the default preset, `view-only`.

Names can be seen there and nothing read, so most of them are refused; what is refused is said so
clearly that the remedy is obvious. The other files run them on a preset that fits.
"""

import asyncio

import pytest
from ringfence import AsyncSandbox, CommandExecutionError, PermissionDeniedError, Sandbox

from projects import WEB

REFUSED = {
    # command: (path, what it needs)
    "python3 app.py": ("/app.py", "read"),
    "python3 backend/manage.py test": ("/backend/manage.py", "read"),
    "cat README.md": ("/README.md", "read"),
    "make test": ("/Makefile", "read"),
    "sh settings.sh": ("/settings.sh", "read"),
    "cat /workspace/frontend/index.html": ("/frontend/index.html", "read"),
    "echo x > report.txt": ("/report.txt", "write"),
    "mkdir -p dist": ("/dist", "write"),
    "python3 -m venv venv": ("/venv", "write"),
}


@pytest.fixture
def sandbox(where, make_project):
    with Sandbox.from_local(make_project(WEB), **where.options) as made:
        yield made


def test_names_and_sizes_can_be_seen(sandbox):
    result = sandbox.run("ls -la")
    assert result.exit_code == 0 and "README.md" in result.stdout
    assert sandbox.run("stat -c %s README.md").stdout == "16\n"
    assert result.denials == []


def test_what_is_refused_fails_and_its_denials_say_what(sandbox):
    for command, (path, needed) in REFUSED.items():
        result = sandbox.run(command, timeout=60)
        assert result.exit_code != 0, command
        assert (path, needed) in [(each.path, each.needed) for each in result.denials], command
        assert result.denials[0].level == "view" and result.denials[0].rule == "**/*", command


def test_an_exception_names_the_path(sandbox):
    with pytest.raises(CommandExecutionError, match="/app.py") as failed:
        sandbox.run("python3 app.py", raise_on_error=True)
    assert failed.value.exit_code == 2 and "Permission denied" in failed.value.stderr
    assert failed.value.denials[0].path == "/app.py"
    with pytest.raises(PermissionDeniedError, match="needs read and has view") as refused:
        sandbox.run("python3 app.py", raise_on_denied=True)
    assert refused.value.path == "/app.py"


def test_in_a_session_it_is_no_different(sandbox):
    with sandbox.session() as session:
        session.exec("cd /workspace/backend")
        assert session.exec("pwd").stdout == "/workspace/backend\n", "a directory can be entered"
        refused = session.exec("source ../settings.sh")
        assert refused.exit_code != 0 and "Permission denied" in refused.stderr
        assert [each.path for each in refused.denials] == ["/settings.sh"]
        with pytest.raises(CommandExecutionError, match="/backend/manage.py"):
            session.exec("python3 manage.py test").raise_on_error()


def test_an_asyncio_program_hears_the_same(where, make_project):
    async def main():
        async with await AsyncSandbox.from_local(make_project(WEB), **where.options) as sandbox:
            await sandbox.run("make test", raise_on_error=True)

    with pytest.raises(CommandExecutionError, match="the policy refused it /Makefile"):
        asyncio.run(main())


def test_no_preset_is_the_default_too(where, make_project):
    with Sandbox.from_local(make_project(WEB), preset=None, **where.options) as sandbox:
        assert "Permission denied" in sandbox.run("cat README.md").stderr


def test_the_owner_reads_what_code_inside_may_not(sandbox):
    assert sandbox.read_file("README.md") == WEB["README.md"]
    with pytest.raises(PermissionDeniedError) as refused:
        sandbox.read_file("README.md", view="agent")
    assert refused.value.path == "/README.md"
    assert sandbox.explain("/README.md").permission == "view"
