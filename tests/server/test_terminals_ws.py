"""Terminals over a WebSocket: type, see, resize, leave and come back."""

import json
import re

import pytest
import websocket

from rest import Rest
from server import Server
from waiting import until
from wire import v1


class Viewer:
    """`see` waits for what is shown, `hear` for what is said beside it."""

    def __init__(self, endpoint, sandbox, terminal, token=None):
        url = f"ws://{endpoint}/v1/sandboxes/{sandbox}/terminals/{terminal}/attach"
        header = [f"authorization: Bearer {token}"] if token else []
        self.socket = websocket.create_connection(url, timeout=60, header=header)
        self.shown, self.said = b"", []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def _take(self):
        kind, data = self.socket.recv_data()
        if kind == websocket.ABNF.OPCODE_BINARY:
            self.shown += data
        elif kind == websocket.ABNF.OPCODE_TEXT:
            self.said.append(json.loads(data))
        else:
            raise EOFError(f"the socket was closed; shown: {self.shown!r}, said: {self.said}")

    def type(self, text):
        self.socket.send_binary(text.encode())

    def size(self, rows, columns):
        self.socket.send(json.dumps({"size": {"rows": rows, "columns": columns}}))

    def see(self, pattern):
        """Everything up to what fits the pattern is taken away."""
        while not (found := re.search(pattern.encode(), self.shown)):
            self._take()
        self.shown = self.shown[found.end():]
        return found.group()

    def hear(self, name):
        while not (found := [each[name] for each in self.said if name in each]):
            self._take()
        return found[0]

    def closed(self):
        try:
            while True:
                self._take()
        except EOFError:
            return True


@pytest.fixture
def shell(client, sandbox):
    """A shell whose prompt and echo are not in the way."""
    asked = v1.OpenTerminalRequest(sandbox_id=sandbox, argv=[b"/bin/sh"], rows=30, columns=90,
                                   env={"PS1": "", "ENV": ""})
    return client.terminal.OpenTerminal(asked).id


@pytest.fixture
def attach(server, sandbox, shell):
    return lambda: Viewer(server.endpoint, sandbox, shell)


def listed(client, sandbox, terminal):
    every = client.terminal.ListTerminals(v1.ListTerminalsRequest(sandbox_id=sandbox)).terminals
    return {each.id: each for each in every}[terminal]


def test_what_is_typed_runs_and_is_seen(attach):
    with attach() as viewer:
        assert viewer.hear("live") is True
        viewer.type("echo $((6*7)); tty\n")
        assert viewer.see(r"\b42\r\n")
        assert viewer.see(r"/dev/pts/\d+")


def test_every_byte_is_shown(attach):
    with attach() as viewer:
        viewer.type(r"stty -opost; printf 'a\0\377\033[1mb'; echo; echo en''d" + "\n")
        assert viewer.see(r"end\n")
        with attach() as other:
            other.see(r"a\x00\xff\x1b\[1mb\n")


def test_keys_reach_the_program(attach):
    """Ctrl-C is a signal for it, and the shell lives on."""
    with attach() as viewer:
        viewer.type("sh -c 'echo st\"\"arted; exec sleep 1000'\n")
        viewer.see("started")
        viewer.type("\x03")
        viewer.type("echo code $?\n")
        viewer.see(r"code 130\r\n")


def test_sizes(attach, client, sandbox, shell):
    with attach() as viewer:
        viewer.type("stty size\n")
        viewer.see(r"30 90\r\n")
        # Its program is told.
        viewer.type("trap 'stty size' WINCH; echo re''ady\n")
        viewer.see("ready")
        viewer.size(50, 132)
        viewer.type("\n")
        viewer.see(r"50 132\r\n")
        now = listed(client, sandbox, shell)
        assert (now.rows, now.columns) == (50, 132)


@pytest.mark.parametrize("said", [
    "nonsense", "{}", '{"size": {"rows": 70000, "columns": 10}}', '{"size": 7}', '{"unknown": 1}',
    '{"attach": {"sandboxId": "x", "terminalId": "y"}}', "[]", '{"size": {"rows": -1, "columns": 1}}'])
def test_what_makes_no_sense_hurts_nobody(attach, said):
    """Whoever says it may be sent away; others, and the terminal, go on."""
    with attach() as other:
        with attach() as viewer:
            viewer.hear("live")
            viewer.socket.send(said)
        other.type("echo al''ive\n")
        other.see("alive")


@pytest.mark.parametrize("said", ["nonsense", "[]", '{"unknown": 1}', '{"size": 7}'])
def test_what_cannot_be_understood_is_answered(attach, said):
    with attach() as viewer:
        viewer.hear("live")
        viewer.socket.settimeout(5)
        viewer.socket.send(said)
        assert viewer.hear("error")["code"] == "INVALID_ARGUMENT"
        assert viewer.closed()


def test_a_size_out_of_range_is_answered(attach):
    with attach() as viewer:
        viewer.hear("live")
        viewer.size(70000, 10)
        assert viewer.hear("error")["code"] == "INVALID_ARGUMENT"
        assert viewer.closed()


def test_who_comes_later_sees_what_was_shown(attach):
    with attach() as viewer:
        viewer.type("echo be''fore\n")
        viewer.see(r"before\r\n")
    with attach() as viewer:
        viewer.hear("live")
        assert b"before\r\n" in viewer.shown, "what was shown comes before what is new"
        viewer.type("echo af''ter\n")
        viewer.see(r"after\r\n")


def test_several_see_the_same(attach, client, sandbox, shell):
    viewers = [attach() for _ in range(5)]
    for viewer in viewers:
        viewer.hear("live")
    assert listed(client, sandbox, shell).watchers == 5
    for number, viewer in enumerate(viewers):
        viewer.type(f"echo from''-{number}\n")
        for each in viewers:
            each.see(rf"from-{number}\r\n")
    for viewer in viewers:
        viewer.socket.close()


def test_the_end_is_told_to_all(attach):
    with attach() as one, attach() as other:
        one.type("exit 7\n")
        for viewer in (one, other):
            ended = viewer.hear("ended")
            assert (ended["status"], ended["exitCode"]) == ("STATUS_EXITED", 7)
            assert viewer.closed()


def test_who_comes_after_the_end_sees_all_and_the_end(attach, client, sandbox, shell):
    with attach() as viewer:
        viewer.type("echo last wo''rds; exit 3\n")
        viewer.hear("ended")
    with attach() as viewer:
        assert viewer.hear("ended")["exitCode"] == 3
        assert b"last words" in viewer.shown


def test_a_program_that_is_killed(attach):
    with attach() as viewer:
        viewer.type("kill -9 $$\n")
        ended = viewer.hear("ended")
        assert (ended["status"], ended["signal"]) == ("STATUS_KILLED", 9)


@pytest.mark.parametrize("how", ["politely", "rudely"])
def test_leaving_only_detaches(attach, client, sandbox, shell, how):
    with attach() as viewer:
        viewer.type("x=kept; echo se''t\n")
        viewer.see("set")
        if how == "rudely":
            viewer.socket.shutdown()
    with attach() as viewer:
        viewer.type("echo still $x\n")
        viewer.see(r"still kept\r\n")
    assert listed(client, sandbox, shell).state.status == v1.ProcessState.STATUS_RUNNING


def test_a_terminal_that_ends_when_it_is_left(server, client, sandbox):
    asked = v1.OpenTerminalRequest(sandbox_id=sandbox, command="sleep 1000", end_when_left=True)
    made = client.terminal.OpenTerminal(asked).id
    with Viewer(server.endpoint, sandbox, made) as viewer:
        with Viewer(server.endpoint, sandbox, made) as other:
            viewer.hear("live")
            other.hear("live")
        assert listed(client, sandbox, made).state.status == v1.ProcessState.STATUS_RUNNING
    # Who comes back too early would keep it.
    until(lambda: listed(client, sandbox, made).state.status != v1.ProcessState.STATUS_RUNNING)
    with Viewer(server.endpoint, sandbox, made) as viewer:
        assert viewer.hear("ended")["status"] == "STATUS_KILLED"


def refused(endpoint, sandbox, terminal, token=None):
    with pytest.raises(websocket.WebSocketBadStatusException) as how:
        Viewer(endpoint, sandbox, terminal, token)
    return how.value.status_code, json.loads(how.value.resp_body)["code"]


def test_what_is_not_there_is_no_socket(server, client, sandbox):
    """An answer like any other, before anything is upgraded."""
    assert refused(server.endpoint, sandbox, "none") == (404, "TERMINAL_NOT_FOUND")
    assert refused(server.endpoint, "sb_none", "none") == (404, "SANDBOX_NOT_FOUND")
    stopped = client.new_sandbox(client.new_codebase())
    client.sandbox.StopSandbox(v1.StopSandboxRequest(sandbox_id=stopped))
    assert refused(server.endpoint, stopped, "none") == (409, "SANDBOX_NOT_RUNNING")


def test_a_request_that_is_no_websocket(server, sandbox, shell):
    path = f"/v1/sandboxes/{sandbox}/terminals/{shell}/attach"
    status, said = Rest(server.endpoint)("GET", path)
    assert (status, said["code"]) == (400, "INVALID_ARGUMENT")


def test_a_page_of_another_site_cannot_attach(server, sandbox, shell):
    url = f"ws://{server.endpoint}/v1/sandboxes/{sandbox}/terminals/{shell}/attach"
    with pytest.raises(websocket.WebSocketBadStatusException) as how:
        websocket.create_connection(url, timeout=60, origin="https://evil.example")
    assert how.value.status_code == 401


def test_the_terminal_of_another_account_is_not_there():
    with Server("--require-token", tokens=["one", "two"]) as server:
        one, two = server.tokens["one"], server.tokens["two"]
        with server.client(one) as client:
            sandbox = client.new_sandbox(client.new_codebase())
            asked = v1.OpenTerminalRequest(sandbox_id=sandbox, argv=[b"/bin/sh"])
            terminal = client.terminal.OpenTerminal(asked).id
        with Viewer(server.endpoint, sandbox, terminal, one) as viewer:
            viewer.hear("live")
        assert refused(server.endpoint, sandbox, terminal, two) == (404, "SANDBOX_NOT_FOUND")
        assert refused(server.endpoint, sandbox, terminal) == (401, "UNAUTHENTICATED")


def test_a_viewer_that_does_not_read_holds_up_nobody(attach):
    with attach() as lazy:
        lazy.hear("live")
        with attach() as viewer:
            viewer.type("seq 300000; echo do''ne\n")
            viewer.see(r"done\r\n")
