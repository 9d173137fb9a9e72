//! What is said when something cannot be done.

use std::net::TcpListener;

use crate::support::{Server, failed, ringfence};

#[test]
fn without_a_server_it_says_how_to_start_one() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().to_str().unwrap();
    // Whoever listens on the usual port is found; here nobody must.
    if std::net::TcpStream::connect("127.0.0.1:9000").is_ok() {
        eprintln!("skipped: something listens on port 9000");
        return;
    }
    let output = ringfence(&["sandbox", "ls", "--state", state]).output().unwrap();
    failed(&output, 2, &["error: no Ringfence server is running here", "hint: start one with"]);
}

#[test]
fn a_server_that_cannot_be_reached_is_named() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let output = ringfence(&["codebase", "ls", "--endpoint", &free]).output().unwrap();
    failed(&output, 2, &[&free, "refused", "hint: "]);
    let output = ringfence(&["codebase", "ls", "--endpoint", "nonsense"]).output().unwrap();
    failed(&output, 2, &["not the address of a server", "HOST:PORT"]);
}

#[test]
fn refusals_come_with_a_hint_and_without_paths_of_the_host() {
    let server = Server::start();
    let id = "sb_0123456789abcdef";
    let output = server.ask(&["sandbox", "show", id]);
    failed(&output, 2, &["error: sandbox not found", "hint: `ringfence sandbox ls`"]);
    failed(&server.ask(&["sandbox", "exec", id, "--", "true"]), 125, &["sandbox not found"]);
    let codebase = server.ask(&["sandbox", "create", "--codebase", "cb_0123456789abcdef"]);
    failed(&codebase, 2, &["codebase not found", "hint: `ringfence codebase ls`"]);
    let rule = server.ask(&["sandbox", "create", "--codebase", "x", "--rule", "nothing"]);
    failed(&rule, 2, &["error: "]);
    let preset = server.ask(&["sandbox", "create", "--codebase", "x", "--preset", "none"]);
    failed(&preset, 2, &["there is no preset", "hint: the presets are"]);
    let label = server.ask(&["sandbox", "create", "--codebase", "x", "--label", "x"]);
    failed(&label, 2, &["is not a label", "KEY=VALUE"]);
}
