//! The end of a command: the rest of its output, the answer, and the shell made ready again.

use std::time::Instant;

use ringfence_link::init::Ending;
use ringfence_link::warden::{Outcome, Reply};

use super::caller::Caller;
use super::protocol::ShellKind;
use super::run::{Running, SILENCE};
use super::session::Session;
use super::shell::Shell;
use crate::sandbox::Started;

/// How a command left the shell.
pub(super) enum Finish {
    /// It waits for the next one; this was the status.
    Idle(u8),
    /// It is gone. The caller is to be told when nothing is left of it.
    Ended(Option<Answer>),
}

/// What a caller is still to be told.
pub(super) struct Answer {
    caller: Caller,
    rest: Vec<(usize, Vec<u8>)>,
    reply: Reply,
}

impl Answer {
    pub(super) fn new(caller: Caller, reply: Reply) -> Self {
        Self { caller, rest: Vec::new(), reply }
    }

    pub(super) fn send(self) {
        self.caller.finish(self.rest, self.reply);
    }
}

impl Running<'_> {
    /// The command is over: takes the rest of its output, answers, and settles.
    pub(super) fn conclude(mut self, started: &Started, status: Option<u8>) -> Finish {
        self.input = None;
        let mut rest = self.rest();
        let ending = status.is_none().then(|| self.shell.ending());
        if ending.is_some() && matches!(self.shell.kind, ShellKind::Dash | ShellKind::Busybox) {
            // These run the trap of their exit when the output of the command is closed already.
            rest.push((0, self.shell.take_aside()));
        }
        let outcome = self.outcome(status, ending, &rest);
        self.session.end();
        let outcome = self.sandbox.finish(started, outcome);
        self.shell.watch.remove(&self.caller);
        let Self { caller, shell, session, early, number, .. } = self;
        let answer = Answer { caller, rest, reply: Reply::Done(Box::new(outcome)) };
        let Some(status) = status else { return Finish::Ended(Some(answer)) };
        // Before the shell is made ready for the next one: the caller need not wait for that.
        answer.send();
        match settle(shell, session, number, early.begun()) {
            true => Finish::Idle(status),
            false => Finish::Ended(None),
        }
    }

    /// Exactly what the streams hold now: what comes later was printed by something else. Returned
    /// if the caller has no room for it.
    fn rest(&mut self) -> Vec<(usize, Vec<u8>)> {
        let mut rest = Vec::new();
        for stream in 0..2 {
            let mut held = self.shell.held(stream);
            while held > 0 {
                let bytes = self.shell.read_stream(stream, held);
                if bytes.is_empty() {
                    break;
                }
                held -= bytes.len();
                match rest.is_empty() && self.caller.can_take() {
                    true => self.caller.pass(stream, bytes),
                    false => rest.push((stream, bytes.to_vec())),
                }
            }
        }
        self.caller.can_take();
        rest
    }

    fn outcome(
        &self,
        status: Option<u8>,
        ending: Option<Ending>,
        rest: &[(usize, Vec<u8>)],
    ) -> Outcome {
        let code = ending.map_or(i32::from(status.unwrap_or(0)), Ending::code);
        let signal = match ending {
            Some(Ending::Signalled(signal)) => Some(signal),
            _ => None,
        };
        let bytes = |stream: usize| {
            let kept = rest.iter().filter(|(of, _)| *of == stream).map(|(_, b)| b.len() as u64);
            self.caller.moved[stream] + kept.sum::<u64>()
        };
        Outcome {
            exit_code: if self.early.timed_out { 124 } else { code },
            signal,
            timed_out: self.early.timed_out,
            cancelled: self.early.cancelled,
            session_ended: ending.is_some(),
            reason: self.reason.clone(),
            cpu_micros: self.shell.groups.cpu_time().as_micros() as u64,
            peak_memory: self.shell.memory.peak(),
            stdout_bytes: bytes(0),
            stderr_bytes: bytes(1),
            ..Outcome::default()
        }
    }
}

/// Makes the shell ready for the next command. Whether it is still there.
fn settle(shell: &mut Shell, session: &Session, command: u64, interrupted: bool) -> bool {
    // While the shell says what it exports.
    if interrupted && !shell.groups.is_alone() {
        // What a trap has started meanwhile.
        shell.groups.move_out(command);
        shell.groups.kill_left();
    }
    shell.groups.end_command(command);
    let fresh = shell.refresh_streams();
    shell.reset_terminal();
    if !come_to_rest(shell, session) {
        return false;
    }
    shell.groups.rest();
    shell.log_aside();
    let exports = shell.take_answer();
    session.settle(shell.directory(), (!exports.is_empty()).then_some(exports));
    if fresh.is_err() {
        // Without streams of its own the next command could not be told from what is left of this.
        shell.kill();
    }
    true
}

/// Waits until the shell waits. Whether it is still there.
fn come_to_rest(shell: &mut Shell, session: &Session) -> bool {
    let deadline = Instant::now() + SILENCE;
    while !shell.is_idle() {
        let news = shell.step(Some(deadline));
        if news.woken {
            session.hush();
        }
        if news.nothing {
            shell.kill();
        }
        if news.died {
            return false;
        }
    }
    true
}
