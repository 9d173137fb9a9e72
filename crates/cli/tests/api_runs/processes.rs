//! Commands in the background: their logs, and their end.

use ringfence_wire::v1;
use ringfence_wire::v1::process_state::Status as State;
use tonic::Code;

use crate::support::{
    Server, any_alive, both, eventually, gate, next, refused, require_sandbox, rest, unique_sleep,
    within,
};

const SIGKILL: i32 = 9;

#[tokio::test]
async fn a_log_has_offsets_streams_and_how_it_ended() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    let process = sandbox.process("printf one; printf two >&2; exit 3").await;
    let log = rest(&mut sandbox.log(&process.id, 0, true).await).await;
    assert_eq!(both(&log), ("one".into(), "two".into()));
    let last = log.last().unwrap();
    assert_eq!(last.offset, 6);
    let ended = last.ended.clone().unwrap();
    assert_eq!((ended.status(), ended.exit_code), (State::Exited, 3));
    assert!(log[..log.len() - 1].iter().all(|chunk| chunk.ended.is_none()));
}

#[tokio::test]
async fn a_log_is_resumed_where_it_was_left() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    let process = sandbox.process(&format!("echo before; {}; echo after", gate("go"))).await;
    sandbox.line(&process.id, "before").await;
    let so_far = rest(&mut sandbox.log(&process.id, 0, false).await).await;
    assert_eq!(both(&so_far).0, "before\n");
    assert!(so_far.iter().all(|chunk| chunk.ended.is_none()), "it runs");
    sandbox.open_gate("go").await;
    let more = rest(&mut sandbox.log(&process.id, 7, true).await).await;
    assert_eq!((more[0].offset, both(&more).0.as_str()), (7, "after\n"));
    let middle = rest(&mut sandbox.log(&process.id, 3, true).await).await;
    assert_eq!((middle[0].offset, both(&middle).0.as_str()), (3, "ore\nafter\n"));
}

#[tokio::test]
async fn what_the_ring_has_left_behind_is_missing_by_its_offset() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    let process = sandbox.process("head -c 6000000 /dev/zero | tr '\\0' x; echo end").await;
    sandbox.line(&process.id, "end").await;
    let log = rest(&mut sandbox.log(&process.id, 0, true).await).await;
    let (out, _) = both(&log);
    assert!(log[0].offset > 0, "the beginning is gone");
    assert_eq!(log[0].offset + out.len() as i64, 6_000_004);
}

#[tokio::test]
async fn several_follow_one_log_and_one_who_leaves_changes_nothing() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    let process = sandbox.process(&format!("echo up; {}; echo end", gate("go"))).await;
    let mut followers = Vec::new();
    for _ in 0..4 {
        let mut follower = sandbox.log(&process.id, 0, true).await;
        assert_eq!(&next(&mut follower).await.data[..], b"up\n");
        followers.push(follower);
    }
    drop(followers.pop());
    sandbox.open_gate("go").await;
    for follower in &mut followers {
        assert_eq!(both(&rest(follower).await).0, "end\n");
    }
}

#[tokio::test]
async fn a_log_that_breaks_off_is_never_a_success() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    let process = sandbox.process("echo up; sleep 1000").await;
    let mut log = sandbox.log(&process.id, 0, true).await;
    assert_eq!(&next(&mut log).await.data[..], b"up\n");
    sandbox.kill_warden();
    let end = within(log.message()).await;
    refused(end, Code::FailedPrecondition, "SANDBOX_NOT_RUNNING");
    sandbox.is_lost().await;
}

#[tokio::test]
async fn killing_reaches_the_whole_tree() {
    require_sandbox!();
    let server = Server::start().await;
    let sandbox = server.sandbox().await;
    let sleep = unique_sleep();
    let text = format!("setsid sh -c 'sleep {sleep} & sleep {sleep}' & echo up; sleep {sleep}");
    let process = sandbox.process(&text).await;
    sandbox.line(&process.id, "up").await;
    eventually("the tree has grown", || any_alive(&sleep)).await;
    let asked = v1::KillProcessRequest {
        sandbox_id: sandbox.id.clone(),
        process_id: process.id.clone(),
        signal: SIGKILL,
    };
    sandbox.processes.clone().kill_process(asked.clone()).await.unwrap();
    eventually("nothing is left of it", || !any_alive(&format!("sleep\0{sleep}"))).await;
    let log = rest(&mut sandbox.log(&process.id, 0, true).await).await;
    let ended = log.last().unwrap().ended.clone().unwrap();
    assert_eq!((ended.status(), ended.signal, ended.exit_code), (State::Killed, SIGKILL, 137));
    sandbox.processes.clone().kill_process(asked).await.expect("it is over already");
}

#[tokio::test]
async fn processes_are_listed_and_ended_all_together() {
    require_sandbox!();
    let server = Server::start().await;
    let mut sandbox = server.sandbox().await;
    let one = sandbox.process("sleep 1000").await;
    let two = sandbox.process("sleep 1000").await;
    let asked = || v1::ListProcessesRequest { sandbox_id: one.sandbox_id.clone() };
    let listed = sandbox.processes.list_processes(asked()).await.unwrap().into_inner();
    let ids: Vec<_> = listed.processes.iter().map(|process| process.id.clone()).collect();
    assert_eq!(ids, [one.id.clone(), two.id.clone()]);
    assert!(listed.processes.iter().all(|process| process.pid > 0));
    let killed = sandbox.processes.kill_all_processes(asked()).await.unwrap().into_inner();
    assert_eq!(killed.count, 2);
    for id in [&one.id, &two.id] {
        let ended = sandbox.wait(id, v1::wait_process_request::Until::Exit(true), None).await;
        let process = ended.unwrap().process.unwrap();
        assert!(process.ended_at.is_some());
        assert_eq!(process.state.unwrap().status(), State::Killed);
    }
}

#[tokio::test]
async fn what_cannot_be_started_or_found_is_told_by_code() {
    require_sandbox!();
    let server = Server::start().await;
    let mut sandbox = server.sandbox().await;
    let id = sandbox.id.clone();
    let start = |id: &str, command: &str| v1::StartProcessRequest {
        sandbox_id: sandbox.id.clone(),
        command: command.into(),
        id: id.into(),
        ..Default::default()
    };
    let requests = [start("../x", "true"), start("", ""), v1::StartProcessRequest::default()];
    for request in requests {
        let result = sandbox.processes.start_process(request).await;
        refused(result, Code::InvalidArgument, "INVALID_ARGUMENT");
    }
    let mut processes = sandbox.processes.clone();
    processes.start_process(start("web", "sleep 1000")).await.unwrap();
    let again = processes.start_process(start("web", "sleep 1000")).await;
    refused(again, Code::AlreadyExists, "PROCESS_ALREADY_EXISTS");
    let unknown = |sandbox_id: &str| v1::GetProcessRequest {
        sandbox_id: sandbox_id.into(),
        process_id: "nobody".into(),
    };
    let result = processes.get_process(unknown(&id)).await;
    refused(result, Code::NotFound, "PROCESS_NOT_FOUND");
    let result = processes.get_process(unknown("sb_0000000000000000")).await;
    refused(result, Code::NotFound, "SANDBOX_NOT_FOUND");
}
