//! File calls in every state of a sandbox and in both views.

use ringfence_wire::v1::{self, Permission, View};
use tonic::Code;

use crate::support::{Server, require_sandbox, rule, said};

async fn list(server: &Server, id: &str, path: &str, recursive: bool) -> Vec<v1::FileInfo> {
    let (sandbox_id, path) = (id.to_owned(), path.to_owned());
    let wanted = v1::ListDirectoryRequest { sandbox_id, path, recursive, ..Default::default() };
    server.workspaces().list_directory(wanted).await.unwrap().into_inner().files
}

async fn link(
    server: &Server,
    id: &str,
    path: &str,
    target: &str,
) -> Result<v1::FileInfo, tonic::Status> {
    link_as(server, id, path, target, View::Owner).await
}

async fn link_as(
    server: &Server,
    id: &str,
    path: &str,
    target: &str,
    view: View,
) -> Result<v1::FileInfo, tonic::Status> {
    let wanted = v1::MakeSymlinkRequest {
        sandbox_id: id.into(),
        path: path.into(),
        target: target.into(),
        view: view.into(),
        parents: true,
    };
    Ok(server.workspaces().make_symlink(wanted).await?.into_inner())
}

/// A bit of everything.
async fn work(server: &Server, id: &str, tag: &str) {
    let file = |path: &str| v1::FileRequest {
        sandbox_id: id.into(),
        path: path.into(),
        ..Default::default()
    };
    assert_eq!(server.read(id, "/workspace/kept.txt").await.unwrap(), "kept");
    server.write(id, &format!("{tag}/deep/new.txt"), tag).await.unwrap();
    let found = server.workspaces().stat_file(file(&format!("/{tag}/deep/new.txt"))).await;
    let found = found.unwrap().into_inner();
    assert_eq!((found.size, found.mode, found.name.as_str()), (tag.len() as i64, 0o644, "new.txt"));
    assert_eq!(found.full_path, format!("/{tag}/deep/new.txt"));
    let made = server.workspaces().make_directory(file(&format!("{tag}/made/below"))).await;
    assert!(made.unwrap().into_inner().is_dir);
    link(server, id, &format!("{tag}/made/links/up"), "../../../kept.txt").await.unwrap();
    assert_eq!(server.read(id, &format!("{tag}/made/links/up")).await.unwrap(), "kept");
    let (from, to) = (format!("{tag}/deep/new.txt"), format!("/workspace/{tag}/moved.txt"));
    let rename = v1::RenameFileRequest { sandbox_id: id.into(), from, to, ..Default::default() };
    server.workspaces().rename_file(rename).await.unwrap();
    let remove = v1::RemoveFileRequest {
        sandbox_id: id.into(),
        path: format!("{tag}/made"),
        recursive: true,
        ..Default::default()
    };
    server.workspaces().remove_file(remove).await.unwrap();
    let paths: Vec<_> = list(server, id, tag, false).await.into_iter().map(|f| f.path).collect();
    assert_eq!(paths, ["deep", "moved.txt"]);
    let below = list(server, id, "/", true).await;
    let below: Vec<_> = below.iter().map(|file| file.path.as_str()).collect();
    assert!(below.contains(&format!("{tag}/moved.txt").as_str()) && below.is_sorted(), "{below:?}");
    assert!(!below.contains(&tag), "directories are not among files: {below:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_can_be_used_before_during_and_after_a_run_and_nothing_is_lost() {
    require_sandbox!();
    let server = Server::start().await;
    let codebase = server.codebase(&[("kept.txt", "kept")]).await;
    let id = server.sandbox(&codebase, &[]).await;
    work(&server, &id, "pending").await;
    // The version is pinned by now: this is not seen.
    server.upload(&codebase, "late.txt", "late").await.unwrap();
    server.start_sandbox(&id).await;
    assert_eq!(server.exec(&id, "cat pending/moved.txt; ls").await, "pendingkept.txt\npending\n");
    work(&server, &id, "running").await;
    server.stop_sandbox(&id).await;
    work(&server, &id, "stopped").await;
    server.start_sandbox(&id).await;
    let all = server.exec(&id, "cat pending/moved.txt running/moved.txt stopped/moved.txt").await;
    assert_eq!(all, "pendingrunningstopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_hidden_is_not_found_and_what_may_only_be_seen_is_refused_with_the_reason() {
    require_sandbox!();
    let server = Server::start().await;
    let codebase =
        server.codebase(&[("secret/key", "k"), ("shown.txt", "s"), ("ro.txt", "r")]).await;
    let rules = [
        rule(Permission::None, "/secret/**"),
        rule(Permission::View, "/shown.txt"),
        rule(Permission::Read, "/ro.txt"),
    ];
    let id = server.sandbox(&codebase, &rules).await;
    for running in [false, true] {
        if running {
            server.start_sandbox(&id).await;
        }
        let hidden = said(server.read_as(&id, "secret/key", View::Agent).await);
        assert_eq!((hidden.0, hidden.1.as_str()), (Code::NotFound, "FILE_NOT_FOUND"));
        let (code, reason, details) = said(server.read_as(&id, "shown.txt", View::Agent).await);
        assert_eq!((code, reason.as_str()), (Code::PermissionDenied, "PERMISSION_DENIED"));
        assert_eq!(details["path"], "/shown.txt");
        assert_eq!(details["level_needed"], "read");
        assert!(details["rule"].contains("/shown.txt"), "{details:?}");
        let written = said(server.write_as(&id, "ro.txt", "x", View::Agent).await);
        assert_eq!(written.2["level_needed"], "write");
        let linked = said(link_as(&server, &id, "secret/door", "key", View::Agent).await);
        // For the agent there is no directory, and it may not make one.
        assert_eq!((linked.1.as_str(), &*linked.2["path"]), ("PERMISSION_DENIED", "/secret"));
        // The owner sees and may everything.
        assert_eq!(server.read(&id, "secret/key").await.unwrap(), "k");
        assert_eq!(server.read(&id, "shown.txt").await.unwrap(), "s");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn planted_symlinks_lead_nowhere_outside_the_workspace() {
    require_sandbox!();
    let server = Server::start().await;
    let outside = server.directory("outside");
    std::fs::write(outside.join("secret"), "secret").unwrap();
    let codebase = server.codebase(&[("a.txt", "a")]).await;
    let id = server.running(&codebase, &[]).await;
    let (at, up) = (outside.display(), "../".repeat(20));
    let plant = format!(
        "ln -s {at}/secret file; ln -s {at} dir; ln -s {up}{at}/secret up; ln -s /workspace/a.txt in"
    );
    server.exec(&id, &plant).await;
    for running in [true, false] {
        if !running {
            server.stop_sandbox(&id).await;
        }
        // Who may use the API can make such links too, and they lead nowhere either.
        let made = format!("made-{running}");
        let target = outside.join("secret");
        let planted = link(&server, &id, &made, target.to_str().unwrap()).await.unwrap();
        assert_eq!(planted.target, target.to_str().unwrap());
        for path in ["file", "dir/secret", "up", &made] {
            assert_eq!(said(server.read(&id, path).await).0, Code::NotFound, "{path}");
            assert_eq!(said(server.download(&codebase, path).await).0, Code::NotFound, "{path}");
            assert!(server.write(&id, path, "planted").await.is_err(), "{path}");
            assert!(server.upload(&codebase, path, "planted").await.is_err(), "{path}");
        }
        assert_eq!(said(server.listed(&codebase, "dir").await).0, Code::NotFound);
        // One that stays inside is followed.
        assert_eq!(server.read(&id, "in").await.unwrap(), "a");
    }
    assert_eq!(std::fs::read_to_string(outside.join("secret")).unwrap(), "secret");
    assert_eq!(std::fs::read_dir(outside).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_make_no_sense_are_refused_in_the_same_words_in_every_state() {
    require_sandbox!();
    let server = Server::start().await;
    let codebase = server.codebase(&[("d/f", "f")]).await;
    let id = server.sandbox(&codebase, &[]).await;
    let long = "x".repeat(4096);
    for running in [false, true] {
        if running {
            server.start_sandbox(&id).await;
        }
        for path in ["../x", "a/../../x", "/workspace/..", "a\0b"] {
            assert_eq!(said(server.read(&id, path).await).1, "INVALID_ARGUMENT", "{path:?}");
            assert_eq!(said(server.write(&id, path, "").await).1, "INVALID_ARGUMENT", "{path:?}");
        }
        assert_eq!(said(server.read(&id, "d").await).1, "INVALID_ARGUMENT");
        assert_eq!(said(server.read(&id, "nothing").await).1, "FILE_NOT_FOUND");
        assert_eq!(said(server.write(&id, "", "x").await).1, "INVALID_ARGUMENT");
        for (path, target) in [("", "x"), ("../x", "x"), ("l", ""), ("l", "a\0b"), ("l", &long)] {
            assert_eq!(said(link(&server, &id, path, target).await).1, "INVALID_ARGUMENT");
        }
        let taken = said(link(&server, &id, "d/f", "x").await);
        assert_eq!((taken.0, taken.1.as_str()), (Code::AlreadyExists, "FILE_ALREADY_EXISTS"));
    }
    assert_eq!(said(server.read("sb_0011223344556677", "x").await).1, "SANDBOX_NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_callers_do_with_files_is_on_record_whether_it_runs_or_not() {
    require_sandbox!();
    let mut server = Server::start().await;
    let codebase = server.codebase(&[("a", "a")]).await;
    let id = server.sandbox(&codebase, &[]).await;
    server.write(&id, "one", "1").await.unwrap();
    link(&server, &id, "three", "../../to").await.unwrap();
    server.start_sandbox(&id).await;
    server.write(&id, "two", "2").await.unwrap();
    server.stop_sandbox(&id).await;
    server.read(&id, "two").await.unwrap();
    // Whatever is still in memory is lost; what was answered before the start must not be.
    server.kill_and_restart().await;
    server.start_sandbox(&id).await;
    let journal = server.state().join("sandboxes").join(&id);
    let verified = ringfence_warden::journal::verify(&journal, &id);
    assert!(verified.is_ok(), "{verified:?}");
    let text = std::fs::read_to_string(journal.join("journal.jsonl")).unwrap();
    let calls = text.lines().filter(|line| line.contains("\"file_call\""));
    assert!(calls.clone().any(|line| line.contains("/one")), "{text}");
    assert!(calls.clone().any(|line| line.contains("/two")), "{text}");
    let is_link = |line: &str| line.contains("/three") && line.contains(r#""to":"../../to""#);
    assert!(calls.clone().any(is_link), "{text}");
}

/// Who it is on the host.
async fn uid(server: &Server, id: &str) -> u32 {
    let wanted = v1::GetSandboxRequest { sandbox_id: id.into() };
    let found = server.sandboxes().get_sandbox(wanted).await.unwrap().into_inner();
    found.confinement.unwrap().uid
}

#[tokio::test(flavor = "multi_thread")]
async fn home_and_temporary_files_can_be_written_after_a_restart() {
    require_sandbox!();
    let server = Server::start().await;
    let codebase = server.codebase(&[]).await;
    let id = server.running(&codebase, &[]).await;
    let first = uid(&server, &id).await;
    server.exec(&id, "mkdir -p ~/d /tmp/d; echo 1 > ~/d/f; echo 1 > /tmp/d/f").await;
    server.stop_sandbox(&id).await;
    server.start_sandbox(&id).await;
    // Others take the user that the sandbox had, until it gets another.
    while rustix::process::geteuid().is_root() && uid(&server, &id).await == first {
        server.stop_sandbox(&id).await;
        server.running(&codebase, &[]).await;
        server.start_sandbox(&id).await;
    }
    let written = server.exec(&id, "echo 2 >> ~/d/f; echo 2 >> /tmp/d/f; cat ~/d/f /tmp/d/f").await;
    assert_eq!(written, "1\n2\n1\n2\n");
}

/// The calls go on all the while, so that some of them meet every moment of a start and of a stop.
#[tokio::test(flavor = "multi_thread")]
async fn file_calls_meet_starts_and_stops_and_none_fails() {
    require_sandbox!();
    let server = std::sync::Arc::new(Server::start().await);
    let codebase = server.codebase(&[("a", "a")]).await;
    let id = server.sandbox(&codebase, &[]).await;
    let over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (asking, sandbox, done) = (server.clone(), id.clone(), over.clone());
    let calls = tokio::spawn(async move {
        let mut count = 0;
        while !done.load(std::sync::atomic::Ordering::Acquire) {
            assert_eq!(asking.read(&sandbox, "a").await.unwrap(), "a");
            asking.write(&sandbox, &format!("n{count}"), "n").await.unwrap();
            count += 1;
        }
        count
    });
    for _ in 0..4 {
        server.start_sandbox(&id).await;
        server.stop_sandbox(&id).await;
    }
    over.store(true, std::sync::atomic::Ordering::Release);
    let count = calls.await.unwrap();
    assert_eq!(list(&server, &id, "/", true).await.len(), 1 + count);
}
