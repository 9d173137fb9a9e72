"""REST as a program without any library for it would speak it."""

import http.client
import json
import socket


class Rest:
    """`rest("POST", "/v1/codebases", name="x")` answers a status and what was said."""

    def __init__(self, endpoint, token=None, headers=None):
        self._endpoint, self._unix = endpoint, endpoint.removeprefix("unix:")
        self._headers = dict(headers or {})
        if token:
            self._headers["authorization"] = f"Bearer {token}"

    def _connect(self):
        if self._unix == self._endpoint:
            return http.client.HTTPConnection(self._endpoint, timeout=60)
        connection = http.client.HTTPConnection("localhost", timeout=60)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self._unix)
        return connection

    def raw(self, verb, path, body=None, headers=None):
        """The status, the headers and the bytes."""
        connection = self._connect()
        try:
            connection.request(verb, path, body, {**self._headers, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def __call__(self, verb, path, /, **fields):
        body = json.dumps(fields) if fields else None
        headers = {"content-type": "application/json"} if fields else {}
        status, _, said = self.raw(verb, path, body, headers)
        return status, json.loads(said)
