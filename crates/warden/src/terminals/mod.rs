//! Commands on terminals that people and agents can attach to.

use std::sync::Arc;
use std::time::Duration;

use ringfence_link::warden::{Code, Command, Failure, OpenTerminal, TerminalInfo, Variable};

use crate::background::{Background, Kind, Launch, Registry};
use crate::environment::{check_variables, directory, environment, invalid};
use crate::exec::Line;
use crate::journal::event::How;
use crate::sandbox::Sandbox;

mod account;
mod attach;
mod cast;
mod screen;

pub(crate) use screen::Screen;
use screen::Size;

/// How much of what was shown is shown again to who comes later.
const SCROLLBACK: usize = 256 * 1024;
/// Between hanging up and ending what goes on regardless.
const GRACE: Duration = Duration::from_secs(1);

const KIND: Kind = Kind {
    noun: "terminal",
    prefix: "term_",
    not_found: Code::TerminalNotFound,
    exists: Code::TerminalExists,
    most: 64,
    remembered: 64,
};

#[derive(Debug)]
pub(crate) struct Terminals {
    pub(crate) registry: Registry,
}

impl Default for Terminals {
    fn default() -> Self {
        Self { registry: Registry::new(&KIND) }
    }
}

impl Sandbox {
    pub(crate) fn open_terminal(
        self: &Arc<Self>,
        open: &OpenTerminal,
    ) -> Result<TerminalInfo, Failure> {
        check_variables(&open.env)?;
        if let Some(command) = &open.command {
            return self.open_with(open, command).map(|terminal| info(&terminal, false));
        }
        let shell = if self.has_bash(&self.terminal_variables(&open.env)) { "bash" } else { "sh" };
        let command = Command::Argv(vec![shell.into(), b"-i".to_vec()]);
        self.open_with(open, &command).map(|terminal| info(&terminal, false))
    }

    fn has_bash(&self, env: &[Vec<u8>]) -> bool {
        let path = env.iter().find_map(|entry| entry.strip_prefix(b"PATH="));
        self.inside.find_program(b"bash", path.unwrap_or_default()).is_ok()
    }

    fn open_with(
        self: &Arc<Self>,
        open: &OpenTerminal,
        command: &Command,
    ) -> Result<Arc<Background>, Failure> {
        let line = Line::of(command)?;
        if line.script.is_some() {
            return Err(invalid("the command is too long for a terminal"));
        }
        let size = Size { rows: open.rows, columns: open.columns };
        size.check()?;
        let cwd = directory(open.cwd.as_deref())?;
        let place = self.terminals.registry.reserve(open.id.as_deref())?;
        let env = self.terminal_variables(&open.env);
        let screen = Screen::new(&place.id, size, self.journal.clone(), open.end_when_left);
        if open.record {
            screen.record_to(&self.config.dir)?;
        }
        let launch = Launch {
            how: How::Terminal,
            command,
            line,
            session: None,
            given: &open.env,
            env,
            cwd,
            log: SCROLLBACK,
            screen: Some(screen),
        };
        self.launch(place, launch)
    }

    fn terminal_variables(&self, given: &[Variable]) -> Vec<Vec<u8>> {
        let named = self.config.env.iter().any(|(name, _)| name == "TERM")
            || given.iter().any(|(name, _)| name == b"TERM");
        let mut all = given.to_vec();
        if !named {
            all.push((b"TERM".to_vec(), b"xterm-256color".to_vec()));
        }
        environment(&self.config.env, &all)
    }

    /// Oldest first.
    pub(crate) fn list_terminals(&self) -> Vec<TerminalInfo> {
        self.terminals.registry.all().iter().map(|terminal| info(terminal, false)).collect()
    }

    pub(crate) fn resize_terminal(&self, id: &str, rows: u16, columns: u16) -> Result<(), Failure> {
        let terminal = self.terminals.registry.find(id)?;
        let size = Size { rows, columns };
        size.check()?;
        terminal.screen.iter().for_each(|screen| screen.resize(size));
        Ok(())
    }

    /// Hangs up on what runs there; one that is over already is left alone.
    pub(crate) fn close_terminal(&self, id: &str) -> Result<(), Failure> {
        let terminal = self.terminals.registry.find(id)?;
        self.hang_up(&terminal);
        Ok(())
    }

    fn hang_up(&self, terminal: &Background) {
        use ringfence_sys::signals::SIGHUP;
        terminal.signal(SIGHUP);
        // One that is stopped notices only when it goes on.
        terminal.signal(rustix::process::Signal::CONT.as_raw());
        terminal.kill_within(GRACE);
        self.reactor.wake();
    }
}

fn info(terminal: &Background, attached: bool) -> TerminalInfo {
    let screen = terminal.screen.as_ref();
    let (rows, columns) = screen.map_or((0, 0), Screen::size);
    TerminalInfo {
        id: terminal.id.clone(),
        pid: terminal.pid,
        command: terminal.command.clone(),
        session: terminal.session.clone(),
        status: terminal.status(),
        rows,
        columns,
        created_ms: terminal.created_ms,
        watchers: screen.map_or(0, Screen::watchers),
        attached,
    }
}
