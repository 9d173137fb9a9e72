"""The use cases of the guide to sessions. Services that Debian does not bring (redis, mysqld) are
played by a small one in Python, and pip installs from a directory: tests have no network."""

import json

import pytest
from ringfence import Sandbox

from needs import needs
from projects import INSTALL, WEB, ask, serve

WAIT = 100


@pytest.mark.bwrap
def test_use_case_virtual_environment(web, environment):
    with web.session() as session:
        session.exec(f"source {environment}/bin/activate")
        installed = session.exec(f"python -m pip {INSTALL} -r requirements.txt", timeout=WAIT)
        assert installed.exit_code == 0, installed.output
        assert session.exec("command -v tester").stdout == "/workspace/backend/venv/bin/tester\n"
        result = session.exec("tester .", timeout=WAIT)
    assert result.exit_code == 0 and "OK" in result.stdout, result.output


def test_use_case_virtual_environment_with_a_pip_of_its_own(make_project):
    """On the server that everybody has first."""
    with Sandbox.from_local(make_project(WEB), preset="full-access") as sandbox:
        with sandbox.session() as session:
            for step in ("python3 -m venv venv", "source venv/bin/activate",
                         f"pip {INSTALL} -r requirements.txt"):
                session.exec(step, timeout=WAIT).raise_on_error()
            assert "tester" in session.exec("pip list --disable-pip-version-check").stdout
            assert session.exec("tester .", timeout=WAIT).exit_code == 0


NODE = {
    "package.json": json.dumps({
        "name": "web",
        "version": "1.0.0",
        "dependencies": {"answer": "file:./answer"},
        "scripts": {
            "lint": "node --check main.js",
            "test": "node main.js",
            "build": "mkdir -p dist && cp main.js dist",
        },
    }),
    "main.js": "if (require('answer') !== 42) process.exit(1); console.log('tested')\n",
    "answer/package.json": '{"name": "answer", "version": "1.0.0"}',
    "answer/index.js": "module.exports = 42\n",
}


@pytest.mark.bwrap
@needs("npm")
def test_use_case_node_project(open_sandbox):
    sandbox = open_sandbox(NODE, preset="development")
    offline = {"npm_config_offline": "true", "npm_config_audit": "false"}
    with sandbox.session(env=offline) as session:
        session.exec("cd /workspace")
        installed = session.exec("npm install", timeout=WAIT)
        assert installed.exit_code == 0, installed.output
        assert session.exec("npm run lint", timeout=WAIT).exit_code == 0
        tested = session.exec("npm test", timeout=WAIT)
        assert tested.exit_code == 0 and "tested" in tested.stdout
        assert session.exec("npm run build", timeout=WAIT).exit_code == 0
    assert sandbox.list_files("/workspace/dist") == ["main.js"]


def test_use_case_database_for_tests(web):
    with web.session(env={"DB_PORT": "3306"}) as session:
        serve(session, 3306, "/tmp/base-$$.db")
        assert session.exec("python3 backend/manage.py migrate").stdout == "migrated\n"
        result = session.exec("python3 backend/manage.py test")
    assert result.stdout == "tested on a database\n", result.stderr


def test_a_database_can_be_a_process_whose_log_is_read(web):
    database = web.start_process("python3 -u backend/store.py 3307 :memory: /tmp/up-3307")
    database.wait_for_port(3307, timeout=WAIT)
    assert web.run(ask(3307, "select 1 + 1")).stdout == "[(2,)]\n"
    web.run("python3 -c \"import socket; s = socket.create_connection(('localhost', 3307)); "
            "s.sendall(b'not sql\\n'); s.recv(1)\"")
    assert "syntax error" in database.wait_for_log("OperationalError", timeout=WAIT)
    database.kill("SIGKILL")
    assert database.wait(WAIT) == 137


def pipeline(sandbox, commands):
    """Every stage in one session; what failed first, and why."""
    with sandbox.session() as session:
        session.exec("cd /workspace")
        session.exec("export CI=true")
        for stage, command in commands.items():
            result = session.exec(command, timeout=WAIT)
            if result.exit_code != 0:
                return stage, result.stderr
        return None, session.exec("echo $CI").stdout


@pytest.mark.bwrap
def test_use_case_pipeline_goes_through_all_stages(blocking_web):
    commands = {
        "install": f"pip {INSTALL} --target /tmp/packages --upgrade -r requirements.txt",
        "lint": "make lint",
        "deps": "make deps",
        "test": "PYTHONPATH=/tmp/packages python3 -c 'import tester; exit(tester.main())'",
        "build": "make build",
    }
    assert pipeline(blocking_web, commands) == (None, "true\n")


def test_use_case_pipeline_stops_at_the_stage_that_fails(web):
    commands = {"deps": "make deps", "build": "make broken", "never": "touch /tmp/never"}
    stage, why = pipeline(web, commands)
    assert stage == "build" and "this cannot be built" in why
    assert web.run("test -e /tmp/never").exit_code == 1


def test_use_case_debugger_over_several_calls(web):
    """On a terminal, where a program that asks is asked again and again."""
    with web.terminal("python3 -m pdb count.py", cols=100) as pdb:
        assert "count.py(1)" in pdb.expect("(Pdb) ", timeout=WAIT)
        pdb.write("break count.py:3\n")
        assert "Breakpoint 1" in pdb.expect("(Pdb) ", timeout=WAIT)
        for expected in ("0", "0", "1"):
            pdb.write("continue\n")
            pdb.expect("(Pdb) ", timeout=WAIT)
            pdb.write("p 'total', total\n")
            assert f"('total', {expected})" in pdb.expect("(Pdb) ", timeout=WAIT)
        pdb.write("total = 40\n")
        pdb.expect("(Pdb) ", timeout=WAIT)
        pdb.write("clear 1\ncontinue\n")
        assert pdb.expect("total 42", timeout=WAIT)
        pdb.expect("(Pdb) ", timeout=WAIT)
        pdb.write("quit\n")
        assert pdb.wait(WAIT) == 0


def test_the_debugger_can_stand_on_what_a_session_has_set_up(web):
    """The variables of `.env` and the directory are the session's."""
    web.write_file("/workspace/.env", "LEVEL=3\n")
    with web.session() as session:
        session.exec("cd /workspace/backend")
        session.exec("set -a; source ../.env")
        with web.terminal("python3 -m pdb ../count.py", session=session.id) as pdb:
            pdb.expect("(Pdb) ", timeout=WAIT)
            pdb.write("import os; print(os.environ['LEVEL'], os.getcwd())\n")
            assert "3 /workspace/backend" in pdb.expect("(Pdb) ", timeout=WAIT)


def test_a_debugger_in_a_session_takes_its_commands_at_once(web):
    """Every command of a session is the shell's; what it reads is given with it, or empty."""
    with web.session() as session:
        alone = session.exec("python3 -m pdb count.py", timeout=WAIT)
        assert "count.py(1)" in alone.stdout
        told = session.exec("python3 -m pdb count.py", timeout=WAIT,
                            stdin="break 3\ncontinue\ncontinue\ncontinue\np total\nquit\n")
        assert "\n(Pdb) 1\n" in told.stdout, told.stdout
