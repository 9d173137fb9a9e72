"""Uses of everything that a sandbox, and what is run in one, can do."""

import warnings
from datetime import timedelta

import ringfence
from ringfence import Permission, ProcessStatus, SandboxStatus, SessionStatus

from calls import uses
from in_image import RUNTIME

PATIENCE = 60
"""Seconds for what comes at once on a machine that has time."""


def until(name):
    """Shell: waits for a file that tells what has happened."""
    return f"until [ -e /tmp/{name} ]; do sleep 0.02; done"


def lone(it, **options):
    """A sandbox of its own, on the codebase of the shared one."""
    return it.Sandbox.from_codebase(
        it.sandbox.codebase_id, preset="full-access", client=it.client, **options)


@uses("Sandbox", "from_local from_codebase id codebase_id codebase status runtime info permissions")
def making_one(it):
    with it.Sandbox.from_local(
            it.root, labels={"a": "b"}, auto_start=False, client=it.client) as made:
        assert made.id.startswith("sb_") and made.codebase_id.startswith("cb_")
        assert made.codebase.name == it.root.name and made.codebase.file_count == 3
        assert made.status is SandboxStatus.PENDING and made.runtime.value == RUNTIME
        assert made.info.labels == {"a": "b"}
        assert made.permissions == ringfence.get_preset("view-only")
        with it.Sandbox.from_codebase(made.codebase_id, auto_start=False, client=it.client) as other:
            assert other.codebase_id == made.codebase_id


@uses("Sandbox", "connect refresh start stop destroy close")
def living(it):
    with lone(it, auto_start=False) as made:
        with it.Sandbox.connect(made.id, client=it.client) as connected:
            assert connected.start().status is SandboxStatus.RUNNING
            assert made.status is SandboxStatus.PENDING
            assert made.refresh().status is SandboxStatus.RUNNING
            assert connected.stop().refresh().status is SandboxStatus.STOPPED
            connected.close()
        assert made.refresh().id == made.id
    assert made.id not in [each.id for each in it.client.list_sandboxes()]
    again = lone(it, auto_start=False)
    again.destroy(delete_codebase=False)
    assert again.id not in [each.id for each in it.client.list_sandboxes()]


@uses("Sandbox", "run exec exec_stream")
def commands(it):
    result = it.sandbox.run("echo $A; pwd", env={"A": "b"}, workdir="/workspace/src")
    assert (result.stdout, result.exit_code) == ("b\n/workspace/src\n", 0)
    result = it.sandbox.exec("cat; exit 3", stdin="in", timeout=timedelta(seconds=PATIENCE))
    assert (result.stdout, result.exit_code) == ("in", 3)
    assert b"".join(it.sandbox.exec_stream("echo a; echo b")) == b"a\nb\n"


@uses("ExecStream", "tagged exit_code close")
def streams(it):
    with it.sandbox.exec_stream("echo out; echo err >&2; exit 3") as stream:
        assert sorted(stream.tagged()) == [("stderr", b"err\n"), ("stdout", b"out\n")]
        assert stream.exit_code == 3 and stream.result.exit_code == 3
    stream = it.sandbox.exec_stream("echo begun; sleep 600")
    for piece in stream:
        assert piece == b"begun\n"
        break
    stream.close()
    assert stream.exit_code is None


@uses("Sandbox", "session sessions")
@uses("SessionWrapper", "id name sandbox_id shell status cwd refresh exec exec_stream logs close")
def sessions(it):
    with it.sandbox.session(env={"A": "b"}, name="kept", cwd="/workspace/src") as session:
        assert session.id in [each.id for each in it.sandbox.sessions()]
        assert (session.name, session.sandbox_id) == ("kept", it.sandbox.id)
        assert (session.shell, session.status) == ("/bin/sh", SessionStatus.ACTIVE)
        assert session.cwd == "/workspace/src"
        assert session.exec("echo $A; cd ..").stdout == "b\n" and session.cwd == "/workspace"
        assert b"".join(session.exec_stream("pwd")) == b"/workspace\n"
        assert session.refresh().status is SessionStatus.ACTIVE
        assert session.exec(f"{{ {until('go')}; echo job; touch /tmp/said; }} &").success
        assert it.sandbox.run(f"touch /tmp/go; {until('said')}", timeout=PATIENCE).success
        assert next(iter(session.logs(follow=True))) == "job"
        session.close()
        assert session.status is SessionStatus.CLOSED
    assert it.sandbox.sessions() == []


@uses("Sandbox", "start_process processes")
@uses("Process", "id pid command info status exit_code refresh logs wait_for_log wait kill")
def processes(it):
    with it.sandbox.session(env={"A": "b"}) as session:
        process = it.sandbox.start_process("echo $A; sleep 600", session=session, name="sleeper")
        assert process.wait_for_log("b", timeout=PATIENCE) == "b"
        assert (process.id, process.command) == ("sleeper", "echo $A; sleep 600")
        assert process.pid == process.info.pid > 1 and process.exit_code is None
        assert process.status is ProcessStatus.RUNNING
        assert "sleeper" in [each.id for each in it.sandbox.processes()]
        process.kill("SIGKILL")
        assert process.wait(PATIENCE) == process.refresh().exit_code == 137
        assert list(process.logs()) == ["b"]


SERVER = "python3 -m http.server --bind 127.0.0.1 8123"


@uses("Process", "wait_for_port")
@uses("LogStream", "tagged read close")
def a_server(it):
    server = it.sandbox.start_process(SERVER)
    server.wait_for_port(8123, path="/", timeout=PATIENCE)
    with server.logs(follow=True) as lines:
        stream, data = next(iter(lines.tagged()))
        assert stream in ("stdout", "stderr") and lines.offset == len(data) > 0
        lines.close()
    assert "GET / HTTP" in server.logs().read()
    server.kill()
    server.wait(PATIENCE)


@uses("Sandbox", "terminal terminals")
@uses("Terminal", "id pid write read expect resize wait close exit_code")
def terminals(it):
    with it.sandbox.terminal(cols=100, rows=30, env={"PS1": "? "}) as terminal:
        assert terminal.id in [each.id for each in it.sandbox.terminals()] and terminal.pid > 1
        terminal.expect("? ", timeout=PATIENCE)
        terminal.resize(70, 20)
        terminal.write("stty size\n")
        assert "20 70" in terminal.expect("20 70", timeout=PATIENCE)
        terminal.write("exit 3\n")
        assert terminal.wait(PATIENCE) == terminal.exit_code == 3
        assert "exit" in terminal.read()
        terminal.close()


@uses("Sandbox", "read_file read_file_bytes write_file list_files stat exists mkdir symlink remove rename")
def files(it):
    with lone(it, auto_start=False) as made:
        made.write_file("new/a.txt", "text", mode=0o755)
        assert (made.read_file("/workspace/new/a.txt"), made.read_file_bytes("/new/a.txt")) == (
            "text", b"text")
        made.mkdir("new/below")
        made.symlink("new/link", "a.txt")
        assert made.list_files("new") == ["a.txt", "below/", "link"]
        assert made.list_files(recursive=True) == [
            "hello.txt", "new/a.txt", "new/link", "src/a.py", "src/b.py"]
        about = made.stat("new/a.txt")
        assert (about.kind, about.size, about.mode & 0o777) == ("file", 4, 0o755)
        assert made.stat("new/link").target == "a.txt"
        made.rename("new/a.txt", "new/b.txt")
        made.remove("new/link")
        assert made.exists("new/b.txt") and not made.exists("new/link")
        made.remove("new", recursive=True)
        assert not made.exists("new")


@uses("Sandbox", "upload_dir download_dir")
def directories(it):
    target = it.root.parent / f"fetched-{it.world}"
    with lone(it, auto_start=False) as made, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert made.upload_dir(it.root / "src", "copy") == 2
        assert made.download_dir("copy", target) == 2
    assert sorted(path.name for path in target.iterdir()) == ["a.py", "b.py"]


@uses("Sandbox", "changes diff apply snapshot snapshots restore fork")
def layers(it):
    with lone(it) as made:
        made.write_file("hello.txt", "first\n")
        kept = made.snapshot("first")
        assert [(each.id, each.name) for each in made.snapshots()] == [(kept.id, "first")]
        made.write_file("hello.txt", "second\n")
        assert [(change.kind, change.path) for change in made.changes()] == [
            ("modified", "/hello.txt")]
        assert "+second\n" in made.diff()
        with made.fork(labels={"fork": "yes"}) as fork:
            assert fork.run("cat hello.txt").stdout == "second\n"
            assert fork.info.labels["fork"] == "yes"
        made.stop()
        assert [change.path for change in made.apply(dry_run=True).applied] == ["/hello.txt"]
        assert made.restore(kept).read_file("hello.txt") == "first\n"
    it.client.delete_snapshot(kept.id)


@uses("Sandbox", "policy set_policy explain audit verify_audit")
@uses("AuditStream", "close")
def rules_and_record(it):
    with lone(it) as made:
        assert made.policy() == ringfence.get_preset("full-access")
        rules = made.set_policy("read-only", [{"pattern": "/src/**", "permission": "none"}])
        assert made.policy() == rules and made.info.permissions != rules
        found = made.explain("/src/a.py")
        assert (found.permission, found.rule.pattern) == (Permission.NONE, "/src/**")
        assert made.run("cat src/a.py").exit_code != 0
        with made.audit(denied=True) as denied:
            assert "/src" in [event.data["path"] for event in denied]
        followed = made.audit(follow=True)
        assert next(iter(followed)).sequence > 0
        followed.close()
        assert made.verify_audit().intact and made.verify_audit().events > 0
