"""Uses of every call of the API."""

import signal

import pytest
import ringfence
from ringfence import ProcessStatus, SandboxStatus
from ringfence._wire import v1

from calls import uses
from calls_of_sandbox import PATIENCE


@uses("SandboxClient", "info close")
def connecting(it):
    with it.another_client() as client:
        assert client.info().account == "local" and client.info().local
        client.close()


@uses("SandboxClient", "create_codebase get_codebase list_codebases delete_codebase upload_file "
      "upload_directory download_file list_files")
def codebases(it):
    made = it.client.create_codebase("kept", f"owner-{it.world}")
    try:
        stored = it.client.upload_file(made.id, "a/b.txt", b"text", mode=0o600)
        assert (stored.file_path, stored.size) == ("a/b.txt", 4)
        assert it.client.download_file(made.id, "a/b.txt") == b"text"
        assert [file.path for file in it.client.list_files(made.id, "a")] == ["b.txt"]
        assert it.client.upload_directory(made.id, str(it.root)).file_count == 3
        assert it.client.get_codebase(made.id).file_count == 3
        assert [each.id for each in it.client.list_codebases(f"owner-{it.world}")] == [made.id]
    finally:
        it.client.delete_codebase(made.id)
    assert it.client.list_codebases(f"owner-{it.world}") == []


@uses("SandboxClient", "create_sandbox get_sandbox list_sandboxes start_sandbox stop_sandbox "
      "destroy_sandbox fork_sandbox renew_lease")
def sandboxes(it):
    labels = {"world": it.world}
    made = it.client.create_sandbox(it.sandbox.codebase_id, labels=labels, leased=True)
    it.client.renew_lease(made.id)
    assert it.client.start_sandbox(made.id).status is SandboxStatus.RUNNING
    assert it.client.stop_sandbox(made.id).status is SandboxStatus.STOPPED
    assert it.client.get_sandbox(made.id).labels == labels
    fork = it.client.fork_sandbox(made.id, labels=labels)
    found = it.client.list_sandboxes(labels=labels)
    assert {each.id for each in found} == {made.id, fork.id}
    stopped = it.client.list_sandboxes(labels=labels, status=SandboxStatus.STOPPED)
    assert [each.id for each in stopped] == [made.id]
    for each in (fork, made):
        it.client.destroy_sandbox(each.id, keep_codebase=True)
    assert it.client.list_sandboxes(labels=labels) == []


@uses("SandboxClient", "exec exec_stream exec_attached")
@uses("AttachedExec", "write end_input signal cancel tagged exit_code close")
def commands(it):
    assert it.client.exec(it.sandbox.id, "cat", stdin=b"\xff").stdout_bytes == b"\xff"
    assert b"".join(it.client.exec_stream(it.sandbox.id, "echo a")) == b"a\n"
    with it.client.exec_attached(it.sandbox.id, "cat; exit 3", timeout=PATIENCE) as cat:
        cat.write("typed\n")
        cat.end_input()
        assert list(cat.tagged()) == [("stdout", b"typed\n")] and cat.exit_code == 3
    for end in (lambda each: each.signal(signal.SIGTERM), lambda each: each.cancel()):
        with it.client.exec_attached(it.sandbox.id, "echo begun; sleep 600") as asleep:
            pieces = iter(asleep)
            assert next(pieces) == b"begun\n"
            end(asleep)
            assert list(pieces) == [] and asleep.exit_code == 143
            asleep.close()


@uses("SandboxClient", "create_session session get_session list_sessions destroy_session session_exec "
      "session_exec_stream session_log")
def sessions(it):
    made = it.client.create_session(it.sandbox.id, env={"A": "b"})
    with it.client.session(it.sandbox.id, name="other") as other:
        listed = {each.id for each in it.client.list_sessions(it.sandbox.id)}
        assert listed == {made.id, other.id}
    assert it.client.session_exec(made.id, "cat; cd src", stdin="x").stdout == "x"
    assert it.client.get_session(made.id).cwd == "/workspace/src"
    assert b"".join(it.client.session_exec_stream(made.id, "echo $A")) == b"b\n"
    assert it.client.session_log(made.id).read() == ""
    it.client.destroy_session(made.id)
    assert it.client.list_sessions(it.sandbox.id) == []


@uses("SandboxClient", "start_process get_process list_processes kill_process kill_all_processes "
      "process_log wait_process")
def processes(it):
    made = it.client.start_process(it.sandbox.id, "echo up; sleep 600")
    wanted = v1.WaitProcessRequest(sandbox_id=it.sandbox.id, process_id=made.id, text="up")
    assert it.client.wait_process(wanted)[1] == "up"
    assert it.client.get_process(it.sandbox.id, made.id).status is ProcessStatus.RUNNING
    assert made.id in [each.id for each in it.client.list_processes(it.sandbox.id)]
    assert it.client.process_log(it.sandbox.id, made.id).read() == "up\n"
    it.client.kill_process(it.sandbox.id, made.id, signal.SIGKILL)
    assert made.wait(PATIENCE) == 137
    last = it.client.start_process(it.sandbox.id, "sleep 600")
    assert it.client.kill_all_processes(it.sandbox.id) == 1
    assert last.wait(PATIENCE) != 0


@uses("SandboxClient", "open_terminal attach_terminal list_terminals resize_terminal close_terminal "
      "terminal_recording")
def terminals(it):
    made = it.client.open_terminal(it.sandbox.id, "echo shown; cat", record=True)
    it.client.resize_terminal(it.sandbox.id, made.id, 70, 20)
    made.expect("shown", timeout=PATIENCE)
    other = it.client.attach_terminal(it.sandbox.id, made.id)
    assert "shown" in other.expect("shown", timeout=PATIENCE)
    listed = {each.id: each for each in it.client.list_terminals(it.sandbox.id)}
    assert (listed[made.id].cols, listed[made.id].rows) == (70, 20)
    assert b"shown" in it.client.terminal_recording(it.sandbox.id, made.id)
    it.client.close_terminal(it.sandbox.id, made.id)
    other.close()
    made.close()


@uses("SandboxClient", "read_sandbox_file write_sandbox_file stat_sandbox_file list_sandbox_files "
      "make_sandbox_directory make_sandbox_symlink remove_sandbox_file rename_sandbox_file")
def files(it):
    box = it.sandbox.id
    assert it.client.make_sandbox_directory(box, "new").is_dir
    assert it.client.write_sandbox_file(box, "new/a", b"0123456789").size == 10
    assert it.client.read_sandbox_file(box, "new/a", offset=2, length=3) == b"234"
    assert it.client.make_sandbox_symlink(box, "new/l", "a").target == "a"
    assert it.client.rename_sandbox_file(box, "new/a", "new/b").name == "b"
    assert [each.name for each in it.client.list_sandbox_files(box, "new")] == ["b", "l"]
    assert it.client.stat_sandbox_file(box, "new/b").full_path == "/new/b"
    it.client.remove_sandbox_file(box, "new", recursive=True)
    assert "new" not in [each.name for each in it.client.list_sandbox_files(box)]


@uses("SandboxClient", "changes diff apply create_snapshot list_snapshots delete_snapshot "
      "restore_snapshot")
def layers(it):
    made = it.client.create_sandbox(
        it.sandbox.codebase_id, [{"pattern": "**", "permission": "write"}])
    kept = it.client.create_snapshot(made.id, "empty")
    it.client.write_sandbox_file(made.id, "hello.txt", b"changed\n")
    assert [each.path for each in it.client.changes(made.id)] == ["/hello.txt"]
    assert "+changed" in it.client.diff(made.id)
    assert not it.client.apply(made.id, dry_run=True).written
    assert [each.id for each in it.client.list_snapshots(made.id)] == [kept.id]
    assert kept.id in [
        each.id for each in it.client.list_snapshots(codebase_id=made.codebase_id)]
    it.client.restore_snapshot(made.id, kept.id)
    assert it.client.changes(made.id) == []
    it.client.destroy_sandbox(made.id, keep_codebase=True)
    it.client.delete_snapshot(kept.id)
    assert it.client.list_snapshots(codebase_id=made.codebase_id) == []


@uses("SandboxClient", "get_policy set_policy explain audit verify_audit")
def rules_and_record(it):
    rules = ringfence.get_preset("full-access")
    assert it.client.set_policy(it.sandbox.id, rules) == it.client.get_policy(it.sandbox.id) == rules
    found = it.client.explain(it.sandbox.id, ["/a", "/b"])
    assert [(each.path, each.permission.value) for each in found] == [("/a", "write"), ("/b", "write")]
    kinds = [event.kind for event in it.client.audit(it.sandbox.id)]
    assert kinds and it.client.verify_audit(it.sandbox.id).events >= len(kinds)


@uses("SandboxClient", "fetch_image")
def images(it):
    with pytest.raises(ringfence.UnsupportedError, match="no container engine|no image"):
        it.client.fetch_image("python:3.11-slim", print)


@uses("SandboxClient", "create_token list_tokens revoke_token")
def tokens(it):
    made = it.client.create_token(f"account-{it.world}", "a label")
    assert made.secret.startswith("rf_") and made.label == "a label"
    assert [each.id for each in it.client.list_tokens(made.account)] == [made.id]
    it.client.revoke_token(made.id)
    assert [each.revoked_at for each in it.client.list_tokens(made.account)] != [None]
