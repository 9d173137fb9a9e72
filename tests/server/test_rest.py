"""Every route of REST does what it says."""

import base64
import json
import re

import websocket

from in_image import IMAGE
from streams import Streaming


def text_of(data):
    return base64.b64decode(data).decode()


class Walk(Streaming):
    """Notes which routes were called, and lets only good answers pass."""

    called = set()

    def __init__(self, endpoint, templates):
        super().__init__(endpoint)
        self._templates = templates

    def _note(self, verb, path):
        self.called.add((verb, template_of(path.partition("?")[0], self._templates)))

    def raw(self, verb, path, *rest):
        self._note(verb, path)
        return super().raw(verb, path, *rest)

    def __call__(self, verb, path, /, **fields):
        status, said = super().__call__(verb, path, **fields)
        assert status == 200, (verb, path, said)
        return said

    def open(self, verb, path, /, events=False, **fields):
        self._note(verb, path)
        return super().open(verb, path, events, **fields)

    def attached(self, path):
        self._note("GET", path)
        return websocket.create_connection(f"ws://{self._endpoint}{path}", timeout=60)

    def bytes(self, verb, path, body=None):
        status, _, said = self.raw(verb, path, body)
        assert status == 200, (verb, path, said)
        return said

    def form(self, one, files):
        """Each file is a part, and its name is that of the part's file."""
        head = '--edge\r\ncontent-disposition: form-data; name="f"; filename="{}"\r\n\r\n'
        parts = [head.format(name).encode() + content + b"\r\n" for name, content in files.items()]
        kind = {"content-type": "multipart/form-data; boundary=edge"}
        status, _, said = self.raw("POST", f"{one}/files", b"".join(parts) + b"--edge--\r\n", kind)
        assert status == 200, said
        return json.loads(said)["files"]

    def gone(self, path):
        status, _, said = self.raw("GET", path)
        return status == 404 and json.loads(said)["code"].endswith("_NOT_FOUND")


# Beside those in the description: a form, and what is no call but a conversation.
OTHERS = {("POST", "/v1/codebases/{codebase_id}/files"),
          ("GET", "/v1/sandboxes/{sandbox_id}/terminals/{terminal_id}/attach")}


def described(rest):
    _, said = rest("GET", "/openapi.json")
    return {(verb.upper(), path) for path, verbs in said["paths"].items() for verb in verbs}


def template_of(path, templates):
    """The route a path is on: the one with the most fixed parts."""
    def pattern(template):
        parts = [re.escape(part) if not part.startswith("{") else
                 ".+" if part in ("{path}", "{file_path}") else "[^/]+"
                 for part in template.split("/")]
        return "/".join(parts)

    fitting = [each for each in templates if re.fullmatch(pattern(each), path)]
    return min(fitting, key=lambda each: (each.count("{"), -len(each)), default=path)


def codebases(rest):
    made = rest("POST", "/v1/codebases", name="walk", ownerId="walker")["id"]
    one = f"/v1/codebases/{made}"
    assert rest("GET", one)["name"] == "walk"
    assert made in [each["id"] for each in rest("GET", "/v1/codebases?owner_id=walker")["codebases"]]
    put = json.loads(rest.bytes("PUT", f"{one}/files/a/b.txt", b"raw\n"))
    assert put["filePath"] == "a/b.txt" and put["size"] == "4"
    assert rest.bytes("GET", f"{one}/files/a/b.txt") == b"raw\n"
    rest.form(one, {"c.txt": b"form\n"})
    listed = rest("GET", f"{one}/files?recursive=true")["files"]
    assert [each["fullPath"] for each in listed] == ["/a/b.txt", "/c.txt"]
    staged(rest, one)
    rest("DELETE", one)
    assert rest.gone(one)


def staged(rest, one):
    """A tree that is put in place at once; only what is missing is sent."""
    digest = json.loads(rest.bytes("PUT", f"{one}/staged", b"staged content\n"))["blake3"]
    entries = [{"path": "tree/new.txt", "mode": 0o644, "size": "15", "blake3": digest}]
    assert rest("POST", f"{one}/negotiate", entries=entries)["missing"] == []
    unknown = [{**entries[0], "blake3": "0" * 64}]
    assert rest("POST", f"{one}/negotiate", entries=unknown)["missing"] == ["0" * 64]
    committed = rest("POST", f"{one}/commit", entries=entries)
    assert (committed["fileCount"], committed["size"]) == (1, "15")
    assert rest.bytes("GET", f"{one}/files/tree/new.txt") == b"staged content\n"


def sandboxes(rest, codebase):
    made = rest("POST", "/v1/sandboxes", codebaseId=codebase, preset="full-access",
                labels={"walk": "yes"}, leased=True)
    assert made["status"] == "SANDBOX_STATUS_PENDING"
    one = f"/v1/sandboxes/{made['id']}"
    assert rest("POST", f"{one}/start")["status"] == "SANDBOX_STATUS_RUNNING"
    listed = rest("GET", "/v1/sandboxes?labels[walk]=yes")["sandboxes"]
    assert [each["id"] for each in listed] == [made["id"]]
    assert rest("POST", f"{one}/exec", command="cat hello.txt")["stdout"] == "hello\n"
    with rest.open("POST", f"{one}/exec/stream", command="echo out; exit 3") as answer:
        first, *_, last = answer
    assert text_of(first["data"]) == "out\n" and last["result"]["exitCode"] == 3
    renewed = rest("POST", f"{one}/lease")["safeUntil"]
    with rest.open("GET", f"{one}/lease") as answer:
        assert next(answer)["safeUntil"] >= renewed
    assert rest("POST", f"{one}/stop")["status"] == "SANDBOX_STATUS_STOPPED"
    assert rest("GET", one)["status"] == "SANDBOX_STATUS_STOPPED"
    rest("DELETE", one)
    assert rest.gone(one)


def sessions(rest, sandbox):
    made = rest("POST", f"{sandbox}/sessions", name="walk", shell="/bin/bash", cwd="/tmp")
    one = f"/v1/sessions/{made['id']}"
    assert made["name"] == "walk" and rest("GET", one)["cwd"] == "/tmp"
    assert "walk" in [each["name"] for each in rest("GET", f"{sandbox}/sessions")["sessions"]]
    rest("POST", f"{one}/exec", command="x=kept; sleep 1000 &")
    with rest.open("POST", f"{one}/exec/stream", command="echo $x; kill %1") as answer:
        assert text_of(next(answer)["data"]) == "kept\n"
        assert list(answer)[-1]["result"]["duration"].endswith("s")
    rest("POST", f"{one}/exec", command="(sleep 0.05; echo later) & disown")
    with rest.open("GET", f"{one}/log?follow=true") as answer:
        assert "later" in text_of(next(answer)["data"])
    rest("DELETE", one)
    assert rest.gone(one)


def processes(rest, sandbox):
    every = f"{sandbox}/processes"
    made = rest("POST", every, command="echo up; exec sleep 1000", id="walk")
    one = f"{every}/walk"
    assert made["id"] == "walk" and made["state"]["status"] == "STATUS_RUNNING"
    waited = rest("POST", f"{one}/wait", text="up", timeout="30s")
    assert base64.b64decode(waited["line"]).strip() == b"up"
    assert [each["id"] for each in rest("GET", every)["processes"]] == ["walk"]
    with rest.open("GET", f"{one}/log") as answer:
        assert text_of(next(answer)["data"]) == "up\n"
    rest("POST", f"{one}/kill", signal=9)
    rest("POST", f"{one}/wait", exit=True, timeout="30s")
    state = rest("GET", one)["state"]
    assert (state["status"], state["signal"]) == ("STATUS_KILLED", 9)
    rest("POST", every, command="sleep 1000", id="second")
    assert rest("DELETE", every)["count"] == "1"
    rest("POST", f"{every}/second/wait", exit=True, timeout="30s")


def terminals(rest, sandbox):
    every = f"{sandbox}/terminals"
    made = rest("POST", every, command="read line; stty size; echo said $line", id="walk",
                rows=30, columns=90, record=True)
    assert (made["rows"], made["columns"]) == (30, 90)
    assert [each["id"] for each in rest("GET", every)["terminals"]] == ["walk"]
    rest("POST", f"{every}/walk/resize", rows=40, columns=100)
    screen = rest.attached(f"{every}/walk/attach")
    screen.send_binary(b"something\n")
    seen = b""
    while b"said something" not in seen:
        piece = screen.recv()
        seen += piece if isinstance(piece, bytes) else b""
    screen.close()
    assert b"40 100" in seen
    recording = rest.bytes("GET", f"{every}/walk/recording").splitlines()
    assert json.loads(recording[0])["version"] == 2 and len(recording) > 1
    rest("POST", every, command="sleep 1000", id="closed")
    screen = rest.attached(f"{every}/closed/attach")
    rest("DELETE", f"{every}/closed")
    while not isinstance(said := screen.recv(), str) or "ended" not in said:
        pass
    screen.close()


def files(rest, sandbox):
    assert rest("POST", f"{sandbox}/mkdir", path="/made")["isDir"]
    written = json.loads(rest.bytes("PUT", f"{sandbox}/files/made/new.txt?mode=384", b"new\n"))
    assert (written["size"], written["mode"] & 0o777) == ("4", 0o600)
    assert rest.bytes("GET", f"{sandbox}/files/made/new.txt") == b"new\n"
    linked = rest("POST", f"{sandbox}/symlink", path="/made/deep/link", target="../new.txt", parents=True)
    assert (linked["kind"], linked["target"]) == ("FILE_KIND_SYMLINK", "../new.txt")
    assert rest.bytes("GET", f"{sandbox}/files/made/deep/link") == b"new\n"
    rest.bytes("DELETE", f"{sandbox}/files/made/deep?recursive=true")
    moved = {"from": "/made/new.txt", "to": "/made/old.txt"}
    assert rest("POST", f"{sandbox}/rename", **moved)["fullPath"] == "/made/old.txt"
    assert rest("GET", f"{sandbox}/stat?path=/made/old.txt")["kind"] == "FILE_KIND_FILE"
    assert [each["name"] for each in rest("GET", f"{sandbox}/files?path=made")["files"]] == ["old.txt"]
    rest("POST", f"{sandbox}/mkdir", path="/gone")
    rest.bytes("DELETE", f"{sandbox}/files/gone?recursive=true")
    assert rest.gone(f"{sandbox}/stat?path=/gone")


def changes(rest, sandbox):
    paths = {each["path"]: each["kind"] for each in rest("GET", f"{sandbox}/changes")["changes"]}
    assert paths["/made/old.txt"] == "added"
    assert b"+new" in base64.b64decode(rest("GET", f"{sandbox}/diff")["diff"])
    applied = rest("POST", f"{sandbox}/apply")
    assert applied["written"] and "/made/old.txt" in [each["path"] for each in applied["applied"]]


def policy(rest, sandbox):
    rule = {"pattern": "/made/**", "permission": "PERMISSION_VIEW", "priority": 7}
    said = rest("PUT", f"{sandbox}/policy", preset="full-access", permissions=[rule])
    assert rest("GET", f"{sandbox}/policy") == said
    assert said["permissions"][-1]["permission"] == "PERMISSION_VIEW"
    explained = rest("GET", f"{sandbox}/policy/explain?paths=/made/old.txt&paths=/hello.txt")
    assert [each["permission"] for each in explained["explanations"]] == [
        "PERMISSION_VIEW", "PERMISSION_WRITE"]
    assert explained["explanations"][0]["rule"]["priority"] == 7


def snapshots(rest, sandbox):
    made = rest("POST", f"{sandbox}/snapshots", name="before")
    for every in (f"{sandbox}/snapshots", f"/v1/snapshots?sandbox_id={made['sandboxId']}"):
        assert [each["id"] for each in rest("GET", every)["snapshots"]] == [made["id"]]
    rest.bytes("PUT", f"{sandbox}/files/after.txt", b"after\n")
    forked = rest("POST", f"{sandbox}/fork", labels={"forked": "yes"})
    assert forked["labels"]["forked"] == "yes"
    fork = f"/v1/sandboxes/{forked['id']}"
    assert rest.bytes("GET", f"{fork}/files/after.txt") == b"after\n"
    rest("POST", f"{fork}/restore", snapshotId=made["id"])
    assert rest.gone(f"{fork}/stat?path=/after.txt")
    rest("DELETE", fork)
    rest("DELETE", f"/v1/snapshots/{made['id']}")
    assert rest("GET", f"{sandbox}/snapshots")["snapshots"] == []


def the_record(rest, sandbox):
    with rest.open("GET", f"{sandbox}/audit") as answer:
        events = list(answer)
    assert [int(each["sequence"]) for each in events] == sorted(
        {int(each["sequence"]) for each in events})
    verdict = rest("GET", f"{sandbox}/audit/verify")
    assert verdict["intact"] and int(verdict["events"]) >= len(events) > 10


def the_server(local):
    info = local("GET", "/v1/info")
    assert info["server"] == "ringfence" and info["api"] >= info["oldestApi"] >= 1
    with local.open("POST", "/v1/images/fetch", image=IMAGE or "none") as answer:
        last = list(answer)[-1]
    assert last == {"ready": True} if IMAGE else last["error"]["code"] == "UNSUPPORTED"
    made = local("POST", "/v1/tokens", account="walker", label="walk")
    assert made["secret"]
    listed = local("GET", "/v1/tokens?account=walker")["tokens"]
    assert [each["id"] for each in listed] == [made["token"]["id"]]
    local("DELETE", f"/v1/tokens/{made['token']['id']}")
    assert local("GET", "/v1/tokens?account=walker")["tokens"][0]["revokedAt"]


def test_every_route_has_its_effect(server, client):
    """One walk over all of them. A route that is new and not walked on fails it."""
    routes = described(Streaming(server.endpoint)) | OTHERS
    templates = {path for _, path in routes}
    rest, local = Walk(server.endpoint, templates), Walk(server.unix, templates)
    Walk.called = set()
    codebase = client.new_codebase(hello_txt=b"hello\n")
    codebases(rest)
    sandboxes(rest, codebase)
    sandbox = f"/v1/sandboxes/{client.new_sandbox(codebase)}"
    for area in (sessions, processes, terminals, files, changes, policy, snapshots, the_record):
        area(rest, sandbox)
    the_server(local)
    rest("DELETE", sandbox)
    assert routes <= Walk.called, routes - Walk.called
