"""The complete examples of the guide to the high-level API, on the default runtime."""

import os

import pytest
import ringfence
from ringfence import Permission, PermissionRule, ResourceLimits

from projects import INSTALL, WEB

WAIT = 100


# ---- a test runner ------------------------------------------------------------------------------


def run_ci_tests(sdk, path, report, **server):
    """Installs, tests, and brings the report home. Whether the tests passed."""
    with sdk.Sandbox.from_local(
            path,
            preset="development",
            resources=ResourceLimits(memory_bytes=1 << 30, pids_limit=200),
            labels={"ci": "true", "env": "test"},
            **server) as sandbox:
        installed = sandbox.run(
            f"pip {INSTALL} --target /tmp/packages -r requirements.txt", timeout=WAIT)
        if installed.exit_code != 0:
            raise RuntimeError(f"the install failed: {installed.stderr}")
        tested = sandbox.run(
            "python3 -c 'import tester; exit(tester.main())'",
            env={"PYTHONPATH": "/tmp/packages"}, timeout=WAIT)
        report.write_text(sandbox.read_file("/workspace/coverage.xml"))
        return tested.exit_code == 0


@pytest.mark.bwrap
def test_a_test_runner_says_whether_tests_pass(where, api, make_project, tmp_path):
    report = tmp_path / "coverage.xml"
    assert run_ci_tests(api, make_project(WEB), report, **where.options) is True
    assert report.read_text() == "<coverage tests='1'/>\n"


@pytest.mark.bwrap
def test_a_test_runner_says_that_tests_fail(where, make_project, tmp_path):
    broken = {**WEB, "app.py": "def answer():\n    return 41\n"}
    path = make_project(broken)
    assert run_ci_tests(ringfence, path, tmp_path / "coverage.xml", **where.options) is False
    assert not os.path.exists(os.path.join(path, "coverage.xml")), "the directory is as it was"


@pytest.mark.bwrap
def test_a_test_runner_says_that_an_install_failed(where, make_project, tmp_path):
    path = make_project({**WEB, "requirements.txt": "no-such-package==1.0\n"})
    with pytest.raises(RuntimeError, match="no-such-package"):
        run_ci_tests(ringfence, path, tmp_path / "coverage.xml", **where.options)


# ---- an agent -----------------------------------------------------------------------------------

AGENT = """
import os, pathlib

for name in ("output/deep", "logs"):
    pathlib.Path(name).mkdir(parents=True, exist_ok=True)
pathlib.Path("output/report.md").write_text(os.environ["TASK"])
pathlib.Path("output/deep/data.txt").write_text("data")
pathlib.Path("logs/run.log").write_text("began\\n")
print("done; sees", sorted(os.listdir(".")))
"""


def run_agent_task(sdk, path, task, **server):
    """Lets an agent work, and collects all it wrote where it may write."""
    with sdk.Sandbox.from_local(
            path,
            preset="agent-safe",
            permissions=[PermissionRule(pattern="/logs/**", permission=Permission.WRITE)],
            **server) as sandbox:
        with sandbox.session() as session:
            session.exec("cd /workspace")
            session.exec(f"export TASK='{task}'")
            result = session.exec("python3 agent.py", timeout=300)
        outputs = {name: sandbox.read_file(f"/workspace/output/{name}")
                   for name in sandbox.list_files("/output", recursive=True)}
        logs = [sandbox.read_file(f"/workspace/logs/{name}")
                for name in sandbox.list_files("/logs", recursive=True)]
        return result, outputs, logs


def test_an_agent_whose_output_is_collected(where, api, make_project):
    path = make_project({"agent.py": AGENT, "secrets/key": "k", ".env.local": "K=1"})
    result, outputs, logs = run_agent_task(api, path, "look around", **where.options)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "done; sees ['agent.py', 'logs', 'output']\n"
    assert outputs == {"report.md": "look around", "deep/data.txt": "data"}
    assert logs == ["began\n"]


def test_an_agent_that_goes_too_far_is_found_out(where, api, make_project):
    prying = "open('logs/run.log', 'w')\nopen('secrets/key')\n"
    path = make_project({"agent.py": prying, "logs/.keep": "", "output/.keep": "",
                         "secrets/key": "k"})
    result, outputs, _ = run_agent_task(api, path, "pry", **where.options)
    assert result.exit_code == 1 and "No such file" in result.stderr
    assert [(each.path, each.level) for each in result.denials] == [("/secrets", "none")]
    assert list(outputs) == [".keep"]


# ---- a build in stages --------------------------------------------------------------------------


def multi_stage_build(sdk, path, target, **server):
    """Everything in one session; what was built is written to `target`."""
    with sdk.Sandbox.from_local(path, preset="development", **server) as sandbox:
        with sandbox.session() as session:
            installed = session.exec("make deps", timeout=WAIT)
            if installed.exit_code != 0:
                raise RuntimeError(f"the install failed: {installed.stderr}")
            session.exec("make lint", timeout=WAIT).raise_on_error()
            tested = session.exec("make test", timeout=WAIT)
            session.exec("make build", timeout=WAIT).raise_on_error()
        built = sandbox.list_files("/workspace/dist", recursive=True)
        for name in built:
            local = target / name
            local.parent.mkdir(parents=True, exist_ok=True)
            local.write_bytes(sandbox.read_file_bytes(f"/workspace/dist/{name}"))
        return tested.exit_code == 0, sorted(built)


def test_a_build_in_stages_whose_products_are_collected(where, api, make_project, tmp_path):
    passed, built = multi_stage_build(
        api, make_project(WEB), tmp_path / "build", **where.options)
    assert passed and built == ["app.py", "js/bundle.js"]
    assert (tmp_path / "build/app.py").read_text() == WEB["app.py"]
    assert (tmp_path / "build/js/bundle.js").read_text() == "bundle\n"


def test_a_build_that_cannot_begin_says_why(where, make_project, tmp_path):
    path = make_project({**WEB, "Makefile": "deps:\n\t@echo no network >&2; exit 1\n"})
    with pytest.raises(RuntimeError, match="no network"):
        multi_stage_build(ringfence, path, tmp_path / "build", **where.options)
    assert not (tmp_path / "build").exists()


def test_products_can_be_collected_at_once(open_sandbox, api, tmp_path):
    sandbox = open_sandbox(WEB, sdk=api)
    sandbox.run("make deps build", raise_on_error=True)
    assert sandbox.download_dir("/dist", tmp_path / "build") == 2
    assert (tmp_path / "build/js/bundle.js").read_text() == "bundle\n"
