//! From the first command of a session to its last.

use ringfence_link::warden::{Code, Reply, Request, SessionExec};

use crate::support::{Sandbox, code_of, collect, eventually};

use super::{close, gone, info, list, long, options, there, until};

fn restarted(text: &str) -> SessionExec {
    SessionExec { restart: true, ..SessionExec::new(text) }
}

in_every_shell! {
    /// 33
    fn exit_ends_the_session_with_its_code(s) {
        let run = s.run("echo last; exit 42");
        assert_eq!((run.out().as_str(), run.code()), ("last\n", 42));
        assert!(run.outcome.session_ended && run.outcome.signal.is_none());
        let (code, message) = s.refusal(SessionExec::new("echo"));
        assert!(code == Code::SessionClosed && message.contains("42"), "{message}");
        let info = s.info();
        assert!(info.ended && !info.busy, "{info:?}");
    }

    /// 34: not unasked, and with what can be kept.
    fn an_ended_shell_is_started_again_if_that_is_asked_for(s) {
        s.ok("cd /usr; export A=\"a'b\n\" ; B=lost; unset LANG");
        assert!(s.run("export A=never; exit 3").outcome.session_ended);
        assert_eq!(s.refusal(SessionExec::new("echo")).0, Code::SessionClosed);
        let run = s.exec(restarted("pwd; printf %s \"$A\"; echo ${B-unset} ${LANG-unset} $?"));
        assert_eq!(run.out(), "/usr\na'b\nunset unset 0\n");
        assert!(!s.info().ended);
        assert_eq!(s.ok("echo $HOME; command -v ls >/dev/null && pwd"), "/home/user\n/usr\n");
    }

    fn asking_for_a_restart_changes_nothing_while_the_shell_lives(s) {
        s.ok("A=1");
        assert_eq!(s.ok_exec(restarted("echo $A")), "1\n");
    }

    fn exec_replaces_the_shell(s) {
        let run = s.run("exec true");
        assert_eq!((run.code(), run.outcome.session_ended), (0, true));
        assert_eq!(s.refusal(SessionExec::new("echo")).0, Code::SessionClosed);
    }

    fn a_shell_that_kills_itself_is_137(s) {
        let run = s.run("kill -9 $$; sleep 100");
        assert_eq!((run.code(), run.outcome.signal), (137, Some(9)));
        assert!(run.outcome.session_ended && !run.outcome.oom_killed);
    }

    /// 55
    fn a_shell_that_is_killed_from_outside_is_137(s) {
        let pid = s.ok("echo $$");
        let kill = format!("kill -9 {}", pid.trim());
        let (call, _) = s.begin(SessionExec::new("echo up; sleep 100"));
        until(&call, "up");
        s.sandbox.ok(&kill);
        let run = collect(&call).unwrap();
        assert_eq!((run.code(), run.outcome.session_ended), (137, true));
    }

    fn a_shell_that_is_killed_while_nothing_runs_is_not_active(s) {
        let pid = s.ok("echo $$");
        s.sandbox.ok(&format!("kill -9 {}", pid.trim()));
        eventually("the list says so", || s.info().ended && list(&s.sandbox)[0].ended);
        let (code, message) = s.refusal(SessionExec::new("echo"));
        assert!(code == Code::SessionClosed && message.contains("137"), "{message}");
    }

    fn traps_of_the_exit_are_run(s) {
        s.ok("trap 'echo bye' EXIT");
        assert_eq!(s.ok("echo a"), "a\n");
        let run = s.run("echo b; exit 3");
        assert_eq!((run.out().as_str(), run.code()), ("b\nbye\n", 3));
    }

    /// 48
    fn closing_ends_a_command_that_runs(s) {
        let long = long();
        let leave = if s.is_tracked() { "setsid" } else { "env" };
        let text = format!("echo up; {leave} sleep {long} & sleep {long}");
        let (call, _) = s.begin(SessionExec::new(text));
        until(&call, "up");
        there(&long, 2);
        close(&s.sandbox, &s.id).unwrap();
        let run = collect(&call).unwrap();
        assert!(run.outcome.session_ended && run.code() != 0, "{run:?}");
        assert_eq!(run.outcome.reason.as_deref(), Some("the session was closed"));
        gone(&long);
        assert_eq!(s.sandbox.ok("echo alive"), "alive\n");
    }

    /// 54
    fn closing_refuses_what_waits_for_its_turn(s) {
        let (call, _) = s.begin(SessionExec::new("echo up; sleep 100"));
        until(&call, "up");
        let which = s.id.clone();
        let exec = SessionExec::new("echo second");
        let second = s.sandbox.client.call(Request::SessionExec { which, exec }).unwrap();
        crate::sessions::turns::all_are_queued(&s.sandbox);
        close(&s.sandbox, &s.id).unwrap();
        assert!(collect(&call).unwrap().outcome.session_ended);
        assert_eq!(code_of(collect(&second)), Code::SessionClosed);
    }

    /// 49, 51
    fn a_closed_session_is_not_found(s) {
        close(&s.sandbox, &s.id).unwrap();
        assert_eq!(s.refusal(SessionExec::new("echo")).0, Code::SessionNotFound);
        assert_eq!(code_of(info(&s.sandbox, &s.id)), Code::SessionNotFound);
        assert_eq!(code_of(close(&s.sandbox, &s.id)), Code::SessionNotFound);
        assert_eq!(list(&s.sandbox), []);
    }

    /// 53
    fn nothing_is_left_of_a_closed_session(s) {
        s.ok("sleep 100 &");
        assert_eq!(s.sandbox.ok("ls /run/shell").lines().count(), 1);
        close(&s.sandbox, &s.id).unwrap();
        eventually("its files are gone", || s.sandbox.ok("ls /run/shell").is_empty());
        assert_eq!(crate::sessions::jobs::groups(&s.sandbox), 0);
    }

    fn a_session_that_has_ended_can_be_closed(s) {
        s.run("exit 1");
        close(&s.sandbox, &s.id).unwrap();
        assert_eq!(s.refusal(SessionExec::new("echo")).0, Code::SessionNotFound);
    }

    fn the_journal_has_all_of_it(s) {
        s.run("(exit 9)");
        close(&s.sandbox, &s.id).unwrap();
        let dir = s.sandbox.config.dir.clone();
        let text = |dir: &std::path::Path| {
            let files = std::fs::read_dir(dir).unwrap().flatten();
            let read = |e: std::fs::DirEntry| std::fs::read_to_string(e.path()).unwrap_or_default();
            files.filter(|e| e.path().is_file()).map(read).collect::<String>()
        };
        eventually("it is written", || {
            let text = text(&dir);
            ["session_opened", "session_closed", "\"exit_code\":9"].iter().all(|t| text.contains(t))
        });
    }
}

#[test]
fn stopping_the_sandbox_closes_its_sessions() {
    crate::support::require_sandbox!();
    let sandbox = Sandbox::new();
    let id = sandbox.open(options("bash")).unwrap().id;
    let long = long();
    let text = SessionExec::new(format!("sleep {long} & echo up; sleep {long}"));
    let (call, _) = crate::sessions::begin(&sandbox, &id, text);
    until(&call, "up");
    there(&long, 2);
    sandbox.stop();
    gone(&long);
    match call.finish(|_| {}) {
        Ok(Reply::Done(outcome)) => assert!(outcome.session_ended && outcome.exit_code != 0),
        Ok(other) => panic!("{other:?}"),
        Err(_) => {}
    }
}
