//! What a process prints, to those who read it sooner or later.

use ringfence_link::client::{ClientError, Event};
use ringfence_link::warden::{Exec, ProcessStatus, Reply};

use super::{SIGTERM, next_bytes, read_log};
use crate::support::{eventually, gate, memory_of, sandbox};

/// How much of what a process prints is kept.
const KEPT: usize = 4 * 1024 * 1024;

#[test]
fn a_stream_begins_with_its_offset_comes_as_it_is_written_and_ends_with_one_status() {
    let sandbox = sandbox!();
    let process = sandbox.start(&format!("echo one; {}; echo two; exit 3", gate("go")));
    let call = sandbox.follow(&process.id, 0);
    assert!(matches!(call.next().unwrap(), Event::Reply(Reply::Log { from: 0 }, _)));
    assert_eq!(next_bytes(&call), b"one\n");
    sandbox.open_gate("go");
    let rest = read_log(&call);
    assert_eq!((rest.out().as_str(), rest.next), ("two\n", 8));
    assert_eq!(rest.status, Some(ProcessStatus::Exited(3)));
    assert!(matches!(call.next(), Err(ClientError::Lost)), "nothing follows the end");
}

#[test]
fn a_line_without_its_end_arrives_while_the_process_runs() {
    let sandbox = sandbox!();
    let process = sandbox.start("printf 'no newline'; sleep 1000");
    assert_eq!(next_bytes(&sandbox.follow(&process.id, 0)), b"no newline");
    assert_eq!(sandbox.line(&process.id, "newline"), "no newline");
}

#[test]
fn binary_bytes_are_exact_in_both_streams() {
    let sandbox = sandbox!();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_001).collect();
    sandbox.exec_with_input(Exec::shell("cat > blob"), &bytes).unwrap();
    let process = sandbox.start("cat blob; cat blob >&2");
    let log = sandbox.log(&process.id);
    assert!(log.stdout == bytes && log.stderr == bytes);
    assert_eq!(log.next, 2 * bytes.len() as u64);
    let process = sandbox.start("printf 'a'; printf '\\0\\377' >&2");
    let log = sandbox.log(&process.id);
    assert_eq!((&log.stdout[..], &log.stderr[..]), (&b"a"[..], &b"\0\xff"[..]));
}

#[test]
fn who_comes_late_gets_what_was_then_what_comes_and_all_get_the_same() {
    let sandbox = sandbox!();
    let text = format!("echo before; {}; echo after; echo err >&2", gate("go"));
    let process = sandbox.start(&text);
    sandbox.line(&process.id, "before");
    let calls: Vec<_> = (0..3).map(|_| sandbox.follow(&process.id, 0)).collect();
    for call in &calls {
        assert_eq!(next_bytes(call), b"before\n");
    }
    sandbox.open_gate("go");
    for call in &calls {
        let log = read_log(call);
        assert_eq!((log.out().as_str(), log.err().as_str()), ("after\n", "err\n"));
        assert_eq!(log.status, Some(ProcessStatus::Exited(0)));
    }
}

#[test]
fn a_reader_that_hangs_up_changes_nothing() {
    let sandbox = sandbox!();
    let process = sandbox.start(&format!("echo up; {}; echo end", gate("go")));
    for _ in 0..10 {
        let call = sandbox.follow(&process.id, 0);
        assert_eq!(next_bytes(&call), b"up\n");
        call.hang_up();
    }
    assert_eq!(sandbox.status(&process.id), ProcessStatus::Running);
    sandbox.open_gate("go");
    assert_eq!(sandbox.log(&process.id).out(), "up\nend\n");
}

#[test]
fn a_lost_stream_is_resumed_without_losing_a_byte_and_is_never_a_success() {
    let sandbox = sandbox!();
    // It does not end before the last reader comes, or an earlier one could get the end.
    let text = format!("for i in $(seq 1 20000); do echo $i; done; {}", gate("go"));
    let process = sandbox.start(&text);
    let (mut all, mut offset) = (Vec::new(), 0);
    for _ in 0..5 {
        let call = sandbox.follow(&process.id, offset);
        // Not all that came has arrived, so that there is more for the next.
        let bytes = next_bytes(&call);
        let arrived = &bytes[..bytes.len() / 2];
        offset += arrived.len() as u64;
        all.extend(arrived);
        call.hang_up();
        assert!(!matches!(call.next(), Ok(Event::Reply(Reply::LogEnd { .. }, _))));
    }
    sandbox.open_gate("go");
    let rest = read_log(&sandbox.follow(&process.id, offset));
    assert_eq!(rest.from, [offset]);
    all.extend(rest.stdout);
    let expected: String = (1..=20000).map(|i| format!("{i}\n")).collect();
    assert!(all == expected.as_bytes());
    assert_eq!(rest.next, expected.len() as u64);
}

#[test]
fn a_log_read_without_following_ends_with_what_there_is_and_the_status_of_now() {
    let sandbox = sandbox!();
    let process = sandbox.start("echo some; sleep 1000");
    sandbox.line(&process.id, "some");
    let log = sandbox.stored_log(&process.id, 0);
    assert_eq!((log.out().as_str(), log.next), ("some\n", 5));
    assert_eq!(log.status, Some(ProcessStatus::Running));
    assert_eq!(sandbox.stored_log(&process.id, 2).out(), "me\n");
    let beyond = sandbox.stored_log(&process.id, 1000);
    assert_eq!((beyond.out().as_str(), beyond.from), ("", vec![5]));
}

#[test]
fn a_sandbox_that_ends_under_a_stream_is_not_a_success() {
    let sandbox = sandbox!();
    let process = sandbox.start("echo up; sleep 1000");
    let call = sandbox.follow(&process.id, 0);
    assert_eq!(next_bytes(&call), b"up\n");
    let journal = sandbox.stop_and_read_journal();
    match call.finish(|_| {}) {
        Err(ClientError::Lost) => {}
        Ok(Reply::LogEnd { status: Some(ProcessStatus::Killed(_)), .. }) => {}
        other => panic!("{other:?}"),
    }
    assert!(journal.contains("process_closed"), "{journal}");
}

#[test]
fn a_flood_to_one_who_does_not_read_takes_bounded_memory_and_blocks_nobody() {
    let sandbox = sandbox!();
    let process = sandbox.start("yes flood");
    let stalled = sandbox.follow(&process.id, 0);
    assert!(matches!(stalled.next().unwrap(), Event::Reply(Reply::Log { .. }, _)));
    eventually("far more is printed than is kept", || {
        sandbox.process(&process.id).unwrap().log_end > 64 * 1024 * 1024
    });
    let memory = memory_of(sandbox.warden.id());
    assert!(memory < 64 * 1024 * 1024, "{memory}");
    assert_eq!(sandbox.line(&process.id, "flood"), "flood");
    sandbox.kill(&process.id, SIGTERM).unwrap();
    assert_eq!(sandbox.ended(&process.id), ProcessStatus::Killed(SIGTERM));
    // The one who stopped reading is told from where it goes on, and gets the end.
    let log = read_log(&stalled);
    assert!(log.from.last().is_some_and(|from| *from > KEPT as u64), "{:?}", log.from);
    assert_eq!(log.status, Some(ProcessStatus::Killed(SIGTERM)));
    assert_eq!(log.next, sandbox.process(&process.id).unwrap().log_end);
    let kept = sandbox.stored_log(&process.id, 0);
    assert_eq!(kept.stdout.len(), KEPT);
}
