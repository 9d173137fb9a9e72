//! Commands on terminals that people and agents can attach to.

use std::sync::Arc;

use ringfence_link::warden::{Code, Command, Failure, OpenTerminal, TerminalInfo};

use crate::background::{Background, Beginning, Kind, Launch, Registry};
use crate::environment::invalid;
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
        let line = open.command.as_ref().map(Line::of).transpose()?;
        if line.is_some_and(|line| line.script.is_some()) {
            return Err(invalid("the command is too long for a terminal"));
        }
        let size = Size { rows: open.rows, columns: open.columns };
        size.check()?;
        let (session, cwd) = (open.session.as_deref(), open.cwd.as_deref());
        let beginning = self.beginning(session, &open.env, cwd)?.on_terminal(&open.env);
        let command = open.command.clone().unwrap_or_else(|| self.interactive_shell(&beginning));
        let place = self.terminals.registry.reserve(open.id.as_deref())?;
        let screen = Screen::new(&place.id, size, self.journal.clone(), open.end_when_left);
        if open.record {
            screen.record_to(&self.config.dir)?;
        }
        let launch = Launch {
            how: How::Terminal,
            command: &command,
            line: Line::of(&command)?,
            given: &open.env,
            beginning,
            log: SCROLLBACK,
            screen: Some(screen),
        };
        self.launch(place, launch).map(|terminal| info(&terminal, false))
    }

    fn interactive_shell(&self, beginning: &Beginning) -> Command {
        let has_bash = self.inside.find_program(b"bash", beginning.path()).is_ok();
        let shell = if has_bash { "bash" } else { "sh" };
        Command::Argv(vec![shell.into(), b"-i".to_vec()])
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
        terminal.hang_up();
        self.reactor.wake();
        Ok(())
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
