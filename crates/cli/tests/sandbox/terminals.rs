//! Commands on terminals: job control, size, watching, coming back, ends.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use ringfence_link::client::{ClientError, Event, Ongoing};
use ringfence_link::warden::{
    Code, Command, Control, OpenSession, OpenTerminal, ProcessStatus, Reply, Request, SessionExec,
    TerminalInfo,
};

use crate::support::{
    Maker, Sandbox, code_of, eventually, is_alive, processes_with, require_sandbox,
};

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_Z: &str = "\x1a";
const SCROLLBACK: usize = 256 * 1024;

fn on(words: &[&str]) -> OpenTerminal {
    let command = Command::Argv(words.iter().map(|word| word.as_bytes().to_vec()).collect());
    OpenTerminal {
        command: Some(command),
        session: None,
        env: vec![],
        cwd: None,
        rows: 24,
        columns: 80,
        id: None,
        end_when_left: false,
        record: false,
    }
}

fn text(text: &str) -> OpenTerminal {
    OpenTerminal { command: Some(Command::Shell(text.into())), ..on(&[]) }
}

/// A shell whose prompt is known.
fn bash() -> OpenTerminal {
    let env = vec![(b"PS1".to_vec(), b"READY> ".to_vec())];
    OpenTerminal { env, ..on(&["bash", "--norc", "--noprofile", "-i"]) }
}

impl Sandbox {
    fn try_open_terminal(&self, open: OpenTerminal) -> Result<TerminalInfo, ClientError> {
        match self.client.ask(Request::OpenTerminal(open))? {
            Reply::Terminal(info) => Ok(info),
            other => panic!("{other:?}"),
        }
    }

    fn terminal(&self, open: OpenTerminal) -> TerminalInfo {
        self.try_open_terminal(open).unwrap()
    }

    fn terminals(&self) -> Vec<TerminalInfo> {
        match self.client.ask(Request::Terminals).unwrap() {
            Reply::Terminals(list) => list,
            other => panic!("{other:?}"),
        }
    }

    fn attach(&self, id: &str) -> Attached {
        Attached::new(self.client.call(Request::Attach { id: id.into() }).unwrap())
    }

    /// Opens a terminal and attaches to it.
    fn on_terminal(&self, open: OpenTerminal) -> Attached {
        self.attach(&self.terminal(open).id)
    }

    fn resize(&self, id: &str, rows: u16, columns: u16) -> Result<Reply, ClientError> {
        self.client.ask(Request::ResizeTerminal { id: id.into(), rows, columns })
    }

    fn close_terminal(&self, id: &str) -> Result<Reply, ClientError> {
        self.client.ask(Request::CloseTerminal { id: id.into() })
    }
}

/// Someone who watches a terminal.
struct Attached {
    id: String,
    call: Ongoing,
    events: Receiver<Result<Event, ClientError>>,
    /// What was shown and not looked for yet.
    shown: Vec<u8>,
    /// Everything shown before it was live.
    replayed: Option<Vec<u8>>,
    end: Option<Result<ProcessStatus, ClientError>>,
}

impl Attached {
    fn new(call: Ongoing) -> Self {
        let id = match call.next().unwrap() {
            Event::Reply(Reply::Terminal(info), _) if info.attached => info.id,
            other => panic!("{other:?}"),
        };
        let (sender, events) = channel();
        let reader = call.try_clone().unwrap();
        std::thread::spawn(move || {
            loop {
                let event = reader.next();
                let over = event.is_err();
                if sender.send(event).is_err() || over {
                    return;
                }
            }
        });
        Self { id, call, events, shown: Vec::new(), replayed: None, end: None }
    }

    /// Takes one thing that happens; whether there was one before the deadline.
    fn step(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        match self.events.recv_timeout(left) {
            Ok(Ok(Event::Output(bytes))) => self.shown.extend(bytes),
            Ok(Ok(Event::Reply(Reply::Live, _))) => self.replayed = Some(self.shown.clone()),
            Ok(Ok(Event::Reply(Reply::Log { .. }, _))) => {}
            Ok(Ok(Event::Reply(Reply::LogEnd { status, .. }, _))) => {
                self.end = Some(Ok(status.unwrap()));
            }
            Ok(Ok(other)) => panic!("{other:?}"),
            Ok(Err(_)) if self.end.is_some() => {}
            Ok(Err(error)) => self.end = Some(Err(error)),
            Err(_) => return false,
        }
        true
    }

    fn type_in(&self, text: &str) {
        self.call.input(text.as_bytes()).unwrap();
    }

    /// Waits until a text is shown, and takes everything up to it.
    fn expect(&mut self, text: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let found = self.shown.windows(text.len()).position(|part| part == text.as_bytes());
            if let Some(at) = found {
                let taken: Vec<u8> = self.shown.drain(..at + text.len()).collect();
                return String::from_utf8_lossy(&taken).into_owned();
            }
            let shown = String::from_utf8_lossy(&self.shown).into_owned();
            assert!(self.end.is_none(), "no {text:?} before the end: {shown:?} {:?}", self.end);
            assert!(self.step(deadline), "no {text:?} in twenty seconds: {shown:?}");
        }
    }

    /// Runs a line at the prompt of [`bash`], and returns what it showed.
    fn run(&mut self, line: &str) -> String {
        self.type_in(&format!("{line}\n"));
        self.expect("\n");
        let shown = self.expect("READY> ");
        let shown = shown.strip_suffix("READY> ").unwrap().replace('\r', "");
        // What the shell says to turn pasting by brackets on and off.
        shown.replace("\x1b[?2004l", "").replace("\x1b[?2004h", "")
    }

    fn live(&mut self) -> Vec<u8> {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.replayed.is_none() {
            assert!(self.step(deadline) && self.end.is_none(), "it does not get live");
        }
        self.replayed.clone().unwrap()
    }

    fn ended(&mut self) -> Result<ProcessStatus, ClientError> {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.end.is_none() {
            assert!(self.step(deadline), "no end: {:?}", String::from_utf8_lossy(&self.shown));
        }
        self.end.take().unwrap()
    }

    fn control(&self, control: Control) {
        self.call.control(control).unwrap();
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.call.hang_up();
    }
}

#[test]
fn what_is_typed_is_echoed_and_run() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let info = sandbox.terminal(bash());
    assert!(info.id.starts_with("term_") && info.pid > 1 && !info.attached, "{info:?}");
    assert_eq!((info.rows, info.columns, info.watchers), (24, 80, 0));
    let mut terminal = sandbox.attach(&info.id);
    terminal.expect("READY> ");
    terminal.type_in("echo sum $((40+2))\n");
    assert!(terminal.expect("sum 42").contains("echo sum $((40+2))"));
    assert_eq!(sandbox.terminals()[0].watchers, 1);
}

#[test]
fn without_a_command_it_is_an_interactive_shell_in_the_workspace() {
    require_sandbox!();
    let sandbox = Maker::new().file("here.txt", "").start();
    let mut terminal = sandbox.on_terminal(OpenTerminal { command: None, ..on(&[]) });
    terminal.type_in("PS1='READY> '\n");
    terminal.expect("\u{1b}[?2004hREADY> ");
    assert_eq!(
        terminal.run("echo $- | tr -cd i; pwd; ls; echo $TERM"),
        "i/workspace\nhere.txt\nxterm-256color\n"
    );
    assert_eq!(terminal.run("echo $0"), "bash\n");
    assert!(terminal.run("tty").starts_with("/dev/pts/"));
}

#[test]
fn a_terminal_gets_its_directory_and_variables_also_term() {
    require_sandbox!();
    let sandbox = Maker::new().file("sub/x", "").start();
    let env = vec![(b"TERM".to_vec(), b"vt100".to_vec()), (b"A".to_vec(), b"$x 'y'".to_vec())];
    let open =
        OpenTerminal { cwd: Some(b"sub".to_vec()), env, ..text("pwd; echo $TERM; echo \"$A\"") };
    let mut terminal = sandbox.on_terminal(open);
    terminal.expect("/workspace/sub\r\nvt100\r\n$x 'y'\r\n");
    assert_eq!(terminal.ended().unwrap(), ProcessStatus::Exited(0));
}

#[test]
fn ctrl_c_stops_the_command_and_the_prompt_returns() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let mut terminal = sandbox.on_terminal(bash());
    terminal.expect("READY> ");
    // The program itself says so: while a shell forks, an interrupt may be its own.
    terminal.type_in("sh -c 'echo run\"\"ning; exec sleep 1000'\n");
    terminal.expect("running\r\n");
    terminal.type_in(CTRL_C);
    terminal.expect("^C");
    terminal.expect("READY> ");
    assert_eq!(terminal.run("echo $?"), "130\n");
}

#[test]
fn job_control_works() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let mut terminal = sandbox.on_terminal(bash());
    let greeting = terminal.expect("READY> ");
    assert!(!greeting.contains("no job control"), "{greeting}");
    terminal.type_in("sh -c 'echo run\"\"ning; exec sleep 1000'\n");
    terminal.expect("running\r\n");
    terminal.type_in(CTRL_Z);
    terminal.expect("Stopped");
    terminal.expect("READY> ");
    assert!(terminal.run("jobs").contains("Stopped"));
    terminal.run("bg");
    assert!(terminal.run("jobs").contains("Running"));
    terminal.type_in("fg\n");
    terminal.expect("sleep 1000'\r\n");
    terminal.type_in(CTRL_C);
    terminal.expect("READY> ");
    assert_eq!(terminal.run("jobs"), "");
}

#[test]
fn programs_find_their_controlling_terminal() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let ask = "import getpass; print('got', getpass.getpass('secret? ')[::-1])";
    let mut terminal = sandbox.on_terminal(on(&["python3", "-c", ask]));
    terminal.expect("secret? ");
    terminal.type_in("abc\n");
    let shown = terminal.expect("got cba");
    assert!(!shown.contains("abc"), "it is not echoed: {shown:?}");
}

#[test]
fn a_resize_changes_the_size_and_is_signalled() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let mut terminal = sandbox.on_terminal(OpenTerminal { rows: 33, columns: 111, ..bash() });
    terminal.expect("READY> ");
    assert_eq!(terminal.run("stty size"), "33 111\n");
    sandbox.resize(&terminal.id, 40, 100).unwrap();
    assert_eq!(terminal.run("stty size"), "40 100\n");
    terminal.type_in("trap 'echo new size $(stty size)' WINCH; echo set\\ up; read x\n");
    terminal.expect("set up");
    terminal.control(Control::Resize { rows: 50, columns: 120 });
    eventually("the size is known", || sandbox.terminals()[0].columns == 120);
    terminal.type_in("\n");
    terminal.expect("new size 50 120");
}

#[test]
fn a_size_of_nothing_is_refused_and_the_terminal_lives() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let none = OpenTerminal { rows: 0, ..bash() };
    assert_eq!(code_of(sandbox.try_open_terminal(none)), Code::InvalidArgument);
    let mut terminal = sandbox.on_terminal(bash());
    terminal.expect("READY> ");
    for (rows, columns) in [(0, 80), (24, 0), (0, 0)] {
        let refused = sandbox.resize(&terminal.id, rows, columns);
        assert_eq!(code_of(refused), Code::InvalidArgument);
        terminal.control(Control::Resize { rows, columns });
    }
    assert_eq!(terminal.run("stty size"), "24 80\n");
}

#[test]
fn who_comes_back_is_shown_what_was_shown_before_it_is_live() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let mut terminal = sandbox.on_terminal(bash());
    terminal.expect("READY> ");
    terminal.run("cd /tmp; X=kept; echo earlier words");
    let id = terminal.id.clone();
    drop(terminal);
    let mut again = sandbox.attach(&id);
    let replayed = String::from_utf8(again.live()).unwrap();
    assert!(replayed.contains("earlier words") && replayed.ends_with("READY> "), "{replayed:?}");
    again.shown.clear();
    assert_eq!(again.run("echo $X $PWD"), "kept /tmp\n");
}

#[test]
fn the_replay_is_the_last_256_kib() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let mut terminal = sandbox.on_terminal(text("seq 1 100000; echo the end; read x"));
    terminal.expect("the end");
    let mut late = sandbox.attach(&terminal.id);
    let replayed = late.live();
    assert_eq!(replayed.len(), SCROLLBACK);
    assert!(replayed.ends_with(b"100000\r\nthe end\r\n"));
}

#[test]
fn all_who_watch_see_everything_and_each_may_type() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let mut one = sandbox.on_terminal(bash());
    one.expect("READY> ");
    let mut two = sandbox.attach(&one.id);
    two.expect("READY> ");
    assert_eq!(sandbox.terminals()[0].watchers, 2);
    one.type_in("echo from-$((1))\n");
    two.expect("from-1");
    two.type_in("echo from-$((2))\n");
    assert!(one.expect("from-2").contains("from-1"));
    two.expect("from-2");
    drop(one);
    eventually("one is gone", || sandbox.terminals()[0].watchers == 1);
    two.expect("READY> ");
    assert_eq!(two.run("echo still here"), "still here\n");
}

#[test]
fn terminals_are_independent() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    std::thread::scope(|scope| {
        for n in 0..10 {
            let sandbox = &sandbox;
            scope.spawn(move || {
                let mut terminal = sandbox.on_terminal(bash());
                terminal.expect("READY> ");
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
fn the_exit_code_is_told_to_all_who_watch_and_to_who_comes_later() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let mut one = sandbox.on_terminal(bash());
    one.expect("READY> ");
    let mut two = sandbox.attach(&one.id);
    two.expect("READY> ");
    one.type_in("exit 5\n");
    for watcher in [&mut one, &mut two] {
        assert_eq!(watcher.ended().unwrap(), ProcessStatus::Exited(5));
    }
    let mut late = sandbox.attach(&one.id);
    assert_eq!(late.ended().unwrap(), ProcessStatus::Exited(5));
    assert!(String::from_utf8_lossy(&late.shown).contains("exit 5"));
    assert_eq!(sandbox.terminals()[0].status, ProcessStatus::Exited(5));
    // What can be done to it has no effect.
    sandbox.close_terminal(&one.id).unwrap();
    sandbox.resize(&one.id, 10, 10).unwrap();
}

#[test]
fn ctrl_d_ends_the_shell_and_a_signal_is_told() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let mut terminal = sandbox.on_terminal(bash());
    terminal.expect("READY> ");
    terminal.run("true");
    terminal.type_in(CTRL_D);
    assert_eq!(terminal.ended().unwrap(), ProcessStatus::Exited(0));
    let mut terminal = sandbox.on_terminal(bash());
    terminal.expect("READY> ");
    terminal.type_in("kill -9 $$\n");
    assert_eq!(terminal.ended().unwrap(), ProcessStatus::Killed(9));
}

#[test]
fn what_cannot_be_started_has_failed_and_says_why() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let info = sandbox.terminal(on(&["no-such-program"]));
    assert!(matches!(&info.status, ProcessStatus::Failed(why) if why.contains("no-such-program")));
    let mut terminal = sandbox.attach(&info.id);
    assert_eq!(terminal.ended().unwrap(), info.status);
    let nowhere = OpenTerminal { cwd: Some(b"/no/where".to_vec()), ..bash() };
    let info = sandbox.terminal(nowhere);
    assert!(matches!(&info.status, ProcessStatus::Failed(why) if why.contains("/no/where")));
}

#[test]
fn hanging_up_leaves_it_running_unless_it_is_to_end_when_left() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let mut stays = sandbox.on_terminal(bash());
    let mut goes = sandbox.on_terminal(OpenTerminal { end_when_left: true, ..bash() });
    let mut second = sandbox.attach(&goes.id);
    for terminal in [&mut stays, &mut goes, &mut second] {
        terminal.expect("READY> ");
    }
    drop((stays, goes));
    eventually("one is left", || sandbox.terminals()[1].watchers == 1);
    assert_eq!(second.run("echo alive"), "alive\n");
    drop(second);
    eventually("it ends", || sandbox.terminals()[1].status != ProcessStatus::Running);
    assert_eq!(sandbox.terminals()[0].status, ProcessStatus::Running);
}

#[test]
fn closing_ends_everything_that_was_started_there() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let time = format!("32{}.5", std::process::id());
    let mut terminal = sandbox.on_terminal(bash());
    terminal.expect("READY> ");
    terminal.run(&format!("(trap '' HUP TERM; setsid sleep {time} &)"));
    terminal.run(&format!("sleep {time} & sleep 0; kill -STOP %1; echo"));
    eventually("they run", || processes_with(&time).len() == 2);
    sandbox.close_terminal(&terminal.id).unwrap();
    assert!(matches!(
        terminal.ended().unwrap(),
        ProcessStatus::Killed(_) | ProcessStatus::Exited(_)
    ));
    assert!(!processes_with(&time).iter().any(|pid| is_alive(*pid)));
    let stubborn = "trap '' HUP TERM INT; echo up; while :; do sleep 0.05; done";
    let mut terminal = sandbox.on_terminal(text(stubborn));
    terminal.expect("up");
    sandbox.close_terminal(&terminal.id).unwrap();
    assert_eq!(terminal.ended().unwrap(), ProcessStatus::Killed(9));
}

#[test]
fn what_is_left_in_the_background_does_not_keep_a_terminal_from_ending() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let time = format!("33{}.5", std::process::id());
    let mut terminal = sandbox.on_terminal(bash());
    terminal.expect("READY> ");
    terminal.run(&format!("setsid -f sh -c 'trap \"\" HUP; sleep {time}'"));
    terminal.type_in("exit 3\n");
    assert_eq!(terminal.ended().unwrap(), ProcessStatus::Exited(3));
    assert!(!processes_with(&time).iter().any(|pid| is_alive(*pid)));
}

#[test]
fn ids_are_used_checked_and_found() {
    require_sandbox!();
    let sandbox = Sandbox::new();
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
fn more_than_64_at_once_are_refused() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    for _ in 0..64 {
        assert_eq!(sandbox.terminal(on(&["sleep", "1000"])).status, ProcessStatus::Running);
    }
    assert_eq!(code_of(sandbox.try_open_terminal(bash())), Code::LimitReached);
    let first = sandbox.terminals().remove(0).id;
    sandbox.close_terminal(&first).unwrap();
    eventually("there is room again", || sandbox.try_open_terminal(on(&["true"])).is_ok());
}

#[test]
fn a_debugger_is_driven_over_several_attachments() {
    require_sandbox!();
    let program = "total = 0\nfor n in range(5):\n    total += n\nprint('total', total)\n";
    let sandbox = Maker::new().file("sum.py", program).start();
    let mut first = sandbox.on_terminal(on(&["python3", "-m", "pdb", "sum.py"]));
    first.expect("(Pdb) ");
    first.type_in("break 3\n");
    assert!(first.expect("(Pdb) ").contains("Breakpoint 1 at /workspace/sum.py:3"));
    let id = first.id.clone();
    drop(first);
    let mut second = sandbox.attach(&id);
    second.live();
    second.shown.clear();
    second.type_in("continue\n");
    second.expect("(Pdb) ");
    second.type_in("continue 1\np (n, total)\n");
    second.expect("(1, 0)");
    drop(second);
    let mut third = sandbox.attach(&id);
    third.live();
    third.shown.clear();
    third.type_in("clear 1\n");
    third.expect("Deleted breakpoint 1");
    third.type_in("continue\n");
    third.expect("total 10");
    third.type_in("quit\n");
    assert_eq!(third.ended().unwrap(), ProcessStatus::Exited(0));
}

#[test]
fn full_screen_programs_start_draw_and_quit() {
    require_sandbox!();
    let lines: String = (1..=200).map(|n| format!("line number {n}\n")).collect();
    let sandbox = Maker::new().file("long.txt", lines).start();
    let mut less = sandbox.on_terminal(on(&["less", "long.txt"]));
    less.expect("line number 23");
    less.type_in("G");
    less.expect("line number 200");
    less.type_in("g/number 77\n");
    less.expect("line number 99");
    less.type_in("q");
    assert_eq!(less.ended().unwrap(), ProcessStatus::Exited(0));
    let mut top = sandbox.on_terminal(on(&["top"]));
    top.expect("PID");
    sandbox.resize(&top.id, 30, 100).unwrap();
    top.expect("top");
    top.type_in("q");
    assert_eq!(top.ended().unwrap(), ProcessStatus::Exited(0));
    let mut vim = sandbox.on_terminal(on(&["vim", "-u", "NONE", "new.txt"]));
    vim.expect("~");
    vim.type_in("ihello from vim\x1b:wq\n");
    assert_eq!(vim.ended().unwrap(), ProcessStatus::Exited(0));
    assert_eq!(sandbox.ok("cat new.txt"), "hello from vim\n");
}

#[test]
fn a_watcher_that_does_not_read_loses_bytes_but_not_the_end() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let info = sandbox.terminal(text("stty raw; yes flood | head -c 64M; echo the end; exit 6"));
    let stalled = sandbox.client.call(Request::Attach { id: info.id.clone() }).unwrap();
    eventually("it ends", || sandbox.terminals()[0].status == ProcessStatus::Exited(6));
    let status = std::fs::read_to_string(format!("/proc/{}/status", sandbox.warden.id())).unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap().to_owned();
    let kib: u64 = memory.split_whitespace().next().unwrap().parse().unwrap();
    assert!(kib < 64 * 1024, "{kib}");
    let (mut shown, mut skipped) = (Vec::new(), 0);
    let last = stalled.finish(|event| match event {
        Event::Output(bytes) => shown.extend(bytes),
        Event::Reply(Reply::Log { .. }, _) => skipped += 1,
        _ => {}
    });
    assert!(matches!(last.unwrap(), Reply::LogEnd { status: Some(ProcessStatus::Exited(6)), .. }));
    assert!(skipped > 0 && shown.len() < 8 * 1024 * 1024, "{skipped} {}", shown.len());
    assert!(String::from_utf8_lossy(&shown).ends_with("the end\n"));
}

#[test]
fn typing_to_one_who_does_not_read_is_bounded_and_a_signal_still_ends_it() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let mut terminal = sandbox.on_terminal(text("stty raw -echo; echo up; sleep 1000"));
    terminal.expect("up");
    let typist = terminal.call.try_clone().unwrap();
    let typing = std::thread::spawn(move || while typist.input(&[b'x'; 64 * 1024]).is_ok() {});
    assert_eq!(sandbox.ok("echo others go on"), "others go on\n");
    sandbox.close_terminal(&terminal.id).unwrap();
    terminal.ended().unwrap();
    drop(terminal);
    typing.join().unwrap();
}

#[test]
fn a_long_paste_arrives_whole() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let mut terminal =
        sandbox.on_terminal(text("stty raw -echo; echo up; head -c 1000000 | cksum; read x"));
    terminal.expect("up");
    let paste: String = (0..100_000).map(|n| format!("{n:09} ")).collect();
    let sum =
        sandbox.exec_with_input(ringfence_link::warden::Exec::shell("cksum"), paste.as_bytes());
    terminal.type_in(&paste);
    terminal.expect(sum.unwrap().out().trim());
}

#[test]
fn a_terminal_is_on_record_by_reference() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let mut terminal =
        sandbox.on_terminal(text("stty -echo; echo up; read x; printf 'secret %s' $x"));
    terminal.expect("up\r\n");
    let before = "up\r\n";
    terminal.type_in("typed-words\n");
    terminal.expect("secret typed-words");
    assert_eq!(terminal.ended().unwrap(), ProcessStatus::Exited(0));
    drop(terminal);
    let journal = sandbox.stop_and_read_journal();
    let entry = |direction: &str| {
        let wanted = format!(r#""direction":"{direction}""#);
        let line = journal.lines().find(|line| line.contains(&wanted)).unwrap();
        serde_json::from_str::<serde_json::Value>(line).unwrap()
    };
    let shown = format!("{before}secret typed-words");
    for (direction, bytes) in [("typed", "typed-words\n"), ("shown", &shown)] {
        let text = entry(direction).to_string();
        assert!(text.contains(&format!(r#""size":{}"#, bytes.len())), "{text}");
        assert!(text.contains(&blake3::hash(bytes.as_bytes()).to_string()), "{text}");
    }
    assert!(journal.contains("terminal_opened") && journal.contains("terminal_closed"));
    assert!(!journal.contains("typed-words"), "contents are not on record");
}

#[test]
fn a_recording_is_an_asciicast_of_what_was_shown() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let file = |id: &str| sandbox.config.dir.join("recordings").join(format!("{id}.cast"));
    let open = OpenTerminal {
        record: true,
        ..text("printf 'caf\\303'; sleep 0.05; printf '\\251'; read x")
    };
    let mut terminal = sandbox.on_terminal(open);
    terminal.expect("café");
    sandbox.resize(&terminal.id, 30, 90).unwrap();
    terminal.type_in("\n");
    terminal.ended().unwrap();
    let cast = std::fs::read_to_string(file(&terminal.id)).unwrap();
    let lines: Vec<serde_json::Value> =
        cast.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["version"], &lines[0]["width"]), (&2.into(), &80.into()));
    let data = |kind: &str| -> String {
        let events = lines[1..].iter().filter(|line| line[1] == kind);
        events.map(|line| line[2].as_str().unwrap()).collect()
    };
    assert_eq!((data("o").as_str(), data("r").as_str()), ("café\r\n", "90x30"));
    let times: Vec<f64> = lines[1..].iter().map(|line| line[0].as_f64().unwrap()).collect();
    assert!(times.is_sorted());
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(file(&terminal.id)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // One recording is not written over by another, and without asking there is none.
    let again = OpenTerminal { id: Some(terminal.id.clone()), record: true, ..bash() };
    assert_eq!(code_of(sandbox.try_open_terminal(again)), Code::TerminalExists);
    let plain = sandbox.terminal(bash());
    assert!(!file(&plain.id).exists());
}

#[test]
fn a_sandbox_that_ends_is_not_an_exit_with_success() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let mut terminal = sandbox.on_terminal(bash());
    terminal.expect("READY> ");
    sandbox.stop();
    match terminal.ended() {
        Err(ClientError::Lost) | Ok(ProcessStatus::Killed(_)) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_terminal_of_a_session_begins_where_it_is_and_ends_with_it() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let session = sandbox.open(OpenSession::default()).unwrap();
    let exec = SessionExec::new("cd /tmp; export A=exported");
    sandbox.in_session(&session.id, exec).unwrap();
    let mut terminal =
        sandbox.on_terminal(OpenTerminal { session: Some(session.id.clone()), ..bash() });
    terminal.expect("READY> ");
    assert_eq!(terminal.run("echo $PWD $A $TERM"), "/tmp exported xterm-256color\n");
    sandbox.client.ask(Request::CloseSession { which: session.id }).unwrap();
    assert_ne!(terminal.ended().unwrap(), ProcessStatus::Exited(0));
}
