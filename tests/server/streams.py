"""Answers of REST that go on, read as they come."""

import contextlib
import json

from rest import Rest


class Streaming(Rest):
    """`with rest.open("GET", "/v1/…") as answer:` leaves the call at the end of the block."""

    @contextlib.contextmanager
    def open(self, verb, path, /, events=False, **fields):
        connection = self._connect()
        headers = {**self._headers, "accept": "text/event-stream" if events else "*/*"}
        body = None
        if fields:
            body, headers["content-type"] = json.dumps(fields), "application/json"
        connection.request(verb, path, body, headers)
        answer = connection.getresponse()
        try:
            yield Answer(answer)
        finally:
            answer.close()
            connection.close()


class Answer:
    """Messages, and for server-sent events how the stream ended (`end` or `error`)."""

    def __init__(self, answer):
        self.status, self.kind = answer.status, answer.getheader("content-type")
        self._answer, self.ended = answer, None
        self._each = self._events() if self.kind == "text/event-stream" else self._lines()

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._each)

    def _lines(self):
        while line := self._answer.readline():
            assert line.endswith(b"\n"), "half a line"
            yield json.loads(line)

    def _events(self):
        """Fields until an empty line are one event; what begins with a colon says nothing."""
        event, data = None, []
        while line := self._answer.readline():
            name, _, value = line.decode().rstrip("\n").partition(":")
            if name == "event":
                event = value.strip()
            elif name == "data":
                data.append(value.strip())
            elif not name and not value and data:
                message = json.loads("\n".join(data))
                if event is None:
                    yield message
                else:
                    self.ended = (event, message)
                event, data = None, []
