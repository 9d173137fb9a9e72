//! From opening a terminal to its end.

use ringfence_link::client::ClientError;
use ringfence_link::warden::{
    Code, OpenSession, OpenTerminal, ProcessStatus, Request, SessionExec,
};

use super::{PROMPT, bash, on, text};
use crate::support::{
    Maker, any_alive, code_of, eventually, processes_with, sandbox, unique_sleep,
};

#[test]
fn without_a_command_it_is_an_interactive_shell_in_the_workspace() {
    let sandbox = sandbox!(Maker::new().file("here.txt", ""));
    let mut terminal = sandbox.on_terminal(OpenTerminal { command: None, ..on(&[]) });
    terminal.type_in(&format!("PS1='{PROMPT}'\n"));
    terminal.expect(&format!("\x1b[?2004h{PROMPT}"));
    assert_eq!(
        terminal.run("echo $- | tr -cd i; pwd; ls; echo $TERM"),
        "i/workspace\nhere.txt\nxterm-256color\n"
    );
    assert_eq!(terminal.run("echo $0"), "bash\n");
    assert!(terminal.run("tty").starts_with("/dev/pts/"));
}

#[test]
fn a_terminal_gets_its_directory_and_variables_also_term() {
    let sandbox = sandbox!(Maker::new().file("sub/x", ""));
    let env = vec![(b"TERM".to_vec(), b"vt100".to_vec()), (b"A".to_vec(), b"$x 'y'".to_vec())];
    let open =
        OpenTerminal { cwd: Some(b"sub".to_vec()), env, ..text("pwd; echo $TERM; echo \"$A\"") };
    let mut terminal = sandbox.on_terminal(open);
    terminal.expect("/workspace/sub\r\nvt100\r\n$x 'y'\r\n");
    assert_eq!(terminal.ended().unwrap(), ProcessStatus::Exited(0));
}

#[test]
fn what_cannot_be_started_has_failed_and_says_why() {
    let sandbox = sandbox!();
    let info = sandbox.terminal(on(&["no-such-program"]));
    assert!(matches!(&info.status, ProcessStatus::Failed(why) if why.contains("no-such-program")));
    let mut terminal = sandbox.attach(&info.id);
    assert_eq!(terminal.ended().unwrap(), info.status);
    let nowhere = OpenTerminal { cwd: Some(b"/no/where".to_vec()), ..bash() };
    let info = sandbox.terminal(nowhere);
    assert!(matches!(&info.status, ProcessStatus::Failed(why) if why.contains("/no/where")));
}

#[test]
fn ids_are_used_checked_and_found() {
    let sandbox = sandbox!();
    let named = |id: &str| OpenTerminal { id: Some(id.into()), ..bash() };
    assert_eq!(sandbox.terminal(named("main")).id, "main");
    assert_eq!(code_of(sandbox.try_open_terminal(named("main"))), Code::TerminalExists);
    assert_eq!(code_of(sandbox.try_open_terminal(named("../x"))), Code::InvalidArgument);
    assert_eq!(code_of(sandbox.resize("x", 1, 1)), Code::TerminalNotFound);
    assert_eq!(code_of(sandbox.close_terminal("x")), Code::TerminalNotFound);
    let attach = sandbox.client.ask(Request::Attach { id: "x".into() });
    assert_eq!(code_of(attach), Code::TerminalNotFound);
    sandbox.terminal(named("second"));
    let ids: Vec<String> = sandbox.terminals().into_iter().map(|info| info.id).collect();
    assert_eq!(ids, ["main", "second"]);
}

#[test]
fn terminals_are_independent() {
    let sandbox = sandbox!();
    std::thread::scope(|scope| {
        for n in 0..10 {
            let sandbox = &sandbox;
            scope.spawn(move || {
                let mut terminal = sandbox.at_prompt();
                terminal.run(&format!("X=mine-{n}"));
                for _ in 0..5 {
                    assert_eq!(terminal.run("echo $X"), format!("mine-{n}\n"));
                }
            });
        }
    });
    assert_eq!(sandbox.terminals().len(), 10);
}

#[test]
fn more_than_64_at_once_are_refused() {
    let sandbox = sandbox!();
    for _ in 0..64 {
        assert_eq!(sandbox.terminal(on(&["sleep", "1000"])).status, ProcessStatus::Running);
    }
    assert_eq!(code_of(sandbox.try_open_terminal(bash())), Code::LimitReached);
    let first = sandbox.terminals().remove(0).id;
    sandbox.close_terminal(&first).unwrap();
    eventually("there is room again", || sandbox.try_open_terminal(on(&["true"])).is_ok());
}

#[test]
fn closing_ends_everything_that_was_started_there() {
    let (sandbox, time) = (sandbox!(), unique_sleep());
    let mut terminal = sandbox.at_prompt();
    terminal.run(&format!("(trap '' HUP TERM; setsid sleep {time} &)"));
    terminal.run(&format!("sleep {time} & sleep 0; kill -STOP %1; echo"));
    eventually("they run", || processes_with(&time).len() == 2);
    sandbox.close_terminal(&terminal.id).unwrap();
    assert!(matches!(
        terminal.ended().unwrap(),
        ProcessStatus::Killed(_) | ProcessStatus::Exited(_)
    ));
    assert!(!any_alive(&time));
    let stubborn = "trap '' HUP TERM INT; echo up; while :; do sleep 0.05; done";
    let mut terminal = sandbox.on_terminal(text(stubborn));
    terminal.expect("up");
    sandbox.close_terminal(&terminal.id).unwrap();
    assert_eq!(terminal.ended().unwrap(), ProcessStatus::Killed(9));
}

#[test]
fn what_is_left_in_the_background_does_not_keep_a_terminal_from_ending() {
    let (sandbox, time) = (sandbox!(), unique_sleep());
    let mut terminal = sandbox.at_prompt();
    terminal.run(&format!("setsid -f sh -c 'trap \"\" HUP; sleep {time}'"));
    terminal.type_in("exit 3\n");
    assert_eq!(terminal.ended().unwrap(), ProcessStatus::Exited(3));
    assert!(!any_alive(&time));
}

#[test]
fn a_sandbox_that_ends_is_not_an_exit_with_success() {
    let sandbox = sandbox!();
    let mut terminal = sandbox.at_prompt();
    sandbox.stop();
    match terminal.ended() {
        Err(ClientError::Lost) | Ok(ProcessStatus::Killed(_)) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_terminal_of_a_session_begins_where_it_is_and_ends_with_it() {
    let sandbox = sandbox!();
    let session = sandbox.open(OpenSession::default()).unwrap();
    let exec = SessionExec::new("cd /tmp; export A=exported");
    sandbox.in_session(&session.id, exec).unwrap();
    let mut terminal =
        sandbox.on_terminal(OpenTerminal { session: Some(session.id.clone()), ..bash() });
    terminal.expect(PROMPT);
    assert_eq!(terminal.run("echo $PWD $A $TERM"), "/tmp exported xterm-256color\n");
    sandbox.client.ask(Request::CloseSession { which: session.id }).unwrap();
    assert_ne!(terminal.ended().unwrap(), ProcessStatus::Exited(0));
}
