"""Every call that takes an id, and everything there is that has one."""

import dataclasses
import itertools

from wire import v1
import wire

KINDS = ("codebase", "sandbox", "session", "process", "terminal", "snapshot", "token")
# A session can be named where something starts in it.
FIELDS = {f"{kind}_id": kind for kind in KINDS} | {"session": "session"}
# Of no thing that somebody has.
LABELS = {"owner_id", "request_id"}


@dataclasses.dataclass
class Ids:
    """One of each kind."""

    codebase: str
    sandbox: str
    session: str
    process: str
    terminal: str
    snapshot: str
    token: str

    def but(self, kinds, other):
        """The same with some of another."""
        return dataclasses.replace(self, **{kind: getattr(other, kind) for kind in kinds})


_fresh = itertools.count(0x0123_4567_89AB_0000)


def nowhere():
    """Ids as they look, of what never was."""
    each = {"codebase": "cb", "sandbox": "sb", "session": "sess", "snapshot": "snap", "token": "tok",
            "process": "proc", "terminal": "term"}
    return Ids(**{kind: f"{prefix}_{next(_fresh):016x}" for kind, prefix in each.items()})


def everything(client):
    """Something of each kind that belongs to the client's account, in a running sandbox."""
    codebase = client.new_codebase(secret_txt=b"secret\n")
    sandbox = client.new_sandbox(codebase)
    session = client.sandbox.CreateSession(v1.CreateSessionRequest(sandbox_id=sandbox)).id
    process = client.process.StartProcess(
        v1.StartProcessRequest(sandbox_id=sandbox, command="echo secret; exec sleep 1000")).id
    terminal = client.terminal.OpenTerminal(v1.OpenTerminalRequest(
        sandbox_id=sandbox, command="echo secret; exec sleep 1000", record=True)).id
    snapshot = client.workspace.CreateSnapshot(v1.CreateSnapshotRequest(sandbox_id=sandbox)).id
    return Ids(codebase, sandbox, session, process, terminal, snapshot, nowhere().token)


def methods():
    """`SandboxService.Exec` and its descriptor, for all of them."""
    for module in wire._messages:
        for service in module.DESCRIPTOR.services_by_name.values():
            for method in service.methods:
                yield f"{service.name}.{method.name}", method


def fields_of(message, seen=()):
    """The names of all fields, to the innermost."""
    for field in message.fields:
        yield field.name
        inner = field.message_type
        if inner is not None and inner.full_name not in seen:
            yield from fields_of(inner, (*seen, message.full_name))


def kinds_of(method):
    return sorted({FIELDS[name] for name in fields_of(method.input_type) if name in FIELDS})


# What is said beside the ids, so that nothing but them can be wrong. `UploadFiles`, `StageFiles`,
# `WriteFile`, `ExecAttached` and `AttachTerminal` have messages of their own below.
BESIDE = {
    "CodebaseService.GetCodebase": {}, "CodebaseService.DeleteCodebase": {},
    "CodebaseService.DownloadFile": {"file_path": "secret.txt"},
    "CodebaseService.ListFiles": {"recursive": True},
    "CodebaseService.NegotiateUpload": {"entries": []},
    "CodebaseService.CommitUpload": {"entries": []},
    "SandboxService.CreateSandbox": {"start": True}, "SandboxService.GetSandbox": {},
    "SandboxService.ListSandboxes": {}, "SandboxService.StartSandbox": {},
    "SandboxService.StopSandbox": {}, "SandboxService.DestroySandbox": {},
    "SandboxService.Exec": {"command": "cat secret.txt"},
    "SandboxService.ExecStream": {"command": "cat secret.txt"},
    "SandboxService.CreateSession": {}, "SandboxService.GetSession": {},
    "SandboxService.ListSessions": {}, "SandboxService.DestroySession": {},
    "SandboxService.SessionExec": {"command": "cat secret.txt"},
    "SandboxService.SessionExecStream": {"command": "cat secret.txt"},
    "SandboxService.SessionLog": {}, "SandboxService.LeaseSandbox": {},
    "SandboxService.RenewLease": {},
    "ProcessService.StartProcess": {"command": "touch /workspace/hostile"},
    "ProcessService.GetProcess": {}, "ProcessService.ListProcesses": {},
    "ProcessService.ProcessLog": {}, "ProcessService.WaitProcess": {"text": "secret"},
    "ProcessService.KillProcess": {}, "ProcessService.KillAllProcesses": {},
    "TerminalService.OpenTerminal": {}, "TerminalService.ListTerminals": {},
    "TerminalService.ResizeTerminal": {"rows": 7, "columns": 7}, "TerminalService.CloseTerminal": {},
    "TerminalService.TerminalRecording": {},
    "WorkspaceService.ReadFile": {"path": "secret.txt"},
    "WorkspaceService.StatFile": {"path": "secret.txt"},
    "WorkspaceService.ListDirectory": {}, "WorkspaceService.MakeDirectory": {"path": "hostile"},
    "WorkspaceService.MakeSymlink": {"path": "hostile", "target": "secret.txt"},
    "WorkspaceService.RemoveFile": {"path": "secret.txt"},
    "WorkspaceService.RenameFile": {"from": "secret.txt", "to": "hostile"},
    "WorkspaceService.Changes": {}, "WorkspaceService.Diff": {}, "WorkspaceService.Apply": {},
    "WorkspaceService.CreateSnapshot": {}, "WorkspaceService.ListSnapshots": {},
    "WorkspaceService.DeleteSnapshot": {}, "WorkspaceService.RestoreSnapshot": {},
    "WorkspaceService.ForkSandbox": {}, "WorkspaceService.GetPolicy": {},
    "WorkspaceService.SetPolicy": {"preset": "full-access"},
    "WorkspaceService.Explain": {"paths": ["/secret.txt"]},
    "AuditService.Audit": {}, "AuditService.VerifyAudit": {}, "TokenService.RevokeToken": {},
}


def _upload(ids):
    begin = v1.UploadChunk.Metadata(codebase_id=ids.codebase, file_path="secret.txt")
    return [v1.UploadChunk(metadata=begin), v1.UploadChunk(data=b"hostile")]


def _stage(ids):
    piece = v1.StageChunk.Piece(data=b"hostile", end=True)
    return [v1.StageChunk(codebase_id=ids.codebase, pieces=[piece])]


def _write(ids):
    begin = v1.WriteFileChunk.Begin(sandbox_id=ids.sandbox, path="secret.txt")
    return [v1.WriteFileChunk(begin=begin), v1.WriteFileChunk(data=b"hostile")]


def _attached(ids):
    asked = v1.SessionExecRequest(session_id=ids.session, sandbox_id=ids.sandbox, command="true")
    return [v1.ExecInput(session_command=asked)]


def _attach(ids):
    asked = v1.TerminalInput.Attach(sandbox_id=ids.sandbox, terminal_id=ids.terminal)
    return [v1.TerminalInput(attach=asked), v1.TerminalInput(data=b"hostile\n")]


STREAMED = {"CodebaseService.UploadFiles": _upload, "CodebaseService.StageFiles": _stage,
            "WorkspaceService.WriteFile": _write,
            "SandboxService.ExecAttached": _attached, "TerminalService.AttachTerminal": _attach}


def message_of(name, method, ids):
    """The one message of a call that is not streamed."""
    known = {field.name: getattr(ids, FIELDS[field.name])
             for field in method.input_type.fields if field.name in FIELDS}
    return getattr(v1, method.input_type.name)(**known, **BESIDE[name])
