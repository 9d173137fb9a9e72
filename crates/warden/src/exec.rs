//! One command in a fresh shell: nothing is kept but its result.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringfence_link::channel::{Channel, Kind};
use ringfence_link::init::{Ending, Spawn, Stdio, Step, Usage};
use ringfence_link::warden::{Command, Control, Exec, Failure, Outcome, Reply};

use crate::environment::{check_text, check_variables, directory, environment, invalid};
use crate::inside::{Program, SpawnFailure};
use crate::journal::event::How;
use crate::origins::Owner;
use crate::pump::{Pump, Wake};
use crate::sandbox::{Sandbox, Starting, internal};
use crate::tree::{SIGTERM, Tree};

/// Between asking to end and ending.
const GRACE: Duration = Duration::from_secs(1);
/// How long what a command left running may still print.
const AFTERMATH: Duration = Duration::from_millis(100);
/// The kernel's bound on one argument is 128 KiB.
const LONGEST_ARGUMENT: usize = 100 * 1024;
/// Commands are to go before shells, and shells before init, when memory runs out.
pub(crate) const OOM_COMMAND: i16 = 500;

/// How a command is handed to exec: by arguments, or as a script that is too long for one.
pub(crate) struct Line {
    pub(crate) argv: Vec<Vec<u8>>,
    pub(crate) script: Option<OwnedFd>,
}

impl Line {
    pub(crate) fn of(command: &Command) -> Result<Self, Failure> {
        match command {
            Command::Argv(argv) => {
                if argv.first().is_none_or(Vec::is_empty) {
                    return Err(invalid("there is no command"));
                }
                argv.iter().try_for_each(|word| check_text(word, "an argument"))?;
                Ok(Self { argv: argv.clone(), script: None })
            }
            Command::Shell(text) => {
                check_text(text, "the command")?;
                Self::of_shell(text)
            }
        }
    }

    fn of_shell(text: &[u8]) -> Result<Self, Failure> {
        if text.len() <= LONGEST_ARGUMENT {
            let argv = vec![b"/bin/sh".to_vec(), b"-c".into(), text.into()];
            return Ok(Self { argv, script: None });
        }
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::memfd_create("command", flags).map_err(internal)?);
        file.write_all(text).map_err(internal)?;
        let argv = vec![b"/bin/sh".to_vec(), b"/proc/self/fd/3".into()];
        Ok(Self { argv, script: Some(file.into()) })
    }

    pub(crate) fn stdio(&self) -> Stdio {
        if self.script.is_some() { Stdio::GivenAndScript } else { Stdio::Given }
    }
}

impl Sandbox {
    /// Runs a command and passes its output to the caller as it comes.
    pub(crate) fn exec(&self, caller: &Channel, exec: &Exec) -> Result<Outcome, Failure> {
        check_variables(&exec.env)?;
        let line = Line::of(&exec.command)?;
        let cwd = directory(exec.cwd.as_deref())?;
        let starting = Starting {
            how: How::Exec,
            session: None,
            command: &exec.command,
            cwd: &cwd,
            env: &exec.env,
            changes: exec.changes,
        };
        let (stdin, input) = self.standard_input(exec.stdin)?;
        let (output, stdout) = self.pipe(false)?;
        let (errors, stderr) = self.pipe(false)?;
        let started = self.begin(&starting);
        let request = Spawn {
            argv: line.argv.clone(),
            env: environment(&self.config.env, &exec.env),
            cwd: cwd.clone(),
            stdio: line.stdio(),
            oom_score_adj: OOM_COMMAND,
            ..Spawn::default()
        };
        let mut fds = vec![stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        fds.extend(line.script.as_ref().map(|fd| fd.as_fd()));
        let group =
            (format!("c{}", started.number), self.new_group(&format!("c{}", started.number))?);
        let spawned = Tree::start(
            (&self.inside, &self.origins),
            group,
            &Owner::of(started.number),
            request,
            &fds,
        );
        let (tree, program) = match spawned {
            Ok(spawned) => spawned,
            Err(refused) => {
                let outcome = not_started(caller, &line.argv[0], &cwd, refused)?;
                return Ok(self.finish(&started, outcome));
            }
        };
        drop((stdin, stdout, stderr));
        let pump = Pump::new(caller, [Some(output), Some(errors)], input);
        let tree = Arc::new(tree);
        self.running.lock().insert(started.name.clone(), Arc::downgrade(&tree));
        let announced = Reply::Started { command: started.name.clone() };
        let _ = caller.send(&announced, &[]);
        let mut execution = Execution::new(&tree, &program, pump, exec.timeout_ms);
        let (ending, usage) = execution.run();
        let mut outcome = execution.outcome(ending, usage);
        if self.inside.is_gone() {
            outcome.reason = Some("the sandbox has ended".into());
        }
        self.running.lock().remove(&started.name);
        drop(tree);
        self.inside.forget(program.id);
        Ok(self.finish(&started, outcome))
    }

    /// What the command reads from, and where its input is written to if there will be any.
    pub(crate) fn standard_input(
        &self,
        given: bool,
    ) -> Result<(OwnedFd, Option<OwnedFd>), Failure> {
        if given {
            return self.pipe(true).map(|(reader, writer)| (reader, Some(writer)));
        }
        let null = File::open("/dev/null").map_err(internal)?;
        Ok((null.into(), None))
    }
}

/// What a command that could not be started looks like to its caller: as a shell would tell it.
pub(crate) fn not_started(
    caller: &Channel,
    program: &[u8],
    cwd: &[u8],
    refused: SpawnFailure,
) -> Result<Outcome, Failure> {
    let Some((exit_code, text)) = refusal(program, cwd, &refused) else {
        let name = String::from_utf8_lossy(program);
        return Err(internal(format!("cannot start {name}: {refused}")));
    };
    let bytes = format!("ringfence: {text}\n");
    let _ = caller.send_bytes(Kind::Error, bytes.as_bytes());
    let forked = !matches!(refused, SpawnFailure::Refused { step: Step::Fork, .. });
    let reason = (!forked).then(|| "no process could be started".to_string());
    let stderr_bytes = bytes.len() as u64;
    Ok(Outcome { exit_code, stderr_bytes, reason, ..Outcome::default() })
}

/// The exit code and the words of a shell for it; none if it is not the command's fault.
pub(crate) fn refusal(program: &[u8], cwd: &[u8], refused: &SpawnFailure) -> Option<(i32, String)> {
    let SpawnFailure::Refused { step, source } = refused else { return None };
    let name = String::from_utf8_lossy(program);
    match (step, source.kind()) {
        (Step::Directory, _) => {
            Some((1, format!("cannot enter {}: {source}", String::from_utf8_lossy(cwd))))
        }
        (Step::Exec, std::io::ErrorKind::NotFound) => {
            Some((127, format!("{name}: command not found")))
        }
        (Step::Exec, _) => Some((126, format!("{name}: {source}"))),
        (Step::Fork, _) => Some((126, format!("{name}: no process could be started: {source}"))),
        (Step::SetUp, _) => None,
    }
}

/// A command on its way from start to end.
struct Execution<'a> {
    tree: &'a Tree,
    program: &'a Program,
    pump: Pump<'a>,
    deadline: Option<Instant>,
    ending: Stage,
    timed_out: bool,
    cancelled: bool,
}

/// How far an early end has got.
#[derive(PartialEq, Clone, Copy)]
enum Stage {
    NotAsked,
    Asked,
    Forced,
}

impl<'a> Execution<'a> {
    fn new(tree: &'a Tree, program: &'a Program, pump: Pump<'a>, timeout_ms: Option<u64>) -> Self {
        let deadline = timeout_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
        let (ending, timed_out, cancelled) = (Stage::NotAsked, false, false);
        Self { tree, program, pump, deadline, ending, timed_out, cancelled }
    }

    fn run(&mut self) -> (Ending, Usage) {
        loop {
            match self.pump.step(&[self.program.as_fd()], self.deadline) {
                Wake::Ready(_) => break,
                Wake::Deadline => {
                    self.timed_out |= self.ending == Stage::NotAsked;
                    self.end_early();
                }
                Wake::HungUp | Wake::Control(Control::Cancel) => self.cancel(),
                Wake::Control(Control::Signal(signal)) => self.tree.signal(signal),
                Wake::Control(_) | Wake::Silent => {}
            }
        }
        let result = self.program.ending();
        self.take_the_rest();
        result
    }

    fn cancel(&mut self) {
        if self.ending == Stage::NotAsked {
            self.cancelled = true;
            self.end_early();
        }
    }

    /// First politely, then for certain.
    fn end_early(&mut self) {
        if self.ending == Stage::NotAsked {
            self.tree.signal(SIGTERM);
            self.ending = Stage::Asked;
        } else {
            self.tree.kill();
            self.ending = Stage::Forced;
        }
        self.deadline = Some(Instant::now() + GRACE);
    }

    /// The command is over. What it left running may print for a moment more, and is ended. All
    /// that was printed is passed on, however long the caller takes to read it.
    fn take_the_rest(&mut self) {
        self.pump.stop_input();
        if !self.tree.is_empty() {
            self.drain(AFTERMATH);
            self.tree.kill();
        }
        self.pump.take_what_is_there(None);
        self.drain(GRACE);
    }

    fn drain(&mut self, longest: Duration) {
        let deadline = Instant::now() + longest;
        self.pump.take_what_is_there(Some(deadline));
        loop {
            match self.pump.step(&[], Some(deadline)) {
                Wake::Silent | Wake::Deadline => return,
                _ => {}
            }
        }
    }

    fn outcome(&self, ending: Ending, usage: Usage) -> Outcome {
        let cpu = self.tree.cpu_time().map(|time| time.as_micros() as u64);
        let signal = match ending {
            Ending::Signalled(signal) => Some(signal),
            Ending::Exited(_) => None,
        };
        Outcome {
            exit_code: if self.timed_out { 124 } else { ending.code() },
            signal,
            timed_out: self.timed_out,
            cancelled: self.cancelled,
            cpu_micros: cpu.unwrap_or(usage.user_micros + usage.system_micros),
            peak_memory: usage.peak_memory,
            stdout_bytes: self.pump.moved[0],
            stderr_bytes: self.pump.moved[1],
            ..Outcome::default()
        }
    }
}
