"""Small projects in the shape of those that the guides speak of, from what Debian has."""

import datetime
import io
import zipfile

# One program for every service of the guides that must run in the background: it answers PING, and
# executes everything else as SQL.
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

ASK = """
import socket, sys

def ask(port, text):
    with socket.create_connection(("127.0.0.1", port), timeout=5) as line:
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
    ask(port, "create table users (name text)")
    print("migrated")
elif port:
    ask(port, "insert into users values ('ann')")
    assert ask(port, "select name from users") == "[('ann',)]"
    print("1 test passed on a database")
else:
    where = os.path.relpath(sys.prefix, os.getcwd())
    print("1 test passed with", where, "DEBUG", os.environ.get("DEBUG"))
"""

MAKEFILE = """
all: build test
deps:
\tmkdir -p vendor && echo installed > vendor/stamp
lint:
\tpython3 -m py_compile app.py && echo clean
test: vendor/stamp
\tpython3 -m unittest -q check && echo passed
vendor/stamp: deps
build:
\tmkdir -p dist/js && cp app.py dist/app.py && echo bundle > dist/js/bundle.js
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
def answer():
    return 42

if __name__ == "__main__":
    import os
    print("DEBUG", os.environ.get("DEBUG"))
"""

WEB_PROJECT = {
    "README.md": "# A web project\n",
    "app.py": APP,
    "check.py": CHECK,
    "Makefile": MAKEFILE,
    "backend/store.py": STORE,
    "backend/ask.py": ASK,
    "backend/manage.py": MANAGE,
    "frontend/index.html": "<title>front</title>\n",
}


def wheel(name, module):
    """A wheel that holds one module, as bytes: what `pip install` takes without a network."""
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


# Finds the tests of a directory and runs them: what the guides use pytest for.
TESTER = """
import sys, unittest

def main():
    where = sys.argv[1] if len(sys.argv) > 1 else "."
    sys.path.insert(0, "")
    found = unittest.defaultTestLoader.discover(where, "*check.py")
    result = unittest.TextTestRunner(stream=sys.stdout).run(found)
    with open("coverage.xml", "w") as report:
        report.write("<coverage tests='%d'/>\\n" % result.testsRun)
    return 0 if result.wasSuccessful() else 1
"""
TESTER_WHEEL = "tester-1.0-py3-none-any.whl"

GUIDE_PROJECT = {
    **WEB_PROJECT,
    TESTER_WHEEL: wheel("tester", TESTER),
    "tests/check.py": CHECK,
    "settings.sh": "MODE=from-file\n",
    "main.py": "total = 0\nfor n in range(3):\n    total += n\nprint('total', total)\n",
}


def write(root, files):
    """Makes the files of a project below a directory."""
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(root)


def serve(session, port, database=":memory:"):
    """Starts the service in the background of a session and waits until it answers."""
    sign = f"/tmp/up-{port}"
    started = session.exec(f"python3 /workspace/backend/store.py {port} {database} {sign} &")
    assert started.exit_code == 0, started.output
    wait = f"until [ -e {sign} ]; do sleep 0.02; done"
    assert session.exec(wait, timeout=datetime.timedelta(seconds=15)).exit_code == 0


def ask(port, text):
    """The command that asks the service."""
    return f"python3 /workspace/backend/ask.py {port} {text}"
