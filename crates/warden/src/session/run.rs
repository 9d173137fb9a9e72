//! One command of a session, from its hand-over to the moment the shell waits for the next.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ringfence_link::warden::{Command, Failure, Reply, SessionExec};
use rustix::event::epoll::EventFlags;

use super::caller::{Caller, Input, Said};
use super::conclude::{Answer, Finish};
use super::early::Early;
use super::protocol::lines::{self, Call, Visit, Whereabouts};
use super::protocol::{Variable, file};
use super::session::Session;
use super::shell::{News, Shell};
use crate::environment::invalid;
use crate::journal::event::How;
use crate::sandbox::{Sandbox, Started, Starting, internal};

/// A shell that has read the line that asks for the status and says nothing cannot report any more.
pub(super) const SILENCE: Duration = Duration::from_secs(3);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// A command on its way.
pub(super) struct Running<'a> {
    pub(super) sandbox: &'a Arc<Sandbox>,
    pub(super) session: &'a Session,
    pub(super) shell: &'a mut Shell,
    pub(super) caller: Caller,
    pub(super) input: Option<Input>,
    pub(super) number: u64,
    pub(super) visited: bool,
    pub(super) early: Early,
    next_look: Instant,
    /// Since when the shell has read everything without a word.
    silent_since: Option<Instant>,
    pub(super) reason: Option<String>,
}

impl<'a> Running<'a> {
    pub(super) fn new(
        sandbox: &'a Arc<Sandbox>,
        session: &'a Session,
        shell: &'a mut Shell,
        caller: Caller,
    ) -> Self {
        Self {
            sandbox,
            session,
            shell,
            caller,
            input: None,
            number: 0,
            visited: false,
            early: Early::default(),
            next_look: Instant::now() + LOOK,
            silent_since: None,
            reason: None,
        }
    }

    /// Runs it, answers the caller, and waits until the shell can take another.
    pub(super) fn run(mut self, exec: &SessionExec, previous: u8) -> Finish {
        let call = match self.prepare(exec, previous) {
            Ok(call) => call,
            Err(Some(failure)) => {
                self.caller.finish(vec![], Reply::Error(failure));
                return Finish::Idle(previous);
            }
            // It ended before it was asked anything.
            Err(None) => {
                let failure = self.session.ended(self.shell.ending().code());
                let (caller, reply) = (self.caller, Reply::Error(failure));
                return Finish::Ended(Some(Answer::new(caller, reply)));
            }
        };
        let command = Command::Shell(exec.text.clone());
        let cwd = exec.cwd.clone().unwrap_or_else(|| self.session.kept().cwd);
        let started = self.sandbox.begin(&Starting {
            how: How::Session,
            session: Some(self.session.id.clone()),
            command: &command,
            cwd: &cwd,
            env: &exec.env,
            changes: exec.changes,
        });
        self.begin(&started, exec);
        let handed_over = self.hand_over(exec, &call);
        self.announce(&started);
        let status = match handed_over {
            Ok(()) => self.wait(),
            Err(error) => {
                self.reason = Some(format!("the command could not be handed over: {error}"));
                self.shell.kill();
                self.wait()
            }
        };
        self.conclude(&started, status)
    }

    /// What can be refused. Nothing is changed yet.
    fn prepare(&mut self, exec: &SessionExec, previous: u8) -> Result<Call, Option<Failure>> {
        let bad = || Some(invalid("a variable has a name or a value that is not possible"));
        let variable = |(name, value): &(Vec<u8>, Vec<u8>)| Variable::new(name, value);
        let environment: Option<Vec<_>> = exec.env.iter().map(variable).collect();
        let environment = environment.ok_or_else(bad)?;
        let visit = match &exec.cwd {
            Some(to) => Some(Visit { to: to.clone(), from: self.ask_directory()? }),
            None => None,
        };
        self.visited = visit.is_some();
        self.input = match exec.stdin {
            true => Some(self.make_input().map_err(|e| Some(internal(e)))?),
            false => None,
        };
        let sequence = self.shell.next_sequence();
        Ok(Call { sequence, previous, environment, visit, stdin: exec.stdin })
    }

    fn make_input(&mut self) -> std::io::Result<Input> {
        let fifo = self.shell.place.make_incoming(file::STDIN)?;
        Ok(Input::new(fifo, &self.shell.watch)?)
    }

    /// The directory of the shell, as the shell calls it.
    fn ask_directory(&mut self) -> Result<Whereabouts, Option<Failure>> {
        self.shell.ask_directory();
        let deadline = Instant::now() + SILENCE;
        loop {
            let news = self.shell.step(Some(deadline));
            if news.woken {
                self.session.hush();
            }
            if news.idle {
                break;
            }
            if news.nothing {
                self.shell.kill();
            }
            if news.died {
                return Err(None);
            }
        }
        let answer = self.shell.take_answer();
        let unknown = || Whereabouts { here: self.session.kept().cwd, before: None };
        Ok(lines::parse_directory(&answer).unwrap_or_else(unknown))
    }

    fn begin(&mut self, started: &Started, exec: &SessionExec) {
        self.number = started.number;
        self.session.begin(&started.name);
        self.shell.log_aside();
        self.shell.groups.begin_command(started.number);
        self.shell.memory.begin();
        let timeout = exec.timeout_ms.or(self.session.timeout_ms);
        self.early.at = timeout.map(|ms| Instant::now() + Duration::from_millis(ms));
    }

    /// The caller is told while the shell begins already.
    fn announce(&mut self, started: &Started) {
        self.caller.tell(&Reply::Started { command: started.name.clone() });
        if self.caller.watch(&self.shell.watch).is_err() {
            self.caller.hung_up = true;
        }
    }

    fn hand_over(&mut self, exec: &SessionExec, call: &Call) -> std::io::Result<()> {
        self.shell.write_text(file::TEXT, &exec.text)?;
        let speech = self.shell.speech();
        let mut handover = speech.command(call);
        handover.lines.push(speech.status_line(call.sequence, self.visited));
        self.shell.hand_over(&handover)
    }

    /// Moves bytes until the shell reports or is gone. `None` if it is gone.
    fn wait(&mut self) -> Option<u8> {
        loop {
            let busy = self.shell.ready.contains(&true) && !self.caller.stalled;
            let deadline = if busy { Instant::now() } else { self.next_time() };
            let news = self.shell.step(Some(deadline));
            if let Some(status) = self.attend(&news) {
                return Some(status);
            }
            if news.died {
                return None;
            }
            self.forward();
            if self.caller.hung_up {
                self.cancel();
            }
            self.keep_time();
            let listens = self.input.as_ref().is_none_or(Input::has_room);
            self.caller.update(&self.shell.watch, listens);
        }
    }

    fn attend(&mut self, news: &News) -> Option<u8> {
        if news.woken {
            self.session.hush();
            self.look_at_requests();
        }
        if let Some(input) = &mut self.input {
            if news.reading {
                input.opened(&self.shell.watch);
            } else if news.input {
                input.feed();
            }
        }
        if let Some(flags) = news.caller {
            if flags.intersects(EventFlags::OUT) {
                self.caller.stalled = false;
            }
            if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP) {
                self.listen();
            }
        }
        news.finished
    }

    fn listen(&mut self) {
        match (self.caller.listen(), &mut self.input) {
            (Said::HungUp | Said::Cancel, _) => self.cancel(),
            (Said::Signal(signal), _) => self.signal(signal),
            (Said::Input(bytes), Some(input)) => input.push(&bytes),
            (Said::EndOfInput, Some(input)) => input.end(),
            _ => {}
        }
    }

    fn look_at_requests(&mut self) {
        for signal in self.session.take_signals() {
            self.signal(signal);
        }
        if self.session.is_closing() {
            self.early.cancelled = true;
            self.reason = Some("the session was closed".into());
            self.shell.kill();
        }
    }

    fn signal(&self, signal: i32) {
        self.shell.groups.signal_command(signal);
    }

    /// Passes on one step of each stream that has something.
    fn forward(&mut self) {
        for stream in 0..2 {
            if self.shell.ready[stream] && self.caller.can_take() {
                let bytes = self.shell.read_stream(stream, usize::MAX);
                self.caller.pass(stream, bytes);
            }
        }
    }

    fn next_time(&self) -> Instant {
        let look = self.next_look.min(self.shell.memory.next());
        self.early.at.map_or(look, |at| at.min(look))
    }

    fn keep_time(&mut self) {
        let now = Instant::now();
        if self.early.at.is_some_and(|at| now >= at) {
            self.advance();
        }
        if now >= self.shell.memory.next() {
            self.shell.look_at_memory(now);
        }
        if now >= self.next_look {
            self.next_look = now + LOOK;
            self.look_at_the_shell(now);
        }
    }

    fn look_at_the_shell(&mut self, now: Instant) {
        if !self.shell.has_read_all() {
            self.silent_since = None;
        } else if now - *self.silent_since.get_or_insert(now) > SILENCE {
            self.reason.get_or_insert("the shell could not report any more and was ended".into());
            self.shell.kill();
        }
    }
}
