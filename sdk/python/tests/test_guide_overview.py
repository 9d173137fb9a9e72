"""What the overview of the SDK shows."""

import asyncio
import os
import pathlib

import pytest
from ringfence import (
    AsyncSandbox,
    Permission,
    PermissionRule,
    ResourceLimits,
    RuntimeType,
    Sandbox,
    SandboxClient,
    SandboxStatus,
    UnsupportedError,
)

from projects import WEB

WAIT = 60

ANALYZE = """
import os, pathlib

print(sorted(os.listdir(".")))
pathlib.Path("output").mkdir()
pathlib.Path("output/report").write_text("ok")
try:
    pathlib.Path("analyze.py").write_text("")
except PermissionError:
    print("read-only")
"""

RULES = [
    PermissionRule(pattern="/output/**", permission=Permission.WRITE),
    PermissionRule(pattern="/secrets/**", permission=Permission.NONE),
]


def test_one_line_hides_secrets_and_lets_output_be_written(open_sandbox, api):
    hidden = {".env.local": "K=1", "secrets/a": "k", "deep/secrets/b": "k", "server.key": "k",
              "tls.pem": "k"}
    sandbox = open_sandbox({"analyze.py": ANALYZE, **hidden}, preset="agent-safe", sdk=api)
    result = sandbox.run("python3 analyze.py", timeout=WAIT)
    assert (result.stdout, result.stderr) == ("['analyze.py', 'deep']\nread-only\n", "")
    for path in hidden:
        assert "No such file" in sandbox.run(f"cat {path}").stderr, path
    assert sandbox.read_file("output/report") == "ok"


def test_after_the_block_nothing_is_left(where, api, project):
    with api.Sandbox.from_local(project, preset="agent-safe", **where.options) as sandbox:
        assert sandbox.run("cat hello.txt").stdout == "hello\n"
    with api.SandboxClient(**where.options) as client:
        assert sandbox.id not in [each.id for each in client.list_sandboxes()]
        assert sandbox.codebase_id not in [each.id for each in client.list_codebases()]


def uploaded(client, root):
    codebase = client.create_codebase(name="by-hand", owner_id="me")
    for directory, _, names in os.walk(root):
        for name in names:
            file = pathlib.Path(directory, name)
            client.upload_file(codebase.id, str(file.relative_to(root)), file.read_bytes())
    return codebase


def test_the_long_way_round(where, api, make_project):
    client = api.SandboxClient(**where.options)
    codebase = uploaded(client, make_project(WEB))
    rules = [{"pattern": "**/*", "permission": "write"}]
    sandbox = client.create_sandbox(codebase.id, permissions=rules)
    client.start_sandbox(sandbox.id)
    try:
        assert client.exec(sandbox.id, "make deps test").exit_code == 0
    finally:
        client.destroy_sandbox(sandbox.id)
        client.delete_codebase(codebase.id)
        client.close()


def test_three_lines_do_the_same(open_sandbox):
    assert open_sandbox(WEB, preset="development").run("make deps test").exit_code == 0


def test_a_build_that_writes_elsewhere_is_told_so_under_agent_safe(open_sandbox):
    refused = open_sandbox(WEB, preset="agent-safe").run("make deps")
    assert refused.exit_code == 2 and "Permission denied" in refused.stderr
    assert [each.path for each in refused.denials] == ["/vendor"]


def test_the_asyncio_way(where, make_project):
    async def run_tests():
        async with await AsyncSandbox.from_local(
                make_project(WEB), preset="read-only", **where.options) as sandbox:
            return (await sandbox.run("python3 -m unittest check 2>&1")).stdout

    assert "OK" in asyncio.run(run_tests())


def test_one_codebase_for_several_sandboxes(where, api):
    with api.SandboxClient(**where.options) as client:
        codebase = client.create_codebase(name="shared", owner_id="team")
        client.upload_file(codebase.id, "main.py", b"print('main')\n")
        first = client.create_sandbox(
            codebase.id, permissions=[{"pattern": "**/*", "permission": "read"}])
        second = client.create_sandbox(codebase.id, permissions=[])
        for sandbox, said in ((first, "main\n"), (second, "")):
            client.start_sandbox(sandbox.id)
            assert client.exec(sandbox.id, command="python3 main.py").stdout == said
        for sandbox in (first, second):
            client.destroy_sandbox(sandbox.id)
        client.delete_codebase(codebase.id)


def test_rules_of_ones_own(open_sandbox, api):
    process = "open('output/x', 'w').write('x')\nopen('secrets/k')\n"
    files = {"process.py": process, "output/.keep": "", "secrets/k": "k"}
    sandbox = open_sandbox(files, preset="read-only", permissions=RULES, sdk=api)
    assert "FileNotFoundError" in sandbox.run("python3 process.py").stderr
    assert sandbox.read_file("output/x") == "x"


@pytest.mark.bwrap
def test_docker_is_refused_without_an_engine_and_never_replaced(where, make_project):
    path = make_project(WEB)
    with SandboxClient(**where.options) as client:
        before = {each.id for each in client.list_codebases()}
        with pytest.raises(UnsupportedError, match="no container engine answers") as refused:
            Sandbox.from_local(
                path, preset="agent-safe", runtime=RuntimeType.DOCKER, image="python:3.11-slim",
                resources=ResourceLimits(memory_bytes=512 << 20, pids_limit=100),
                **where.options)
        assert refused.value.code == "UNSUPPORTED"
        assert {each.id for each in client.list_codebases()} == before, "nothing is left of it"


def test_state_over_several_commands(open_sandbox, api):
    files = {**WEB, "backend/env/activate": "STAGE=activated\nexport STAGE\n"}
    with open_sandbox(files, preset="read-only", sdk=api).session() as session:
        session.exec("cd /workspace/backend")
        session.exec("source env/activate")
        session.exec("export DEBUG=1")
        result = session.exec("python3 manage.py test; echo $STAGE")
    assert "DEBUG 1" in result.stdout and result.stdout.endswith("activated\n")


def test_ten_sandboxes_at_once(where, make_project):
    paths = [make_project({"Makefile": f"test:\n\t@echo project {n}; exit {n}\n"})
             for n in range(10)]

    async def run_in_sandbox(path):
        async with await AsyncSandbox.from_local(
                path, preset="read-only", **where.options) as sandbox:
            return await sandbox.run("make -s test", timeout=100)

    async def main():
        return await asyncio.gather(*map(run_in_sandbox, paths))

    results = asyncio.run(main())
    assert [result.stdout for result in results] == [f"project {n}\n" for n in range(10)]
    assert [result.exit_code for result in results] == [0] + [2] * 9


def test_sandboxes_on_the_same_files_do_not_see_each_others_writes(where, make_project):
    path = make_project({"a.txt": "old\n"})

    async def main():
        made = [await AsyncSandbox.from_local(path, preset="full-access", **where.options)
                for _ in range(2)]
        one, other = made
        async with one, other:
            assert one.status is SandboxStatus.RUNNING
            await one.run("echo new > a.txt")
            return [(await each.run("cat a.txt")).stdout for each in made]

    assert asyncio.run(main()) == ["new\n", "old\n"]
    assert pathlib.Path(path, "a.txt").read_text() == "old\n"
