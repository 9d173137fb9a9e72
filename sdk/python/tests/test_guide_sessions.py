"""What the guide to sessions shows of their state, on a preset that lets files be read.

As the guide has them its examples stand on the default preset; what becomes of that is in
`test_guide_default_preset.py`. `python` is `python3`, as Debian has it.
"""

import asyncio

import pytest
from ringfence import AsyncSandbox, InvalidConfigurationError, SandboxError, SessionStatus

from needs import needs
from projects import ask, serve

WAIT = 60
"""Seconds; only something that hangs takes that long."""


# ---- with and without ---------------------------------------------------------------------------


def test_without_a_session_each_command_begins_anew(web, environment):
    web.run("cd /workspace/backend")
    web.run(f". {environment}/bin/activate")
    result = web.run("python3 manage.py test")
    assert result.exit_code == 2 and "manage.py" in result.stderr, "it is in another directory"


def test_with_a_session_each_command_builds_on_the_last(web, environment):
    with web.session() as session:
        session.exec("cd /workspace/backend")
        session.exec("source venv/bin/activate")
        session.exec("export DEBUG=1")
        result = session.exec("python manage.py test")
    assert (result.stdout, result.stderr) == ("tested with venv DEBUG 1\n", "")


def test_a_test_run_in_the_directory_that_was_entered(web):
    with web.session() as session:
        session.exec("cd /workspace/backend")
        result = session.exec("PYTHONPATH=.. python3 -m unittest check && pwd", timeout=WAIT)
    assert result.stdout == "/workspace/backend\n", result.stderr


def test_an_exported_variable_reaches_programs(web):
    with web.session() as session:
        session.exec("export DEBUG=1")
        assert session.exec("python3 app.py").stdout == "DEBUG 1\n"


def test_an_activated_environment_comes_first(web, environment):
    with web.session() as session:
        session.exec(f"source {environment}/bin/activate")
        assert session.exec("command -v python").stdout == f"/workspace/{environment}/bin/python\n"


def test_a_service_in_the_background_answers_later_commands(web):
    with web.session() as session:
        serve(session, 6379)
        assert session.exec(ask(6379, "PING")).stdout == "PONG\n"
        assert web.run(ask(6379, "PING")).stdout == "PONG\n", "all of a sandbox is one machine"


def test_steps_that_need_what_the_one_before_made(web):
    web.run("rm -rf vendor dist")
    with web.session() as session:
        assert session.exec("make build", timeout=WAIT).exit_code == 2
        for step in ("deps", "test", "build"):
            assert session.exec(f"make {step}", timeout=WAIT).exit_code == 0, step


# ---- making sessions ----------------------------------------------------------------------------


def test_a_session_begins_in_the_workspace(web):
    with web.session() as session:
        assert session.exec("pwd").stdout == "/workspace\n"
        assert session.status is SessionStatus.ACTIVE and session.shell == "/bin/sh"


def test_so_does_one_of_an_asyncio_program(where, project):
    async def main():
        async with await AsyncSandbox.from_local(project, **where.options) as sandbox:
            async with await sandbox.session() as session:
                return (await session.exec("pwd")).stdout

    assert asyncio.run(main()) == "/workspace\n"


def test_another_shell_has_its_own_language(web):
    with web.session(shell="/bin/bash") as session:
        assert session.exec("declare -a numbers=(1 2 3)").exit_code == 0
        assert session.exec('echo "${#numbers[@]} ${numbers[2]}"').stdout == "3 3\n"


@needs("zsh")
def test_so_has_a_third(web):
    with web.session(shell="/bin/zsh") as session:
        assert session.exec("x=(a b); echo $x[1]").stdout == "a\n"


def test_a_shell_that_is_not_there_is_named(web):
    with pytest.raises(SandboxError, match="/bin/nosuchshell") as refused:
        web.session(shell="/bin/nosuchshell")
    assert isinstance(refused.value, InvalidConfigurationError)


def test_a_session_can_begin_with_variables(web):
    with web.session(env={"DEBUG": "1", "STAGE": "test"}) as session:
        assert session.exec("printenv DEBUG STAGE").stdout == "1\ntest\n"


# ---- what stays ---------------------------------------------------------------------------------


def test_the_directory_stays_and_is_known_outside(web):
    with web.session() as session:
        session.exec("cd /workspace/backend")
        assert session.exec("pwd").stdout == "/workspace/backend\n"
        session.exec("cd ../frontend")
        assert session.exec("pwd").stdout == "/workspace/frontend\n"
        assert session.cwd == "/workspace/frontend"


def test_variables_stay(web):
    with web.session() as session:
        session.exec("export API_URL=http://localhost:8000")
        session.exec("export DB_NAME=tests")
        session.exec("plain=kept")
        told = session.exec("printenv API_URL DB_NAME; echo $plain")
    assert told.stdout == "http://localhost:8000\ntests\nkept\n"


def test_aliases_and_functions_stay(web):
    with web.session(shell="/bin/bash") as session:
        session.exec("alias ll='ls -la'")
        assert "README.md" in session.exec("ll").stdout
        session.exec("greet() { echo \"Hello, $1\"; }")
        assert session.exec("greet you").stdout == "Hello, you\n"


def test_functions_stay_in_the_plain_shell_too(web):
    with web.session() as session:
        session.exec("greet() { echo \"Hello, $1\"; }")
        assert session.exec("greet you").stdout == "Hello, you\n"


FETCH = """
import time, urllib.request
while True:
    try:
        print(urllib.request.urlopen('http://localhost:8000/frontend/').read().decode())
        break
    except OSError:
        time.sleep(0.05)
"""


def test_a_web_server_in_the_background_can_be_asked(web):
    with web.session() as session:
        assert session.exec("python3 -m http.server 8000 &").exit_code == 0
        page = session.exec("python3 -", timeout=WAIT, stdin=FETCH)
    assert "<title>front</title>" in page.stdout, page.stderr


def test_a_server_that_is_a_process_can_be_waited_for(web):
    """What the guide sleeps two seconds for."""
    server = web.start_process("python3 -m http.server 8001")
    server.wait_for_port(8001, timeout=WAIT)
    page = web.run("python3 -c \"import urllib.request as r; "
                   "print(r.urlopen('http://localhost:8001/frontend/').read().decode())\"")
    assert "<title>front</title>" in page.stdout, page.stderr
    server.kill()
    assert server.wait(WAIT) != 0


def test_closing_a_session_ends_what_it_started(web):
    with web.session() as session:
        serve(session, 6390)
    refused = web.run(ask(6390, "PING"))
    assert refused.exit_code != 0 and "refused" in refused.stderr


def test_what_is_started_in_an_open_session_stays_as_long_as_it(web):
    with web.session() as session:
        serve(session, 6391)
        session.exec("cd /tmp")
        assert session.exec(ask(6391, "PING")).stdout == "PONG\n"
    assert web.run(ask(6391, "PING")).exit_code != 0


# ---- advice and trouble -------------------------------------------------------------------------


def test_commands_that_do_not_need_each_other_need_no_session(web):
    assert web.run("python3 --version").stdout.startswith("Python 3.")
    assert "README.md" in web.run("ls -la").stdout
    assert web.run("cat README.md").stdout == "# A web project\n"


def test_a_session_can_be_closed_by_hand_and_twice(web):
    session = web.session()
    assert session.exec("echo here").stdout == "here\n"
    assert session.id in [each.id for each in web.sessions()]
    session.close()
    session.close()
    assert session.id not in [each.id for each in web.sessions()]


def test_a_failed_build_says_why_on_its_own_stream(web):
    with web.session() as session:
        result = session.exec("make broken")
        assert result.exit_code == 2 and "this cannot be built" in result.stderr
        assert "cannot be built" not in result.stdout


def test_variables_of_the_beginning_save_a_command(web):
    with web.session(env={"CI": "1", "DEBUG": "0"}) as session:
        assert session.exec("python3 app.py; echo $CI").stdout == "DEBUG 0\n1\n"


def test_an_absolute_path_works_from_everywhere(web):
    with web.session() as session:
        session.exec("cd /tmp")
        assert session.exec("python3 /workspace/count.py").stdout == "total 3\n"
        assert session.exec("python3 count.py").exit_code == 2


def test_sessions_do_not_touch_each_other(web):
    with web.session() as one, web.session() as other:
        one.exec("cd /workspace/backend; export A=1")
        assert other.exec('pwd; echo "[$A]"').stdout == "/workspace\n[]\n"


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
        assert session.exec("python3 -c 'print(1 + 1)'").stdout == "2\n"


def test_a_program_reads_what_it_is_given_also_in_a_session(web):
    told = web.exec("python3", stdin="print(1 + 1)\nexit()\n", timeout=WAIT)
    assert (told.stdout, told.exit_code) == ("2\n", 0)
    with web.session() as session:
        assert session.exec("python3", stdin="print(1 + 1)\n", timeout=WAIT).stdout == "2\n"
