"""What the overview of the SDK shows, run."""

import asyncio
import os
import pathlib

import pytest
from agentfense import (
    AsyncSandbox,
    CommandExecutionError,
    CommandTimeoutError,
    Permission,
    PermissionRule,
    ResourceLimits,
    RuntimeType,
    Sandbox,
    SandboxClient,
    SandboxError,
)

from projects import WEB_PROJECT

ANALYZE = """
import os, pathlib
print(sorted(name for name in os.listdir('.')))
pathlib.Path('output').mkdir()
pathlib.Path('output/report').write_text('ok')
try:
    pathlib.Path('analyze.py').write_text('')
except PermissionError:
    print('read-only')
"""


def test_one_line_hides_secrets_and_lets_output_be_written(open_sandbox):
    hidden = {".env.local": "K=1", "secrets/a": "k", "server.key": "k", "tls.pem": "k"}
    sandbox = open_sandbox({"analyze.py": ANALYZE, **hidden}, preset="agent-safe")
    result = sandbox.run("python3 analyze.py")
    assert (result.stdout, result.stderr) == ("['analyze.py']\nread-only\n", "")
    assert "No such file" in sandbox.run("cat .env.local").stderr
    assert sandbox.run("cat output/report").stdout == "ok"


def test_the_long_way_round(make_project, endpoint):
    root = pathlib.Path(make_project(WEB_PROJECT))
    client = SandboxClient(endpoint)
    codebase = client.create_codebase(name="by-hand", owner_id="me")
    for directory, _, names in os.walk(root):
        for name in names:
            file = pathlib.Path(directory, name)
            client.upload_file(codebase.id, str(file.relative_to(root)), file.read_bytes())
    sandbox = client.create_sandbox(
        codebase.id, permissions=[{"pattern": "**/*", "permission": "write"}]
    )
    client.start_sandbox(sandbox.id)
    try:
        assert client.exec(sandbox.id, "make test").exit_code == 0
    finally:
        client.destroy_sandbox(sandbox.id)
        client.delete_codebase(codebase.id)
        client.close()


def test_three_lines_do_the_same(open_sandbox):
    assert open_sandbox(WEB_PROJECT, preset="development").run("make test").exit_code == 0


def test_under_agent_safe_a_build_that_writes_elsewhere_is_told_so(open_sandbox):
    refused = open_sandbox(WEB_PROJECT, preset="agent-safe").run("make test")
    assert refused.exit_code == 2 and "Permission denied" in refused.stderr


def test_the_default_lets_nothing_be_run_that_must_be_read(make_project, endpoint):
    with Sandbox.from_local(make_project(WEB_PROJECT), endpoint=endpoint) as sandbox:
        assert "Permission denied" in sandbox.run("python3 check.py").stderr
        assert "app.py" in sandbox.run("ls -la").stdout


def test_the_asynchronous_way(make_project, endpoint):
    async def run_tests():
        path = make_project(WEB_PROJECT)
        async with await AsyncSandbox.from_local(
            path, preset="read-only", endpoint=endpoint
        ) as sandbox:
            return (await sandbox.run("python3 -m unittest check 2>&1")).stdout

    assert "OK" in asyncio.run(run_tests())


def test_one_codebase_many_sandboxes(client, codebase):
    client.upload_file(codebase.id, "main.py", b"print('main')\n")
    rules = [{"pattern": "**/*", "permission": "read"}]
    first = client.create_sandbox(codebase.id, permissions=rules)
    second = client.create_sandbox(codebase.id, permissions=[])
    for sandbox, expected in ((first, "main\n"), (second, "")):
        client.start_sandbox(sandbox.id)
        assert client.exec(sandbox.id, command="python3 main.py").stdout == expected
        client.destroy_sandbox(sandbox.id)


def test_rules_of_ones_own(open_sandbox):
    sandbox = open_sandbox(
        {
            "process.py": "open('output/x', 'w').write('x')\nopen('secrets/k')\n",
            "output/.keep": "",
            "secrets/k": "k",
        },
        preset="read-only",
        permissions=[
            PermissionRule(pattern="/output/**", permission=Permission.WRITE),
            PermissionRule(pattern="/secrets/**", permission=Permission.NONE),
        ],
    )
    result = sandbox.run("python3 process.py")
    assert "FileNotFoundError" in result.stderr
    assert sandbox.run("cat output/x").stdout == "x"


def test_docker_is_never_replaced_by_something_else(make_project, endpoint):
    with pytest.raises(SandboxError, match="(?i)docker"):
        Sandbox.from_local(
            make_project(WEB_PROJECT),
            preset="agent-safe",
            runtime=RuntimeType.DOCKER,
            image="python:3.11-slim",
            resources=ResourceLimits(memory_bytes=512 << 20, pids_limit=100),
            endpoint=endpoint,
        )


def test_stateful_execution(open_sandbox):
    files = {**WEB_PROJECT, "backend/env/activate": "STAGE=activated\nexport STAGE\n"}
    with open_sandbox(files, preset="read-only").session() as session:
        session.exec("cd /workspace/backend")
        session.exec("source env/activate")
        session.exec("export DEBUG=1")
        result = session.exec("python3 manage.py test; echo $STAGE")
    assert "DEBUG 1" in result.stdout and result.stdout.endswith("activated\n")


def test_ten_sandboxes_at_once(make_project, endpoint):
    projects = [
        make_project({"Makefile": f"test:\n\t@echo project {n}; exit {n}\n"}) for n in range(10)
    ]

    async def run_in_sandbox(path):
        async with await AsyncSandbox.from_local(
            path, preset="read-only", endpoint=endpoint
        ) as sandbox:
            return await sandbox.run("make -s test; echo $?")

    async def main():
        return await asyncio.gather(*map(run_in_sandbox, projects))

    results = asyncio.run(main())
    assert [result.stdout.splitlines()[0] for result in results] == [
        f"project {n}" for n in range(10)
    ]


def test_errors_are_told_apart(make_project, endpoint):
    def outcome(command, **options):
        try:
            with Sandbox.from_local(
                make_project(WEB_PROJECT), preset="read-only", endpoint=endpoint
            ) as sandbox:
                return sandbox.run(command, raise_on_error=True, **options).stdout
        except CommandTimeoutError:
            return "timeout"
        except CommandExecutionError as failure:
            return failure.exit_code, failure.stderr

    assert outcome("echo fine") == "fine\n"
    assert outcome("sleep 60", timeout=1) == "timeout"
    assert outcome("echo why >&2; exit 4") == (4, "why\n")
    code, why = outcome("echo x > app.py")
    assert code != 0 and "Permission denied" in why


def test_a_sandbox_that_is_stopped_says_so(open_sandbox):
    sandbox = open_sandbox(WEB_PROJECT)
    sandbox.stop()
    with pytest.raises(SandboxError, match="(?i)stopped"):
        sandbox.run("true")
