"""Programs for both clients, as those of `both_clients.py`: sessions, and the guides' long examples."""

import asyncio

from both_clients import SECONDS, WAIT, gives
from projects import INSTALL, WEB, ask


@gives((0, 0, "<coverage tests='1'/>\n"))
def ci_runner(sdk, at):
    with sdk.Sandbox.from_local(
            at.project(WEB), preset="development", labels={"ci": "true"}, **at.server) as sandbox:
        installed = sandbox.run(
            f"pip {INSTALL} --target /tmp/packages -r requirements.txt", timeout=SECONDS)
        tested = sandbox.run(
            "python3 -c 'import tester; exit(tester.main())'",
            env={"PYTHONPATH": "/tmp/packages"}, timeout=SECONDS)
        return (installed.exit_code, tested.exit_code,
                sandbox.read_file("/workspace/coverage.xml"))


AGENT = """
import os, pathlib

for name in ("output/deep", "logs"):
    pathlib.Path(name).mkdir(parents=True, exist_ok=True)
pathlib.Path("output/report.md").write_text(os.environ["TASK"])
pathlib.Path("output/deep/data.txt").write_text("data")
pathlib.Path("logs/run.log").write_text("began\\n")
"""


@gives((0, {"deep/data.txt": "data", "report.md": "look around"}, ["began\n"]))
def agent(sdk, at):
    rule = sdk.PermissionRule(pattern="/logs/**", permission=sdk.Permission.WRITE)
    with sdk.Sandbox.from_local(
            at.project({"agent.py": AGENT}), preset="agent-safe", permissions=[rule],
            **at.server) as sandbox:
        with sandbox.session() as session:
            session.exec("export TASK='look around'")
            code = session.exec("python3 agent.py", timeout=WAIT).exit_code
        outputs = {name: sandbox.read_file(f"/workspace/output/{name}")
                   for name in sandbox.list_files("/output", recursive=True)}
        logs = [sandbox.read_file(f"/workspace/logs/{name}")
                for name in sandbox.list_files("/logs", recursive=True)]
        return code, outputs, logs


@gives(([0, 0, 0, 0, 2], ["app.py", "js/bundle.js"], [WEB["app.py"].encode(), b"bundle\n"]))
def build_in_stages(sdk, at):
    with sdk.Sandbox.from_local(at.project(WEB), preset="development", **at.server) as sandbox:
        with sandbox.session() as session:
            codes = [session.exec(f"make {stage}", timeout=WAIT).exit_code
                     for stage in ("deps", "lint", "test", "build", "broken")]
        built = sorted(sandbox.list_files("/workspace/dist", recursive=True))
        contents = [sandbox.read_file_bytes(f"/workspace/dist/{name}") for name in built]
        return codes, built, contents


SESSION = [
    # command, stdout, stderr, exit code
    ("cd backend", "", "", 0),
    ("pwd", "/workspace/backend\n", "", 0),
    ("export A=1", "", "", 0),
    ("b=2", "", "", 0),
    ("echo $A$b", "12\n", "", 0),
    ("f() { echo f $1; }", "", "", 0),
    ("f x", "f x\n", "", 0),
    ("printf no-newline", "no-newline", "", 0),
    ("echo shown # not", "shown\n", "", 0),
    ("cat <<END\n$((1 + 1))\nEND", "2\n", "", 0),
    ("cat", "", "", 0),
    ("read x; echo read $?", "read 1\n", "", 0),
    ("source ../settings.sh", "", "", 0),
    ("echo $MODE", "from-file\n", "", 0),
    ("echo err >&2; (exit 42)", "", "err\n", 42),
    ("sleep 600 &", "", "", 0),
    ("kill -0 $!", "", "", 0),
    ("exit 7", "", "", 7),
]


@gives([(said, complaint, code) for _, said, complaint, code in SESSION])
def session(sdk, at):
    with sdk.Sandbox.from_local(at.project(WEB), preset="read-only", **at.server) as sandbox:
        with sandbox.session() as opened:
            results = [opened.exec(row[0], timeout=WAIT) for row in SESSION]
    return [(result.stdout, result.stderr, result.exit_code) for result in results]


@gives(["", "said it\n", "", "3 test\n"])
def bash_session(sdk, at):
    with sdk.Sandbox.from_local(at.project(WEB), preset="read-only", **at.server) as sandbox:
        with sandbox.session(shell="/bin/bash", env={"STAGE": "test"}) as opened:
            commands = ("alias say='echo said'", "say it", "numbers=(1 2 3)",
                        "echo ${#numbers[@]} $STAGE")
            return [opened.exec(command).stdout for command in commands]


@gives((["PONG\n", "migrated\n", "tested on a database\n", "PONG\n"], 1))
def service_in_the_background(sdk, at):
    with sdk.Sandbox.from_local(at.project(WEB), preset="read-only", **at.server) as sandbox:
        with sandbox.session(env={"DB_PORT": "3306"}) as opened:
            opened.exec("python3 backend/store.py 3306 /tmp/base.db /tmp/up &")
            opened.exec("until [ -e /tmp/up ]; do sleep 0.02; done", timeout=WAIT)
            said = [opened.exec(command, timeout=WAIT).stdout for command in
                    (ask(3306, "PING"), "python3 backend/manage.py migrate",
                     "python3 backend/manage.py test")]
            said.append(sandbox.run(ask(3306, "PING")).stdout)
        return said, sandbox.run(ask(3306, "PING")).exit_code


@gives(("/workspace/backend\n1\n", b"a\nb\n", "# A web project\n"))
def asyncio_session(sdk, at):
    async def main():
        async with await sdk.AsyncSandbox.from_local(
                at.project(WEB), preset="read-only", **at.server) as sandbox:
            async with await sandbox.session() as opened:
                await opened.exec("cd backend && export A=1")
                said = (await opened.exec("pwd; echo $A", timeout=WAIT)).stdout
            chunks = [chunk async for chunk in sandbox.exec_stream("echo a; echo b")]
            return said, b"".join(chunks), await sandbox.read_file("README.md")

    return asyncio.run(main())
