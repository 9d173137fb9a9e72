"""What the guide to sessions shows, run.

Its examples use the default preset, `view-only`, under which no file can be read. They run here
with a preset that fits, and the first test shows what becomes of them as they are. Services that
Debian does not bring (redis, mysqld) are played by a small one in Python, pip installs a wheel made
here, and `python` is `python3`.
"""

import asyncio
from datetime import timedelta

import pytest
from agentfense import AsyncSandbox, Sandbox, SandboxError

from needs import needs
from projects import WEB_PROJECT, ask, serve

WAIT = timedelta(seconds=15)


def test_as_written_the_examples_cannot_read_what_they_run(make_project, endpoint):
    path = make_project(WEB_PROJECT)
    with Sandbox.from_local(path, endpoint=endpoint) as sandbox, sandbox.session() as session:
        for command in (
            "source app.py",
            "python3 app.py",
            "cat README.md",
            "python3 backend/manage.py test",
        ):
            refused = session.exec(command)
            assert refused.exit_code != 0, command
            assert "Permission denied" in refused.stderr, command
        assert session.exec("cd backend && pwd").stdout == "/workspace/backend\n"


# ---- what a session is -------------------------------------------------------------------------


@pytest.mark.timeout(60)
def test_without_a_session_each_command_begins_anew(web, environment):
    web.run("cd /workspace/backend")
    web.run(f". {environment}/bin/activate")
    assert web.run("python3 manage.py test").exit_code == 2, "it is not there"


@pytest.mark.timeout(60)
def test_with_a_session_each_command_builds_on_the_last(web, environment):
    with web.session() as session:
        session.exec("cd /workspace/backend")
        session.exec("source venv/bin/activate")
        session.exec("export DEBUG=1")
        result = session.exec("python manage.py test")
    assert (result.stdout, result.stderr) == ("1 test passed with venv DEBUG 1\n", "")


def test_cd_and_then_a_test_run_there(web):
    with web.session() as session:
        session.exec("cd /workspace/tests")
        tested = session.exec("PYTHONPATH=.. python3 -m unittest check && pwd")
        assert (tested.stdout, tested.exit_code) == ("/workspace/tests\n", 0), tested.stderr


def test_export_reaches_programs(web):
    with web.session() as session:
        session.exec("export DEBUG=1")
        assert session.exec("python3 app.py").stdout == "DEBUG 1\n"


@pytest.mark.timeout(60)
def test_source_activates_a_virtual_environment(web, environment):
    with web.session() as session:
        session.exec(f"source {environment}/bin/activate")
        listed = session.exec("pip list --disable-pip-version-check", timeout=timedelta(seconds=50))
    assert listed.exit_code == 0 and "pip" in listed.stdout, listed.stderr


def test_source_works_for_a_file_of_the_current_directory(web):
    for shell in ("/bin/sh", "/bin/bash"):
        with web.session(shell=shell) as session:
            assert session.exec("source settings.sh").exit_code == 0
            assert session.exec("echo $MODE").stdout == "from-file\n"


def test_a_background_service_answers_later_commands(web):
    with web.session() as session:
        serve(session, 6379)
        assert session.exec(ask(6379, "PING")).stdout == "PONG\n"
        assert web.run(ask(6379, "PING")).stdout == "PONG\n", "one web, one loopback"


def test_steps_that_need_each_other(web):
    with web.session() as session:
        assert session.exec("make deps").exit_code == 0
        assert session.exec("make build").exit_code == 0
        assert session.exec("make test").stdout.endswith("passed\n")


# ---- making sessions ---------------------------------------------------------------------------


def test_a_session_begins_in_the_workspace(web):
    with web.session() as session:
        assert session.exec("pwd").stdout == "/workspace\n"


def test_an_asynchronous_session_begins_there_too(make_project, endpoint):
    async def ask_where():
        path = make_project({"a": "a"})
        async with await AsyncSandbox.from_local(path, endpoint=endpoint) as sandbox:
            async with await sandbox.session() as session:
                return (await session.exec("pwd")).stdout

    assert asyncio.run(ask_where()) == "/workspace\n"


def test_bash_has_its_arrays(web):
    with web.session(shell="/bin/bash") as session:
        assert session.exec("declare -a arr=(1 2 3)").exit_code == 0
        assert session.exec('echo "${#arr[@]} ${arr[2]}"').stdout == "3 3\n"


@needs("zsh")
def test_other_shells_can_be_asked_for(web):
    with web.session(shell="/bin/zsh") as session:
        assert session.exec("x=(a b); echo $x[1]").stdout == "a\n"


def test_a_shell_that_is_not_there_is_refused(web):
    with pytest.raises(SandboxError, match="nosuchshell"):
        web.session(shell="/bin/nosuchshell")


def test_the_first_environment_is_given(web):
    with web.session(env={"DEBUG": "1", "ENV": "test"}) as session:
        assert session.exec("printenv DEBUG").stdout == "1\n"
        assert session.exec("printenv ENV").stdout == "test\n"


# ---- state -------------------------------------------------------------------------------------


def test_the_directory_stays_and_can_be_left_relatively(web):
    with web.session() as session:
        session.exec("cd /workspace/backend")
        assert session.exec("pwd").stdout == "/workspace/backend\n"
        session.exec("cd ../frontend")
        assert session.exec("pwd").stdout == "/workspace/frontend\n"


def test_variables_stay(web):
    with web.session() as session:
        session.exec("export API_URL=http://localhost:8000")
        session.exec("export DB_NAME=testdb")
        assert session.exec("printenv API_URL DB_NAME").stdout == "http://localhost:8000\ntestdb\n"


def test_aliases_and_functions_stay(web):
    with web.session(shell="/bin/bash") as session:
        session.exec("alias ll='ls -la'")
        assert "README.md" in session.exec("ll").stdout
        session.exec("myfunction() { echo 'Hello from function'; }")
        assert session.exec("myfunction").stdout == "Hello from function\n"


def test_a_web_server_in_the_background_can_be_asked(web):
    fetch = (
        "import time, urllib.request as r\n"
        "while True:\n"
        "    try: print(r.urlopen('http://localhost:8000/frontend/').read().decode()); break\n"
        "    except OSError: time.sleep(0.05)\n"
    )
    with web.session() as session:
        assert session.exec("python3 -m http.server 8000 &").exit_code == 0
        page = session.exec(f'python3 -c "{fetch}"', timeout=WAIT)
        assert "<title>front</title>" in page.stdout


def test_closing_the_session_ends_what_it_started(web):
    with web.session() as session:
        serve(session, 6390)
    refused = web.run(ask(6390, "PING"))
    assert refused.exit_code != 0 and "refused" in refused.stderr


# ---- direct execution, and advice ---------------------------------------------------------------


def test_independent_commands_need_no_session(web):
    assert web.run("python3 --version").stdout.startswith("Python 3.")
    assert "README.md" in web.run("ls -la").stdout
    assert web.run("cat README.md").stdout == "# A web project\n"


def test_a_session_can_be_closed_by_hand(web, client):
    session = web.session()
    assert session.exec("echo command").stdout == "command\n"
    session.close()
    assert session.id not in [each.id for each in client.list_sessions(web.id)]


def test_a_failed_build_says_why_on_its_own_stream(web):
    with web.session() as session:
        result = session.exec("make broken")
        assert result.exit_code != 0 and "this cannot be built" in result.stderr
        assert "cannot be built" not in result.stdout


def test_absolute_paths_work_from_everywhere(web):
    with web.session() as session:
        session.exec("cd /tmp")
        assert session.exec("python3 /workspace/main.py").stdout == "total 3\n"
        assert session.exec("python3 main.py").exit_code == 2


def test_sessions_do_not_touch_each_other(web):
    with web.session() as one, web.session() as other:
        one.exec("cd /workspace/backend; export A=1")
        assert other.exec('pwd; echo "[$A]"').stdout == "/workspace\n[]\n"


# ---- troubleshooting ---------------------------------------------------------------------------


def test_cd_of_one_run_is_not_seen_by_the_next(web):
    web.run("cd /workspace/backend")
    assert web.run("pwd").stdout == "/workspace\n"


def test_export_of_one_run_is_not_seen_by_the_next(web):
    web.run("export DEBUG=1")
    result = web.run("printenv DEBUG")
    assert (result.stdout, result.exit_code) == ("", 1)
    assert web.run("printenv DEBUG", env={"DEBUG": "1"}).stdout == "1\n"


def test_an_interactive_program_ends_instead_of_hanging(web):
    with web.session() as session:
        assert session.exec("python3", timeout=WAIT).exit_code == 0
        assert session.exec("python3 -c 'print(1+1)'").stdout == "2\n"


def test_a_program_reads_what_exec_gives_it(web):
    result = web.exec("python3", stdin="print(1+1)\nexit()\n", timeout=WAIT)
    assert (result.stdout, result.exit_code) == ("2\n", 0)
