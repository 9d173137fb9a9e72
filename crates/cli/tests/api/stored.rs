//! The file calls of a codebase: to its stored files, or to its one started sandbox.

use std::os::unix::fs::PermissionsExt;

use tonic::Code;

use crate::support::{Server, require_sandbox, said};

#[tokio::test(flavor = "multi_thread")]
async fn they_go_to_the_workspace_while_exactly_one_sandbox_has_been_started() {
    require_sandbox!();
    let server = Server::start().await;
    let codebase = server.codebase(&[("a.txt", "stored")]).await;
    let first = server.sandbox(&codebase, &[]).await;
    // None has been started.
    server.write(&first, "a.txt", "workspace").await.unwrap();
    assert_eq!(server.download(&codebase, "a.txt").await.unwrap(), "stored");
    // One has.
    server.start_sandbox(&first).await;
    server.exec(&first, "mkdir -p output/sub; echo made > output/sub/report.txt").await;
    assert_eq!(server.download(&codebase, "/workspace/a.txt").await.unwrap(), "workspace");
    assert_eq!(server.listed(&codebase, "/workspace/output").await.unwrap(), ["sub/report.txt"]);
    let uploaded = server.upload(&codebase, "in/new.txt", "hello").await.unwrap();
    assert_eq!(
        (uploaded.size, uploaded.checksum.as_str()),
        (5, "5d41402abc4b2a76b9719d911017c592")
    );
    assert_eq!(uploaded.blake3, blake3::hash(b"hello").to_hex().to_string());
    assert_eq!(server.exec(&first, "cat in/new.txt").await, "hello");
    let missing = said(server.listed(&codebase, "/workspace/none").await);
    assert_eq!((missing.0, missing.1.as_str()), (Code::NotFound, "FILE_NOT_FOUND"));
    // It need not run.
    server.stop_sandbox(&first).await;
    assert_eq!(server.download(&codebase, "in/new.txt").await.unwrap(), "hello");
    // Two have.
    let second = server.running(&codebase, &[]).await;
    assert_eq!(server.download(&codebase, "a.txt").await.unwrap(), "stored");
    assert_eq!(said(server.download(&codebase, "in/new.txt").await).0, Code::NotFound);
    // One again.
    server.destroy_sandbox(&second).await;
    assert_eq!(server.download(&codebase, "a.txt").await.unwrap(), "workspace");
    server.destroy_sandbox(&first).await;
    assert_eq!(server.listed(&codebase, "/").await.unwrap(), ["a.txt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_are_uploaded_can_be_executed_and_bad_names_are_refused_on_both_ways() {
    require_sandbox!();
    let server = Server::start().await;
    let codebase = server.codebase(&[]).await;
    let id = server.sandbox(&codebase, &[]).await;
    for running in [false, true] {
        if running {
            server.start_sandbox(&id).await;
        }
        server.upload(&codebase, "bin/run", "#!/bin/sh\necho ran").await.unwrap();
        server.upload(&codebase, "bin/text", "echo").await.unwrap();
        for path in ["../x", "/workspace/../../x", "", "a/.."] {
            let refused = said(server.upload(&codebase, path, "x").await);
            assert_eq!(refused.1, "INVALID_ARGUMENT", "{path:?}");
        }
    }
    assert_eq!(server.exec(&id, "bin/run; stat -c %a bin/text").await, "ran\n644\n");
    let stored = server.state().join("codebases").join(&codebase).join("versions");
    let newest = std::fs::read_dir(stored).unwrap().next().unwrap().unwrap().path();
    let mode = newest.join("bin/run").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
}
