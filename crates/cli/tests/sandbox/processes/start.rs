//! How a process begins: its id, its directory, what cannot be started.

use ringfence_link::warden::{Code, ProcessStatus, StartProcess, Until};

use super::{SIGKILL, argv, named, shell};
use crate::support::{Maker, code_of, sandbox};

#[test]
fn a_start_returns_id_and_pid_before_the_command_ends() {
    let sandbox = sandbox!();
    let process = sandbox.start("echo hello; sleep 1000");
    assert!(process.id.starts_with("proc_") && process.id.len() == 21, "{process:?}");
    assert!(process.pid > 1);
    assert_eq!(process.status, ProcessStatus::Running);
    assert_eq!(sandbox.line(&process.id, "hello"), "hello");
    let again = sandbox.process(&process.id).unwrap();
    assert_eq!((again.status, again.ended_ms), (ProcessStatus::Running, None));
    assert_eq!(again.log_end, 6);
    assert_eq!(again.command, "echo hello; sleep 1000");
}

#[test]
fn a_fast_command_has_its_pid_and_all_its_log() {
    let sandbox = sandbox!();
    for _ in 0..20 {
        let process = sandbox.start("echo out; echo err >&2");
        assert!(process.pid > 1);
        let log = sandbox.log(&process.id);
        assert_eq!((log.out().as_str(), log.err().as_str()), ("out\n", "err\n"));
        assert_eq!(log.status, Some(ProcessStatus::Exited(0)));
        let info = sandbox.process(&process.id).unwrap();
        assert_eq!(info.status, ProcessStatus::Exited(0));
        assert!(info.ended_ms.unwrap() >= info.created_ms);
    }
}

#[test]
fn an_id_of_ones_own_is_used_and_refused_while_it_lives() {
    let sandbox = sandbox!();
    let process = sandbox.try_start(named("web.1", "echo first; sleep 1000")).unwrap();
    assert_eq!(process.id, "web.1");
    assert_eq!(code_of(sandbox.try_start(named("web.1", "true"))), Code::ProcessExists);
    sandbox.line("web.1", "first");
    sandbox.kill("web.1", SIGKILL).unwrap();
    assert_eq!(sandbox.ended("web.1"), ProcessStatus::Killed(SIGKILL));
    sandbox.try_start(named("web.1", "echo second")).unwrap();
    assert_eq!(sandbox.log("web.1").out(), "second\n");
    assert_eq!(sandbox.processes().len(), 1);
}

#[test]
fn ids_that_could_be_paths_are_refused() {
    let sandbox = sandbox!();
    for bad in ["", "..", "../x", "a/b", "a b", ".hidden", "-rf"] {
        let refused = sandbox.try_start(named(bad, "true"));
        assert_eq!(code_of(refused), Code::InvalidArgument, "{bad:?}");
    }
}

#[test]
fn of_many_starts_with_one_id_exactly_one_succeeds() {
    let sandbox = sandbox!();
    let start = || sandbox.try_start(named("one", "sleep 1000")).is_ok();
    let won = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).filter(|ok| *ok).count()
    });
    assert_eq!((won, sandbox.processes().len()), (1, 1));
}

#[test]
fn an_empty_command_is_refused() {
    let sandbox = sandbox!();
    let env = vec![(b"A-B".to_vec(), b"x".to_vec())];
    let variable = StartProcess { env, ..shell("true") };
    for bad in [shell(""), shell(" \n\t"), shell("a\0b"), argv(&[]), variable] {
        let asked = format!("{bad:?}");
        assert_eq!(code_of(sandbox.try_start(bad)), Code::InvalidArgument, "{asked}");
    }
    assert!(sandbox.processes().is_empty());
}

#[test]
fn what_cannot_start_has_failed_and_never_seems_to_run() {
    let sandbox = sandbox!();
    let nowhere = StartProcess { cwd: Some(b"/no/where".to_vec()), ..shell("true") };
    sandbox.ok("echo text > data");
    let starts =
        [(nowhere, "/no/where"), (argv(&["no-such"]), "no-such"), (argv(&["./data"]), "./data")];
    for (start, name) in starts {
        let process = sandbox.try_start(start).unwrap();
        let ProcessStatus::Failed(reason) = &process.status else { panic!("{process:?}") };
        assert!(reason.contains(name), "{reason}");
        assert!(process.ended_ms.is_some());
        let log = sandbox.log(&process.id);
        assert!(log.err().contains(name), "{log:?}");
        assert_eq!(log.status.as_ref(), Some(&process.status));
        assert_eq!(sandbox.ended(&process.id), process.status);
        let line = sandbox.wait(&process.id, Until::Text(b"never".to_vec()));
        assert_eq!(code_of(line), Code::ExitedFirst);
    }
}

#[test]
fn a_process_gets_its_directory_variables_and_no_input() {
    let maker = Maker::new().file("sub/x", "");
    let sandbox = sandbox!(maker.change(|c| c.env = vec![("OWN".into(), "1".into())]));
    let start = StartProcess {
        cwd: Some(b"sub".to_vec()),
        env: vec![(b"A".to_vec(), b"$(id) 'q' \"d\"\n*".to_vec())],
        ..shell("pwd; echo \"$OWN$A\"; wc -c")
    };
    let process = sandbox.try_start(start).unwrap();
    let log = sandbox.log(&process.id);
    assert_eq!(log.out(), "/workspace/sub\n1$(id) 'q' \"d\"\n*\n0\n");
    let start = argv(&["printf", "%s|", "a b", "$(x)", "it's"]);
    let process = sandbox.try_start(start).unwrap();
    assert_eq!(sandbox.log(&process.id).out(), "a b|$(x)|it's|");
}

#[test]
fn other_commands_run_while_a_process_does() {
    let sandbox = sandbox!();
    let process = sandbox.start("while :; do sleep 0.01; done");
    assert_eq!(sandbox.ok("echo free"), "free\n");
    assert_eq!(sandbox.status(&process.id), ProcessStatus::Running);
}
