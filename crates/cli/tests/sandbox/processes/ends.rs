//! How a process ends: by itself, by a signal, with what it belongs to.

use std::time::{Duration, Instant};

use ringfence_link::warden::{Code, ProcessStatus, Request, StartProcess, Until};

use super::{SIGINT, SIGKILL, SIGTERM, SIGUSR1, shell};
use crate::support::{any_alive, code_of, eventually, processes_with, sandbox, unique_sleep};

#[test]
fn every_way_to_end_is_an_end_with_its_code() {
    let sandbox = sandbox!();
    let codes =
        [("exit 7", 7), ("set -e; false; echo no", 1), ("if true; then", 2), ("no-such-x", 127)];
    for (text, code) in codes {
        let process = sandbox.start(text);
        assert_eq!(sandbox.ended(&process.id), ProcessStatus::Exited(code), "{text}");
        let log = sandbox.log(&process.id);
        assert_eq!(log.status, Some(ProcessStatus::Exited(code)), "{text}");
        assert_eq!(log.out(), "", "{text}");
    }
    let killed = sandbox.start("kill -SEGV $$");
    assert_eq!(sandbox.ended(&killed.id), ProcessStatus::Killed(11));
}

#[test]
fn any_signal_can_be_sent() {
    let sandbox = sandbox!();
    let process = sandbox.start("trap 'echo usr1' USR1; echo up; while :; do sleep 0.01; done");
    sandbox.line(&process.id, "up");
    sandbox.kill(&process.id, SIGUSR1).unwrap();
    assert_eq!(sandbox.line(&process.id, "usr1"), "usr1");
    sandbox.kill(&process.id, SIGINT).unwrap();
    assert_eq!(sandbox.ended(&process.id), ProcessStatus::Killed(SIGINT));
}

#[test]
fn a_kill_reaches_the_whole_tree() {
    let (sandbox, time) = (sandbox!(), unique_sleep());
    let text = format!("sh -c 'sh -c \"sleep {time} & wait\" & wait' & echo up; wait");
    let process = sandbox.start(&text);
    sandbox.line(&process.id, "up");
    eventually("three levels", || processes_with(&format!("sleep\0{time}")).len() == 1);
    sandbox.kill(&process.id, SIGTERM).unwrap();
    assert_eq!(sandbox.ended(&process.id), ProcessStatus::Killed(SIGTERM));
    assert_eq!(processes_with(&time), Vec::<i32>::new());
    // Again has no effect and is no error.
    sandbox.kill(&process.id, SIGTERM).unwrap();
    assert_eq!(sandbox.status(&process.id), ProcessStatus::Killed(SIGTERM));
}

#[test]
fn one_that_ignores_sigterm_is_killed_five_seconds_later() {
    let sandbox = sandbox!();
    let process = sandbox.start("trap 'echo asked' TERM; echo up; while :; do sleep 0.1; done");
    sandbox.line(&process.id, "up");
    let before = Instant::now();
    sandbox.kill(&process.id, SIGTERM).unwrap();
    sandbox.line(&process.id, "asked");
    assert_eq!(sandbox.ended(&process.id), ProcessStatus::Killed(SIGKILL));
    assert!(before.elapsed() >= Duration::from_secs(4), "it has time to end by itself");
}

#[test]
fn one_that_ends_by_itself_when_asked_has_its_own_code() {
    let sandbox = sandbox!();
    let text = "trap 'echo bye; exit 4' TERM; echo up; while :; do sleep 0.01; done";
    let process = sandbox.start(text);
    sandbox.line(&process.id, "up");
    sandbox.kill(&process.id, SIGTERM).unwrap();
    assert_eq!(sandbox.ended(&process.id), ProcessStatus::Exited(4));
    assert_eq!(sandbox.log(&process.id).out(), "up\nbye\n");
}

#[test]
fn daemons_die_with_the_process_that_started_them() {
    let (sandbox, time) = (sandbox!(), unique_sleep());
    let daemon = format!("setsid sh -c '(setsid sleep {time} </dev/null >/dev/null 2>&1 &)'");
    let there = || any_alive(&format!("sleep\0{time}"));
    let killed = sandbox.start(&format!("{daemon}; echo up; sleep 1000"));
    sandbox.line(&killed.id, "up");
    eventually("the daemon runs", there);
    sandbox.kill(&killed.id, SIGTERM).unwrap();
    assert_eq!(sandbox.ended(&killed.id), ProcessStatus::Killed(SIGTERM));
    assert!(!there(), "after a kill");
    let ended = sandbox.start(&daemon);
    assert_eq!(sandbox.ended(&ended.id), ProcessStatus::Exited(0));
    assert!(!there(), "after an end");
}

#[test]
fn what_keeps_the_streams_open_does_not_keep_the_process_from_ending() {
    let (sandbox, time) = (sandbox!(), unique_sleep());
    let process = sandbox.start(&format!("setsid sleep {time} & echo done; exit 5"));
    let log = sandbox.log(&process.id);
    assert_eq!((log.out().as_str(), log.status), ("done\n", Some(ProcessStatus::Exited(5))));
    assert!(!any_alive(&time));
}

#[test]
fn killing_all_counts_those_that_ran_and_ends_them() {
    let (sandbox, time) = (sandbox!(), unique_sleep());
    let over = sandbox.start("true");
    sandbox.ended(&over.id);
    let live: Vec<_> = (0..5).map(|_| sandbox.start(&format!("sleep {time}"))).collect();
    assert_eq!(sandbox.kill_all(), 5);
    for process in live {
        assert_eq!(sandbox.ended(&process.id), ProcessStatus::Killed(SIGTERM));
    }
    assert_eq!(processes_with(&time), Vec::<i32>::new());
    assert_eq!(sandbox.kill_all(), 0);
}

#[test]
fn an_unknown_id_is_not_found_and_a_bad_signal_is_refused() {
    let sandbox = sandbox!();
    assert_eq!(code_of(sandbox.kill("x", SIGTERM)), Code::ProcessNotFound);
    assert_eq!(code_of(sandbox.process("x")), Code::ProcessNotFound);
    assert_eq!(code_of(sandbox.wait("x", Until::Exit)), Code::ProcessNotFound);
    let request = Request::ProcessLog { id: "x".into(), from: 0, follow: true };
    assert_eq!(code_of(sandbox.client.ask(request)), Code::ProcessNotFound);
    let process = sandbox.start("sleep 1000");
    for signal in [0, -1, 65, 1000] {
        assert_eq!(code_of(sandbox.kill(&process.id, signal)), Code::InvalidArgument, "{signal}");
    }
}

#[test]
fn a_process_ends_with_its_sandbox() {
    let (sandbox, time) = (sandbox!(), unique_sleep());
    sandbox.start(&format!("setsid sleep {time}"));
    eventually("it runs", || any_alive(&format!("sleep\0{time}")));
    sandbox.stop();
    eventually("it is gone", || !any_alive(&time));
}

#[test]
fn starts_and_ends_are_in_the_journal() {
    let sandbox = sandbox!();
    let process = sandbox.start("echo hi; exit 9");
    sandbox.ended(&process.id);
    let failed = StartProcess { cwd: Some(b"/no".to_vec()), ..shell("true") };
    sandbox.try_start(failed).unwrap();
    let journal = sandbox.stop_and_read_journal();
    for text in [
        r#""kind":"process_opened""#,
        r#""kind":"process_closed""#,
        r#""how":"process""#,
        "exited with 9",
        "cannot enter /no",
    ] {
        assert!(journal.contains(text), "{text}: {journal}");
    }
}
