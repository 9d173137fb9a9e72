//! `kill -9` of anything at any moment: nothing is left, the layer opens again, the record holds.
//!
//! Which process and when is chosen by a generator with a fixed seed; the kernel's scheduling adds
//! the rest.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ringfence_link::client::Event;
use ringfence_link::warden::{Code, Exec, OpenSession, Request, SessionExec};
use ringfence_runtime::users::HOST_LOCKS;
use ringfence_warden::journal::verify;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::leftovers::{Leftovers, is_locked};
use crate::support::{
    Maker, PATIENCE, Sandbox, code_of, collect, eventually, first_output, is_alive, processes_with,
    require_sandbox,
};

/// How many are killed: one process of a run, the two that could clean up at once, and commands and
/// shells of a sandbox that goes on.
const OF_A_RUN: usize = 130;
const OF_BOTH: usize = 20;
const INSIDE: usize = 50;
const _: () = assert!(OF_A_RUN + OF_BOTH + INSIDE == 200);

const WORKERS: usize = 6;

/// Xorshift; the same numbers every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Caller,
    Warden,
    Outermost,
    Init,
    Command,
}

const VICTIMS: [Victim; 5] =
    [Victim::Caller, Victim::Warden, Victim::Outermost, Victim::Init, Victim::Command];

/// Writes files and says so, until it is ended.
const WRITER: &str = "i=0; mkdir -p d; while [ $i -lt 5000 ]; do i=$((i + 1)); \
     echo line >> grows; echo $i > d/$((i % 50)); mv d/$((i % 50)) d/m$((i % 7)); echo $i; done";

/// `ringfence run` on a state of its own.
struct Running {
    scratch: TempDir,
    caller: Child,
}

impl Running {
    fn start() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::create_dir(scratch.path().join("base")).unwrap();
        std::fs::write(scratch.path().join("base/grows"), "base\n").unwrap();
        let caller = run(scratch.path(), &["sh", "-c", WRITER]).spawn().unwrap();
        Self { scratch, caller }
    }

    fn state(&self) -> PathBuf {
        self.scratch.path().join("state")
    }

    /// The directory of its sandbox, once it is there.
    fn dir(&self) -> Option<PathBuf> {
        let mut all = std::fs::read_dir(self.state().join("sandboxes")).ok()?.flatten();
        all.next().map(|entry| entry.path())
    }

    /// The process to be killed, as soon as it exists.
    fn find(&self, victim: Victim) -> Option<i32> {
        let of = |pid: i32| children(pid).into_iter().next();
        let caller = self.caller.id() as i32;
        let depth = VICTIMS.iter().position(|each| *each == victim).unwrap();
        (0..depth).try_fold(caller, |pid, _| of(pid))
    }

    fn wait_for_lines(&mut self, count: u64) {
        let mut lines = BufReader::new(self.caller.stdout.take().unwrap()).lines();
        for _ in 0..count {
            // None: it has ended already, which some moments are about.
            let Some(Ok(_)) = lines.next() else { break };
        }
        // Goes on reading, or the command would be ended by a pipe nobody reads.
        std::thread::spawn(move || lines.for_each(drop));
    }

    fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.caller.try_wait().unwrap() {
                return status;
            }
            if Instant::now() > deadline {
                let left = self.leftovers().map(|left| left.found());
                panic!("the caller did not end: {left:#?}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn leftovers(&self) -> Option<Leftovers> {
        let dir = self.dir()?;
        let id = dir.file_name()?.to_str()?.to_owned();
        Some(Leftovers::of(&id, &dir, Path::new(HOST_LOCKS)))
    }

    /// Nothing is left of it but a layer that opens and a record that holds.
    fn left_in_order(&self) {
        let Some(dir) = self.dir() else { return };
        let id = dir.file_name().unwrap().to_str().unwrap().to_owned();
        if let Some(left) = self.leftovers() {
            left.assert_none();
        }
        if dir.join("journal.jsonl").exists() {
            verify(&dir, &id).unwrap();
        }
        if dir.join("layer").exists() {
            opens_again(&self.scratch.path().join("base"), &dir.join("layer"));
        }
    }
}

fn run(scratch: &Path, command: &[&str]) -> Command {
    let mut run = Command::new(env!("CARGO_BIN_EXE_ringfence"));
    run.args(["run", "--preset", "full-access", "--keep", "--state"]).arg(scratch.join("state"));
    run.arg(scratch.join("base")).arg("--").args(command);
    run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    run
}

/// A layer after a crash is a layer: it is opened, mounted and written to.
fn opens_again(base: &Path, layer: &Path) {
    // Its owner may still be on its way out.
    eventually("the layer is nobody's", || !is_locked(&layer.join("lock")));
    let sandbox = Maker::new()
        .change(|config| {
            config.base = base.into();
            config.layer = layer.into();
        })
        .start();
    assert_eq!(sandbox.ok("head -n 1 grows; echo new > new; cat new"), "base\nnew\n");
}

fn children(parent: i32) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map(|(_, rest)| rest.to_owned()).unwrap_or_default();
        fields.split_ascii_whitespace().nth(1) == Some(&parent.to_string())
    };
    pids.filter(is_child).collect()
}

fn kill(pid: i32) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
}

/// Waits without letting go of the processor: a moment between two moments.
fn spin(micros: u64) {
    let until = Instant::now() + Duration::from_micros(micros);
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// One run, of which one process is killed while it starts or while it works.
fn kill_one(chance: &mut Chance) {
    let victim = VICTIMS[chance.below(VICTIMS.len() as u64) as usize];
    let mut running = Running::start();
    if chance.below(2) == 0 {
        let lines = 1 + chance.below(200);
        running.wait_for_lines(lines);
    } else {
        running.wait_for_lines(0);
    }
    let mut found = None;
    eventually("the victim", || {
        found = running.find(victim);
        found.is_some() || !is_alive(running.caller.id() as i32)
    });
    spin(chance.below(5_000));
    let pid = found.unwrap_or_else(|| panic!("{victim:?} never came"));
    kill(pid);
    let status = running.ended();
    if victim == Victim::Caller {
        assert!(!status.success());
    }
    running.left_in_order();
}

#[test]
fn whatever_is_killed_of_a_run_nothing_is_left_of_it() {
    require_sandbox!();
    let killed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let killed = &killed;
            scope.spawn(move || {
                let mut chance = Chance(0x9e37_79b9_7f4a_7c15 ^ (worker as u64 + 1));
                while killed.fetch_add(1, Ordering::Relaxed) < OF_A_RUN {
                    kill_one(&mut chance);
                }
            });
        }
    });
    assert_eq!(killed.load(Ordering::Relaxed), OF_A_RUN + WORKERS, "each worker ends by one more");
}

/// Nobody is left to clean up; whoever comes next on the same state does.
#[test]
fn what_nobody_could_clean_up_is_cleaned_up_by_the_next() {
    require_sandbox!();
    let mut chance = Chance(77);
    for _ in 0..OF_BOTH {
        let mut running = Running::start();
        running.wait_for_lines(1 + chance.below(50));
        let warden = running.find(Victim::Warden).unwrap();
        kill(running.caller.id() as i32);
        kill(warden);
        running.ended();
        let dir = running.dir().unwrap();
        // All of its threads, which takes the kernel a moment.
        eventually("the warden is gone", || !is_locked(&dir.join("lock")));
        let output = run(running.scratch.path(), &["echo", "next"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "next\n", "{output:?}");
        let id = dir.file_name().unwrap().to_str().unwrap();
        Leftovers::of(id, &dir, Path::new(HOST_LOCKS)).assert_none();
        for name in ["running", "lock", "config.json"] {
            assert!(!dir.join(name).exists(), "{name}");
        }
        verify(&dir, id).unwrap();
        opens_again(&running.scratch.path().join("base"), &dir.join("layer"));
    }
}

/// Commands and the shells of sessions: the sandbox goes on.
#[test]
fn a_sandbox_outlives_its_commands_and_shells() {
    require_sandbox!();
    let sandbox = Maker::new().change(|config| config.users = config.dir.join("users")).start();
    let init = sandbox.info().init_pid;
    let mut chance = Chance(4711);
    let mut killed = 0;
    for round in 0..INSIDE {
        let name = format!("victim-{}-{round}", std::process::id());
        let lines = 1 + chance.below(100);
        match round % 2 == 0 {
            true => kill_shell(&sandbox, &name),
            false => kill_command(&sandbox, &name, lines),
        }
        killed += 1;
        assert_eq!(sandbox.ok("tail -n 1 grows"), "line\n");
        assert!(is_alive(init));
        eventually("its processes are gone", || processes_with(&name).is_empty());
    }
    assert_eq!(killed, INSIDE);
    ends_in_order(sandbox);
}

fn kill_command(sandbox: &Sandbox, name: &str, lines: u64) {
    // Whichever of the two is killed first, the other says so or is killed too.
    let exec = Exec::shell(format!("sh -c '{WRITER}' {name} & wait $!"));
    let call = sandbox.client.call(Request::Exec(exec)).unwrap();
    let mut seen = 0;
    while seen < lines {
        if let Event::Output(bytes) = call.next().unwrap() {
            seen += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        }
    }
    processes_with(name).into_iter().for_each(kill);
    let run = collect(&call).unwrap();
    assert_eq!((run.code(), run.outcome.oom_killed), (137, false), "{:?}", run.outcome);
}

fn kill_shell(sandbox: &Sandbox, name: &str) {
    let options = OpenSession { name: Some(name.into()), ..OpenSession::default() };
    sandbox.open(options).unwrap();
    let text = format!("echo line >> grows; sh -c 'echo up; sleep 1000; :' {name}; echo over");
    let request = Request::SessionExec { which: name.into(), exec: SessionExec::new(text) };
    let call = sandbox.client.call(request).unwrap();
    first_output(&call);
    // Those with the name are the shell's child, and for a moment that child's.
    let named = processes_with(name);
    let shell = named.iter().map(|pid| parent_of(*pid)).find(|parent| !named.contains(parent));
    kill(shell.unwrap());
    let run = collect(&call).unwrap();
    assert!(run.outcome.session_ended && run.code() == 137, "{:?}", run.outcome);
    let again = sandbox.in_session(name, SessionExec::new("echo still there"));
    assert_eq!(code_of(again), Code::SessionClosed);
}

fn parent_of(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

fn ends_in_order(mut sandbox: Sandbox) {
    let config = sandbox.config.clone();
    let left = Leftovers::of(&config.id, &config.dir, &config.users);
    sandbox.end();
    left.assert_none();
    verify(&config.dir, &config.id).unwrap();
}

#[test]
fn a_command_whose_sandbox_was_killed_says_so() {
    require_sandbox!();
    let sandbox = Maker::new().start();
    let call = sandbox.begin(Exec::shell("echo up; sleep 1000"));
    kill(sandbox.info().init_pid);
    let outcome = collect(&call).unwrap().outcome;
    assert_eq!((outcome.exit_code, outcome.oom_killed), (137, false), "{outcome:?}");
    assert_eq!(outcome.reason.as_deref(), Some("the sandbox has ended"));
}

#[test]
fn a_warden_outlives_whoever_asked_it() {
    require_sandbox!();
    let maker = Maker::new().change(|config| {
        config.ends_with_caller = false;
        config.users = config.dir.join("users");
    });
    let mut sandbox = maker.start();
    let name = format!("asked-{}", std::process::id());
    let exec = Exec::shell(format!("echo kept > file; echo up; sh -c 'sleep 1000; true' {name}"));
    let call = sandbox.begin(exec);
    // Everything that connects the two.
    drop(sandbox.warden.stdin.take());
    drop(call);
    eventually("its command is ended", || processes_with(&name).is_empty());
    assert_eq!(sandbox.ok("cat file"), "kept\n");
    assert!(is_alive(sandbox.info().init_pid));
    ends_in_order(sandbox);
}
