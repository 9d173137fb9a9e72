"""What the guide to the high-level API shows of commands and files, and its complete examples."""

from datetime import timedelta

import pytest
from agentfense import Permission, PermissionRule, ResourceLimits, SandboxStatus
from agentfense.exceptions import CommandExecutionError

from in_image import RUNTIME
from projects import MAKEFILE, TESTER, WEB_PROJECT

WAIT = timedelta(seconds=20)


# ---- commands ----------------------------------------------------------------------------------


@pytest.fixture
def built(open_sandbox):
    return open_sandbox(
        {**WEB_PROJECT, "analyze.py": "import sys\nprint(len(sys.stdin.read().split()))\n"}
    )


def test_a_command_gives_output_code_and_time(built):
    result = built.run("python3 --version")
    assert result.stdout.startswith("Python 3.") and result.exit_code == 0
    assert timedelta(0) < result.duration < timedelta(seconds=20)
    assert result.command == "python3 --version"


def test_a_command_takes_an_environment(built):
    result = built.run("echo $NAME in $PWD", env={"NAME": "x"}, workdir="/workspace/backend")
    assert result.stdout == "x in /workspace/backend\n"


def test_a_failed_build_is_a_result_or_an_exception_as_asked(built):
    result = built.run("make broken")
    assert result.exit_code == 2 and "this cannot be built" in result.stderr
    with pytest.raises(CommandExecutionError) as caught:
        built.run("make broken", raise_on_error=True)
    assert caught.value.exit_code == 2 and "this cannot be built" in caught.value.stderr


def test_a_directory_that_is_not_there_is_a_result_that_names_it(built):
    result = built.run("true", workdir="/workspace/nowhere")
    assert result.exit_code == 1 and "/workspace/nowhere" in result.stderr


def test_a_program_takes_input(built):
    result = built.exec(
        command="python3 analyze.py", stdin="line1\nline2\nline3", timeout=timedelta(minutes=5)
    )
    assert result.stdout == "3\n"


LONG = """#!/bin/sh
for n in 1 2 3; do
    echo step $n
    while [ ! -e /tmp/seen$n ]; do sleep 0.02; done
done
"""


def test_output_of_a_long_task_comes_as_it_is_made(open_sandbox):
    sandbox = open_sandbox({"long.sh": LONG}, preset="read-only")
    seen = b""
    for chunk in sandbox.exec_stream("./long.sh", timeout=WAIT):
        seen += chunk
        for n in range(1, 4):
            if b"step %d" % n in chunk:
                sandbox.run(f"touch /tmp/seen{n}")
    assert seen == b"step 1\nstep 2\nstep 3\n"


def test_streamed_output_can_be_saved(built, tmp_path):
    with open(tmp_path / "output.log", "wb") as file:
        for chunk in built.exec_stream("python3 -m unittest -v check 2>&1; seq 100000"):
            file.write(chunk)
    text = (tmp_path / "output.log").read_text()
    assert "test_it" in text and text.endswith("99999\n100000\n") and len(text) > 588_895


# ---- files and properties ----------------------------------------------------------------------


def test_bytes_come_out_as_they_are(built):
    built.run("printf '\\211PNG\\r\\n\\032\\n' > chart.png")
    assert built.read_file_bytes("/workspace/chart.png") == b"\x89PNG\r\n\x1a\n"


def test_text_and_bytes_go_in(built):
    built.write_file("/workspace/config.json", '{"debug": true}')
    built.write_file("/workspace/data.bin", b"\x00\x01\x02\x03")
    script = (
        "import json; print(json.load(open('config.json'))['debug'], open('data.bin', 'rb').read())"
    )
    assert built.exec("python3", stdin=script).stdout == "True b'\\x00\\x01\\x02\\x03'\n"


def test_files_are_listed_plain_and_recursively(open_sandbox):
    sandbox = open_sandbox(
        {"main.py": "", "README.md": "", "src/utils.py": "", "src/tests/test_utils.py": ""}
    )
    assert sandbox.list_files() == ["README.md", "main.py", "src"]
    assert sandbox.list_files(recursive=True) == [
        "README.md",
        "main.py",
        "src/tests/test_utils.py",
        "src/utils.py",
    ]


def test_files_can_be_had_in_every_state(open_sandbox):
    sandbox = open_sandbox({"a.txt": "a\n"}, auto_start=False)
    assert sandbox.read_file("a.txt") == "a\n"
    sandbox.start().run("echo b > b.txt")
    sandbox.stop()
    assert sandbox.read_file("b.txt") == "b\n"
    sandbox.write_file("c.txt", "c\n")
    assert sandbox.start().run("cat c.txt").stdout == "c\n"


def test_properties(built, client):
    assert built.id.startswith("sb_") and built.codebase_id.startswith("cb_")
    if built.status == SandboxStatus.RUNNING:
        assert built.run("echo 'ready'").stdout == "ready\n"
    assert built.runtime.value == RUNTIME and built.info.id == built.id
    stored = client.get_codebase(built.codebase.id)
    assert stored.name == built.codebase.name
    assert stored.file_count == len(WEB_PROJECT) + 1 and stored.size > 1000


# ---- the complete examples ---------------------------------------------------------------------


def test_example_of_a_test_runner(open_sandbox):
    sandbox = open_sandbox(
        {**WEB_PROJECT, "tools/tester.py": TESTER},
        preset="development",
        resources=ResourceLimits(memory_bytes=1 << 30, pids_limit=200),
        labels={"ci": "true", "env": "test"},
    )
    installed = sandbox.run("mkdir -p /tmp/lib && cp tools/tester.py /tmp/lib", timeout=300)
    assert installed.exit_code == 0
    tested = sandbox.run(
        "python3 -c 'import tester; tester.main()'", env={"PYTHONPATH": "/tmp/lib"}, timeout=600
    )
    assert tested.exit_code == 0, tested.output
    assert sandbox.read_file("/workspace/coverage.xml") == "<coverage tests='1'/>\n"


AGENT = """
import os, pathlib
for name in ("output/deep", "logs"):
    pathlib.Path(name).mkdir(parents=True, exist_ok=True)
pathlib.Path("output/report.md").write_text(os.environ["TASK"])
pathlib.Path("output/deep/data.txt").write_text("data")
pathlib.Path("logs/run.log").write_text("began\\n")
print("done; sees", sorted(os.listdir(".")))
"""


def test_example_of_an_agent_whose_output_is_collected(open_sandbox):
    sandbox = open_sandbox(
        {"agent.py": AGENT, "secrets/key": "k"},
        preset="agent-safe",
        permissions=[PermissionRule(pattern="/logs/**", permission=Permission.WRITE)],
    )
    with sandbox.session() as session:
        session.exec("cd /workspace")
        session.exec("export TASK='analyze repository'")
        result = session.exec("python3 agent.py", timeout=WAIT)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "done; sees ['agent.py', 'logs', 'output']\n"
    outputs = {
        path: sandbox.read_file(f"/workspace/output/{path}")
        for path in sandbox.list_files("/output", recursive=True)
    }
    assert outputs == {"report.md": "analyze repository", "deep/data.txt": "data"}
    logs = [
        sandbox.read_file(f"/workspace/logs/{path}")
        for path in sandbox.list_files("/logs", recursive=True)
    ]
    assert logs == ["began\n"]


def test_example_of_a_build_in_stages(open_sandbox, tmp_path):
    sandbox = open_sandbox({**WEB_PROJECT, "Makefile": MAKEFILE}, preset="development")
    with sandbox.session() as session:
        assert session.exec("make deps").exit_code == 0
        assert session.exec("make lint").stdout.endswith("clean\n")
        assert session.exec("make test").exit_code == 0
        assert session.exec("make build").exit_code == 0
    built = sandbox.list_files("/workspace/dist", recursive=True)
    assert built == ["app.py", "js/bundle.js"]
    for path in built:
        local = tmp_path / "build" / path
        local.parent.mkdir(parents=True, exist_ok=True)
        local.write_bytes(sandbox.read_file_bytes(f"/workspace/dist/{path}"))
    assert (tmp_path / "build/app.py").read_text() == WEB_PROJECT["app.py"]
