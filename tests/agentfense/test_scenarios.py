"""The eight scenarios of the published client's own live test, and the rules of its demo."""

from datetime import timedelta

import grpc
import pytest
from agentfense import (
    CommandExecutionError,
    CommandTimeoutError,
    ResourceLimits,
    RuntimeType,
    Sandbox,
    SandboxError,
    extend_preset,
)


def denied(result):
    return result.exit_code != 0 and "Permission denied" in result.stderr


def missing(result):
    return result.exit_code != 0 and "No such file" in result.stderr


def test_1_the_default_shows_names_and_no_contents(make_project, endpoint):
    path = make_project({"hello.py": "print('hello')\n", "lib/a.txt": "a\n"})
    with Sandbox.from_local(path, endpoint=endpoint) as sandbox:
        assert sandbox.run("ls").stdout == "hello.py\nlib\n"
        refused = sandbox.run("python3 hello.py")
        assert denied(refused) and refused.stdout == ""


def test_2_rules_of_every_level_next_to_each_other(open_sandbox):
    sandbox = open_sandbox(
        {
            "public/readme.txt": "public\n",
            "docs/guide.txt": "guide\n",
            "metadata/info.txt": "info\n",
            "secrets/key.txt": "key\n",
        },
        preset="read-only",
        permissions=[
            {"pattern": "/docs/**", "permission": "write"},
            {"pattern": "/metadata/**", "permission": "view"},
            {"pattern": "/secrets/**", "permission": "none"},
        ],
    )
    assert sandbox.run("cat public/readme.txt").stdout == "public\n"
    assert denied(sandbox.run("echo x > public/readme.txt"))
    assert (
        sandbox.run("echo 'new content' > docs/new.txt; cat docs/new.txt").stdout == "new content\n"
    )
    assert sandbox.run("ls metadata").stdout == "info.txt\n"
    assert denied(sandbox.run("cat metadata/info.txt"))
    assert missing(sandbox.run("ls secrets"))
    assert sandbox.run("ls | grep secrets").stdout == ""


def test_3_a_session_keeps_directory_variables_and_its_temporary_files(open_sandbox):
    with open_sandbox({"src/a.txt": "a\n"}).session() as session:
        session.exec("cd src")
        assert session.exec("pwd").stdout == "/workspace/src\n"
        session.exec("export GREETING='Hello Session'")
        assert session.exec("echo $GREETING").stdout == "Hello Session\n"
        session.exec("echo kept > /tmp/test.txt")
        assert session.exec("cat /tmp/test.txt").stdout == "kept\n"


def test_4_agent_safe_hides_secrets_and_can_be_extended(client, codebase, endpoint):
    client.upload_file(codebase.id, ".env", b"KEY=1\n")
    client.upload_file(codebase.id, "app.py", b"print('app')\n")
    with Sandbox.from_codebase(codebase.id, preset="agent-safe", endpoint=endpoint) as sandbox:
        assert sandbox.run("ls -A").stdout == "app.py\n"
        assert missing(sandbox.run("cat .env"))
        assert sandbox.run("python3 app.py").stdout == "app\n"
    rules = extend_preset("agent-safe", additions=[{"pattern": "/extra/**", "permission": "write"}])
    assert len(rules) == 10
    assert len(client.create_sandbox(codebase.id, permissions=rules).permissions) == 10


def test_5_time_limits_failures_and_exit_codes(shared):
    with pytest.raises(CommandTimeoutError):
        shared.exec("sleep 5", timeout=timedelta(seconds=0.5))
    with pytest.raises(CommandExecutionError, match="1"):
        shared.run("python3 -c 'raise SystemExit(1)'", raise_on_error=True)
    assert shared.run("exit 42").exit_code == 42


def test_6_files_go_in_and_out(open_sandbox):
    sandbox = open_sandbox({"a.txt": "first\n"})
    assert sandbox.read_file("/workspace/a.txt") == "first\n"
    sandbox.write_file("/workspace/b.txt", "second\n")
    assert sandbox.run("cat b.txt").stdout == "second\n"
    assert sandbox.list_files("/workspace") == ["a.txt", "b.txt"]


def test_7_every_step_by_hand(client, codebase):
    client.upload_file(codebase.id, "hello.py", b"print('Hello!')\n")
    sandbox = client.create_sandbox(
        codebase.id, permissions=[{"pattern": "**/*", "permission": "read"}]
    )
    client.start_sandbox(sandbox.id)
    assert client.exec(sandbox.id, "python3 /workspace/hello.py").stdout == "Hello!\n"
    client.stop_sandbox(sandbox.id)
    client.destroy_sandbox(sandbox.id)


def test_8_a_server_without_docker_says_so(make_project, endpoint, client):
    before = {each.id for each in client.list_codebases()}
    with pytest.raises(SandboxError, match="(?i)docker") as caught:
        Sandbox.from_local(
            make_project({"a.txt": "a\n"}),
            preset="agent-safe",
            runtime=RuntimeType.DOCKER,
            image="python:3.11-slim",
            resources=ResourceLimits(memory_bytes=512 << 20, pids_limit=100),
            endpoint=endpoint,
        )
    assert caught.value.grpc_code == grpc.StatusCode.FAILED_PRECONDITION.value
    assert {each.id for each in client.list_codebases()} == before


# ---- the demo with tickets ---------------------------------------------------------------------

TICKETS = [
    {"pattern": "TKT-001*", "permission": "write"},
    {"pattern": "TKT-002*", "permission": "read"},
    {"pattern": "TKT-003*", "permission": "view"},
    {"pattern": "secret*", "permission": "none"},
]


@pytest.fixture
def tickets(open_sandbox):
    files = {f"TKT-00{n}.md": f"ticket {n}\nstatus: open\n" for n in (1, 2, 3)}
    return open_sandbox({**files, "secret.txt": "s\n"}, preset="view-only", permissions=TICKETS)


def test_the_agent_sees_three_tickets_and_no_secret(tickets):
    assert tickets.run("ls -A").stdout == "TKT-001.md\nTKT-002.md\nTKT-003.md\n"


def test_the_first_ticket_can_be_read_and_changed(tickets):
    assert tickets.run("cat TKT-001.md").stdout == "ticket 1\nstatus: open\n"
    changed = tickets.run(
        'text=$(cat TKT-001.md | sed s/open/done/); echo "$text" > TKT-001.md; tail -1 TKT-001.md'
    )
    assert (changed.stdout, changed.stderr) == ("status: done\n", "")


def test_the_second_ticket_can_be_read_and_not_changed(tickets):
    assert tickets.run("head -1 TKT-002.md").stdout == "ticket 2\n"
    assert denied(tickets.run("echo more >> TKT-002.md"))


def test_the_third_ticket_can_be_seen_and_not_read(tickets):
    assert tickets.run("stat -c %s TKT-003.md").stdout == "22\n"
    assert denied(tickets.run("cat TKT-003.md"))


def test_the_secret_does_not_exist(tickets):
    assert missing(tickets.run("cat secret.txt"))
    assert missing(tickets.run("stat secret.txt"))


def test_an_editor_that_needs_a_second_file_is_told_why_it_cannot(tickets):
    """`sed -i` writes beside the file, where only names may be seen."""
    assert denied(tickets.run("sed -i s/open/done/ TKT-001.md"))
    assert tickets.run("tail -1 TKT-001.md").stdout == "status: open\n"
