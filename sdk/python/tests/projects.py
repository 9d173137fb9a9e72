"""Small projects in the shape of those that the guides speak of, from what Debian has."""

import io
import pathlib
import zipfile

STORE = """
import pathlib, socketserver, sqlite3, sys

port, place, sign = int(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
base = sqlite3.connect(place)


class Lines(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            text = line.decode().strip()
            answer = "PONG" if text == "PING" else repr(base.execute(text).fetchall())
            base.commit()
            self.wfile.write((answer + "\\n").encode())


socketserver.TCPServer.allow_reuse_address = True
with socketserver.TCPServer(("127.0.0.1", port), Lines) as server:
    sign.touch()
    server.serve_forever()
"""
"""Every service that the guides start in the background: it answers PING, the rest is SQL."""

ASK = """
import socket, sys


def ask(port, text):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
        line.sendall(text.encode() + b"\\n")
        return line.makefile().readline().strip()


if __name__ == "__main__":
    print(ask(int(sys.argv[1]), " ".join(sys.argv[2:])))
"""

MANAGE = """
import os, sys
from ask import ask

port = int(os.environ.get("DB_PORT", "0"))
if sys.argv[1] == "migrate":
    ask(port, "create table if not exists users (name text)")
    print("migrated")
elif port:
    ask(port, "insert into users values ('ann')")
    assert "ann" in ask(port, "select name from users")
    print("tested on a database")
else:
    where = os.path.relpath(sys.prefix, os.getcwd())
    print("tested with", where, "DEBUG", os.environ.get("DEBUG"))
"""

MAKEFILE = """
deps:
\t@mkdir -p vendor && echo installed > vendor/stamp
lint:
\t@python3 -m tabnanny -v app.py
test:
\t@test -e vendor/stamp && python3 -m unittest -q check
build: dist/app.py
dist/app.py: vendor/stamp
\t@mkdir -p dist/js && cp app.py dist/app.py && echo bundle > dist/js/bundle.js
broken:
\t@echo this cannot be built >&2; exit 7
"""

CHECK = """
import unittest


class Check(unittest.TestCase):
    def test_it(self):
        import app
        self.assertEqual(app.answer(), 42)
"""

APP = """
import os


def answer():
    return 42


if __name__ == "__main__":
    print("DEBUG", os.environ.get("DEBUG"))
"""

COUNT = """total = 0
for n in range(3):
    total += n
print("total", total)
"""
"""A program to walk through with a debugger."""

TESTER = """
import sys, unittest


def main():
    sys.path.insert(0, "")
    found = unittest.defaultTestLoader.discover(*sys.argv[1:2] or ["."], "*check.py")
    result = unittest.TextTestRunner(stream=sys.stdout).run(found)
    with open("coverage.xml", "w") as report:
        report.write("<coverage tests='%d'/>\\n" % result.testsRun)
    return 0 if result.wasSuccessful() else 1
"""
"""What the guides use pytest for, installed from a directory: tests have no network."""


def wheel(name, module):
    """A wheel with one module and its program, as bytes."""
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": module,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return made.getvalue()


WEB = {
    "README.md": "# A web project\n",
    "app.py": APP,
    "check.py": CHECK,
    "count.py": COUNT,
    "Makefile": MAKEFILE,
    "settings.sh": "MODE=from-file\n",
    "requirements.txt": "tester==1.0\n",
    "wheels/tester-1.0-py3-none-any.whl": wheel("tester", TESTER),
    "backend/store.py": STORE,
    "backend/ask.py": ASK,
    "backend/manage.py": MANAGE,
    "frontend/index.html": "<title>front</title>\n",
}

INSTALL = "install --no-index --find-links /workspace/wheels --disable-pip-version-check"
"""What comes after `pip`."""


def written(root, files):
    """Makes the files of a project below a directory; scripts can be executed."""
    for name, content in files.items():
        target = pathlib.Path(root, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        data = content if isinstance(content, bytes) else content.encode()
        target.write_bytes(data)
        target.chmod(0o755 if data.startswith(b"#!") else 0o644)
    return str(root)


def serve(session, port, database=":memory:"):
    """Starts the service in the background of a session, and waits until it answers."""
    sign = f"/tmp/up-{session.id}-{port}"
    started = session.exec(f"python3 /workspace/backend/store.py {port} {database} {sign} &")
    assert started.exit_code == 0, started.output
    assert session.exec(f"until [ -e {sign} ]; do sleep 0.02; done", timeout=60).success


def ask(port, text):
    """The command that asks the service."""
    return f"python3 /workspace/backend/ask.py {port} {text}"
