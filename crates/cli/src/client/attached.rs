//! A command with the streams and signals of this process as its own.

use std::io::{self, Write};

use bytes::Bytes;
use ringfence_wire::v1;
use ringfence_wire::v1::exec_input::Content;
use ringfence_wire::v1::exec_output::OutputType;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;

use super::connect::Server;
use super::input::Input;
use super::signals::Signals;
use super::trouble::told;
use crate::failure::Failure;

/// Pieces of input under way; then whoever types waits.
const WAITING: usize = 8;
/// Whoever insists (three times) ends a command that does not listen.
const INSISTED: u32 = 3;

type Say = mpsc::Sender<v1::ExecInput>;

/// Runs the command to its end. Without `stdin` there is nothing for it to read.
pub(crate) async fn attached(
    server: &Server,
    command: Content,
    stdin: bool,
    signals: Signals,
) -> Result<v1::ExecResult, Failure> {
    let (say, said) = mpsc::channel(WAITING);
    tell(&say, command).await;
    if !stdin {
        tell(&say, Content::EndOfStdin(true)).await;
    }
    let call = server.sandboxes().exec_attached(ReceiverStream::new(said)).await;
    let mut output = call.map_err(told)?.into_inner();
    let _input = stdin.then(|| Input::forward(say.clone(), typed)).transpose()?;
    let (started, starts) = oneshot::channel();
    let _forwarding = Task(tokio::spawn(forward(signals, say.clone(), starts)));
    let (mut streams, mut started) = (Streams::default(), Some(started));
    while let Some(piece) = output.message().await.map_err(told)? {
        if let (false, Some(started)) = (piece.started.is_empty(), started.take()) {
            let _ = started.send(());
        }
        if let Some(result) = piece.result {
            return Ok(result);
        }
        if !streams.write(piece.r#type(), &piece.data) {
            tell(&say, Content::Cancel(true)).await;
        }
    }
    Err(Failure::broken("the server said nothing of how the command ended"))
}

/// Nobody listens any more only when the command is over, which is heard elsewhere.
async fn tell(say: &Say, content: Content) {
    let _ = say.send(v1::ExecInput { content: Some(content) }).await;
}

fn typed(piece: Option<Bytes>) -> Option<v1::ExecInput> {
    let content = piece.map_or(Content::EndOfStdin(true), Content::Stdin);
    Some(v1::ExecInput { content: Some(content) })
}

/// Ends with whoever started it.
struct Task(tokio::task::JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A signal that comes before the command is there waits for it.
async fn forward(mut signals: Signals, say: Say, starts: oneshot::Receiver<()>) {
    if starts.await.is_err() {
        return;
    }
    let mut count = 0;
    loop {
        let signal = signals.next().await;
        count += 1;
        tell(&say, Content::Signal(signal)).await;
        if count == INSISTED {
            tell(&say, Content::Cancel(true)).await;
        }
    }
}

/// Output as it comes. When nobody reads it any more the command is ended, as a pipe would.
#[derive(Default)]
struct Streams {
    broken: bool,
}

impl Streams {
    /// False once, when it turns out that nobody reads.
    fn write(&mut self, kind: OutputType, bytes: &[u8]) -> bool {
        if self.broken || bytes.is_empty() {
            return true;
        }
        let written = match kind {
            OutputType::Stderr => put(&mut io::stderr(), bytes),
            _ => put(&mut io::stdout(), bytes),
        };
        self.broken = written.is_err();
        !self.broken
    }
}

fn put(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).and_then(|()| stream.flush())
}
