//! What people really do in a sandbox, in one session each.

use ringfence_link::warden::{Exec, OpenSession, SessionExec};

use crate::support::{Maker, Run, Sandbox, sandbox};

fn step(sandbox: &Sandbox, session: &str, text: &str) -> String {
    let run = sandbox.in_session(session, SessionExec::new(text)).unwrap();
    assert_eq!(run.code(), 0, "{text:?}: {run:?}");
    run.out()
}

fn project() -> Maker {
    Maker::new()
        .file("app/__init__.py", "")
        .file("app/sums.py", "def add(a, b):\n    return a + b\n")
        .file(
            "tests/test_sums.py",
            "import unittest\nfrom app.sums import add\n\nclass Sums(unittest.TestCase):\n    \
             def test_add(self):\n        self.assertEqual(add(40, 2), 42)\n",
        )
}

/// A server that answers with what it was told last, and a way to ask it.
const STORE: &str = r#"
import socketserver, sqlite3
db = sqlite3.connect("/tmp/store.db", check_same_thread=False, isolation_level=None)
db.execute("create table if not exists kv (k text primary key, v text)")
class Store(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            word = line.decode().split()
            if word[0] == "set":
                db.execute("insert or replace into kv values (?, ?)", word[1:3])
                self.wfile.write(b"ok\n")
            else:
                row = db.execute("select v from kv where k = ?", word[1:2]).fetchone()
                self.wfile.write(((row[0] if row else "none") + "\n").encode())
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("127.0.0.1", 5433), Store).serve_forever()
"#;

const ASK: &str = r#"
import socket, sys, time
for attempt in range(400):
    try:
        s = socket.create_connection(("127.0.0.1", 5433), 5)
        break
    except OSError:
        time.sleep(0.05)
s.sendall((" ".join(sys.argv[1:]) + "\n").encode())
print(s.makefile().readline().strip())
"#;

#[test]
fn a_virtualenv_is_made_activated_and_used_over_several_calls() {
    let sandbox = sandbox!(project());
    step(&sandbox, "default", "python3 -m venv --without-pip venv");
    step(&sandbox, "default", "source venv/bin/activate");
    assert_eq!(step(&sandbox, "default", "command -v python"), "/workspace/venv/bin/python\n");
    let prefix = step(&sandbox, "default", "python -c 'import sys; print(sys.prefix)'");
    assert_eq!(prefix, "/workspace/venv\n");
    step(&sandbox, "default", "cd tests/..");
    let run =
        sandbox.in_session("default", SessionExec::new("python -m unittest tests/test_sums.py"));
    assert!(run.unwrap().err().contains("Ran 1 test"));
    step(&sandbox, "default", "deactivate");
    assert_ne!(step(&sandbox, "default", "command -v python3"), "/workspace/venv/bin/python3\n");
}

#[test]
fn a_server_in_the_background_answers_everyone_in_the_sandbox() {
    let sandbox = sandbox!(Maker::new().file("index.txt", "served"));
    step(&sandbox, "default", "python3 -m http.server 8000 --bind 127.0.0.1 >/tmp/log 2>&1 &");
    let ask = "python3 - <<'PY'
import time, urllib.request
for attempt in range(400):
    try:
        print(urllib.request.urlopen('http://127.0.0.1:8000/index.txt', timeout=5).read().decode())
        break
    except OSError:
        time.sleep(0.05)
PY";
    assert_eq!(step(&sandbox, "default", ask), "served\n");
    let other =
        sandbox.open(OpenSession { shell: Some("sh".into()), ..Default::default() }).unwrap();
    assert_eq!(step(&sandbox, &other.id, ask), "served\n");
    assert_eq!(sandbox.ok(ask), "served\n");
    step(&sandbox, "default", "kill %1");
}

#[test]
fn a_database_server_in_the_background_keeps_what_it_is_told() {
    let sandbox = sandbox!(Maker::new().file("store.py", STORE).file("ask.py", ASK));
    step(&sandbox, "default", "python3 store.py &");
    assert_eq!(step(&sandbox, "default", "python3 ask.py set colour green"), "ok\n");
    let other = sandbox.open(OpenSession::default()).unwrap();
    assert_eq!(step(&sandbox, &other.id, "python3 ask.py get colour"), "green\n");
    assert_eq!(sandbox.ok("python3 ask.py get colour"), "green\n");
    step(&sandbox, "default", "kill $! && wait $! || true; python3 store.py &");
    assert_eq!(sandbox.ok("python3 ask.py get colour"), "green\n");
}

#[test]
fn programs_that_read_their_input_see_its_end() {
    let sandbox = sandbox!();
    for text in
        ["cat", "python3 -c 'import sys; print(len(sys.stdin.read()))'", "read x; true", "wc -c"]
    {
        let run = sandbox.in_session("default", SessionExec::new(text)).unwrap();
        assert_eq!(run.code(), 0, "{text}: {run:?}");
    }
    assert_eq!(sandbox.ok("cat; echo end"), "end\n");
}

#[test]
fn a_c_program_is_edited_built_and_run() {
    let program = "int puts(const char*);\nint main(){puts(\"one\");}\n";
    let sandbox = sandbox!(Maker::new().file("hello.c", program));
    step(&sandbox, "default", "cc -o hello hello.c");
    assert_eq!(step(&sandbox, "default", "./hello"), "one\n");
    step(&sandbox, "default", "sed -i s/one/two/ hello.c && make hello CFLAGS=");
    assert_eq!(step(&sandbox, "default", "./hello"), "two\n");
    assert!(std::fs::read_to_string(sandbox.config.base.join("hello.c")).unwrap().contains("one"));
}

#[test]
fn git_works_in_a_session() {
    let sandbox = sandbox!(project());
    step(
        &sandbox,
        "default",
        "git init -q . && git config user.name a && git config user.email a@b",
    );
    step(&sandbox, "default", "git add -A && git commit -qm first");
    step(&sandbox, "default", "echo x >> app/sums.py");
    assert_eq!(step(&sandbox, "default", "git status --short"), " M app/sums.py\n");
    step(&sandbox, "default", "git stash -q && git checkout -qb other && git stash pop -q");
    assert_eq!(step(&sandbox, "default", "git branch --show-current"), "other\n");
}

#[test]
fn an_archive_goes_through_exec_byte_for_byte() {
    let sandbox = sandbox!(project());
    let packed: Run = sandbox.sh("tar c . | gzip -n");
    assert_eq!(packed.code(), 0);
    let unpack =
        Exec::shell("mkdir /tmp/copy && tar xz -C /tmp/copy && diff -r . /tmp/copy && echo same");
    let run = sandbox.exec_with_input(unpack, &packed.stdout).unwrap();
    assert_eq!(run.out(), "same\n", "{run:?}");
}
