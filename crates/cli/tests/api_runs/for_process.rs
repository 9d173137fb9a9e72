//! A server that belongs to one process: it ends with it, and leaves nothing behind.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use ringfence_wire::v1;
use ringfence_wire::v1::workspace_service_client::WorkspaceServiceClient;
use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::support::owned::{Started, serve, socket_of};
use crate::support::{
    Owned, Sandbox, any_alive, connect, eventually, is_alive, processes_with, require_sandbox,
    unique_sleep, within,
};

/// What a command runs for long, and how to find it.
async fn busy(sandbox: &Sandbox) -> String {
    let name = unique_sleep();
    sandbox.process(&format!("sleep {name}")).await;
    assert!(any_alive(&name));
    name
}

#[tokio::test]
async fn everything_goes_when_the_owner_is_killed() {
    require_sandbox!();
    let mut server = Owned::start().await;
    let sandbox = server.sandbox().await;
    let (name, other) = (busy(&sandbox).await, unique_sleep());
    // Somebody else has a connection, and a call that goes on.
    let asked = v1::ExecRequest {
        sandbox_id: sandbox.id.clone(),
        command: format!("sleep {other}"),
        ..Default::default()
    };
    let mut sandboxes = sandbox.sandboxes.clone();
    let call = tokio::spawn(async move { sandboxes.exec(asked).await });
    eventually("the command runs", || any_alive(&other)).await;
    server.owner.kill().unwrap();
    server.left_nothing(&sandbox).await;
    assert!(!any_alive(&name) && !any_alive(&other));
    // Perhaps it was told how the command ended.
    drop(within(call).await.unwrap());
}

/// It is killed when its time is over, so this takes a while.
#[tokio::test]
async fn a_warden_that_does_not_answer_is_ended_too() {
    require_sandbox!();
    let mut server = Owned::start().await;
    let sandbox = server.sandbox().await;
    sandbox.signal_warden(Signal::STOP);
    server.owner.kill().unwrap();
    server.left_nothing(&sandbox).await;
}

#[tokio::test]
async fn a_killed_server_takes_its_sandboxes_along_and_the_next_sweeps() {
    require_sandbox!();
    let mut server = Owned::start().await;
    let sandbox = server.sandbox().await;
    let name = busy(&sandbox).await;
    server.signal(Signal::KILL);
    server.ended().await;
    let place = server.place();
    eventually("nothing runs", || !any_alive(&name) && !any_alive(place.to_str().unwrap())).await;
    assert!(place.exists(), "nobody was there to remove it");
    let next = server.beside().await;
    eventually("what was left is swept", || !place.exists()).await;
    server.leftovers(&sandbox).assert_none();
    assert_eq!(next.sandbox().await.ok("echo well").await, "well\n");
}

/// Their groups and their users' numbers are left as well then.
#[tokio::test]
async fn what_a_killed_warden_and_its_killed_server_left_is_swept() {
    require_sandbox!();
    let mut server = Owned::start().await;
    let sandbox = server.sandbox().await;
    // It must not clean up after its warden.
    server.signal(Signal::STOP);
    sandbox.kill_warden();
    server.signal(Signal::KILL);
    server.ended().await;
    let left = server.leftovers(&sandbox);
    assert!(!left.found().is_empty());
    let _next = server.beside().await;
    left.assert_none();
    eventually("the directory is swept", || !server.place().exists()).await;
}

#[tokio::test]
async fn servers_beside_each_other_are_left_alone() {
    require_sandbox!();
    let one = Owned::start().await;
    let sandbox = one.sandbox().await;
    let mut killed = one.beside().await;
    killed.signal(Signal::KILL);
    killed.ended().await;
    let mut other = one.beside().await;
    eventually("the killed one is swept", || !killed.place().exists()).await;
    assert_eq!(one.places(), 2);
    other.signal(Signal::TERM);
    assert!(other.ended().await.success());
    assert_eq!(one.places(), 1);
    assert_eq!(sandbox.ok("echo well").await, "well\n");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&one.place()), 0o700);
}

/// The owner starts the server, and forks something that has its descriptors and lives on.
#[tokio::test]
async fn a_child_of_the_owner_that_lives_on_does_not_keep_it() {
    require_sandbox!();
    let scratch = tempfile::tempdir().unwrap();
    let (child, owner_name) = (unique_sleep(), unique_sleep());
    let script = format!(
        "\"$0\" serve --for-process $$ --state \"$1\" & sleep {child} & exec sleep {owner_name}"
    );
    let mut owner = Command::new("sh");
    owner.args(["-c", &script, env!("CARGO_BIN_EXE_ringfence")]).arg(scratch.path());
    let mut owner = Started::by(owner.stdin(Stdio::null()).stdout(Stdio::piped()));
    let socket = socket_of(&mut owner);
    let sandbox = Sandbox::start(&connect(socket.clone()).await, &[]).await;
    let name = busy(&sandbox).await;
    eventually("the child runs", || any_alive(&child)).await;
    let child = ForkedChild(processes_with(&child)[0]);
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("everything has gone", || !socket.parent().unwrap().exists()).await;
    assert!(!any_alive(&name));
    assert!(is_alive(child.0));
}

/// Nobody's child any more when its parent was killed.
struct ForkedChild(i32);

impl Drop for ForkedChild {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_raw(self.0).unwrap(), Signal::KILL);
    }
}

#[tokio::test]
async fn ctrl_c_is_for_the_owner_and_sigterm_for_the_server() {
    require_sandbox!();
    let server = Owned::start().await;
    let sandbox = server.sandbox().await;
    for signal in [Signal::INT, Signal::QUIT, Signal::HUP] {
        server.signal(signal);
        // Who would end takes no more connections before long.
        for _ in 0..10 {
            let again = Sandbox::at(&connect(server.socket.clone()).await, &sandbox.id);
            assert_eq!(again.ok("echo on").await, "on\n", "{signal:?}");
        }
    }
    let name = busy(&sandbox).await;
    server.signal(Signal::TERM);
    server.left_nothing(&sandbox).await;
    assert!(!any_alive(&name));
}

/// A signal that is ignored would be ignored by all that is started, for good.
#[tokio::test]
async fn commands_can_be_interrupted() {
    require_sandbox!();
    let server = Owned::start().await;
    let sandbox = server.sandbox().await;
    assert_eq!(sandbox.ok("grep -c 'SigIgn:.*0000000$' /proc/self/status").await, "1\n");
}

#[tokio::test]
async fn a_sandbox_is_stopped_and_started_with_its_files() {
    require_sandbox!();
    let server = Owned::start().await;
    let project = tempfile::tempdir().unwrap();
    std::fs::write(project.path().join("a"), "base\n").unwrap();
    let codebase = v1::CreateCodebaseRequest {
        local_path: project.path().to_str().unwrap().into(),
        ..Default::default()
    };
    let sandbox = Sandbox::on(&server.channel, codebase, &[]).await;
    sandbox.ok("echo changed >> a; echo kept > /tmp/t; echo kept > ~/h").await;
    sandbox.stop().await;
    sandbox.start_again().await;
    assert_eq!(sandbox.ok("cat a /tmp/t ~/h").await, "base\nchanged\nkept\nkept\n");
    assert_eq!(std::fs::read_to_string(project.path().join("a")).unwrap(), "base\n");
    sandbox.stop().await;
    server.signal(Signal::TERM);
    server.left_nothing(&sandbox).await;
}

#[tokio::test]
async fn sandboxes_are_snapshotted_forked_and_destroyed() {
    require_sandbox!();
    let server = Owned::start().await;
    let sandbox = server.sandbox().await;
    let mut workspaces = WorkspaceServiceClient::new(server.channel.clone());
    sandbox.ok("echo then > f").await;
    let wanted = v1::CreateSnapshotRequest { sandbox_id: sandbox.id.clone(), name: "then".into() };
    let snapshot = within(workspaces.create_snapshot(wanted)).await.unwrap().into_inner();
    sandbox.ok("echo now > f").await;
    let wanted = v1::ForkSandboxRequest { sandbox_id: sandbox.id.clone(), ..Default::default() };
    let forked = within(workspaces.fork_sandbox(wanted)).await.unwrap().into_inner();
    let forked = Sandbox::at(&server.channel, &forked.id);
    forked.start_again().await;
    sandbox.ok("echo later > f").await;
    assert_eq!(forked.ok("cat f").await, "now\n");
    sandbox.stop().await;
    let wanted = v1::RestoreSnapshotRequest {
        sandbox_id: sandbox.id.clone(),
        snapshot_id: snapshot.id.clone(),
    };
    within(workspaces.restore_snapshot(wanted)).await.unwrap();
    sandbox.start_again().await;
    assert_eq!(sandbox.ok("cat f").await, "then\n");
    let place = server.place();
    assert!(place.join("layers").read_dir().unwrap().count() > 2);
    forked.destroy().await;
    assert!(!place.join("sandboxes").join(&forked.id).exists());
    server.signal(Signal::TERM);
    server.left_nothing(&sandbox).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_sandboxes_go_at_once() {
    require_sandbox!();
    let mut server = Owned::start().await;
    let first = server.sandbox().await;
    let starts = (1..100).map(|_| {
        let channel = server.channel.clone();
        tokio::spawn(async move { Sandbox::start(&channel, &[]).await })
    });
    for start in starts.collect::<Vec<_>>() {
        start.await.unwrap();
    }
    assert_eq!(server.place().join("sandboxes").read_dir().unwrap().count(), 100);
    server.owner.kill().unwrap();
    server.left_nothing(&first).await;
}

#[tokio::test]
async fn a_long_state_directory_has_room_for_a_server() {
    require_sandbox!();
    let scratch = tempfile::tempdir().unwrap();
    let mut owner = Started::sleeper();
    let state = scratch.path().join("s".repeat(100));
    let mut server = Started::by(serve(owner.id(), &state).stdout(Stdio::piped()));
    let socket = socket_of(&mut server);
    assert!(!socket.starts_with(scratch.path()));
    let sandbox = Sandbox::start(&connect(socket.clone()).await, &[]).await;
    assert_eq!(sandbox.ok("echo well").await, "well\n");
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("the server ends", || server.try_wait().unwrap().is_some()).await;
    assert!(!socket.parent().unwrap().exists());
    assert_eq!(state.join("processes").read_dir().unwrap().count(), 0);
}

/// What it says instead of serving.
async fn said(command: &mut Command) -> String {
    let mut server = Started::by(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut status = None;
    eventually("it ends", || {
        status = server.try_wait().unwrap();
        status.is_some()
    })
    .await;
    let (mut out, mut errors) = (String::new(), String::new());
    server.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    server.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!((status.unwrap().code(), &out[..]), (Some(2), ""), "{errors}");
    errors
}

#[tokio::test]
async fn only_a_live_process_of_the_same_user_can_own_a_server() {
    let scratch = tempfile::tempdir().unwrap();
    let mut ended = Command::new("true").spawn().unwrap();
    let ended_pid = Pid::from_raw(ended.id() as i32).unwrap();
    // It has ended, but its number is not free yet.
    let unreaped = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
    rustix::process::waitid(rustix::process::WaitId::Pid(ended_pid), unreaped).unwrap();
    let none = format!("error: there is no process {}\n", ended.id());
    assert_eq!(said(&mut serve(ended.id(), scratch.path())).await, none);
    ended.wait().unwrap();
    assert_eq!(said(&mut serve(ended.id(), scratch.path())).await, none);
    assert!(said(&mut serve(0, scratch.path())).await.contains("0 is not in 1.."));
    let mut stranger = Command::new("sleep");
    stranger.arg(unique_sleep());
    let stranger = geteuid().is_root().then(|| Started::by(stranger.uid(65534)));
    let pid = stranger.as_ref().map_or(1, |stranger| stranger.id());
    let refused = said(&mut serve(pid, scratch.path())).await;
    assert!(refused.contains(&format!("process {pid} is another user's\nhint: ")), "{refused}");
    assert_eq!(scratch.path().read_dir().unwrap().count(), 0);
}

#[tokio::test]
async fn what_a_server_of_a_host_has_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let options: [&[&str]; 5] = [
        &["--listen", "off"],
        &["--unix", "/x"],
        &["--require-token"],
        &["--config", "/x"],
        &["--tls-cert", "/x", "--tls-key", "/y"],
    ];
    for option in options {
        let said = said(serve(std::process::id(), scratch.path()).args(option)).await;
        assert!(said.contains("cannot be used with"), "{option:?}: {said}");
    }
}

#[tokio::test]
async fn variables_for_the_server_of_the_host_are_not_meant_for_it() {
    let scratch = tempfile::tempdir().unwrap();
    let mut owner = Started::sleeper();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringfence"));
    command.args(["serve", "--for-process", &owner.id().to_string()]);
    for name in ["LISTEN", "UNIX", "CONFIG", "TLS_CERT", "REQUIRE_TOKEN", "MAX_SANDBOXES"] {
        command.env(format!("RINGFENCE_{name}"), "/nonsense");
    }
    command.env("RINGFENCE_STATE", scratch.path());
    let mut server = Started::by(command.stdout(Stdio::piped()));
    let socket = socket_of(&mut server);
    assert!(socket.starts_with(scratch.path().join("processes")));
    connect(socket).await;
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("the server ends", || server.try_wait().unwrap().is_some()).await;
}
