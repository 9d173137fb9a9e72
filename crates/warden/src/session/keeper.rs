//! The thread that drives a session's shell: one command after the other, and what happens between.

use std::sync::Arc;
use std::time::Duration;

use ringfence_link::init::Ending;
use ringfence_link::warden::{Failure, Reply};

use super::caller::Caller;
use super::conclude::{Answer, Finish};
use super::protocol::exports;
use super::run::Running;
use super::session::{Phase, Queued, Session, Task};
use super::shell::Shell;
use super::start::Recipe;
use crate::journal::event::{SessionClosed, SessionOpened};
use crate::journal::{Event, List, Text};
use crate::sandbox::Sandbox;

pub(super) struct Keeper {
    sandbox: Arc<Sandbox>,
    session: Arc<Session>,
    /// None once it has ended.
    shell: Option<Shell>,
    /// The status of the last command.
    previous: u8,
    code: i32,
}

impl Keeper {
    /// Drives the shell from now on.
    pub(super) fn start(
        sandbox: &Arc<Sandbox>,
        session: &Arc<Session>,
        shell: Shell,
    ) -> std::io::Result<()> {
        let (sandbox, session) = (sandbox.clone(), session.clone());
        let keeper = Self { sandbox, session, shell: Some(shell), previous: 0, code: 0 };
        let name = format!("session {}", keeper.session.number);
        let thread = std::thread::Builder::new().name(name).stack_size(512 * 1024);
        thread.spawn(move || keeper.run()).map(drop)
    }

    fn run(mut self) {
        loop {
            match self.session.next() {
                Some(Task::Run(queued)) => self.serve(*queued),
                Some(Task::Close(reason)) => return self.close(&reason),
                None => self.idle(),
            }
        }
    }

    /// Waits for something to do; attends to the shell meanwhile.
    fn idle(&mut self) {
        let Some(shell) = &mut self.shell else {
            crate::pump::readable(&self.session.wake, Duration::from_secs(3600));
            return;
        };
        let news = shell.step(None);
        shell.log_aside();
        if news.died {
            self.shell_has_ended();
        }
    }

    fn serve(&mut self, queued: Queued) {
        crate::trace::set(queued.trace.clone());
        let caller = Caller::new(queued.caller);
        if caller.is_gone() {
            return;
        }
        if let Err(failure) = self.need_shell(queued.exec.restart) {
            return caller.finish(vec![], Reply::Error(failure));
        }
        let Some(shell) = &mut self.shell else { return };
        let previous = self.previous;
        let running = Running::new(&self.sandbox, &self.session, shell, caller);
        match running.run(&queued.exec, previous) {
            Finish::Idle(status) => self.previous = status,
            Finish::Ended(answer) => {
                self.shell_has_ended();
                answer.into_iter().for_each(Answer::send);
            }
        }
    }

    fn need_shell(&mut self, restart: bool) -> Result<(), Failure> {
        if self.shell.is_none() && !restart {
            return Err(self.session.ended(self.code));
        }
        if self.shell.is_none() {
            self.restart()?;
        }
        Ok(())
    }

    /// Another shell with the directory and the exported variables of the one before.
    fn restart(&mut self) -> Result<(), Failure> {
        self.sandbox.sessions.check_room()?;
        let kept = self.session.kept();
        let env = exports::parse(&kept.exports);
        let recipe = Recipe { cwd: kept.cwd, env, ..self.session.recipe.clone() };
        // Its directory must not be that of the one before, which may still be on its way out.
        let number = self.sandbox.sessions.next_number();
        let ends = (&self.session.log, &self.session.wake);
        self.shell = Some(Shell::start(&self.sandbox, number, &recipe, ends)?);
        self.previous = 0;
        self.session.enter(Phase::Live);
        record_opened(&self.sandbox, &self.session, &recipe);
        Ok(())
    }

    fn shell_has_ended(&mut self) {
        let Some(mut shell) = self.shell.take() else { return };
        let ending = shell.ending();
        self.code = ending.code();
        // Takes everything with it that the session has started.
        drop(shell);
        let reason = match ending {
            Ending::Exited(code) => format!("its shell exited with code {code}"),
            Ending::Signalled(signal) => format!("its shell was ended by signal {signal}"),
        };
        self.record_closed(&reason);
        self.session.enter(Phase::Ended(self.code));
    }

    fn close(mut self, reason: &str) {
        if let Some(shell) = self.shell.take() {
            drop(shell);
            self.record_closed(reason);
        }
        let closed = self.session.closed();
        for queued in self.session.take_queue() {
            let _ = queued.caller.send(&Reply::Error(closed.clone()), &[]);
        }
        self.session.log.close();
        self.session.enter(Phase::Closed);
    }

    fn record_closed(&self, reason: &str) {
        self.sandbox.record(Event::SessionClosed(SessionClosed {
            session: self.session.id.clone(),
            reason: reason.into(),
        }));
    }
}

pub(super) fn record_opened(sandbox: &Sandbox, session: &Session, recipe: &Recipe) {
    sandbox.record(Event::SessionOpened(SessionOpened {
        session: session.id.clone(),
        name: Text::new(session.name.as_bytes()),
        shell: Text::new(&recipe.program),
        cwd: Text::new(&recipe.cwd),
        env: List::new(recipe.env.iter().map(|(name, _)| name)),
    }));
}
