//! Commands in the background: starting, logs, waits, ends.

use std::time::{Duration, Instant};

use ringfence_link::client::{ClientError, Event, Ongoing};
use ringfence_link::warden::{
    Code, Command, Exec, HttpCheck, OpenSession, ProcessInfo, ProcessStatus, Reply, Request,
    SessionExec, StartProcess, Until,
};

use crate::support::{
    Maker, Sandbox, code_of, eventually, is_alive, processes_with, require_sandbox,
};

const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

pub(crate) fn shell(text: &str) -> StartProcess {
    let command = Command::Shell(text.into());
    StartProcess { command, session: None, env: vec![], cwd: None, id: None }
}

/// What a process printed and how that ended.
#[derive(Debug, Default)]
struct Log {
    from: Vec<u64>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    next: u64,
    status: Option<ProcessStatus>,
}

impl Log {
    fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

impl Sandbox {
    fn try_start(&self, start: StartProcess) -> Result<ProcessInfo, ClientError> {
        match self.client.ask(Request::StartProcess(start))? {
            Reply::Process(info) => Ok(info),
            other => panic!("{other:?}"),
        }
    }

    fn start(&self, text: &str) -> ProcessInfo {
        self.try_start(shell(text)).unwrap()
    }

    fn process(&self, id: &str) -> Result<ProcessInfo, ClientError> {
        match self.client.ask(Request::Process { id: id.into() })? {
            Reply::Process(info) => Ok(info),
            other => panic!("{other:?}"),
        }
    }

    fn processes(&self) -> Vec<ProcessInfo> {
        match self.client.ask(Request::Processes).unwrap() {
            Reply::Processes(list) => list,
            other => panic!("{other:?}"),
        }
    }

    fn follow(&self, id: &str, from: u64) -> Ongoing {
        self.client.call(Request::ProcessLog { id: id.into(), from, follow: true }).unwrap()
    }

    /// Follows a process to its end.
    fn log(&self, id: &str) -> Log {
        read_log(&self.follow(id, 0))
    }

    fn stored_log(&self, id: &str, from: u64) -> Log {
        let request = Request::ProcessLog { id: id.into(), from, follow: false };
        read_log(&self.client.call(request).unwrap())
    }

    fn wait(&self, id: &str, until: Until) -> Result<Reply, ClientError> {
        self.wait_for(id, until, 20_000)
    }

    fn wait_for(&self, id: &str, until: Until, ms: u64) -> Result<Reply, ClientError> {
        self.client.ask(Request::WaitProcess { id: id.into(), until, timeout_ms: Some(ms) })
    }

    fn ended(&self, id: &str) -> ProcessStatus {
        match self.wait(id, Until::Exit).unwrap() {
            Reply::Process(info) => info.status,
            other => panic!("{other:?}"),
        }
    }

    /// Waits for a text, and returns the line.
    fn line(&self, id: &str, text: &str) -> String {
        line_of(self.wait(id, Until::Text(text.into())))
    }

    fn kill(&self, id: &str, signal: i32) -> Result<Reply, ClientError> {
        self.client.ask(Request::KillProcess { id: id.into(), signal })
    }
}

fn line_of(reply: Result<Reply, ClientError>) -> String {
    match reply.unwrap() {
        Reply::Ready { line: Some(line) } => String::from_utf8(line).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn read_log(call: &Ongoing) -> Log {
    let mut log = Log::default();
    let last = call.finish(|event| match event {
        Event::Output(bytes) => log.stdout.extend(bytes),
        Event::Error(bytes) => log.stderr.extend(bytes),
        Event::Reply(Reply::Log { from }, _) => log.from.push(*from),
        Event::Reply(other, _) => panic!("{other:?}"),
    });
    match last.unwrap() {
        Reply::LogEnd { next, status } => Log { next, status, ..log },
        other => panic!("{other:?}"),
    }
}

/// The bytes of the next frame of a log that is not a message.
fn next_bytes(call: &Ongoing) -> Vec<u8> {
    loop {
        match call.next().unwrap() {
            Event::Output(bytes) | Event::Error(bytes) => return bytes,
            Event::Reply(Reply::Log { .. }, _) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn http(path: &str, status_from: u16, status_to: u16) -> Option<HttpCheck> {
    Some(HttpCheck { path: path.into(), status_from, status_to })
}

/// A sleep that can be told from all others on this machine.
fn unique_sleep() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("31{}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[test]
fn a_start_returns_id_and_pid_before_the_command_ends() {
    require_sandbox!();
    let sandbox = Sandbox::new();
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
    require_sandbox!();
    let sandbox = Sandbox::new();
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
    require_sandbox!();
    let sandbox = Sandbox::new();
    let named = |text: &str| StartProcess { id: Some("web.1".into()), ..shell(text) };
    let process = sandbox.try_start(named("echo first; sleep 1000")).unwrap();
    assert_eq!(process.id, "web.1");
    assert_eq!(code_of(sandbox.try_start(named("true"))), Code::ProcessExists);
    sandbox.line("web.1", "first");
    sandbox.kill("web.1", SIGKILL).unwrap();
    assert_eq!(sandbox.ended("web.1"), ProcessStatus::Killed(SIGKILL));
    sandbox.try_start(named("echo second")).unwrap();
    assert_eq!(sandbox.log("web.1").out(), "second\n");
    assert_eq!(sandbox.processes().len(), 1);
}

#[test]
fn ids_that_could_be_paths_are_refused() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    for bad in ["", "..", "../x", "a/b", "a b", ".hidden", "-rf"] {
        let start = StartProcess { id: Some(bad.into()), ..shell("true") };
        assert_eq!(code_of(sandbox.try_start(start)), Code::InvalidArgument, "{bad:?}");
    }
}

#[test]
fn of_many_starts_with_one_id_exactly_one_succeeds() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let start = || {
        sandbox.try_start(StartProcess { id: Some("one".into()), ..shell("sleep 1000") }).is_ok()
    };
    let won = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).filter(|ok| *ok).count()
    });
    assert_eq!((won, sandbox.processes().len()), (1, 1));
}

#[test]
fn an_empty_command_is_refused() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    assert_eq!(code_of(sandbox.try_start(shell(""))), Code::InvalidArgument);
    assert_eq!(code_of(sandbox.try_start(shell(" \n\t"))), Code::InvalidArgument);
    assert_eq!(code_of(sandbox.try_start(shell("a\0b"))), Code::InvalidArgument);
    let none = StartProcess { command: Command::Argv(vec![]), ..shell("") };
    assert_eq!(code_of(sandbox.try_start(none)), Code::InvalidArgument);
    let env = vec![(b"A-B".to_vec(), b"x".to_vec())];
    let bad = StartProcess { env, ..shell("true") };
    assert_eq!(code_of(sandbox.try_start(bad)), Code::InvalidArgument);
    assert!(sandbox.processes().is_empty());
}

#[test]
fn a_stream_begins_with_its_offset_comes_as_it_is_written_and_ends_with_one_status() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let process =
        sandbox.start("echo one; until [ -e /tmp/go ]; do sleep 0.01; done; echo two; exit 3");
    let call = sandbox.follow(&process.id, 0);
    assert!(matches!(call.next().unwrap(), Event::Reply(Reply::Log { from: 0 }, _)));
    assert_eq!(next_bytes(&call), b"one\n");
    sandbox.ok("touch /tmp/go");
    let rest = read_log(&call);
    assert_eq!((rest.out().as_str(), rest.next), ("two\n", 8));
    assert_eq!(rest.status, Some(ProcessStatus::Exited(3)));
    assert!(matches!(call.next(), Err(ClientError::Lost)), "nothing follows the end");
}

#[test]
fn a_line_without_its_end_arrives_while_the_process_runs() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let process = sandbox.start("printf 'no newline'; sleep 1000");
    assert_eq!(next_bytes(&sandbox.follow(&process.id, 0)), b"no newline");
    assert_eq!(sandbox.line(&process.id, "newline"), "no newline");
}

#[test]
fn every_way_to_end_is_an_end_with_its_code() {
    require_sandbox!();
    let sandbox = Sandbox::new();
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
fn what_cannot_start_has_failed_and_never_seems_to_run() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let nowhere = StartProcess { cwd: Some(b"/no/where".to_vec()), ..shell("true") };
    let argv = |name: &str| StartProcess { command: Command::Argv(vec![name.into()]), ..shell("") };
    sandbox.ok("echo text > data");
    let starts = [(nowhere, "/no/where"), (argv("no-such"), "no-such"), (argv("./data"), "./data")];
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
    require_sandbox!();
    let sandbox =
        Maker::new().file("sub/x", "").change(|c| c.env = vec![("OWN".into(), "1".into())]).start();
    let start = StartProcess {
        cwd: Some(b"sub".to_vec()),
        env: vec![(b"A".to_vec(), b"$(id) 'q' \"d\"\n*".to_vec())],
        ..shell("pwd; echo \"$OWN$A\"; wc -c")
    };
    let process = sandbox.try_start(start).unwrap();
    let log = sandbox.log(&process.id);
    assert_eq!(log.out(), "/workspace/sub\n1$(id) 'q' \"d\"\n*\n0\n");
    let words = ["printf", "%s|", "a b", "$(x)", "it's"].map(|word| word.as_bytes().to_vec());
    let start = StartProcess { command: Command::Argv(words.into()), ..shell("") };
    let process = sandbox.try_start(start).unwrap();
    assert_eq!(sandbox.log(&process.id).out(), "a b|$(x)|it's|");
}

#[test]
fn other_commands_run_while_a_process_does() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let process = sandbox.start("while :; do sleep 0.01; done");
    assert_eq!(sandbox.ok("echo free"), "free\n");
    assert_eq!(sandbox.process(&process.id).unwrap().status, ProcessStatus::Running);
}

#[test]
fn a_kill_reaches_the_whole_tree() {
    require_sandbox!();
    let (sandbox, time) = (Sandbox::new(), unique_sleep());
    let text = format!("sh -c 'sh -c \"sleep {time} & wait\" & wait' & echo up; wait");
    let process = sandbox.start(&text);
    sandbox.line(&process.id, "up");
    eventually("three levels", || processes_with(&format!("sleep\0{time}")).len() == 1);
    sandbox.kill(&process.id, SIGTERM).unwrap();
    assert_eq!(sandbox.ended(&process.id), ProcessStatus::Killed(SIGTERM));
    assert_eq!(processes_with(&time), Vec::<i32>::new());
    // Again has no effect and is no error.
    sandbox.kill(&process.id, SIGTERM).unwrap();
    assert_eq!(sandbox.process(&process.id).unwrap().status, ProcessStatus::Killed(SIGTERM));
}

#[test]
fn one_that_ignores_sigterm_is_killed_five_seconds_later() {
    require_sandbox!();
    let sandbox = Sandbox::new();
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
    require_sandbox!();
    let sandbox = Sandbox::new();
    let text = "trap 'echo bye; exit 4' TERM; echo up; while :; do sleep 0.01; done";
    let process = sandbox.start(text);
    sandbox.line(&process.id, "up");
    sandbox.kill(&process.id, SIGTERM).unwrap();
    assert_eq!(sandbox.ended(&process.id), ProcessStatus::Exited(4));
    assert_eq!(sandbox.log(&process.id).out(), "up\nbye\n");
}

#[test]
fn daemons_die_with_the_process_that_started_them() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let time = unique_sleep();
    let daemon = format!("setsid sh -c '(setsid sleep {time} </dev/null >/dev/null 2>&1 &)'");
    let there = || processes_with(&time).iter().any(|pid| is_alive(*pid));
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
    require_sandbox!();
    let (sandbox, time) = (Sandbox::new(), unique_sleep());
    let process = sandbox.start(&format!("setsid sleep {time} & echo done; exit 5"));
    let log = sandbox.log(&process.id);
    assert_eq!((log.out().as_str(), log.status), ("done\n", Some(ProcessStatus::Exited(5))));
    assert!(!processes_with(&time).iter().any(|pid| is_alive(*pid)));
}

#[test]
fn killing_all_counts_those_that_ran_and_ends_them() {
    require_sandbox!();
    let (sandbox, time) = (Sandbox::new(), unique_sleep());
    let over = sandbox.start("true");
    sandbox.ended(&over.id);
    let live: Vec<_> = (0..5).map(|_| sandbox.start(&format!("sleep {time}"))).collect();
    assert_eq!(sandbox.client.ask(Request::KillAllProcesses).unwrap(), Reply::Count(5));
    for process in live {
        assert_eq!(sandbox.ended(&process.id), ProcessStatus::Killed(SIGTERM));
    }
    assert_eq!(processes_with(&time), Vec::<i32>::new());
    assert_eq!(sandbox.client.ask(Request::KillAllProcesses).unwrap(), Reply::Count(0));
}

#[test]
fn an_unknown_id_is_not_found_and_a_bad_signal_is_refused() {
    require_sandbox!();
    let sandbox = Sandbox::new();
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
fn any_signal_can_be_sent() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let process = sandbox.start("trap 'echo usr1' USR1; echo up; while :; do sleep 0.01; done");
    sandbox.line(&process.id, "up");
    sandbox.kill(&process.id, 10).unwrap();
    assert_eq!(sandbox.line(&process.id, "usr1"), "usr1");
    sandbox.kill(&process.id, 2).unwrap();
    assert_eq!(sandbox.ended(&process.id), ProcessStatus::Killed(2));
}

#[test]
fn who_comes_late_gets_what_was_then_what_comes_and_all_get_the_same() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let text = "echo before; until [ -e /tmp/go ]; do sleep 0.01; done; echo after; echo err >&2";
    let process = sandbox.start(text);
    sandbox.line(&process.id, "before");
    let calls: Vec<_> = (0..3).map(|_| sandbox.follow(&process.id, 0)).collect();
    for call in &calls {
        assert_eq!(next_bytes(call), b"before\n");
    }
    sandbox.ok("touch /tmp/go");
    for call in &calls {
        let log = read_log(call);
        assert_eq!((log.out().as_str(), log.err().as_str()), ("after\n", "err\n"));
        assert_eq!(log.status, Some(ProcessStatus::Exited(0)));
    }
}

#[test]
fn a_reader_that_hangs_up_changes_nothing() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let text = "echo up; until [ -e /tmp/go ]; do sleep 0.01; done; echo end";
    let process = sandbox.start(text);
    for _ in 0..10 {
        let call = sandbox.follow(&process.id, 0);
        assert_eq!(next_bytes(&call), b"up\n");
        call.hang_up();
    }
    assert_eq!(sandbox.process(&process.id).unwrap().status, ProcessStatus::Running);
    sandbox.ok("touch /tmp/go");
    assert_eq!(sandbox.log(&process.id).out(), "up\nend\n");
}

#[test]
fn a_lost_stream_is_resumed_without_losing_a_byte_and_is_never_a_success() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let process = sandbox.start("for i in $(seq 1 20000); do echo $i; done");
    let (mut all, mut offset) = (Vec::new(), 0);
    for _ in 0..5 {
        let call = sandbox.follow(&process.id, offset);
        let bytes = next_bytes(&call);
        offset += bytes.len() as u64;
        all.extend(bytes);
        call.hang_up();
        assert!(!matches!(call.next(), Ok(Event::Reply(Reply::LogEnd { .. }, _))));
    }
    let rest = read_log(&sandbox.follow(&process.id, offset));
    assert_eq!(rest.from, [offset]);
    all.extend(rest.stdout);
    let expected: String = (1..=20000).map(|i| format!("{i}\n")).collect();
    assert!(all == expected.as_bytes());
    assert_eq!(rest.next, expected.len() as u64);
}

#[test]
fn a_log_read_without_following_ends_with_what_there_is_and_the_status_of_now() {
    require_sandbox!();
    let sandbox = Sandbox::new();
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
    require_sandbox!();
    let sandbox = Sandbox::new();
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
fn a_text_or_pattern_is_found_in_either_stream_before_or_after_it_is_printed() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let text = "echo 'on stdout: 1'; echo 'on stderr: 2' >&2; until [ -e /tmp/go ]; do sleep 0.01; done;
        printf 'listening on '; printf 'half' >&2; sleep 0.02; printf 'port 80'; printf '80\\n'; sleep 1000";
    let process = sandbox.start(text);
    assert_eq!(sandbox.line(&process.id, "on stderr"), "on stderr: 2");
    let pattern = |text: &str| Until::Pattern(text.into());
    let found = sandbox.wait(&process.id, pattern(r"^on \w+: \d$"));
    assert_eq!(line_of(found), "on stdout: 1");
    std::thread::scope(|scope| {
        let future = scope.spawn(|| sandbox.wait(&process.id, pattern(r"listening .* (\d+)$")));
        sandbox.ok("touch /tmp/go");
        assert_eq!(line_of(future.join().unwrap()), "listening on port 8080");
    });
    assert_eq!(sandbox.line(&process.id, "ing on port"), "listening on port 8080");
}

#[test]
fn a_wait_ends_at_its_deadline_and_leaves_the_process_alone() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let process = sandbox.start("yes");
    let untils = [
        Until::Exit,
        Until::Text(b"never".to_vec()),
        Until::Pattern("ne+ver".into()),
        Until::Port { port: 9, http: None },
        Until::Port { port: 9, http: http("/", 200, 399) },
    ];
    for until in untils {
        let name = format!("{until:?}");
        assert_eq!(code_of(sandbox.wait_for(&process.id, until, 100)), Code::TimedOut, "{name}");
    }
    assert_eq!(sandbox.process(&process.id).unwrap().status, ProcessStatus::Running);
}

#[test]
fn a_wait_fails_at_once_with_the_code_if_the_process_ends_first() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let untils = [
        Until::Text(b"never".to_vec()),
        Until::Pattern("ne+ver".into()),
        Until::Port { port: 9, http: None },
        Until::Port { port: 9, http: http("/", 200, 399) },
    ];
    for until in untils {
        let process = sandbox.start("until [ -e /tmp/go ]; do sleep 0.01; done; echo x; exit 41");
        std::thread::scope(|scope| {
            let wait = || sandbox.wait_for(&process.id, until.clone(), 60_000);
            let waiting = scope.spawn(wait);
            sandbox.ok("touch /tmp/go");
            match waiting.join().unwrap() {
                Err(ClientError::Refused(failure)) => {
                    assert_eq!(failure.code, Code::ExitedFirst);
                    assert!(failure.message.contains("41"), "{failure}");
                }
                other => panic!("{other:?}"),
            }
        });
        sandbox.ok("rm /tmp/go");
    }
}

#[test]
fn a_bad_wait_is_refused() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let process = sandbox.start("sleep 1000");
    let untils = [
        Until::Pattern("(".into()),
        Until::Pattern("a{1000000}{1000000}".into()),
        Until::Port { port: 0, http: None },
        Until::Port { port: 80, http: http("no-slash", 200, 399) },
        Until::Port { port: 80, http: http("/x\r\nHost: y", 200, 399) },
        Until::Port { port: 80, http: http("/", 400, 300) },
    ];
    for until in untils {
        let name = format!("{until:?}");
        assert_eq!(code_of(sandbox.wait(&process.id, until)), Code::InvalidArgument, "{name}");
    }
}

#[test]
fn a_waiter_that_hangs_up_ends_its_wait() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let process = sandbox.start("sleep 1000");
    let calls = || sandbox.threads("call");
    eventually("earlier calls end", || calls() == 0);
    for until in [Until::Exit, Until::Text(b"x".to_vec()), Until::Port { port: 9, http: None }] {
        let request = Request::WaitProcess { id: process.id.clone(), until, timeout_ms: None };
        let call = sandbox.client.call(request).unwrap();
        eventually("it waits", || calls() == 1);
        drop(call);
        eventually("it ends", || calls() == 0);
    }
}

const SERVER: &str = "python3 -u -m http.server 8123 --bind 127.0.0.1";

#[test]
fn a_web_server_is_waited_for_by_its_port_and_reached_by_other_commands() {
    require_sandbox!();
    let sandbox = Maker::new().file("page.txt", "from inside").start();
    let process = sandbox.start(SERVER);
    let port = |http| Until::Port { port: 8123, http };
    assert_eq!(sandbox.wait(&process.id, port(None)).unwrap(), Reply::Ready { line: None });
    let ready =
        |path: &str, from, to| sandbox.wait_for(&process.id, port(http(path, from, to)), 20_000);
    assert_eq!(ready("/", 200, 399).unwrap(), Reply::Ready { line: None });
    assert_eq!(ready("/page.txt", 200, 200).unwrap(), Reply::Ready { line: None });
    assert_eq!(ready("/missing", 404, 404).unwrap(), Reply::Ready { line: None });
    let wrong = sandbox.wait_for(&process.id, port(http("/missing", 200, 399)), 200);
    assert_eq!(code_of(wrong), Code::TimedOut);
    let fetch = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8123/page.txt').read().decode())";
    assert_eq!(sandbox.ok(&format!("python3 -c \"{fetch}\"")), "from inside\n");
    assert!(sandbox.line(&process.id, "GET /page.txt").contains("200"));
    sandbox.kill(&process.id, SIGTERM).unwrap();
    assert_eq!(sandbox.ended(&process.id), ProcessStatus::Killed(SIGTERM));
    assert_ne!(sandbox.sh(&format!("python3 -c \"{fetch}\"")).code(), 0);
}

#[test]
fn a_server_that_accepts_and_never_answers_is_open_but_not_ready() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let process = sandbox.start(
        "python3 -c \"import socket,time\ns=socket.socket(socket.AF_INET6)\ns.bind(('::1',8124))\ns.listen()\ntime.sleep(1000)\"",
    );
    let port = |http| Until::Port { port: 8124, http };
    assert_eq!(sandbox.wait(&process.id, port(None)).unwrap(), Reply::Ready { line: None });
    let never = sandbox.wait_for(&process.id, port(http("/", 200, 399)), 300);
    assert_eq!(code_of(never), Code::TimedOut);
}

const DATABASE: &str = r#"
import socketserver, threading
data, lock = {}, threading.Lock()
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            words = line.decode().split()
            with lock:
                if words[0] == "SET": data[words[1]] = words[2]; answer = "OK"
                else: answer = data.get(words[1], "(nil)")
            self.wfile.write((answer + "\n").encode())
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
server = Server(("127.0.0.1", 6399), Handler)
print("ready to accept connections", flush=True)
server.serve_forever()
"#;

const QUERY: &str = r#"
import socket, sys
s = socket.create_connection(("127.0.0.1", 6399)); f = s.makefile("rw")
for line in sys.stdin:
    f.write(line); f.flush(); print(f.readline().strip())
"#;

#[test]
fn a_database_server_keeps_its_data_between_commands() {
    require_sandbox!();
    let sandbox = Maker::new().file("db.py", DATABASE).file("query.py", QUERY).start();
    let process = sandbox.start("exec python3 db.py");
    sandbox.line(&process.id, "ready to accept");
    let query = |text: &str| sandbox.ok(&format!("printf '{text}' | python3 query.py"));
    assert_eq!(query("SET a 1\\nSET b two\\n"), "OK\nOK\n");
    assert_eq!(query("GET a\\nGET b\\nGET c\\n"), "1\ntwo\n(nil)\n");
}

#[test]
fn binary_bytes_are_exact_in_both_streams() {
    require_sandbox!();
    let sandbox = Sandbox::new();
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
fn twenty_at_once_do_not_mix() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    std::thread::scope(|scope| {
        for n in 0..20 {
            let sandbox = &sandbox;
            scope.spawn(move || {
                let text = format!(
                    "for i in $(seq 1 500); do echo {n}-$i; echo e{n}-$i >&2; done; exit {n}"
                );
                let process = sandbox.start(&text);
                let log = sandbox.log(&process.id);
                let lines = |mark: &str| -> String {
                    (1..=500).map(|i| format!("{mark}{n}-{i}\n")).collect()
                };
                assert_eq!(log.out(), lines(""));
                assert_eq!(log.err(), lines("e"));
                assert_eq!(log.status, Some(ProcessStatus::Exited(n)));
            });
        }
    });
    assert_eq!(sandbox.processes().len(), 20);
}

fn memory_of(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn a_flood_to_one_who_does_not_read_takes_bounded_memory_and_blocks_nobody() {
    require_sandbox!();
    let sandbox = Sandbox::new();
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
    assert!(log.from.last().is_some_and(|from| *from > 4 * 1024 * 1024), "{:?}", log.from);
    assert_eq!(log.status, Some(ProcessStatus::Killed(SIGTERM)));
    assert_eq!(log.next, sandbox.process(&process.id).unwrap().log_end);
    let kept = sandbox.stored_log(&process.id, 0);
    assert_eq!(kept.stdout.len(), 4 * 1024 * 1024);
}

#[test]
fn the_list_is_oldest_first_and_remembers_the_last_256_that_ended() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let first = sandbox.start("sleep 1000");
    let ids: Vec<String> = (0..260)
        .map(|n| {
            let start = StartProcess { id: Some(format!("p{n}")), ..shell("true") };
            let id = sandbox.try_start(start).unwrap().id;
            sandbox.ended(&id);
            id
        })
        .collect();
    let forgotten = || code_of_or(sandbox.process(&ids[3]), Code::ProcessNotFound);
    eventually("the oldest are forgotten", forgotten);
    let listed: Vec<String> = sandbox.processes().into_iter().map(|info| info.id).collect();
    assert_eq!(listed[0], first.id, "one that runs is not forgotten");
    assert_eq!(listed[1..], ids[4..]);
}

fn code_of_or<T>(result: Result<T, ClientError>, code: Code) -> bool {
    matches!(result, Err(ClientError::Refused(failure)) if failure.code == code)
}

#[test]
fn more_than_256_at_once_are_refused() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    for _ in 0..256 {
        let start = StartProcess {
            command: Command::Argv(vec![b"sleep".to_vec(), b"1000".to_vec()]),
            ..shell("")
        };
        assert_eq!(sandbox.try_start(start).unwrap().status, ProcessStatus::Running);
    }
    assert_eq!(code_of(sandbox.try_start(shell("true"))), Code::LimitReached);
    assert_eq!(sandbox.ok("echo still"), "still\n");
    assert_eq!(sandbox.client.ask(Request::KillAllProcesses).unwrap(), Reply::Count(256));
    let live = |info: &ProcessInfo| info.status == ProcessStatus::Running;
    eventually("all end", || !sandbox.processes().iter().any(live));
    sandbox.start("true");
}

#[test]
fn starts_and_ends_are_in_the_journal() {
    require_sandbox!();
    let sandbox = Sandbox::new();
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

#[test]
fn a_process_ends_with_its_sandbox() {
    require_sandbox!();
    let (sandbox, time) = (Sandbox::new(), unique_sleep());
    sandbox.start(&format!("setsid sleep {time}"));
    eventually("it runs", || !processes_with(&time).is_empty());
    sandbox.stop();
    eventually("it is gone", || !processes_with(&time).iter().any(|pid| is_alive(*pid)));
}

fn in_session(session: &str, text: &str) -> StartProcess {
    StartProcess { session: Some(session.into()), ..shell(text) }
}

#[test]
fn a_process_of_a_session_begins_where_the_session_is_and_does_not_change_it() {
    require_sandbox!();
    let sandbox = Maker::new().file("sub/deep/x", "").start();
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
    require_sandbox!();
    let sandbox = Sandbox::new();
    sandbox.in_session("default", SessionExec::new("cd /tmp")).unwrap();
    let exec = SessionExec::new("echo busy; cd /; sleep 1000");
    let call = sandbox.client.call(Request::SessionExec { which: "default".into(), exec }).unwrap();
    while !matches!(call.next().unwrap(), Event::Output(_)) {}
    let process = sandbox.try_start(in_session("default", "pwd")).unwrap();
    assert_eq!(sandbox.log(&process.id).out(), "/tmp\n");
}

#[test]
fn a_process_ends_with_its_session_and_one_without_does_not() {
    require_sandbox!();
    let (sandbox, time) = (Sandbox::new(), unique_sleep());
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
        assert!(!processes_with(&time).iter().any(|pid| is_alive(*pid)));
        assert_eq!(sandbox.process(&other.id).unwrap().status, ProcessStatus::Running);
        let late = sandbox.try_start(in_session(&session.id, "true"));
        assert!(matches!(code_of(late), Code::SessionClosed | Code::SessionNotFound));
    }
}
