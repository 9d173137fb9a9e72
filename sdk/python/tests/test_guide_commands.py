"""What the guide to the high-level API shows of commands, files and properties."""

import json
from datetime import timedelta

import pytest
from ringfence import CommandExecutionError, SandboxStatus

from in_image import RUNTIME
from projects import WEB

WAIT = 60


# ---- run and exec -------------------------------------------------------------------------------


def test_a_command_gives_output_code_and_time(web):
    result = web.run("python3 --version")
    assert result.stdout.startswith("Python 3.") and result.exit_code == 0 and result.success
    assert timedelta(0) < result.duration < timedelta(seconds=WAIT)
    assert result.command == "python3 --version" and result.output == result.stdout


def test_a_command_takes_variables_and_a_directory(web):
    result = web.run("echo $NAME in $PWD", env={"NAME": "x"}, workdir="/workspace/backend")
    assert result.stdout == "x in /workspace/backend\n"


def test_a_failed_build_is_a_result_or_an_exception_as_asked(web):
    result = web.run("make broken")
    assert result.exit_code == 2 and "this cannot be built" in result.stderr
    with pytest.raises(CommandExecutionError) as failed:
        web.run("make broken", raise_on_error=True)
    assert failed.value.exit_code == 2 and "this cannot be built" in failed.value.stderr
    with pytest.raises(CommandExecutionError, match="make broken"):
        result.raise_on_error()


def test_a_program_takes_input(web):
    result = web.exec(
        command="wc -w", stdin="line1\nline2\nline3", timeout=timedelta(minutes=5))
    assert result.stdout.strip() == "3"


def test_what_a_command_printed_is_there_to_the_byte(web):
    result = web.run("printf '\\377\\000\\n'; printf 'caf\\303\\251' >&2")
    assert result.stdout_bytes == b"\xff\x00\n" and result.stderr == "café"


# ---- output as it is made -----------------------------------------------------------------------

STEPS = """
for n in 1 2 3; do
    echo step $n
    while [ ! -e /tmp/{0}-$n ]; do sleep 0.02; done
done
exit 3
"""


def test_output_of_a_long_task_comes_as_it_is_made(web, request):
    """Each step waits until the one before was seen."""
    sign = f"seen-{abs(hash(request.node.name))}"
    stream = web.exec_stream(STEPS.format(sign), timeout=timedelta(seconds=WAIT))
    seen = b""
    for chunk in stream:
        seen += chunk
        web.run(f"touch /tmp/{sign}-{seen.count(b'step')}")
    assert seen == b"step 1\nstep 2\nstep 3\n" and stream.exit_code == 3


def test_streamed_output_can_be_saved(web, tmp_path):
    with open(tmp_path / "output.log", "wb") as file:
        for chunk in web.exec_stream("make -s lint; seq 100000"):
            file.write(chunk)
    text = (tmp_path / "output.log").read_text()
    assert text.endswith("99999\n100000\n") and len(text) > 588_895


def test_both_streams_can_be_told_apart_as_they_come(web):
    stream = web.exec_stream("echo out; echo err >&2")
    assert sorted(stream.tagged()) == [("stderr", b"err\n"), ("stdout", b"out\n")]
    assert stream.exit_code == 0


# ---- files --------------------------------------------------------------------------------------


def test_text_can_be_read(web):
    web.run("echo '{\"answer\": 42}' > result.json")
    for path in ("/workspace/result.json", "/result.json", "result.json"):
        assert json.loads(web.read_file(path)) == {"answer": 42}


def test_bytes_come_out_as_they_are(web, tmp_path):
    web.run("printf '\\211PNG\\r\\n\\032\\n' > chart.png")
    (tmp_path / "chart.png").write_bytes(web.read_file_bytes("/workspace/chart.png"))
    assert (tmp_path / "chart.png").read_bytes() == b"\x89PNG\r\n\x1a\n"
    with pytest.raises(UnicodeDecodeError):
        web.read_file("chart.png")


def test_text_and_bytes_go_in(web):
    web.write_file("/workspace/config.json", '{"debug": true}')
    web.write_file("/workspace/data.bin", b"\x00\x01\x02\x03")
    script = ("import json\nprint(json.load(open('config.json'))['debug'])\n"
              "print(open('data.bin', 'rb').read())\n")
    assert web.exec("python3", stdin=script).stdout == "True\nb'\\x00\\x01\\x02\\x03'\n"


def test_files_are_listed_plain_and_recursively(open_sandbox, api):
    files = {"main.py": "", "README.md": "", "src/utils.py": "", "src/tests/test_utils.py": ""}
    sandbox = open_sandbox(files, sdk=api)
    assert sandbox.list_files() == ["README.md", "main.py", "src/"]
    assert sorted(sandbox.list_files(recursive=True)) == sorted(files)
    assert sorted(sandbox.list_files("/workspace/src", recursive=True)) == [
        "tests/test_utils.py", "utils.py"]


def test_files_can_be_had_in_every_state(open_sandbox):
    sandbox = open_sandbox({"a.txt": "a\n"}, auto_start=False)
    assert sandbox.read_file("a.txt") == "a\n"
    sandbox.start().run("echo b > b.txt")
    sandbox.stop()
    assert sandbox.read_file("b.txt") == "b\n"
    sandbox.write_file("c.txt", "c\n")
    assert sandbox.start().run("cat c.txt").stdout == "c\n"


# ---- properties ---------------------------------------------------------------------------------


def test_properties(open_sandbox, api):
    sandbox = open_sandbox(WEB, preset="agent-safe", labels={"team": "web"}, sdk=api,
                           codebase_name="web", owner_id="ann")
    assert sandbox.id.startswith("sb_") and sandbox.codebase_id.startswith("cb_")
    if sandbox.status == SandboxStatus.RUNNING:
        assert sandbox.run("echo 'ready'").stdout == "ready\n"
    assert sandbox.runtime.value == RUNTIME
    info = sandbox.info
    assert (info.id, info.labels) == (sandbox.id, {"team": "web"})
    assert info.created_at <= info.started_at and info.stopped_at is None
    assert {rule.pattern for rule in info.permissions} >= {"**/*", "**/secrets/**"}


def test_what_its_files_are(open_sandbox, api):
    sandbox = open_sandbox(WEB, sdk=api, codebase_name="web", owner_id="ann")
    codebase = sandbox.codebase
    assert (codebase.name, codebase.owner_id, codebase.id) == ("web", "ann", sandbox.codebase_id)
    assert codebase.file_count == len(WEB)
    assert codebase.size == sum(len(content) for content in WEB.values())
