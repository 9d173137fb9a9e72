"""REST on connections that are kept, and on the Unix socket."""

import http.client
import json
import socket

from rest import Rest


def test_one_connection_for_many_requests(server, sandbox):
    """Whatever the answers are: messages, errors, files, streams to their end."""
    connection = http.client.HTTPConnection(server.endpoint, timeout=60)
    connection.connect()
    kept = connection.sock
    one = f"/v1/sandboxes/{sandbox}"
    kind = {"content-type": "application/json"}
    asked = [
        ("GET", "/v1/info", None, {}, 200), ("GET", "/v1/sandboxes/sb_none", None, {}, 404),
        ("POST", f"{one}/exec", json.dumps({"command": "true"}), kind, 200),
        ("POST", f"{one}/exec", "{", kind, 400), ("PUT", f"{one}/files/kept", b"x" * 100_000, {}, 200),
        ("GET", f"{one}/files/kept", None, {}, 200), ("HEAD", one, None, {}, 200),
        ("POST", f"{one}/exec/stream", json.dumps({"command": "seq 10000"}), kind, 200),
        ("PATCH", one, None, {}, 404), ("GET", one, None, {}, 200)]
    for verb, path, body, headers, status in asked * 3:
        connection.request(verb, path, body, headers)
        answer = connection.getresponse()
        said = answer.read()
        assert answer.status == status, (verb, path, said)
        assert connection.sock is kept, f"the connection was closed after {verb} {path}"
        if path.endswith("kept") and verb == "GET":
            assert said == b"x" * 100_000
    connection.close()


def test_requests_that_do_not_wait_for_answers(server):
    """Several in one packet: as many answers, in order."""
    host, port = server.endpoint.split(":")
    request = "GET {} HTTP/1.1\r\nhost: localhost\r\nconnection: {}\r\n\r\n"
    paths = ["/healthz", "/v1/nothing", "/v1/info"]
    text = "".join(request.format(path, "close" if path == paths[-1] else "keep-alive") for path in paths)
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(text.encode())
        said = b"".join(iter(lambda: connection.recv(65536), b""))
    assert said.count(b"HTTP/1.1 ") == 3
    assert said.index(b"ok\n") < said.index(b"ROUTE_NOT_FOUND") < said.index(b'"ringfence"')


def test_the_unix_socket_speaks_rest(server, tmp_path):
    """The same routes, and who may name directories of the host."""
    local, remote = Rest(server.unix), Rest(server.endpoint)
    assert local("GET", "/v1/info")[1]["local"] and not remote("GET", "/v1/info")[1]["local"]
    (tmp_path / "here.txt").write_text("here\n")
    fields = {"name": "here", "ownerId": "tests", "localPath": str(tmp_path)}
    assert remote("POST", "/v1/codebases", **fields)[0] == 400
    status, made = local("POST", "/v1/codebases", **fields)
    assert status == 200 and made["localPath"] == str(tmp_path)
    status, _, said = local.raw("GET", f"/v1/codebases/{made['id']}/files/here.txt")
    assert (status, said) == (200, b"here\n")
    # One account: what was made on one way is there on the other.
    assert remote("GET", f"/v1/codebases/{made['id']}")[0] == 200
    assert local("DELETE", f"/v1/codebases/{made['id']}")[0] == 200
    assert (tmp_path / "here.txt").read_text() == "here\n"
