//! Processes that belong to a session.

use ringfence_link::warden::{
    Code, OpenSession, ProcessStatus, Request, SessionExec, StartProcess,
};

use super::shell;
use crate::support::{Maker, any_alive, code_of, first_output, sandbox, unique_sleep};

fn in_session(session: &str, text: &str) -> StartProcess {
    StartProcess { session: Some(session.into()), ..shell(text) }
}

#[test]
fn a_process_of_a_session_begins_where_the_session_is_and_does_not_change_it() {
    let sandbox = sandbox!(Maker::new().file("sub/deep/x", ""));
    let session = sandbox.open(OpenSession { name: Some("work".into()), ..Default::default() });
    let run = |text: &str| sandbox.in_session("work", SessionExec::new(text)).unwrap().out();
    run("cd sub; export A=\"it's\"; B=hidden; unset LANG");
    let text = "pwd; echo \"$A[$B][$LANG][$C]\"; cd /; export A=other";
    let env = vec![(b"C".to_vec(), b"given".to_vec())];
    let process = sandbox.try_start(StartProcess { env, ..in_session("work", text) }).unwrap();
    assert_eq!(sandbox.log(&process.id).out(), "/workspace/sub\nit's[][][given]\n");
    assert_eq!(process.session, Some(session.unwrap().id));
    let deeper = StartProcess { cwd: Some(b"deep".to_vec()), ..in_session("work", "pwd") };
    let process = sandbox.try_start(deeper).unwrap();
    assert_eq!(sandbox.log(&process.id).out(), "/workspace/sub/deep\n");
    assert_eq!(run("pwd; echo $A"), "/workspace/sub\nit's\n");
    let unknown = sandbox.try_start(in_session("none", "true"));
    assert_eq!(code_of(unknown), Code::SessionNotFound);
}

#[test]
fn a_busy_session_does_not_keep_a_process_from_starting() {
    let sandbox = sandbox!();
    sandbox.in_session("default", SessionExec::new("cd /tmp")).unwrap();
    let exec = SessionExec::new("echo busy; cd /; sleep 1000");
    let call = sandbox.client.call(Request::SessionExec { which: "default".into(), exec }).unwrap();
    first_output(&call);
    let process = sandbox.try_start(in_session("default", "pwd")).unwrap();
    assert_eq!(sandbox.log(&process.id).out(), "/tmp\n");
}

#[test]
fn a_process_ends_with_its_session_and_one_without_does_not() {
    let (sandbox, time) = (sandbox!(), unique_sleep());
    for end in ["close", "exit"] {
        let session = sandbox.open(OpenSession::default()).unwrap();
        let text = format!("trap '' TERM; echo up; (setsid sleep {time} &); sleep {time}");
        let process = sandbox.try_start(in_session(&session.id, &text)).unwrap();
        let other = sandbox.start("sleep 1000");
        sandbox.line(&process.id, "up");
        if end == "close" {
            sandbox.client.ask(Request::CloseSession { which: session.id.clone() }).unwrap();
        } else {
            sandbox.in_session(&session.id, SessionExec::new("exit 3")).unwrap();
        }
        assert!(matches!(sandbox.ended(&process.id), ProcessStatus::Killed(_)), "{end}");
        assert!(!any_alive(&time));
        assert_eq!(sandbox.status(&other.id), ProcessStatus::Running);
        let late = sandbox.try_start(in_session(&session.id, "true"));
        assert!(matches!(code_of(late), Code::SessionClosed | Code::SessionNotFound));
    }
}
