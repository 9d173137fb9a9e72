//! Commands on terminals: job control, size, watching, coming back, ends.

use ringfence_link::client::ClientError;
use ringfence_link::warden::{Command, OpenTerminal, Reply, Request, TerminalInfo};

use crate::support::Sandbox;

use attached::Attached;

mod attached;
mod keys;
mod life;
mod programs;
mod record;
mod size;
mod watching;

const PROMPT: &str = "READY> ";

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
    let env = vec![(b"PS1".to_vec(), PROMPT.into())];
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

    /// A terminal on which [`bash`] waits for a line.
    fn at_prompt(&self) -> Attached {
        let mut terminal = self.on_terminal(bash());
        terminal.expect(PROMPT);
        terminal
    }

    fn resize(&self, id: &str, rows: u16, columns: u16) -> Result<Reply, ClientError> {
        self.client.ask(Request::ResizeTerminal { id: id.into(), rows, columns })
    }

    fn close_terminal(&self, id: &str) -> Result<Reply, ClientError> {
        self.client.ask(Request::CloseTerminal { id: id.into() })
    }
}
