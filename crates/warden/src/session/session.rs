//! What others see of a session, and how they reach the thread that drives its shell.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use ringfence_link::channel::Channel;
use ringfence_link::warden::{Code, Failure, SessionExec, SessionInfo};
use rustix::event::{EventfdFlags, eventfd};

use super::start::Recipe;
use crate::ring::Ring;
use crate::sandbox::{failure, internal, now_ms};

/// How much is kept of what background jobs print.
const LOG: usize = 1024 * 1024;
/// The shell needs microseconds to say what it exports after a command; it may have stopped.
const SETTLED: Duration = Duration::from_secs(5);

pub(super) type Hook = Box<dyn FnOnce() + Send>;

pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) name: String,
    /// As it was asked for, or the program that was chosen.
    pub(super) shell: String,
    pub(super) number: u64,
    pub(super) created_ms: u64,
    pub(super) timeout_ms: Option<u64>,
    pub(super) recipe: Recipe,
    pub(super) log: Arc<Ring>,
    pub(super) wake: OwnedFd,
    state: Mutex<State>,
    changed: Condvar,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A command that waits for its turn.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) trace: Option<String>,
    pub(super) caller: Channel,
    pub(super) exec: SessionExec,
}

#[derive(Debug, Clone)]
pub(super) enum Phase {
    Opening,
    Live,
    /// The shell is gone; with which code.
    Ended(i32),
    /// Nothing is left.
    Closed,
    Failed(Failure),
}

struct State {
    phase: Phase,
    queue: VecDeque<Queued>,
    /// The name of the command that runs.
    running: Option<String>,
    /// A command is over, and what the shell exports since is not known yet.
    settling: bool,
    signals: Vec<i32>,
    closing: Option<String>,
    kept: Kept,
    last_used_ms: u64,
    hooks: Vec<Hook>,
}

/// What outlives the shell.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept {
    pub(super) cwd: Vec<u8>,
    /// As the shell says it.
    pub(super) exports: Vec<u8>,
}

/// What the thread of the session has to do.
pub(super) enum Task {
    Run(Box<Queued>),
    Close(String),
}

/// What to ask for when a session is made.
pub(super) struct Plan {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) shell: String,
    pub(super) number: u64,
    pub(super) timeout_ms: Option<u64>,
    pub(super) recipe: Recipe,
}

impl Session {
    pub(super) fn new(plan: Plan) -> Result<Self, Failure> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(internal)?;
        let Plan { id, name, shell, number, timeout_ms, recipe } = plan;
        let kept = Kept { cwd: recipe.cwd.clone(), exports: Vec::new() };
        let now = now_ms();
        Ok(Self {
            id,
            name,
            shell,
            number,
            created_ms: now,
            timeout_ms,
            recipe,
            log: Arc::new(Ring::new(LOG)),
            wake,
            state: Mutex::new(State {
                phase: Phase::Opening,
                queue: VecDeque::new(),
                running: None,
                settling: false,
                signals: Vec::new(),
                closing: None,
                kept,
                last_used_ms: now,
                hooks: Vec::new(),
            }),
            changed: Condvar::new(),
        })
    }

    pub(super) fn answers_to(&self, which: &str) -> bool {
        self.id == which || self.name == which
    }

    pub(super) fn phase(&self) -> Phase {
        self.state.lock().phase.clone()
    }

    /// Waits until it is known whether it could be opened.
    pub(super) fn opened(&self) -> Result<(), Failure> {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| matches!(state.phase, Phase::Opening));
        match &state.phase {
            Phase::Failed(failure) => Err(failure.clone()),
            _ => Ok(()),
        }
    }

    /// The next phase; who waits is told, and who asked to be told when it ends, too.
    pub(super) fn enter(&self, phase: Phase) {
        let mut state = self.state.lock();
        let over = !matches!(phase, Phase::Live);
        state.phase = phase;
        state.settling = false;
        if over {
            state.running = None;
        }
        let hooks = if over { std::mem::take(&mut state.hooks) } else { Vec::new() };
        self.changed.notify_all();
        drop(state);
        hooks.into_iter().for_each(|hook| hook());
    }

    /// It could be opened. Its shell may have ended since; then it stays so.
    pub(super) fn open(&self) {
        let mut state = self.state.lock();
        if matches!(state.phase, Phase::Opening) {
            state.phase = Phase::Live;
        }
        self.changed.notify_all();
    }

    /// Calls `hook` when the shell ends or the session is closed; at once if that has happened.
    pub(super) fn on_close(&self, hook: Hook) {
        let mut state = self.state.lock();
        match state.phase {
            Phase::Opening | Phase::Live => state.hooks.push(hook),
            _ => {
                drop(state);
                hook();
            }
        }
    }

    pub(super) fn submit(&self, queued: Queued) -> Result<(), Failure> {
        let mut state = self.state.lock();
        if state.closing.is_some() || matches!(state.phase, Phase::Closed | Phase::Failed(_)) {
            return Err(self.closed());
        }
        state.queue.push_back(queued);
        drop(state);
        self.ring();
        Ok(())
    }

    fn ring(&self) {
        // Full means that it rings already.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    pub(super) fn closed(&self) -> Failure {
        failure(Code::SessionClosed, format!("the session {} was closed", self.name))
    }

    pub(super) fn ended(&self, code: i32) -> Failure {
        let text =
            format!("the session {} has ended: its shell exited with code {code}", self.name);
        failure(Code::SessionClosed, text).with("exit_code", code)
    }

    pub(super) fn ask_to_close(&self, reason: &str) {
        self.state.lock().closing.get_or_insert_with(|| reason.into());
        self.ring();
    }

    /// Waits until nothing of it is left.
    pub(super) fn wait_closed(&self, deadline: Option<Instant>) {
        let mut state = self.state.lock();
        while !matches!(state.phase, Phase::Closed | Phase::Failed(_)) {
            match deadline {
                None => self.changed.wait(&mut state),
                Some(at) if self.changed.wait_until(&mut state, at).timed_out() => return,
                Some(_) => {}
            }
        }
    }

    pub(super) fn is_closing(&self) -> bool {
        self.state.lock().closing.is_some()
    }

    /// Signals a running command by its name. Whether it is one of this session.
    pub(super) fn signal(&self, command: &str, signal: i32) -> bool {
        let mut state = self.state.lock();
        let mine = state.running.as_deref() == Some(command);
        if mine {
            state.signals.push(signal);
            drop(state);
            self.ring();
        }
        mine
    }

    pub(super) fn take_signals(&self) -> Vec<i32> {
        std::mem::take(&mut self.state.lock().signals)
    }

    /// What to do next, if anything. Forgets that it rang.
    pub(super) fn next(&self) -> Option<Task> {
        self.hush();
        let mut state = self.state.lock();
        if let Some(reason) = &state.closing {
            return Some(Task::Close(reason.clone()));
        }
        state.queue.pop_front().map(|queued| Task::Run(Box::new(queued)))
    }

    pub(super) fn hush(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
    }

    pub(super) fn take_queue(&self) -> VecDeque<Queued> {
        std::mem::take(&mut self.state.lock().queue)
    }

    pub(super) fn begin(&self, command: &str) {
        let mut state = self.state.lock();
        state.running = Some(command.into());
        state.signals.clear();
        state.last_used_ms = now_ms();
    }

    /// The command is over; [`Session::settle`] follows.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.running = None;
        state.settling = true;
        state.last_used_ms = now_ms();
    }

    pub(super) fn settle(&self, cwd: Option<Vec<u8>>, exports: Option<Vec<u8>>) {
        let mut state = self.state.lock();
        if let Some(cwd) = cwd {
            state.kept.cwd = cwd;
        }
        if let Some(exports) = exports {
            state.kept.exports = exports;
        }
        state.settling = false;
        self.changed.notify_all();
    }

    /// What the last finished command left. Does not wait for one that runs.
    pub(super) fn kept(&self) -> Kept {
        let mut state = self.state.lock();
        let deadline = Instant::now() + SETTLED;
        while state.settling && !self.changed.wait_until(&mut state, deadline).timed_out() {}
        state.kept.clone()
    }

    pub(super) fn info(&self) -> SessionInfo {
        let cwd = self.kept().cwd;
        let state = self.state.lock();
        SessionInfo {
            id: self.id.clone(),
            name: self.name.clone(),
            shell: self.shell.clone(),
            cwd: String::from_utf8_lossy(&cwd).into_owned(),
            created_ms: self.created_ms,
            last_used_ms: state.last_used_ms,
            busy: state.running.is_some() || !state.queue.is_empty(),
            ended: !matches!(state.phase, Phase::Live),
        }
    }
}
