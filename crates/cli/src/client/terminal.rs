//! A terminal inside, put through to the one of this process.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use bytes::Bytes;
use ringfence_sys::signals::{SIGHUP, SIGTERM, SIGWINCH};
use ringfence_wire::v1;
use ringfence_wire::v1::terminal_input::{Attach, Content, Size};
use ringfence_wire::v1::terminal_output::Content as Shown;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use super::connect::Server;
use super::input::Input;
use super::signals::Signals;
use super::trouble::told;
use crate::failure::Failure;

/// The signals that mean something here: the size of the window, and that its owner leaves.
pub(crate) const WATCHED: [i32; 3] = [SIGWINCH, SIGTERM, SIGHUP];

/// How what ran on the terminal ended.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) state: Option<v1::ProcessState>,
    pub(crate) timed_out: bool,
}

impl Conversation {
    /// As a shell would say it.
    pub(crate) fn exit_code(&self) -> Result<i32, Failure> {
        use v1::process_state::Status;
        let Some(state) = self.state.as_ref().filter(|_| !self.timed_out) else {
            return match self.timed_out {
                true => Ok(124),
                false => Err(Failure::broken("the sandbox ended")),
            };
        };
        match state.status() {
            Status::Exited => Ok(state.exit_code),
            Status::Killed => Ok(128 + state.signal),
            Status::Failed => Err(Failure::bad_input(&state.reason)),
            Status::Running | Status::Unspecified => Err(Failure::broken("the sandbox ended")),
        }
    }
}

pub(crate) fn require_terminal(otherwise: &str) -> Result<(), Failure> {
    match io::stdin().is_terminal() && io::stdout().is_terminal() {
        true => Ok(()),
        false => Err(Failure::bad_input("standard input and output must be a terminal")
            .hint(format!("for programs without one: {otherwise}"))),
    }
}

/// What is to run, on a terminal like this one. It ends when this process leaves it.
pub(crate) fn request(
    sandbox_id: String,
    argv: Vec<Bytes>,
    cwd: Option<String>,
) -> v1::OpenTerminalRequest {
    let (rows, columns) = window().unwrap_or((24, 80));
    let term = std::env::var("TERM").unwrap_or_else(|_| "xterm-256color".into());
    v1::OpenTerminalRequest {
        sandbox_id,
        argv,
        env: [("TERM".to_owned(), term)].into(),
        cwd: cwd.unwrap_or_default(),
        rows,
        columns,
        end_when_left: true,
        ..Default::default()
    }
}

fn window() -> Option<(u32, u32)> {
    let size = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0)?;
    Some((size.ws_row.into(), size.ws_col.into()))
}

/// Opens a terminal and stays on it until what runs there ends, or the time is up.
pub(crate) async fn converse(
    server: &Server,
    request: v1::OpenTerminalRequest,
    signals: Signals,
    timeout: Option<Duration>,
) -> Result<Conversation, Failure> {
    let sandbox_id = request.sandbox_id.clone();
    let terminal = server.terminals().open_terminal(request).await.map_err(told)?.into_inner();
    let (say, said) = mpsc::channel(8);
    let terminal_id = terminal.id;
    let attach = Attach { sandbox_id: sandbox_id.clone(), terminal_id: terminal_id.clone() };
    let _ = say.send(message(Content::Attach(attach))).await;
    let call = server.terminals().attach_terminal(ReceiverStream::new(said)).await;
    let shown = call.map_err(told)?.into_inner();
    let _raw = RawMode::enter()?;
    let _input = Input::forward(say.clone(), typed)?;
    let Some(timeout) = timeout else {
        return Ok(Conversation { state: follow(shown, say, signals).await?, timed_out: false });
    };
    let Ok(state) = tokio::time::timeout(timeout, follow(shown, say, signals)).await else {
        let close = v1::CloseTerminalRequest { sandbox_id, terminal_id };
        server.terminals().close_terminal(close).await.map_err(told)?;
        return Ok(Conversation { state: None, timed_out: true });
    };
    Ok(Conversation { state: state?, timed_out: false })
}

/// Shows what is shown there, and says there how large the window is.
async fn follow(
    mut shown: Streaming<v1::TerminalOutput>,
    say: mpsc::Sender<v1::TerminalInput>,
    mut signals: Signals,
) -> Result<Option<v1::ProcessState>, Failure> {
    let mut out = io::stdout();
    loop {
        let piece = tokio::select! {
            piece = shown.message() => piece.map_err(told)?,
            signal = signals.next() => match signal {
                SIGWINCH => {
                    if let Some((rows, columns)) = window() {
                        let _ = say.send(message(Content::Size(Size { rows, columns }))).await;
                    }
                    continue;
                }
                _ => return Ok(None),
            },
        };
        match piece.and_then(|piece| piece.content) {
            Some(Shown::Data(bytes)) => {
                let _ = out.write_all(&bytes).and_then(|()| out.flush());
            }
            Some(Shown::Live(_)) => {}
            Some(Shown::Ended(state)) => return Ok(Some(state)),
            None => return Ok(None),
        }
    }
}

fn message(content: Content) -> v1::TerminalInput {
    v1::TerminalInput { content: Some(content) }
}

/// A terminal has no end of input: who wants one types it.
fn typed(piece: Option<Bytes>) -> Option<v1::TerminalInput> {
    piece.map(|bytes| message(Content::Data(bytes)))
}

/// The terminal passes every key on while this lives.
struct RawMode(Termios);

impl RawMode {
    fn enter() -> Result<Self, Failure> {
        let before = tcgetattr(io::stdin()).map_err(Failure::broken)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw).map_err(Failure::broken)?;
        Ok(Self(before))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.0);
    }
}
