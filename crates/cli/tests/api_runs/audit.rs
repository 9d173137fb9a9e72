//! The record of what happened: live, later, after the end, and whether it is whole.

use std::path::Path;

use ringfence_wire::v1;
use tonic::Code;

use crate::support::{Sandbox, Server, next, refused, require_sandbox, rest, within};

const FILES: [&str; 2] = ["journal.jsonl", "journal.head"];

fn all() -> v1::AuditRequest {
    v1::AuditRequest::default()
}

#[tokio::test]
async fn events_come_in_order_as_they_happen_until_the_sandbox_is_destroyed() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    let mut follower = sandbox.events(v1::AuditRequest { follow: true, ..all() }).await;
    let first = next(&mut follower).await;
    assert_eq!((first.sequence, first.kind.as_str()), (1, "journal_created"));
    assert!(first.time.is_some());
    sandbox.ok("echo marked-by-this-test").await;
    let mut seen = vec![first];
    while !seen.last().unwrap().json.contains("marked-by-this-test") {
        seen.push(next(&mut follower).await);
    }
    sandbox.stop().await;
    sandbox.start_again().await;
    sandbox.destroy().await;
    seen.extend(rest(&mut follower).await);
    let numbers: Vec<i64> = seen.iter().map(|event| event.sequence).collect();
    assert_eq!(numbers, (1..=seen.len() as i64).collect::<Vec<_>>());
    let starts = seen.iter().filter(|event| event.kind == "sandbox_started").count();
    assert_eq!((starts, seen.last().unwrap().kind.as_str()), (2, "sandbox_ended"));
    for event in &seen {
        let json: serde_json::Value = serde_json::from_str(&event.json).unwrap();
        assert_eq!(
            (json["seq"].as_i64(), json["kind"].as_str()),
            (Some(event.sequence), Some(event.kind.as_str()))
        );
    }
}

#[tokio::test]
async fn a_reader_begins_where_it_says_and_sees_refusals_only_if_it_asks() {
    require_sandbox!();
    let server = Server::start().await;
    let rule = v1::PermissionRule {
        pattern: "/secret".into(),
        permission: v1::Permission::None.into(),
        priority: 1000,
        ..Default::default()
    };
    let sandbox = Sandbox::start(&server.tcp, &[rule]).await;
    sandbox.ok("echo fine > /workspace/open; cat /workspace/secret || true").await;
    sandbox.stop().await;
    let whole = rest(&mut sandbox.events(all()).await).await;
    let later = v1::AuditRequest { after: 2, ..all() };
    assert_eq!(rest(&mut sandbox.events(later).await).await, whole[2..]);
    let denied = v1::AuditRequest { denied: true, ..all() };
    let denied = rest(&mut sandbox.events(denied).await).await;
    assert!(!denied.is_empty(), "{whole:?}");
    assert!(denied.iter().all(|event| event.json.contains("\"denied\"")), "{denied:?}");
    assert!(denied.len() < whole.len());
}

#[tokio::test]
async fn the_record_outlives_the_sandbox_and_the_server() {
    require_sandbox!();
    let mut server = Server::start().await;
    let sandbox = server.sandbox().await;
    sandbox.ok("echo kept").await;
    sandbox.destroy().await;
    sandbox.destroy().await;
    assert!(!server.state("sandboxes").join(&sandbox.id).exists());
    let before = rest(&mut sandbox.events(all()).await).await;
    assert_eq!(before.last().unwrap().kind, "sandbox_ended");
    server.kill_and_restart().await;
    let sandbox = Sandbox::at(&server.tcp, &sandbox.id);
    assert_eq!(rest(&mut sandbox.events(all()).await).await, before);
    let verdict = sandbox.verdict().await;
    assert!(verdict.intact && verdict.events == before.len() as i64, "{verdict:?}");
}

#[tokio::test]
async fn a_server_killed_while_it_destroys_leaves_nothing_without_an_owner() {
    require_sandbox!();
    let mut server = Server::start().await;
    let sandbox = server.sandbox().await;
    // As after the first step: the journal is put aside, and the sandbox is still on record.
    let aside = server.state("journals").join(&sandbox.id);
    std::fs::create_dir_all(&aside).unwrap();
    let dir = server.state("sandboxes").join(&sandbox.id);
    for name in FILES {
        std::fs::hard_link(dir.join(name), aside.join(name)).unwrap();
    }
    server.kill_and_restart().await;
    assert!(!aside.exists());
    let sandbox = Sandbox::at(&server.tcp, &sandbox.id);
    sandbox.ok("true").await;
    sandbox.destroy().await;
    // As after the second: it is off the record, and its directory is still there.
    std::fs::create_dir_all(dir.join("home")).unwrap();
    server.kill_and_restart().await;
    assert!(!dir.exists());
    assert!(Sandbox::at(&server.tcp, &sandbox.id).verdict().await.intact);
}

#[tokio::test]
async fn tampering_is_noticed_and_named() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    sandbox.ok("echo something-that-happened").await;
    sandbox.destroy().await;
    assert!(sandbox.verdict().await.intact);
    let journal = server.state("journals").join(&sandbox.id).join(FILES[0]);
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, text.replace("something-that-happened", "nothing-that-happened"))
        .unwrap();
    let verdict = sandbox.verdict().await;
    assert!(!verdict.intact && verdict.problem.contains("entry 3"), "{verdict:?}");
    assert_eq!(verdict.events, 2, "so many are good");
    std::fs::write(&journal, text).unwrap();
    assert!(sandbox.verdict().await.intact);
}

#[tokio::test]
async fn an_older_record_in_the_place_of_the_real_one_is_noticed() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    sandbox.stop().await;
    let (dir, older) = (server.state("sandboxes").join(&sandbox.id), tempfile::tempdir().unwrap());
    copy(&dir, older.path());
    sandbox.start_again().await;
    sandbox.ok("echo what somebody wants to hide").await;
    sandbox.stop().await;
    copy(older.path(), &dir);
    let verdict = sandbox.verdict().await;
    assert!(!verdict.intact && verdict.problem.contains("truncated"), "{verdict:?}");
    let asked = v1::StartSandboxRequest { sandbox_id: sandbox.id.clone() };
    let started = within(sandbox.sandboxes.clone().start_sandbox(asked)).await;
    refused(started, Code::FailedPrecondition, "UNSUPPORTED");
    sandbox.destroy().await;
    let verdict = sandbox.verdict().await;
    assert!(!verdict.intact, "the end of the sandbox does not make it good: {verdict:?}");
}

fn copy(from: &Path, to: &Path) {
    for name in FILES {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

#[tokio::test]
async fn what_never_was_has_no_record() {
    require_sandbox!();
    let server = Server::start().await;
    let mut sandbox = server.sandbox().await;
    for id in ["sb_0000000000000000", "../x", "sb_../../etc"] {
        let asked = v1::AuditRequest { sandbox_id: id.into(), ..all() };
        let result = within(sandbox.audit.audit(asked)).await.map(|_| ());
        refused(result, Code::NotFound, "SANDBOX_NOT_FOUND");
        let asked = v1::VerifyAuditRequest { sandbox_id: id.into() };
        let result = within(sandbox.audit.verify_audit(asked)).await;
        refused(result, Code::NotFound, "SANDBOX_NOT_FOUND");
    }
}
