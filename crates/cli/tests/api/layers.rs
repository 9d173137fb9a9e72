//! What was changed in a sandbox, and writing it back to the codebase.

use ringfence_wire::v1::{self, Permission};
use tonic::Code;

use crate::support::{Server, require_sandbox, rule, said};

async fn diff(server: &Server, id: &str) -> String {
    let wanted = v1::ChangesRequest { sandbox_id: id.into() };
    let found = server.workspaces().diff(wanted).await.unwrap().into_inner().diff;
    String::from_utf8(found.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_and_diff_are_the_same_running_and_stopped() {
    require_sandbox!();
    let server = Server::start().await;
    let codebase = server.codebase(&[("a.txt", "one\n"), ("b.txt", "b\n")]).await;
    let id = server.running(&codebase, &[]).await;
    server.exec(&id, "echo two >> a.txt; rm b.txt; echo n > new.txt").await;
    let (changes, text) = (server.changes(&id).await, diff(&server, &id).await);
    assert_eq!(changes, ["modified /a.txt", "deleted /b.txt", "added /new.txt"]);
    assert!(text.contains("+two") && text.contains("-b"), "{text}");
    server.stop_sandbox(&id).await;
    assert_eq!(server.changes(&id).await, changes);
    assert_eq!(diff(&server, &id).await, text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_codebase_gets_a_new_version_and_others_keep_theirs() {
    require_sandbox!();
    let server = Server::start().await;
    let codebase = server.codebase(&[("a.txt", "a"), ("run.sh", "x"), ("sealed", "s")]).await;
    let other = server.running(&codebase, &[]).await;
    let id = server.running(&codebase, &[rule(Permission::Read, "/sealed")]).await;
    server.exec(&id, "echo -n new > a.txt; chmod 755 run.sh; mkdir d; echo -n y > d/y").await;
    server.write(&id, "sealed", "the owner may, the agent may not").await.unwrap();
    let tried = server.apply(&id, false, true).await.unwrap();
    assert!(!tried.written && tried.conflicts.is_empty(), "{tried:?}");
    assert_eq!(server.download(&codebase, "a.txt").await.unwrap(), "a");
    let applied = server.apply(&id, false, false).await.unwrap();
    assert!(applied.written, "{applied:?}");
    let refused: Vec<_> = applied.refused.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(refused, ["/sealed"]);
    assert_eq!(server.download(&codebase, "a.txt").await.unwrap(), "new");
    assert_eq!(server.download(&codebase, "sealed").await.unwrap(), "s");
    assert_eq!(server.listed(&codebase, "/").await.unwrap(), ["a.txt", "d/y", "run.sh", "sealed"]);
    // Who stands on the old version sees nothing of it, not even a mode.
    assert_eq!(
        server.exec(&other, "cat a.txt; ls; stat -c %a run.sh").await,
        "aa.txt\nrun.sh\nsealed\n644\n"
    );
    // To go on and apply again is no conflict; and stopped it is the same.
    server.stop_sandbox(&id).await;
    server.write(&id, "a.txt", "newer").await.unwrap();
    assert!(server.apply(&id, false, false).await.unwrap().written);
    assert_eq!(server.download(&codebase, "a.txt").await.unwrap(), "newer");
    // What somebody else has changed since still is.
    server.upload(&codebase, "a.txt", "uploaded").await.unwrap();
    server.write(&id, "a.txt", "newest").await.unwrap();
    assert_eq!(said(server.apply(&id, false, false).await).2["paths"], "/a.txt");
    let third = server.running(&codebase, &[]).await;
    assert_eq!(server.exec(&third, "cat a.txt d/y; stat -c %a run.sh").await, "uploadedy755\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changed_on_both_sides_is_a_conflict_and_nothing_is_written() {
    require_sandbox!();
    let server = Server::start().await;
    let codebase = server.codebase(&[("a.txt", "a"), ("b.txt", "b")]).await;
    let id = server.sandbox(&codebase, &[]).await;
    server.write(&id, "a.txt", "from the sandbox").await.unwrap();
    server.write(&id, "b.txt", "from the sandbox").await.unwrap();
    server.upload(&codebase, "a.txt", "from outside").await.unwrap();
    let tried = server.apply(&id, false, true).await.unwrap();
    assert_eq!(tried.conflicts, ["/a.txt"]);
    let (code, reason, details) = said(server.apply(&id, false, false).await);
    assert_eq!((code, reason.as_str()), (Code::FailedPrecondition, "APPLY_CONFLICT"));
    assert_eq!(details["paths"], "/a.txt");
    assert_eq!(server.download(&codebase, "a.txt").await.unwrap(), "from outside");
    assert_eq!(server.download(&codebase, "b.txt").await.unwrap(), "b");
    assert!(server.apply(&id, true, false).await.unwrap().written);
    assert_eq!(server.download(&codebase, "a.txt").await.unwrap(), "from the sandbox");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_used_in_place_is_written_when_the_sandbox_is_stopped() {
    require_sandbox!();
    let server = Server::start().await;
    let (project, outside) = (server.directory("project"), server.directory("outside"));
    std::fs::write(project.join("a.txt"), "a").unwrap();
    std::fs::create_dir(project.join("d")).unwrap();
    let codebase = server.in_place(&project).await;
    let id = server.running(&codebase, &[]).await;
    server.exec(&id, "echo -n new > a.txt; echo -n planted > d/f").await;
    assert_eq!(said(server.apply(&id, false, false).await).1, "SANDBOX_RUNNING");
    assert_eq!(server.apply(&id, false, true).await.unwrap().applied.len(), 2);
    server.stop_sandbox(&id).await;
    // A symlink in the target is replaced if need be, and never followed.
    std::fs::remove_dir(project.join("d")).unwrap();
    std::os::unix::fs::symlink(&outside, project.join("d")).unwrap();
    assert!(server.apply(&id, true, false).await.unwrap().written);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert!(project.join("d").symlink_metadata().unwrap().is_dir());
    assert_eq!(std::fs::read_to_string(project.join("a.txt")).unwrap(), "new");
    assert_eq!(std::fs::read_to_string(project.join("d/f")).unwrap(), "planted");
    server.start_sandbox(&id).await;
    assert_eq!(server.exec(&id, "cat a.txt d/f").await, "newplanted");
    assert_eq!(server.changes(&id).await, Vec::<String>::new());
}
