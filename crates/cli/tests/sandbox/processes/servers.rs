//! Servers that other commands of the sandbox talk to.

use ringfence_link::warden::{Code, HttpCheck, ProcessStatus, Reply, Until};

use super::{SIGTERM, http};
use crate::support::{Maker, Sandbox, code_of, sandbox};

/// Waits until something listens at a port, and answers as it should.
fn ready(sandbox: &Sandbox, id: &str, port: u16, http: Option<HttpCheck>) {
    let reply = sandbox.wait(id, Until::Port { port, http });
    assert_eq!(reply.unwrap(), Reply::Ready { line: None });
}

/// That it does not come to that for a while.
fn not_ready(sandbox: &Sandbox, id: &str, port: u16, http: Option<HttpCheck>) {
    let reply = sandbox.wait_for(id, Until::Port { port, http }, 300);
    assert_eq!(code_of(reply), Code::TimedOut);
}

const SERVER: &str = "python3 -u -m http.server 8123 --bind 127.0.0.1";

const DATABASE: &str = r#"
import socketserver, threading
data, lock = {}, threading.Lock()
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            words = line.decode().split()
            with lock:
                if words[0] == "SET": data[words[1]] = words[2]; answer = "OK"
                else: answer = data.get(words[1], "(nil)")
            self.wfile.write((answer + "\n").encode())
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
server = Server(("127.0.0.1", 6399), Handler)
print("ready to accept connections", flush=True)
server.serve_forever()
"#;

const QUERY: &str = r#"
import socket, sys
s = socket.create_connection(("127.0.0.1", 6399)); f = s.makefile("rw")
for line in sys.stdin:
    f.write(line); f.flush(); print(f.readline().strip())
"#;

#[test]
fn a_web_server_is_waited_for_by_its_port_and_reached_by_other_commands() {
    let sandbox = sandbox!(Maker::new().file("page.txt", "from inside"));
    let process = sandbox.start(SERVER);
    let checks = [("/", 200, 399), ("/page.txt", 200, 200), ("/missing", 404, 404)];
    let checks = checks.map(|(path, from, to)| http(path, from, to));
    for check in [None].into_iter().chain(checks) {
        ready(&sandbox, &process.id, 8123, check);
    }
    not_ready(&sandbox, &process.id, 8123, http("/missing", 200, 399));
    let fetch = "python3 -c \"import urllib.request as r
print(r.urlopen('http://127.0.0.1:8123/page.txt').read().decode())\"";
    assert_eq!(sandbox.ok(fetch), "from inside\n");
    assert!(sandbox.line(&process.id, "GET /page.txt").contains("200"));
    sandbox.kill(&process.id, SIGTERM).unwrap();
    assert_eq!(sandbox.ended(&process.id), ProcessStatus::Killed(SIGTERM));
    assert_ne!(sandbox.sh(fetch).code(), 0);
}

#[test]
fn a_server_that_accepts_and_never_answers_is_open_but_not_ready() {
    let sandbox = sandbox!();
    let process = sandbox.start(
        "python3 -c \"import socket, time
s = socket.socket(socket.AF_INET6); s.bind(('::1', 8124)); s.listen()
time.sleep(1000)\"",
    );
    ready(&sandbox, &process.id, 8124, None);
    not_ready(&sandbox, &process.id, 8124, http("/", 200, 399));
}

#[test]
fn a_database_server_keeps_its_data_between_commands() {
    let sandbox = sandbox!(Maker::new().file("db.py", DATABASE).file("query.py", QUERY));
    let process = sandbox.start("exec python3 db.py");
    sandbox.line(&process.id, "ready to accept");
    let query = |text: &str| sandbox.ok(&format!("printf '{text}' | python3 query.py"));
    assert_eq!(query("SET a 1\\nSET b two\\n"), "OK\nOK\n");
    assert_eq!(query("GET a\\nGET b\\nGET c\\n"), "1\ntwo\n(nil)\n");
}
