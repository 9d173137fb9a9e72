"""What happened is on record, whoever asked for it and on whichever way."""

import json

from rest import Rest
from wire import v1

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def events(client, sandbox):
    stream = client.audit.Audit(v1.AuditRequest(sandbox_id=sandbox))
    return [json.loads(event.json) for event in stream]


def test_a_traceparent_goes_on_record(server, client, sandbox):
    rest = Rest(server.endpoint, headers={"traceparent": TRACE})
    assert rest("POST", f"/v1/sandboxes/{sandbox}/exec", command="echo by rest")[0] == 200
    asked = v1.ExecRequest(sandbox_id=sandbox, command="echo by grpc")
    client.sandbox._stub.Exec(asked, metadata=[("traceparent", TRACE)])
    session = client.sandbox.CreateSession(v1.CreateSessionRequest(sandbox_id=sandbox)).id
    asked = v1.SessionExecRequest(session_id=session, command="echo in session")
    client.sandbox._stub.SessionExec(asked, metadata=[("traceparent", TRACE)])
    client.run(sandbox, "echo of nobody")
    asked = v1.ExecRequest(sandbox_id=sandbox, command="echo nonsense")
    client.sandbox._stub.Exec(asked, metadata=[("traceparent", "x" * 55)])
    started = [event for event in events(client, sandbox) if event["kind"] == "command_started"]
    traced = {event["shell"]: event.get("trace") for event in started}
    assert traced == {
        "echo by rest": TRACE, "echo by grpc": TRACE, "echo in session": TRACE,
        "echo of nobody": None, "echo nonsense": None}


def test_the_record_is_in_order_and_outlives_the_sandbox(server, client):
    sandbox = client.new_sandbox(client.new_codebase(a_txt=b"a"), preset="view-only")
    client.run(sandbox, "cat a.txt")
    before = events(client, sandbox)
    client.sandbox.DestroySandbox(v1.DestroySandboxRequest(sandbox_id=sandbox))
    after = events(client, sandbox)
    assert after[:len(before)] == before and len(after) > len(before)
    kinds = [event["kind"] for event in after]
    assert kinds[:2] == ["journal_created", "sandbox_started"] and kinds[-1] == "sandbox_ended"
    verified = client.audit.VerifyAudit(v1.VerifyAuditRequest(sandbox_id=sandbox))
    assert verified.intact and verified.events == len(after), verified
    denied = client.audit.Audit(v1.AuditRequest(sandbox_id=sandbox, denied=True))
    assert any("/a.txt" in event.json for event in denied)
    assert Rest(server.endpoint)("GET", f"/v1/sandboxes/{sandbox}/audit/verify")[1]["intact"]
