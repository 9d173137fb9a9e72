//! `ringfence sandbox` and `ringfence session`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{Server, failed, require_sandbox, text};

#[test]
fn a_command_has_the_streams_and_the_exit_code_it_would_have_here() {
    require_sandbox!();
    let server = Server::start();
    let id = server.sandbox();
    let exec = |script: &str| server.ask(&["sandbox", "exec", &id, "--", "sh", "-c", script]);
    let output = exec("echo out; echo err >&2; exit 7");
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("out\n".into(), "err\n".into()));
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(text(&exec("./sub/run.sh; cat link; ls -d empty").stdout), "ran\nhello\nempty\n");
    assert_eq!(exec("kill -9 $$").status.code(), Some(137));
}

#[test]
fn input_arrives_byte_for_byte_if_it_is_passed_on() {
    require_sandbox!();
    let server = Server::start();
    let id = server.sandbox();
    let bytes: Vec<u8> = (0..1_000_000u32).map(|n| (n * 31 % 251) as u8).collect();
    let output = server.ask_with(&["sandbox", "exec", "-i", &id, "--", "cat"], &bytes);
    assert!(output.stdout == bytes, "{} bytes, {}", output.stdout.len(), text(&output.stderr));
    let output = server.ask_with(&["sandbox", "exec", &id, "--", "wc", "-c"], b"not passed on");
    assert_eq!(text(&output.stdout).trim(), "0");
    // A command that ends without reading does not keep its caller.
    let output = server.ask_with(&["sandbox", "exec", "-i", &id, "--", "true"], &bytes);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn variables_directory_and_time_limit_are_those_that_were_given() {
    require_sandbox!();
    let server = Server::start();
    let id = server.sandbox();
    let printed = server.says(&[
        "sandbox",
        "exec",
        "--env",
        "X=a b",
        "--workdir",
        "/workspace/sub",
        &id,
        "--",
        "sh",
        "-c",
        "echo \"$X\" $PWD",
    ]);
    assert_eq!(printed, "a b /workspace/sub");
    let late = server.ask(&["sandbox", "exec", "--timeout", "100ms", &id, "--", "sleep", "60"]);
    failed(&late, 124, &["the time was up"]);
}

#[test]
fn an_interrupt_is_for_the_command() {
    require_sandbox!();
    let server = Server::start();
    let id = server.sandbox();
    let script = "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.01; done";
    let mut command = server.command(&["sandbox", "exec", &id, "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "caught");
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn a_sandbox_is_listed_shown_stopped_started_and_removed() {
    require_sandbox!();
    let server = Server::start();
    let codebase = server.codebase();
    let create = ["sandbox", "create", "--codebase", &codebase, "--label", "team=a"];
    let id = server.says(&[&create[..], &["--expires", "1h", "--env", "A=1"]].concat());
    let shown = server.json(&["sandbox", "show", &id]);
    assert_eq!(shown["status"], "SANDBOX_STATUS_PENDING");
    assert_eq!((&shown["labels"]["team"], &shown["env"]["A"]), (&"a".into(), &"1".into()));
    assert!(!shown["permissions"].as_array().unwrap().is_empty());
    server.says(&["sandbox", "start", &id]);
    let running = server.json(&["sandbox", "ls", "--status", "running", "--label", "team=a"]);
    assert_eq!(running[0]["id"], id);
    assert_eq!(server.json(&["sandbox", "ls", "--label", "team=b"]), serde_json::json!([]));
    let table = server.says(&["sandbox", "ls"]);
    assert!(table.lines().nth(1).unwrap().starts_with(&format!("{id}  running")), "{table}");
    failed(&server.ask(&["codebase", "rm", &codebase]), 2, &["hint: remove its sandboxes"]);
    server.says(&["sandbox", "stop", &id]);
    let refused = server.ask(&["sandbox", "exec", &id, "--", "true"]);
    failed(&refused, 125, &["not running", "hint: `ringfence sandbox start"]);
    server.says(&["sandbox", "rm", &id]);
    failed(&server.ask(&["sandbox", "show", &id]), 2, &["sandbox not found", "hint: "]);
    server.says(&["codebase", "rm", &codebase]);
}

#[test]
fn a_directory_is_used_in_place_and_never_written_to() {
    require_sandbox!();
    let server = Server::start();
    let tree = server.tree();
    let create = ["sandbox", "create", "--dir", tree.to_str().unwrap(), "--gitignore"];
    let id = server.says(&[&create[..], &["--rule", "write:/**", "--start"]].concat());
    let script = "ls; echo changed > a.txt";
    let printed = server.says(&["sandbox", "exec", &id, "--", "sh", "-c", script]);
    assert!(printed.contains("a.txt") && !printed.contains("noise.log"), "{printed}");
    server.says(&["sandbox", "rm", &id]);
    assert_eq!(std::fs::read_to_string(tree.join("a.txt")).unwrap(), "hello\n");
    assert_eq!(server.json(&["codebase", "ls"]), serde_json::json!([]), "no record is left");
}

#[test]
fn a_session_remembers_and_says_when_its_shell_has_ended() {
    require_sandbox!();
    let server = Server::start();
    let id = server.sandbox();
    let session = server.says(&["session", "create", &id, "--name", "work"]);
    server.says(&["session", "exec", &session, "cd sub; X=3"]);
    let named = ["session", "exec", "work", "--sandbox", &id];
    assert_eq!(server.says(&[&named[..], &["echo $PWD $X"]].concat()), "/workspace/sub 3");
    let sessions = server.json(&["session", "ls", &id]);
    let work = sessions.as_array().unwrap().iter().find(|session| session["name"] == "work");
    assert_eq!(work.unwrap()["cwd"], "/workspace/sub");
    assert_eq!(server.ask(&["session", "exec", &session, "exit 3"]).status.code(), Some(3));
    let closed = server.ask(&["session", "exec", &session, "true"]);
    failed(&closed, 125, &["error: ", "hint: --restart"]);
    assert_eq!(server.says(&["session", "exec", "--restart", &session, "pwd"]), "/workspace/sub");
    server.says(&["session", "rm", &session]);
    failed(&server.ask(&["session", "show", &session]), 2, &["hint: `ringfence session ls"]);
}
