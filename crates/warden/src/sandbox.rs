//! What everything that runs in one sandbox shares.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use ringfence_fs::events::EventSink;
use ringfence_fs::mount::Mounted;
use ringfence_link::warden::{Change, Code, Command, Failure, Info, Outcome, Variable};
use ringfence_policy::WorkspacePath;
use ringfence_runtime::cgroup::{CommandGroup, SandboxGroup};
use rustix::fs::OFlags;
use rustix::pipe::PipeFlags;

use crate::background::{Background, Reactor, Registry};
use crate::config::Config;
use crate::inside::Inside;
use crate::journal::event::{CommandEnded, CommandLine, CommandStarted, How, Limit, LimitHit};
use crate::journal::{Event, Journal, List, Text};
use crate::ledger::{Ledger, command_name};
use crate::origins::Origins;
use crate::processes::Processes;
use crate::session::Sessions;
use crate::terminals::Terminals;
use crate::tree::Tree;

pub(crate) struct Sandbox {
    pub(crate) config: Config,
    pub(crate) info: Info,
    pub(crate) inside: Arc<Inside>,
    pub(crate) group: SandboxGroup,
    pub(crate) origins: Arc<Origins>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) sink: EventSink,
    pub(crate) journal: Arc<Journal>,
    pub(crate) mounted: Mutex<Mounted>,
    /// The host user inside is, outside; none if it is the warden's own.
    pub(crate) user: Option<(u32, u32)>,
    pub(crate) sessions: Sessions,
    pub(crate) processes: Processes,
    pub(crate) terminals: Terminals,
    pub(crate) reactor: Reactor,
    pub(crate) running: Mutex<HashMap<String, Weak<Tree>>>,
    pub(crate) next: AtomicU64,
    /// Calls that have not been answered yet.
    pub(crate) calls: AtomicU64,
    /// Tells the main thread to end everything, and why.
    pub(crate) stop: Sender<String>,
}

/// A command's number and what is known of it from the start.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) number: u64,
    pub(crate) name: String,
    at: std::time::Instant,
    oom_kills: u64,
    pids_refused: u64,
}

/// What the journal is told when a command starts.
pub(crate) struct Starting<'a> {
    pub(crate) how: How,
    pub(crate) session: Option<String>,
    pub(crate) command: &'a Command,
    pub(crate) cwd: &'a [u8],
    pub(crate) env: &'a [Variable],
    pub(crate) changes: bool,
}

impl Sandbox {
    pub(crate) fn next_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn record(&self, event: Event) {
        // The journal itself counts what it could not write.
        let _ = self.journal.append(event);
    }

    /// Puts the start of a command on record and begins its account.
    pub(crate) fn begin(&self, starting: &Starting<'_>) -> Started {
        let number = self.next_number();
        let name = command_name(number);
        self.ledger.open(number, starting.changes);
        let line = match starting.command {
            Command::Shell(text) => CommandLine::Shell(Text::new(text)),
            Command::Argv(argv) => CommandLine::Argv(List::new(argv)),
        };
        self.record(Event::CommandStarted(CommandStarted {
            command: name.clone(),
            how: starting.how,
            session: starting.session.clone(),
            line,
            cwd: Text::new(starting.cwd),
            env: List::new(starting.env.iter().map(|(name, _)| name)),
            trace: crate::trace::current(),
        }));
        Started {
            number,
            name,
            at: std::time::Instant::now(),
            oom_kills: self.group.oom_kills(),
            pids_refused: self.group.pids_refused(),
        }
    }

    /// Completes the outcome of a command with what the sandbox knows, and puts it on record.
    pub(crate) fn finish(&self, started: &Started, mut outcome: Outcome) -> Outcome {
        outcome.command = started.name.clone();
        outcome.duration_micros = started.at.elapsed().as_micros() as u64;
        // The counter is the sandbox's: a command of the same time that was killed for another
        // reason cannot be told apart.
        let was_killed = outcome.signal == Some(9) || outcome.exit_code == 137;
        outcome.oom_killed = was_killed && self.group.oom_kills() > started.oom_kills;
        outcome.pids_refused = self.group.pids_refused() > started.pids_refused;
        if outcome.oom_killed {
            outcome.reason.get_or_insert_with(|| "the memory limit was reached".into());
        }
        let closing = self.ledger.close(started.number, &self.sink);
        outcome.denied = closing.denied;
        outcome.denied_more = closing.more;
        outcome.changes = closing.changed.map(|paths| self.changes_of(&paths));
        self.record_end(&outcome);
        outcome
    }

    fn record_end(&self, outcome: &Outcome) {
        let hits = [
            (outcome.oom_killed, Limit::Memory),
            (outcome.pids_refused, Limit::Pids),
            (outcome.timed_out, Limit::WallTime),
        ];
        for (_, limit) in hits.into_iter().filter(|(hit, _)| *hit) {
            let command = Some(outcome.command.clone());
            self.record(Event::LimitHit(LimitHit { limit, command }));
        }
        self.record(Event::CommandEnded(CommandEnded {
            command: outcome.command.clone(),
            exit_code: outcome.signal.is_none().then_some(outcome.exit_code),
            signal: outcome.signal,
            duration_us: outcome.duration_micros,
            cpu_us: Some(outcome.cpu_micros),
            // Nobody knows it of a command that has ended its shell at once.
            peak_memory_bytes: (outcome.peak_memory > 0).then_some(outcome.peak_memory),
            stdout_bytes: outcome.stdout_bytes,
            stderr_bytes: outcome.stderr_bytes,
            timed_out: outcome.timed_out,
            cancelled: outcome.cancelled,
            oom_killed: outcome.oom_killed,
            session_ended: outcome.session_ended,
        }));
    }

    /// Of the paths a command has touched, those that differ from what is below the layer.
    fn changes_of(&self, paths: &std::collections::HashSet<WorkspacePath>) -> Vec<Change> {
        let mounted = self.mounted.lock();
        let changes = ringfence_fs::changes::changes(mounted.layer()).unwrap_or_default();
        let touched = changes.iter().filter(|change| paths.contains(&change.path));
        touched
            .map(|change| Change {
                kind: change.kind.as_str().into(),
                path: change.path.to_string(),
            })
            .collect()
    }

    /// A group for the processes of something, if this host can make one.
    pub(crate) fn new_group(&self, name: &str) -> Result<Option<CommandGroup>, Failure> {
        self.group.command(name).map_err(internal)
    }

    /// A pipe whose one end is for the inside (and belongs to its user, so that it can be opened
    /// again by name) and whose other end never makes the warden wait. (reading end, writing end)
    pub(crate) fn pipe(&self, inside_reads: bool) -> Result<(OwnedFd, OwnedFd), Failure> {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(internal)?;
        if let Some((uid, gid)) = self.user {
            rustix::fs::fchown(
                &reader,
                Some(rustix::fs::Uid::from_raw(uid)),
                Some(rustix::fs::Gid::from_raw(gid)),
            )
            .map_err(internal)?;
        }
        let ours = if inside_reads { &writer } else { &reader };
        set_nonblocking(ours).map_err(internal)?;
        // Larger steps for bulk output; where the user's share is used up the usual size stays.
        let _ = rustix::pipe::fcntl_setpipe_size(&reader, 1024 * 1024);
        Ok((reader, writer))
    }

    /// Where something in the background is on record.
    pub(crate) fn registry_of(&self, background: &Background) -> &Registry {
        match background.screen {
            None => &self.processes.registry,
            Some(_) => &self.terminals.registry,
        }
    }

    pub(crate) fn signal_command(&self, name: &str, signal: i32) -> Result<(), Failure> {
        if self.sessions.signal(name, signal) {
            return Ok(());
        }
        let tree = self.running.lock().get(name).and_then(Weak::upgrade);
        let tree = tree.ok_or_else(|| failure(Code::NotRunning, format!("{name} does not run")))?;
        tree.signal(signal);
        Ok(())
    }
}

pub(crate) fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    Ok(rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?)
}

pub(crate) fn failure(code: Code, message: impl Into<String>) -> Failure {
    Failure::new(code, message)
}

pub(crate) fn internal(error: impl std::fmt::Display) -> Failure {
    failure(Code::Internal, error.to_string())
}

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
