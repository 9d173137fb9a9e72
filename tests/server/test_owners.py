"""Two accounts on one server: what is another's does not exist."""

import json
import urllib.parse

import grpc
import pytest
from google.protobuf import json_format

from owners import (BESIDE, FIELDS, KINDS, LABELS, STREAMED, everything, fields_of, kinds_of,
                    message_of, methods, nowhere)
from rest import Rest
from server import Server
from wire import Client, info_of, refused, v1

CODE = grpc.StatusCode
METHODS = dict(methods())
WITH_IDS = {name: method for name, method in METHODS.items() if kinds_of(method)}


@pytest.fixture(scope="module")
def two():
    with Server("--require-token", tokens=["owner", "other"]) as running:
        yield running


@pytest.fixture(scope="module")
def owner(two):
    with two.client(two.tokens["owner"]) as client:
        yield client


@pytest.fixture(scope="module")
def other(two):
    with two.client(two.tokens["other"]) as client:
        yield client


@pytest.fixture(scope="module")
def owned(owner):
    return everything(owner)


@pytest.fixture(scope="module")
def own(other):
    """What the other account has itself."""
    return everything(other)


def test_every_method_that_takes_an_id_is_tried():
    assert set(WITH_IDS) == set(BESIDE) | set(STREAMED)


def test_every_kind_of_id_is_known():
    named = {name for method in METHODS.values() for name in fields_of(method.input_type)}
    assert {name for name in named if name.endswith("_id")} <= set(FIELDS) | LABELS


def answer_of(client, name, ids):
    """What a call answers, with the ids taken out of it."""
    service, method = name.split(".")
    call = getattr(getattr(client, service.removesuffix("Service").lower()), method)
    asked = iter(STREAMED[name](ids)) if name in STREAMED else message_of(name, METHODS[name], ids)
    try:
        said = call(asked)
        said = list(said) if METHODS[name].server_streaming else said
        answer = ("OK", str(said))
    except grpc.RpcError as error:
        code, details = info_of(error)
        answer = (error.code().name, error.details(), code, sorted(details.items()))
    return without(ids, answer)


def without(ids, answer):
    text = repr(answer)
    for kind in KINDS:
        text = text.replace(getattr(ids, kind), f"<{kind}>")
    return text


@pytest.mark.parametrize("name", sorted(set(WITH_IDS) - {"TokenService.RevokeToken"}))
def test_the_attempts_are_good_ones(owner, name):
    """The owner gets beyond the ids with the same messages, or the other tests would prove nothing."""
    ids = everything(owner)
    service, method = name.split(".")
    call = getattr(getattr(owner, service.removesuffix("Service").lower()), method)
    asked = iter(STREAMED[name](ids)) if name in STREAMED else message_of(name, METHODS[name], ids)
    try:
        said = call(asked)
        if METHODS[name].server_streaming:
            next(said, None)
            said.cancel()
    except grpc.RpcError as error:
        assert error.code() == CODE.FAILED_PRECONDITION, error
    owner.sandbox.DestroySandbox(v1.DestroySandboxRequest(sandbox_id=ids.sandbox))


LISTS = ("SandboxService.ListSandboxes", "WorkspaceService.ListSnapshots")


@pytest.mark.parametrize("name", sorted(WITH_IDS))
def test_what_is_another_s_answers_like_what_never_was(other, owned, name):
    answered = answer_of(other, name, owned)
    assert answered == answer_of(other, name, nowhere())
    if name == "TokenService.RevokeToken":
        assert "PERMISSION_DENIED" in answered
    elif name in LISTS:
        assert answered == repr(("OK", ""))
    else:
        assert answered.startswith("('NOT_FOUND'"), answered


MIXED = [(name, kind) for name, method in sorted(WITH_IDS.items()) for kind in kinds_of(method)
         if len(kinds_of(method)) > 1]


@pytest.mark.parametrize("name, kind", MIXED)
def test_own_things_are_no_key_to_those_of_others(other, owned, own, name, kind):
    """One id of another's among ids of one's own."""
    mixed, made_up = own.but([kind], owned), own.but([kind], nowhere())
    answered = answer_of(other, name, mixed)
    assert answered == answer_of(other, name, made_up)
    assert "secret" not in answered


@pytest.fixture(scope="module")
def routes(two):
    _, said = Rest(two.endpoint)("GET", "/openapi.json")
    return [(verb.upper(), path, operation["operationId"], operation)
            for path, verbs in said["paths"].items() for verb, operation in verbs.items()
            if "{" in path]


def rest_answer(rest, route, ids):
    """The message of the gRPC call, put into the path, the query and the body."""
    verb, path, name, operation = route
    name = ".".join(name.split(".")[:2])
    fields = {} if name in STREAMED else json_format.MessageToDict(
        message_of(name, METHODS[name], ids), preserving_proto_field_name=True)
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            named = parameter["name"]
            value = fields.pop(named, None) or (
                getattr(ids, FIELDS[named]) if named in FIELDS else "secret.txt")
            path = path.replace("{%s}" % named, value)
    # A session is known by its id alone on its routes.
    if path.startswith("/v1/sessions/"):
        fields.pop("sandbox_id")
    if name in STREAMED:
        status, _, said = rest.raw(verb, path, b"hostile")
    elif verb in ("GET", "DELETE"):
        texts = {key: json.dumps(value) if value is True else value for key, value in fields.items()}
        status, _, said = rest.raw(verb, f"{path}?{urllib.parse.urlencode(texts, doseq=True)}")
    else:
        kind = {"content-type": "application/json"}
        status, _, said = rest.raw(verb, path, json.dumps(fields), kind)
    return status, without(ids, said)


def test_rest_answers_alike(two, other, owned, routes):
    rest = Rest(two.endpoint, two.tokens["other"])
    assert len(routes) > 50
    for route in routes:
        answered = rest_answer(rest, route, owned)
        assert answered == rest_answer(rest, route, nowhere()), route[:3]
        assert answered[0] == (403 if "tokens" in route[1] else
                               200 if route[2].startswith("WorkspaceService.ListSnapshots") else
                               404), (route[:3], answered)


def test_a_form_for_another_s_codebase(two, owned):
    rest = Rest(two.endpoint, two.tokens["other"])
    body = b'--e\r\ncontent-disposition: form-data; name="f"; filename="x"\r\n\r\nx\r\n--e--\r\n'
    kind = {"content-type": "multipart/form-data; boundary=e"}
    answers = [without(ids, rest.raw("POST", f"/v1/codebases/{ids.codebase}/files", body, kind)[::2])
               for ids in (owned, nowhere())]
    assert answers[0] == answers[1] and "CODEBASE_NOT_FOUND" in answers[0]


def test_nothing_was_touched_by_all_this(owner, owned):
    """Runs after the attempts above; whichever of them ran, nothing may have changed."""
    found = owner.sandbox.GetSandbox(v1.GetSandboxRequest(sandbox_id=owned.sandbox))
    assert found.status == v1.SANDBOX_STATUS_RUNNING
    assert owner.run(owned.sandbox, "ls; cat secret.txt").stdout == "secret.txt\nsecret\n"
    session = owner.sandbox.GetSession(v1.GetSessionRequest(session_id=owned.session))
    assert session.status == v1.SESSION_STATUS_ACTIVE
    process = owner.process.GetProcess(
        v1.GetProcessRequest(sandbox_id=owned.sandbox, process_id=owned.process))
    assert process.state.status == v1.ProcessState.STATUS_RUNNING
    screens = owner.terminal.ListTerminals(v1.ListTerminalsRequest(sandbox_id=owned.sandbox)).terminals
    assert [(each.id, each.rows) for each in screens] == [(owned.terminal, 24)]
    taken = owner.workspace.ListSnapshots(v1.ListSnapshotsRequest(sandbox_id=owned.sandbox)).snapshots
    assert [each.id for each in taken] == [owned.snapshot]


def ids_in(listed):
    return {each.id for each in listed}


def test_lists_show_one_s_own(owner, other, owned, own):
    """`owner_id` is a label: the same in two accounts, it joins nothing."""
    for label in ("", "tests"):
        for client, mine, others in ((owner, owned, own), (other, own, owned)):
            codebases = client.codebase.ListCodebases(v1.ListCodebasesRequest(owner_id=label)).codebases
            assert mine.codebase in ids_in(codebases) and others.codebase not in ids_in(codebases)
            sandboxes = client.sandbox.ListSandboxes(v1.ListSandboxesRequest(owner_id=label)).sandboxes
            assert mine.sandbox in ids_in(sandboxes) and others.sandbox not in ids_in(sandboxes)
            taken = client.workspace.ListSnapshots(v1.ListSnapshotsRequest()).snapshots
            assert mine.snapshot in ids_in(taken) and others.snapshot not in ids_in(taken)


def test_the_label_of_an_account_is_no_key(other, owned):
    for label in ("owner", "local", "%", "*"):
        assert not other.codebase.ListCodebases(v1.ListCodebasesRequest(owner_id=label)).codebases
        made = other.codebase.CreateCodebase(v1.CreateCodebaseRequest(name="x", owner_id=label))
        listed = other.codebase.ListCodebases(v1.ListCodebasesRequest(owner_id=label)).codebases
        assert ids_in(listed) == {made.id}
        other.codebase.DeleteCodebase(v1.DeleteCodebaseRequest(codebase_id=made.id))


def test_pages_of_one_are_of_no_use_to_the_other(owner, other, owned, own):
    for _ in range(3):
        owner.new_codebase()
    token = owner.codebase.ListCodebases(v1.ListCodebasesRequest(page_size=1)).next_page_token
    assert token
    try:
        page = other.codebase.ListCodebases(v1.ListCodebasesRequest(page_size=10, page_token=token))
    except grpc.RpcError as error:
        assert error.code() == CODE.INVALID_ARGUMENT
    else:
        mine = ids_in(other.codebase.ListCodebases(v1.ListCodebasesRequest()).codebases)
        assert ids_in(page.codebases) <= mine


def test_the_record_of_what_was_destroyed_stays_its_owner_s(owner, other):
    sandbox = owner.new_sandbox(owner.new_codebase())
    owner.run(sandbox, "true")
    for _ in range(2):
        owner.sandbox.DestroySandbox(v1.DestroySandboxRequest(sandbox_id=sandbox))
    assert list(owner.audit.Audit(v1.AuditRequest(sandbox_id=sandbox)))
    assert owner.audit.VerifyAudit(v1.VerifyAuditRequest(sandbox_id=sandbox)).intact
    gone = nowhere().but(["sandbox"], type("Gone", (), {"sandbox": sandbox}))
    for name in ("AuditService.Audit", "AuditService.VerifyAudit", "SandboxService.DestroySandbox",
                 "SandboxService.GetSandbox", "TerminalService.TerminalRecording"):
        answered = answer_of(other, name, gone)
        assert answered == answer_of(other, name, nowhere()) and "NOT_FOUND" in answered


def stage(client, codebase, content):
    begin = v1.UploadChunk.Metadata(codebase_id=codebase, staged=True)
    return client.codebase.UploadFiles(
        iter([v1.UploadChunk(metadata=begin), v1.UploadChunk(data=content)])).blake3


@pytest.mark.parametrize("way", ["staged", "committed", "uploaded"])
def test_content_of_another_is_neither_known_nor_used(owner, other, way):
    """A digest is no key: who does not have the content cannot tell who has."""
    content = f"the content that was {way}\n".encode()
    theirs = owner.new_codebase()
    digest = stage(owner, theirs, content)
    entry = v1.ManifestEntry(path="x", mode=0o644, size=len(content), blake3=digest)
    if way == "committed":
        owner.codebase.CommitUpload(v1.CommitUploadRequest(codebase_id=theirs, entries=[entry]))
    elif way == "uploaded":
        owner.upload(theirs, "y", content)
    assert not owner.codebase.NegotiateUpload(
        v1.NegotiateUploadRequest(codebase_id=theirs, entries=[entry])).missing
    mine = other.new_codebase()
    made_up = v1.ManifestEntry(path="x", mode=0o644, size=len(content), blake3="ab" * 32)
    for each in (entry, made_up):
        asked = v1.NegotiateUploadRequest(codebase_id=mine, entries=[each])
        assert list(other.codebase.NegotiateUpload(asked).missing) == [each.blake3]
    answers = []
    for each in (entry, made_up):
        with refused() as how:
            other.codebase.CommitUpload(v1.CommitUploadRequest(codebase_id=mine, entries=[each]))
        answers.append(str((how.status, how.code, how.message, sorted(how.details.items()))).replace(
            each.blake3, "<digest>").replace(each.blake3[:8], "<digest>"))
    assert answers[0] == answers[1]
    assert not other.codebase.ListFiles(v1.ListFilesRequest(codebase_id=mine)).files


def test_staged_content_of_another_codebase_of_another(owner, other):
    """Whoever names the other's codebase learns nothing either."""
    theirs, content = owner.new_codebase(), b"staged for nobody else\n"
    digest = stage(owner, theirs, content)
    entry = v1.ManifestEntry(path="x", mode=0o644, size=len(content), blake3=digest)
    for call, kind in ((other.codebase.NegotiateUpload, v1.NegotiateUploadRequest),
                       (other.codebase.CommitUpload, v1.CommitUploadRequest)):
        with refused() as how:
            call(kind(codebase_id=theirs, entries=[entry]))
        assert how.code == "CODEBASE_NOT_FOUND"


def test_request_ids_of_two_accounts_do_not_meet(owner, other, owned, own):
    asked = v1.CreateCodebaseRequest(name="same", owner_id="same", request_id="the-same")
    theirs, mine = owner.codebase.CreateCodebase(asked), other.codebase.CreateCodebase(asked)
    assert theirs.id != mine.id
    assert owner.codebase.CreateCodebase(asked).id == theirs.id
    assert other.codebase.CreateCodebase(asked).id == mine.id
    # What another has used it for is not held against anybody.
    results = [client.run(ids.sandbox, f"echo {ids.sandbox}", request_id="an-exec").stdout
               for client, ids in ((owner, owned), (other, own))]
    assert results == [f"{owned.sandbox}\n", f"{own.sandbox}\n"]
    again = other.run(own.sandbox, f"echo {own.sandbox}", request_id="an-exec")
    assert again.stdout == f"{own.sandbox}\n"


def guesses(real):
    prefix, _, digits = real.partition("_")
    last = "0" if digits[-1] != "0" else "1"
    return [f"{prefix}_{digits[:-1]}{last}", f"{prefix}_{digits.upper()}", f"{prefix}_{digits}0",
            f"{prefix}_%", f"{prefix}_*", digits, f" {real}", f"{real}/../{real}", f"{prefix}_' OR '1'='1"]


def test_guesses_answer_alike(other, owned):
    """Near or far, right or wrong: one answer."""
    def said(call, kind, field, value):
        with refused() as how:
            call(kind(**{field: value}))
        return how.status, how.code, how.message.replace(value, "<id>"), how.details

    for call, kind, field, real in [
            (other.sandbox.GetSandbox, v1.GetSandboxRequest, "sandbox_id", owned.sandbox),
            (other.codebase.GetCodebase, v1.GetCodebaseRequest, "codebase_id", owned.codebase),
            (other.sandbox.GetSession, v1.GetSessionRequest, "session_id", owned.session),
            (other.workspace.DeleteSnapshot, v1.DeleteSnapshotRequest, "snapshot_id", owned.snapshot)]:
        answers = {str(said(call, kind, field, value)) for value in [real, *guesses(real)]}
        assert len(answers) == 1, answers


def test_the_host_s_own_account_is_one_of_them(two, owned):
    """The server's own user sees what is `local`'s, not what accounts have."""
    with Client(two.unix) as local:
        assert answer_of(local, "SandboxService.GetSandbox", owned).startswith("('NOT_FOUND'")
        assert owned.sandbox not in ids_in(
            local.sandbox.ListSandboxes(v1.ListSandboxesRequest()).sandboxes)
