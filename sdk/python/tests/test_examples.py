"""The programs in `examples/python` do what they say, on the project that `examples/project.sh` makes."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

import servers

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"
WITHIN = 100


@pytest.fixture
def example(tmp_path):
    """The directory of the example project."""
    directory = tmp_path / "project"
    subprocess.run(["sh", EXAMPLES / "project.sh", directory], check=True)
    return directory


def run(name, *arguments):
    program = EXAMPLES / "python" / f"{name}.py"
    return subprocess.run(
        [sys.executable, program, *map(str, arguments)], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=WITHIN)


def contents(directory):
    return {str(file.relative_to(directory)): file.read_bytes()
            for file in sorted(directory.rglob("*")) if file.is_file()}


@pytest.mark.parametrize(
    "name", sorted(file.stem for file in (EXAMPLES / "python").glob("*.py")))
def test_every_example_says_what_it_takes(name):
    asked = run(name, "--help")
    assert asked.returncode == 0, asked.stdout
    assert "directory" in asked.stdout and "examples/project.sh" in asked.stdout


def test_an_agents_work_is_applied_if_the_tests_pass(example):
    before = contents(example)
    done = run("agent_loop", example)
    assert done.returncode == 0, done.stdout
    assert "refused by the policy: lookup /deploy.key (needs view, has none)" in done.stdout
    assert "error: /tests/test_app.py: this needs level write" in done.stdout
    assert "+def subtract(a, b):" in done.stdout
    assert "the tests pass; applied: /src/app.py" in done.stdout
    after = contents(example)
    assert b"def subtract" in after.pop("src/app.py")
    before.pop("src/app.py")
    assert after == before


def test_an_agents_work_is_not_applied_if_they_fail(example):
    before = contents(example)
    done = run("agent_loop", example, "--careless")
    assert done.returncode == 1, done.stdout
    assert "AssertionError: 38 != 42" in done.stdout
    assert "the tests fail, nothing is applied" in done.stdout
    assert contents(example) == before


def test_steps_run_in_order_and_are_reported(example, tmp_path):
    before = contents(example)
    report, artifacts = tmp_path / "report.json", tmp_path / "artifacts"
    done = run("ci_runner", example, "--report", report, "--artifacts", artifacts)
    assert done.returncode == 0, done.stdout
    made = json.loads(report.read_text())
    assert [(step["name"], step["status"]) for step in made["steps"]] == [
        ("compile", "passed"), ("test", "passed"), ("package", "passed")]
    assert made["passed"] and made["record_intact"] and made["network"] == "none"
    assert "added /output/src.tar" in made["changes"]
    assert made["limits"] == {"memory_bytes": 512 << 20, "pids_limit": 200}
    assert [file.name for file in artifacts.iterdir()] == ["src.tar"]
    assert contents(example) == before


def test_a_failed_step_skips_the_rest_and_says_why(example, tmp_path):
    report = tmp_path / "report.json"
    done = run("ci_runner", example, "--report", report, "--memory-mb", 64,
               "--step", "secret=cat deploy.key || true",
               "--step", "greedy=python3 -c 'bytearray(1 << 30)'", "--step", "last=true")
    assert done.returncode == 1, done.stdout
    steps = json.loads(report.read_text())["steps"]
    assert [step["status"] for step in steps] == ["passed", "failed", "skipped"]
    assert steps[0]["denied"] == ["/deploy.key"]
    assert steps[1]["reason"] == "the memory limit was reached"


def test_a_step_out_of_time_is_ended(example):
    done = run("ci_runner", example, "--timeout", 1, "--step", "endless=echo begun; sleep 600")
    assert done.returncode == 1, done.stdout
    assert "begun" in done.stdout and "endless      timeout" in done.stdout


def test_a_directory_that_is_not_there_is_said_in_a_sentence(tmp_path):
    done = run("ci_runner", tmp_path / "nowhere")
    assert done.returncode == 2
    assert done.stdout == f"error: there is no directory {tmp_path / 'nowhere'}\n"


def test_configurations_are_tested_in_forks(example):
    done = run("test_matrix", example, "--configuration", "wrong:PYTHONOPTIMIZE=x",
               "--configuration", "right", "--test", "test -z \"$PYTHONOPTIMIZE\" && cat output/state"
               " && echo spoilt > output/state")
    assert done.returncode == 1, done.stdout
    assert done.stdout.splitlines() == [
        "the prepared sandbox is as it was: prepared",
        "wrong        FAILED  exit code 1",
        "right        passed  prepared",
    ]


def test_the_matrix_passes_as_it_comes(example):
    done = run("test_matrix", example)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count(" passed ") == 6


def test_an_interrupted_matrix_leaves_nothing(example, tmp_path):
    state, sleep = tmp_path / "state", f"600.{os.getpid()}"
    program = subprocess.Popen(
        [sys.executable, EXAMPLES / "python" / "test_matrix.py", example,
         "--test", f"echo begun; sleep {sleep}"],
        env={**os.environ, "RINGFENCE_STATE": str(state)}, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    try:
        asleep = f"sleep\x00{sleep}"
        servers.wait_until(lambda: len(servers.processes(asleep)) == 6, what="six forks at work")
        program.send_signal(signal.SIGINT)
        assert program.wait(WITHIN) != 0
        servers.wait_until(lambda: not servers.processes(state), what="the end of all")
        assert not servers.processes(asleep)
    finally:
        program.kill()
        program.wait()


def test_cells_share_a_session_and_its_server(example):
    done = run("notebook_session", example)
    assert done.returncode == 0, done.stdout
    for line in ["  /workspace/src", "  HELLO", "! and a word on stderr", "  listens on port 8000",
                 "  200 def add(a, b):", "  refused by the policy: lookup /deploy.key",
                 "  still in /workspace/src, still saying hello", "7 of 7 cells succeeded"]:
        assert line in done.stdout.splitlines(), done.stdout
    assert '"GET /app.py HTTP/1.1" 200' in done.stdout


def test_cells_can_come_from_a_file(example, tmp_path):
    cells = tmp_path / "cells.sh"
    cells.write_text("n=1\n# %% the next\nsleep 600\n# %%\necho \"n is $n\"; exit 3\n")
    done = run("notebook_session", example, "--cells", cells, "--timeout", 1)
    assert done.returncode == 1, done.stdout
    # What a shell says of a command that was ended differs.
    assert [line for line in done.stdout.splitlines() if not line.startswith("!")] == [
        "[1] n=1",
        "[2] sleep 600",
        "  ended after 1 seconds",
        "[3] echo \"n is $n\"; exit 3",
        "  n is 1",
        "  exit code 3",
        "1 of 3 cells succeeded",
    ]
