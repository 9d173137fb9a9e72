//! `ringfence process` and `ringfence token`.

use serde_json::json;

use crate::support::{Server, failed, require_sandbox, ringfence, text};

#[test]
fn a_process_is_started_waited_for_and_read() {
    require_sandbox!();
    let server = Server::start();
    let id = server.sandbox();
    let script = "echo starting; echo up; read line; echo bad >&2; exit 3";
    let start = ["process", "start", &id, "--id", "web", "--", "sh", "-c", script];
    assert_eq!(server.says(&start), "web");
    let wait = ["process", "wait", &id, "web", "--timeout", "60s"];
    assert_eq!(server.says(&[&wait[..], &["--text", "up"]].concat()), "up");
    // Nothing is there to read, so it ends; and whoever waits ends as it did.
    assert_eq!(server.ask(&wait).status.code(), Some(3));
    let log = server.ask(&["process", "log", "-f", &id, "web"]);
    assert_eq!(text(&log.stdout), "starting\nup\n");
    assert_eq!(text(&log.stderr), "bad\n");
    let listed = server.json(&["process", "ls", &id]);
    assert_eq!((&listed[0]["id"], &listed[0]["state"]["exitCode"]), (&json!("web"), &json!(3)));
    failed(&server.ask(&[&wait[..], &["--text", "never"]].concat()), 1, &["error: "]);
    failed(&server.ask(&["process", "kill", &id, "other"]), 2, &["hint: `ringfence process ls"]);
}

#[test]
fn tokens_are_made_listed_and_revoked_with_a_server_and_without() {
    let server = Server::start();
    let secret = server.says(&["token", "create", "team", "--label", "laptop"]);
    let tokens = server.json(&["token", "ls"]);
    assert_eq!((&tokens[0]["account"], &tokens[0]["label"]), (&json!("team"), &json!("laptop")));
    assert!(!secret.is_empty() && !tokens.to_string().contains(&secret));

    let alone = tempfile::tempdir().unwrap();
    let state = alone.path().to_str().unwrap();
    let says = |args: &[&str]| {
        let output = ringfence(&[args, &["--state", state]].concat()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    says(&["token", "create", "team"]);
    let list = || serde_json::from_str::<serde_json::Value>(&says(&["token", "ls", "--json"]));
    let id = list().unwrap()[0]["id"].as_str().unwrap().to_owned();
    says(&["token", "revoke", &id]);
    assert!(list().unwrap()[0]["revokedAt"].is_string());
}
