//! Commands that are ended before their time, and the shell that stays.

use ringfence_link::warden::{Control, OpenSession, SessionExec};

use crate::support::{collect, eventually};

use super::{Session, cancel, gone, limited, long, options, there, until};

/// Runs out of time; the shell and its state are still there, and the next command starts.
fn runs_out_of_time(s: &Session, text: &str) -> String {
    s.ok("v=keep; cd /usr");
    let run = s.exec(limited(text, 300));
    assert_eq!((run.code(), run.outcome.timed_out), (124, true), "{text}: {run:?}");
    assert!(!run.outcome.session_ended, "{text}: {run:?}");
    assert_eq!(s.ok("echo $v; pwd"), "keep\n/usr\n", "{text}");
    run.out()
}

/// Only an interrupt ends a loop of builtins. busybox takes one also while it allocates memory, and
/// then waits for itself for ever: such a shell is ended, the answer says so, and the next one leaves
/// the loop.
fn leaves_a_loop(s: &Session, text: &str) {
    if s.shell != "busybox" {
        runs_out_of_time(s, text);
        return;
    }
    let left = (0..10).any(|_| {
        let id = s.sandbox.open(options(s.shell)).unwrap().id;
        let in_session = |exec| s.sandbox.in_session(&id, exec).unwrap();
        let run = in_session(limited(text, 300));
        assert_eq!((run.code(), run.outcome.timed_out), (124, true), "{text}: {run:?}");
        let reason = run.outcome.reason.unwrap_or_default();
        assert_eq!(run.outcome.session_ended, reason.contains("did not come back"), "{reason}");
        let came_back = !run.outcome.session_ended;
        came_back && in_session(SessionExec::new("echo goes on")).out() == "goes on\n"
    });
    assert!(left, "no shell came back from {text}");
}

in_every_shell! {
    /// 44
    fn a_command_that_takes_too_long_is_ended_and_its_output_kept(s) {
        let long = long();
        assert_eq!(runs_out_of_time(s, &format!("echo part; sleep {long}; echo after")), "part\n");
        gone(&long);
    }

    /// 45
    fn the_time_of_the_session_applies_unless_the_call_says_otherwise(s) {
        let open = OpenSession { timeout_ms: Some(200), ..options(s.shell) };
        let id = s.sandbox.open(open).unwrap().id;
        let run = s.sandbox.in_session(&id, SessionExec::new("sleep 100")).unwrap();
        assert!(run.outcome.timed_out && run.code() == 124);
        let run = s.sandbox.in_session(&id, limited("sleep 0.5; echo done", 60_000)).unwrap();
        assert_eq!((run.out().as_str(), run.outcome.timed_out), ("done\n", false));
    }

    /// 46
    fn a_command_that_is_fast_enough_is_an_ordinary_one(s) {
        let run = s.exec(limited("echo x", 60_000));
        assert_eq!((run.out().as_str(), run.code(), run.outcome.timed_out), ("x\n", 0, false));
    }

    fn loops_of_builtins_are_left(s) {
        for text in [
            "while :; do :; done",
            "while :; do echo a; done",
            "eval 'while :; do true; done'",
            "while x=$(echo hi); do :; done",
        ] {
            leaves_a_loop(s, text);
        }
    }

    fn nothing_after_the_ended_command_is_run(s) {
        let long = long();
        for text in [
            format!("sleep {long}\necho after"),
            format!("for i in 1 2 3; do sleep {long}; echo after; done"),
            format!("f() {{ sleep {long}; echo after; }}; f; echo after"),
            format!("(sleep {long}; echo after)"),
            format!("x=$(sleep {long}); echo after"),
            format!("sleep {long} | sleep {long}; echo after"),
            format!("sleep {long} & wait; echo after"),
            "sh -c 'while :; do :; done'; echo after".into(),
        ] {
            assert_eq!(runs_out_of_time(s, &text), "", "{text}");
        }
        gone(&long);
    }

    fn the_whole_tree_of_the_command_goes(s) {
        if !s.is_tracked() {
            return;
        }
        let long = long();
        runs_out_of_time(s, &format!("setsid sleep {long} & sleep {long}"));
        let text = format!("(setsid sh -c 'sleep {long} & sleep {long}' &); sleep {long}");
        runs_out_of_time(s, &text);
        gone(&long);
    }

    fn a_command_that_ignores_signals_goes(s) {
        let long = long();
        runs_out_of_time(s, &format!("sh -c 'trap \"\" INT TERM; sleep {long}; sleep {long}'"));
        gone(&long);
    }

    fn a_command_may_clean_up(s) {
        let text = "sh -c 'trap \"echo cleaned; exit\" TERM; while :; do sleep 0.1; done'; \
            echo after";
        assert_eq!(runs_out_of_time(s, text), "cleaned\n");
    }

    fn a_command_that_prints_without_end_goes(s) {
        assert!(runs_out_of_time(s, "yes").starts_with("y\ny\n"));
        runs_out_of_time(s, "yes | cat >/dev/null");
    }

    fn waiting_for_a_fifo_is_left(s) {
        s.ok("mkfifo /tmp/f");
        assert_eq!(runs_out_of_time(s, "read x </tmp/f; echo after"), "");
        assert_eq!(runs_out_of_time(s, "echo x >/tmp/f; echo after"), "");
    }

    fn a_stopped_shell_and_a_stopped_command_go_on(s) {
        s.ok("v=1");
        s.exec(limited("kill -STOP $$", 300));
        assert_eq!(s.ok("echo $v"), "1\n");
        runs_out_of_time(s, "sh -c 'kill -STOP $$' | sleep 100");
    }

    fn jobs_of_earlier_commands_stay(s) {
        let (job, long) = (long(), long());
        s.ok(&format!("sleep {job} &"));
        there(&job, 1);
        runs_out_of_time(s, &format!("sleep {long}"));
        gone(&long);
        assert_eq!(s.ok("kill -0 $! && echo up"), "up\n");
    }

    fn a_job_in_the_foreground_goes(s) {
        let job = long();
        s.ok(&format!("v=1; sleep {job} &"));
        there(&job, 1);
        let run = s.exec(limited("fg", 300));
        assert!(run.outcome.timed_out && !run.outcome.session_ended, "{run:?}");
        gone(&job);
        assert_eq!(s.ok("echo $v"), "1\n");
    }

    fn the_status_tells_of_it(s) {
        assert!(s.exec(limited("sleep 100", 200)).outcome.timed_out);
        let status = s.ok("echo $?");
        assert!(["130\n", "143\n", "137\n"].contains(&status.as_str()), "{status}");
    }

    fn several_in_a_row_are_no_different(s) {
        s.ok("v=1");
        for text in ["sleep 100", "sleep 100", "while :; do :; done", "cat /dev/zero >/dev/null"] {
            assert!(s.exec(limited(text, 150)).outcome.timed_out, "{text}");
        }
        assert_eq!(s.ok("echo $v"), "1\n");
    }

    fn a_trap_for_interrupts_does_not_save_a_sleeping_command(s) {
        s.ok("v=1; trap '' INT");
        let run = s.exec(limited("sleep 100", 200));
        assert!(run.outcome.timed_out && !run.outcome.session_ended, "{run:?}");
        assert_eq!(s.ok("echo $v"), "1\n");
    }

    fn a_shell_that_does_not_let_itself_be_interrupted_is_ended_and_that_is_said(s) {
        let run = s.exec(limited("trap '' INT; while :; do :; done", 200));
        assert_eq!((run.code(), run.outcome.timed_out), (124, true));
        assert!(run.outcome.session_ended);
        assert!(run.outcome.reason.is_some(), "{run:?}");
        let (_, message) = s.refusal(SessionExec::new("true"));
        assert!(message.contains("137"), "{message}");
    }

    fn a_shell_that_became_the_command_ends_with_it(s) {
        let long = long();
        let run = s.exec(limited(format!("exec sleep {long}"), 200));
        assert!(run.outcome.timed_out && run.outcome.session_ended, "{run:?}");
        gone(&long);
    }

    fn time_runs_out_for_a_command_with_input(s) {
        let exec = SessionExec { stdin: true, ..limited("cat; sleep 100", 300) };
        let run = s.sandbox.in_session_with_input(&s.id, exec, b"in").unwrap();
        assert!(run.outcome.timed_out && run.out() == "in", "{run:?}");
        assert_eq!(s.ok("cat"), "");
    }

    fn hanging_up_ends_the_command_and_keeps_the_shell(s) {
        let long = long();
        s.ok("v=1");
        let (call, _) = s.begin(SessionExec::new(format!("echo up; sleep {long}")));
        until(&call, "up");
        there(&long, 1);
        drop(call);
        gone(&long);
        assert_eq!(s.ok("echo $v"), "1\n");
    }

    fn cancelling_ends_the_command_with_a_result(s) {
        let long = long();
        s.ok("v=1");
        let (call, _) = s.begin(SessionExec::new(format!("echo up; sleep {long}; echo after")));
        until(&call, "up");
        cancel(&call);
        let run = collect(&call).unwrap();
        assert!(run.outcome.cancelled && !run.outcome.timed_out, "{run:?}");
        assert!(run.out().is_empty() && run.code() != 0 && !run.outcome.session_ended, "{run:?}");
        gone(&long);
        assert_eq!(s.ok("echo $v"), "1\n");
    }

    fn a_signal_reaches_the_command_and_not_the_shell(s) {
        s.ok("v=1");
        let text = "sh -c 'trap \"echo usr; exit 5\" USR1; echo up; while :; do sleep 0.05; done'";
        let (call, command) = s.begin(SessionExec::new(text));
        until(&call, "up");
        call.control(Control::Signal(10)).unwrap();
        let run = collect(&call).unwrap();
        assert!(run.out().contains("usr\n"), "{run:?}");
        assert!(!run.outcome.session_ended && !run.outcome.cancelled, "{run:?}");
        let (call, command2) = s.begin(SessionExec::new(text));
        assert_ne!(command, command2);
        until(&call, "up");
        let request = ringfence_link::warden::Request::Signal { command: command2, signal: 10 };
        s.sandbox.client.ask(request).unwrap();
        assert!(collect(&call).unwrap().out().contains("usr\n"));
        assert_eq!(s.ok("echo $v"), "1\n");
    }

    fn a_caller_that_does_not_read_is_no_obstacle_to_a_timeout(s) {
        s.ok("v=1");
        let (call, _) = s.begin(limited("cat /dev/zero", 300));
        eventually("the session is free", || !s.info().busy);
        assert_eq!(s.ok("echo $v"), "1\n");
        let run = collect(&call).unwrap();
        assert!(run.outcome.timed_out && run.outcome.stdout_bytes == run.stdout.len() as u64);
    }
}
