//! How a command ends: signals, time limits, cancelling, what it leaves running.

use std::time::Instant;

use ringfence_link::client::{ClientError, Event};
use ringfence_link::warden::{Code, Control, Exec, Reply, Request};

use rustix::process::{Pid, Signal, kill_process};

use super::limited;
use crate::support::{
    PATIENCE, any_alive, code_of, collect, eventually, first_output, gate, processes_with, sandbox,
    unique_sleep,
};

#[test]
fn death_by_a_signal_is_128_and_its_number() {
    let sandbox = sandbox!();
    for signal in [1, 2, 6, 9, 11, 13, 15] {
        let run = sandbox.sh(&format!("kill -{signal} $$; sleep 100"));
        assert_eq!((run.code(), run.outcome.signal), (128 + signal, Some(signal)));
    }
}

#[test]
fn the_exit_code_is_waited_for_while_init_is_busy() {
    let sandbox = sandbox!();
    let exec = Exec { stdin: true, ..Exec::shell("echo up; read line; exit 5") };
    let call = sandbox.client.call(Request::Exec(exec)).unwrap();
    assert_eq!(first_output(&call), b"up\n");
    let init = Pid::from_raw(sandbox.info().init_pid).unwrap();
    kill_process(init, Signal::STOP).unwrap();
    call.input(b"go\n").unwrap();
    // Longer than it was once waited for.
    std::thread::sleep(std::time::Duration::from_secs(3));
    kill_process(init, Signal::CONT).unwrap();
    assert_eq!(collect(&call).unwrap().code(), 5);
}

#[test]
fn a_timeout_ends_the_whole_tree_and_keeps_what_was_printed() {
    let (sandbox, time) = (sandbox!(), unique_sleep());
    let text = format!(
        "trap '' TERM; echo partial; echo problem >&2;
         setsid sleep {time} & (setsid sh -c 'sleep {time} & wait' &) ; sleep {time} & sleep {time}"
    );
    let run = sandbox.exec(limited(text, 1500)).unwrap();
    assert_eq!((run.out().as_str(), run.err().as_str()), ("partial\n", "problem\n"));
    assert_eq!((run.code(), run.outcome.timed_out), (124, true));
    assert!(!any_alive(&time));
    assert_eq!(sandbox.ok("echo goes on"), "goes on\n");
    let run = sandbox.exec(limited("echo fast", 60_000)).unwrap();
    assert_eq!((run.code(), run.outcome.timed_out), (0, false));
}

#[test]
fn a_timeout_asks_before_it_kills() {
    let sandbox = sandbox!();
    let text = "trap 'echo asked; exit 7' TERM; echo up; while :; do sleep 0.01; done";
    let run = sandbox.exec(limited(text, 1500)).unwrap();
    assert_eq!((run.out().as_str(), run.code()), ("up\nasked\n", 124));
}

#[test]
fn a_timeout_of_one_command_touches_no_other() {
    let sandbox = sandbox!();
    let text = format!("echo begun; {}; echo whole", gate("go"));
    let other = sandbox.begin(Exec::shell(text));
    assert_eq!(sandbox.exec(limited("sleep 100", 100)).unwrap().code(), 124);
    sandbox.open_gate("go");
    assert_eq!(collect(&other).unwrap().out(), "whole\n");
}

#[test]
fn one_who_does_not_read_cannot_keep_a_timeout_from_coming() {
    let (sandbox, time) = (sandbox!(), unique_sleep());
    let exec = limited(format!("sleep {time} & yes"), 1500);
    let call = sandbox.client.call(Request::Exec(exec)).unwrap();
    assert!(matches!(call.next().unwrap(), Event::Reply(Reply::Started { .. }, _)));
    eventually("it is ended", || !any_alive(&time));
    assert_eq!(collect(&call).unwrap().code(), 124);
}

#[test]
fn hanging_up_cancels_the_whole_tree() {
    let (sandbox, time) = (sandbox!(), unique_sleep());
    let text = format!("echo up; setsid sleep {time} & sleep {time}");
    let call = sandbox.begin(Exec::shell(text));
    eventually("both run", || processes_with(&format!("sleep\0{time}")).len() == 2);
    drop(call);
    eventually("nothing is left", || !any_alive(&time));
    let journal = sandbox.stop_and_read_journal();
    assert!(journal.contains(r#""cancelled":true"#), "{journal}");
}

#[test]
fn a_cancel_ends_it_and_reports_what_there_is() {
    let sandbox = sandbox!();
    let call = sandbox.begin(Exec::shell("echo up; sleep 100"));
    call.control(Control::Cancel).unwrap();
    let run = collect(&call).unwrap();
    assert_eq!((run.outcome.cancelled, run.code()), (true, 143));
}

#[test]
fn a_running_command_can_be_signalled_by_its_caller_and_by_its_name() {
    let sandbox = sandbox!();
    let text = "trap 'echo usr1' USR1; trap 'exit 9' USR2; echo up; while :; do sleep 0.01; done";
    let call = sandbox.client.call(Request::Exec(Exec::shell(text))).unwrap();
    let name = match call.next().unwrap() {
        Event::Reply(Reply::Started { command }, _) => command,
        other => panic!("{other:?}"),
    };
    assert_eq!(first_output(&call), b"up\n");
    call.control(Control::Signal(10)).unwrap();
    assert_eq!(first_output(&call), b"usr1\n");
    sandbox.client.ask(Request::Signal { command: name.clone(), signal: 12 }).unwrap();
    let run = collect(&call).unwrap();
    assert_eq!((run.code(), &run.outcome.command), (9, &name));
    let over = sandbox.client.ask(Request::Signal { command: name, signal: 12 });
    assert_eq!(code_of(over), Code::NotRunning);
}

#[test]
fn what_is_left_in_the_background_is_drained_for_a_moment_and_killed() {
    let (sandbox, time) = (sandbox!(), unique_sleep());
    let leave = format!("setsid sleep {time} & sleep {time} >/dev/null 2>&1 & exit 5");
    let early = format!("(echo early; touch /tmp/said) & {}; {leave}", gate("said"));
    let run = sandbox.sh(&early);
    assert_eq!((run.out().as_str(), run.code()), ("early\n", 5));
    assert!(!any_alive(&time));
    // A moment is a length of time: on a busy machine not everybody gets to speak in it.
    eventually("one that speaks late is heard", || {
        let run = sandbox.sh(&format!("(echo late) & {leave}"));
        assert_eq!(run.code(), 5);
        assert!(!any_alive(&time));
        run.out() == "late\n"
    });
}

#[test]
fn a_sandbox_that_ends_in_the_middle_is_an_error_and_not_a_result() {
    let sandbox = sandbox!();
    let call = sandbox.begin(Exec::shell("echo up; sleep 100"));
    let deadline = Instant::now() + PATIENCE;
    sandbox.stop();
    match collect(&call) {
        Err(ClientError::Lost) => {}
        Ok(run) => assert_ne!(run.code(), 0),
        other => panic!("{other:?}"),
    }
    assert!(Instant::now() < deadline);
}
