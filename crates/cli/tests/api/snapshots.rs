//! Snapshots and forks: layers that stay, and what stands on them.

use ringfence_wire::v1;
use tonic::Code;

use crate::support::{Server, require_sandbox, said};

fn layers(server: &Server) -> usize {
    let all = std::fs::read_dir(server.state().join("layers")).unwrap();
    all.filter(|entry| entry.as_ref().unwrap().file_name() != "trash").count()
}

async fn from_snapshot(server: &Server, codebase: &str, snapshot: &str) -> String {
    let wanted = v1::CreateSandboxRequest {
        codebase_id: codebase.into(),
        snapshot_id: snapshot.into(),
        preset: "full-access".into(),
        ..Default::default()
    };
    server.sandboxes().create_sandbox(wanted).await.unwrap().into_inner().id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_goes_back_to_a_snapshot_that_was_taken_while_it_ran() {
    require_sandbox!();
    let server = Server::start().await;
    let codebase = server.codebase(&[("a.txt", "base")]).await;
    let id = server.running(&codebase, &[]).await;
    server.exec(&id, "echo -n then > a.txt; echo kept > kept.txt").await;
    let snapshot = server.snapshot(&id).await;
    server.exec(&id, "echo -n later > a.txt; rm kept.txt; echo n > new.txt").await;
    assert_eq!(said(server.restore(&id, &snapshot).await).1, "SANDBOX_RUNNING");
    server.stop_sandbox(&id).await;
    server.restore(&id, &snapshot).await.unwrap();
    assert_eq!(server.read(&id, "a.txt").await.unwrap(), "then");
    server.start_sandbox(&id).await;
    assert_eq!(server.exec(&id, "cat a.txt; ls").await, "thena.txt\nkept.txt\n");
    // And again, as often as one likes.
    server.exec(&id, "echo -n other > a.txt").await;
    server.stop_sandbox(&id).await;
    server.restore(&id, &snapshot).await.unwrap();
    assert_eq!(server.read(&id, "a.txt").await.unwrap(), "then");
    assert_eq!(layers(&server), 2, "what was given up is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn forks_begin_with_the_same_files_and_do_not_see_each_other() {
    require_sandbox!();
    let server = Server::start().await;
    let codebase = server.codebase(&[("a.txt", "base")]).await;
    let first = server.running(&codebase, &[]).await;
    server.exec(&first, "echo -n shared > s.txt; echo own > /tmp/own; echo own > ~/own").await;
    let second = server.fork(&first).await;
    let third = server.fork(&second).await;
    for (id, text) in [(&second, "second"), (&third, "third")] {
        server.start_sandbox(id).await;
        server.exec(id, &format!("cat s.txt; echo -n {text} > a.txt; ! ls /tmp/own ~/own")).await;
    }
    server.exec(&first, "echo -n first > a.txt").await;
    for (id, text) in [(&first, "first"), (&second, "second"), (&third, "third")] {
        assert_eq!(server.exec(id, "cat s.txt a.txt").await, format!("shared{text}"));
    }
    // What they stand on outlives the one it was taken of.
    server.destroy_sandbox(&first).await;
    server.destroy_sandbox(&second).await;
    assert_eq!(server.exec(&third, "cat s.txt a.txt").await, "sharedthird");
    server.destroy_sandbox(&third).await;
    assert_eq!(layers(&server), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_outlives_its_sandbox_and_is_kept_while_others_stand_on_it() {
    require_sandbox!();
    let server = Server::start().await;
    let codebase = server.codebase(&[("a.txt", "base")]).await;
    let id = server.sandbox(&codebase, &[]).await;
    server.write(&id, "a.txt", "then").await.unwrap();
    let snapshot = server.snapshot(&id).await;
    server.destroy_sandbox(&id).await;
    // Neither the codebase nor the version it was taken of go away.
    server.upload(&codebase, "a.txt", "uploaded").await.unwrap();
    let other = from_snapshot(&server, &codebase, &snapshot).await;
    let refused = said(server.delete_snapshot(&snapshot).await);
    assert_eq!((refused.0, refused.1.as_str()), (Code::FailedPrecondition, "SNAPSHOT_IN_USE"));
    server.start_sandbox(&other).await;
    assert_eq!(server.exec(&other, "cat a.txt").await, "then");
    server.destroy_sandbox(&other).await;
    server.delete_snapshot(&snapshot).await.unwrap();
    assert_eq!(said(server.delete_snapshot(&snapshot).await).1, "SNAPSHOT_NOT_FOUND");
    assert_eq!(layers(&server), 0);
    let listed = v1::ListSnapshotsRequest { codebase_id: codebase, ..Default::default() };
    let listed = server.workspaces().list_snapshots(listed).await.unwrap().into_inner();
    assert_eq!(listed.snapshots, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_a_deleted_snapshot_was_taken_of_keeps_its_files() {
    require_sandbox!();
    let mut server = Server::start().await;
    let codebase = server.codebase(&[]).await;
    let id = server.running(&codebase, &[]).await;
    server.exec(&id, "echo -n one > f").await;
    let snapshot = server.snapshot(&id).await;
    server.exec(&id, "echo -n two >> f").await;
    server.delete_snapshot(&snapshot).await.unwrap();
    assert_eq!(server.exec(&id, "cat f").await, "onetwo");
    server.kill_and_restart().await;
    assert_eq!(server.exec(&id, "cat f").await, "onetwo");
    server.stop_sandbox(&id).await;
    assert_eq!(server.read(&id, "f").await.unwrap(), "onetwo");
}

/// What a server leaves that is killed after the layer was frozen and before its record followed.
#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_goes_on_after_a_snapshot_that_was_interrupted() {
    require_sandbox!();
    let mut server = Server::start().await;
    let codebase = server.codebase(&[]).await;
    let id = server.running(&codebase, &[]).await;
    server.exec(&id, "echo -n before > f").await;
    let socket = server.state().join("sandboxes").join(&id).join("warden.sock");
    let next = server.state().join("layers/ly_00000000000000aa");
    let path = next.to_str().unwrap().as_bytes().to_vec();
    let freeze = ringfence_link::warden::Request::Freeze { path };
    ringfence_link::client::Client::new(&socket).ask(freeze).unwrap();
    server.exec(&id, "echo -n after >> f").await;
    server.kill_and_restart().await;
    assert_eq!(server.exec(&id, "cat f").await, "beforeafter");
    server.stop_sandbox(&id).await;
    assert_eq!(server.read(&id, "f").await.unwrap(), "beforeafter");
    server.start_sandbox(&id).await;
    assert_eq!(server.exec(&id, "cat f").await, "beforeafter");
}

/// The same for one that does not run: its layer was frozen, and there is no other yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_sandbox_goes_on_too_and_layers_nobody_needs_are_removed() {
    require_sandbox!();
    let mut server = Server::start().await;
    let codebase = server.codebase(&[]).await;
    let id = server.sandbox(&codebase, &[]).await;
    server.write(&id, "f", "before").await.unwrap();
    let layers_dir = server.state().join("layers");
    let own = std::fs::read_dir(&layers_dir).unwrap().map(|entry| entry.unwrap().path());
    let own = own.into_iter().find(|path| !path.ends_with("trash")).unwrap();
    let mut layer = ringfence_fs::layers::format::LayerDir::open(&own).unwrap();
    layer.freeze().unwrap();
    drop(layer);
    std::fs::create_dir_all(layers_dir.join("ly_00000000000000bb/tree")).unwrap();
    server.kill_and_restart().await;
    assert_eq!(layers(&server), 2, "the frozen one and the one it goes on in");
    assert_eq!(server.read(&id, "f").await.unwrap(), "before");
    server.write(&id, "f", "after").await.unwrap();
    server.start_sandbox(&id).await;
    assert_eq!(server.exec(&id, "cat f").await, "after");
}
