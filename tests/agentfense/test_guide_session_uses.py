"""The use cases of the guide to sessions, run; `test_guide_sessions.py` says what is replaced."""

import json
from datetime import timedelta

import pytest

from needs import needs
from projects import TESTER_WHEEL, serve

WAIT = timedelta(seconds=15)


@pytest.mark.timeout(90)
def test_use_case_virtual_environment_install_and_test(web, environment):
    with web.session() as session:
        session.exec(f"source {environment}/bin/activate")
        install = f"pip install --no-index --disable-pip-version-check ./{TESTER_WHEEL}"
        installed = session.exec(install, timeout=timedelta(seconds=60))
        assert installed.exit_code == 0, installed.output
        result = session.exec("tester tests/", timeout=WAIT)
    assert result.exit_code == 0 and "OK" in result.stdout, result.output


@needs("npm")
@pytest.mark.timeout(90)
@pytest.mark.bwrap
def test_use_case_node_project(open_sandbox):
    package = {
        "name": "web",
        "version": "1.0.0",
        "dependencies": {"dep": "file:./dep"},
        "scripts": {
            "lint": "node --check main.js",
            "test": "node main.js",
            "build": "mkdir -p dist && cp main.js dist",
        },
    }
    sandbox = open_sandbox(
        {
            "package.json": json.dumps(package),
            "main.js": "if (require('dep') !== 42) process.exit(1); console.log('tested')\n",
            "dep/package.json": '{"name": "dep", "version": "1.0.0"}',
            "dep/index.js": "module.exports = 42\n",
        },
        preset="development",
    )
    with sandbox.session(
        env={"npm_config_offline": "true", "npm_config_audit": "false"}
    ) as session:
        session.exec("cd /workspace")
        installed = session.exec("npm install", timeout=timedelta(seconds=60))
        assert installed.exit_code == 0, installed.output
        assert session.exec("npm run lint", timeout=WAIT).exit_code == 0
        tested = session.exec("npm test", timeout=WAIT)
        assert tested.exit_code == 0 and "tested" in tested.stdout
        assert session.exec("npm run build", timeout=WAIT).exit_code == 0
    assert sandbox.list_files("/workspace/dist") == ["main.js"]


def test_use_case_database_for_tests(web):
    with web.session(env={"DB_PORT": "3306"}) as session:
        serve(session, 3306, "/tmp/base.db")
        assert session.exec("python3 backend/manage.py migrate").stdout == "migrated\n"
        result = session.exec("python3 backend/manage.py test")
    assert result.stdout == "1 test passed on a database\n", result.stderr


def test_use_case_pipeline_stops_at_the_stage_that_fails(web):
    def pipeline(*stages):
        with web.session() as session:
            session.exec("cd /workspace")
            session.exec("export CI=true")
            for stage in stages:
                result = session.exec(f"make {stage}", timeout=WAIT)
                if result.exit_code != 0:
                    return False, stage, result.stderr
            return True, None, session.exec("echo $CI").stdout

    assert pipeline("deps", "lint", "test", "build") == (True, None, "true\n")
    worked, stage, why = pipeline("deps", "broken", "build")
    assert (worked, stage) == (False, "broken") and "this cannot be built" in why


def test_use_case_debugger_does_not_hang_and_takes_its_commands_at_once(web):
    """A session's commands are one shell's, not a debugger's: its input is empty, so it ends."""
    web.write_file("/workspace/.env", "LEVEL=3\n")
    with web.session() as session:
        session.exec("cd /workspace")
        assert session.exec("source .env").exit_code == 0
        assert session.exec("echo $LEVEL").stdout == "3\n"
        alone = session.exec("python3 -m pdb main.py", timeout=WAIT)
        assert "main.py(1)" in alone.stdout
        for command in ("break main.py:42", "continue", "print(local_vars)"):
            session.exec(command, timeout=WAIT)
        told = session.exec(
            "python3 -m pdb main.py <<'END'\nbreak 4\ncontinue\np total\nquit\nEND", timeout=WAIT
        )
        assert "\n(Pdb) 3\n" in told.stdout
        assert session.exec("echo $LEVEL; pwd").stdout == "3\n/workspace\n"
