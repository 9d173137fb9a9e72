//! Commands on terminals, and seeing and typing on them.

use std::fs::File;
use std::io::Read;

use ringfence_engine::problem::{Problem, Result};
use ringfence_engine::sandboxes::ask::problem_of;
use ringfence_engine::wardens::call::{Call, Sender, Step, Steps};
use ringfence_link::warden::{Control, OpenTerminal, Reply, Request as Ask, TerminalInfo};
use ringfence_wire::v1;
use ringfence_wire::v1::terminal_input::Content as Input;
use ringfence_wire::v1::terminal_output::Content as Shown;
use ringfence_wire::v1::terminal_service_server::TerminalService;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

use super::Services;
use super::logs;
use super::processes::{line, some, unexpected};
use super::sandboxes::{Answer, answer, required};
use crate::caller::caller;
use crate::convert;
use crate::status::status_of;

/// What a terminal has if nobody says.
const USUAL_SIZE: (u16, u16) = (24, 80);
/// Pieces that wait for a slow viewer; then the warden goes on without it, and it misses some.
const WAITING: usize = 16;
const PIECE: usize = 64 * 1024;

/// What a viewer says, on whichever way.
pub(crate) trait Said:
    Stream<Item = std::result::Result<v1::TerminalInput, Status>> + Send + Unpin + 'static
{
}

impl<S> Said for S where
    S: Stream<Item = std::result::Result<v1::TerminalInput, Status>> + Send + Unpin + 'static
{
}

pub(crate) type Screen = ReceiverStream<std::result::Result<v1::TerminalOutput, Status>>;
type Pieces = mpsc::Sender<std::result::Result<v1::TerminalOutput, Status>>;
type FileChunks = ReceiverStream<std::result::Result<v1::FileChunk, Status>>;

fn shown(sandbox_id: &str, info: TerminalInfo) -> v1::Terminal {
    v1::Terminal {
        id: info.id,
        sandbox_id: sandbox_id.into(),
        pid: info.pid,
        command: info.command,
        session_id: info.session.unwrap_or_default(),
        state: Some(logs::state(info.status)),
        rows: info.rows.into(),
        columns: info.columns.into(),
        created_at: Some(convert::time(info.created_ms as i64)),
        watchers: info.watchers,
    }
}

fn size(rows: u32, columns: u32) -> Result<(u16, u16)> {
    match (u16::try_from(rows), u16::try_from(columns)) {
        (Ok(rows), Ok(columns)) => Ok((rows, columns)),
        _ => Err(Problem::invalid("a terminal has at most 65535 rows and columns")),
    }
}

impl Services {
    async fn open_terminal(
        &self,
        request: Request<v1::OpenTerminalRequest>,
    ) -> Result<v1::Terminal> {
        let caller = caller(&request)?;
        let asked = request.into_inner();
        let id = required("sandbox_id", &asked.sandbox_id)?;
        let (rows, columns) = size(asked.rows, asked.columns)?;
        let or = |given: u16, usual: u16| if given == 0 { usual } else { given };
        let open = OpenTerminal {
            command: line(asked.command, asked.argv)?,
            session: some(asked.session),
            env: convert::variables(asked.env),
            cwd: some(asked.cwd).map(String::into_bytes),
            rows: or(rows, USUAL_SIZE.0),
            columns: or(columns, USUAL_SIZE.1),
            id: some(asked.id),
            end_when_left: asked.end_when_left,
            record: asked.record,
        };
        match self.sandboxes.ask(&caller.account, id, Ask::OpenTerminal(open)).await? {
            Reply::Terminal(info) => Ok(shown(id, info)),
            other => Err(unexpected(&other)),
        }
    }

    async fn list_terminals(
        &self,
        request: Request<v1::ListTerminalsRequest>,
    ) -> Result<v1::ListTerminalsResponse> {
        let caller = caller(&request)?;
        let id = required("sandbox_id", &request.get_ref().sandbox_id)?;
        match self.sandboxes.ask(&caller.account, id, Ask::Terminals).await? {
            Reply::Terminals(all) => Ok(v1::ListTerminalsResponse {
                terminals: all.into_iter().map(|info| shown(id, info)).collect(),
            }),
            other => Err(unexpected(&other)),
        }
    }

    /// The first thing said names the terminal.
    pub(crate) async fn attach_terminal(&self, request: Request<impl Said>) -> Result<Screen> {
        let caller = caller(&request)?;
        let mut said = request.into_inner();
        let first = said.next().await.and_then(|input| input.ok()?.content);
        let Some(Input::Attach(asked)) = first else {
            return Err(Problem::invalid("the first message must say which terminal"));
        };
        let sandbox = required("sandbox_id", &asked.sandbox_id)?;
        let id = required("terminal_id", &asked.terminal_id)?.to_owned();
        let mut call = self.sandboxes.call(&caller.account, sandbox, Ask::Attach { id }).await?;
        // A terminal that is not there is an answer, not the first word of a stream.
        match call.steps.next().await.map_err(problem_of)? {
            Step::Reply(Reply::Terminal(_)) => Ok(watch(call, said)),
            Step::Reply(other) => Err(unexpected(&other)),
            _ => Err(Problem::internal("understand the sandbox", "bytes before an answer")),
        }
    }

    async fn resize_terminal(
        &self,
        request: Request<v1::ResizeTerminalRequest>,
    ) -> Result<v1::Empty> {
        let caller = caller(&request)?;
        let asked = request.into_inner();
        let sandbox = required("sandbox_id", &asked.sandbox_id)?;
        required("terminal_id", &asked.terminal_id)?;
        let (rows, columns) = size(asked.rows, asked.columns)?;
        let ask = Ask::ResizeTerminal { id: asked.terminal_id, rows, columns };
        self.sandboxes.ask(&caller.account, sandbox, ask).await?;
        Ok(v1::Empty {})
    }

    async fn close_terminal(
        &self,
        request: Request<v1::CloseTerminalRequest>,
    ) -> Result<v1::Empty> {
        let caller = caller(&request)?;
        let asked = request.into_inner();
        let sandbox = required("sandbox_id", &asked.sandbox_id)?;
        required("terminal_id", &asked.terminal_id)?;
        let ask = Ask::CloseTerminal { id: asked.terminal_id };
        self.sandboxes.ask(&caller.account, sandbox, ask).await?;
        Ok(v1::Empty {})
    }
}

/// What is shown goes one way and what is typed the other, and neither waits for the other: a
/// program may stop reading until somebody has read what it wrote.
fn watch(call: Call, said: impl Said) -> Screen {
    let Call { steps, sender } = call;
    let (send, receive) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        tokio::select! {
            // Nobody watches any more: dropping the call detaches.
            () = send.closed() => {}
            () = show(steps, &send) => {}
            () = type_in(sender, said, &send) => {}
        }
    });
    ReceiverStream::new(receive)
}

async fn show(mut steps: Steps, send: &Pieces) {
    loop {
        let content = match steps.next().await {
            Ok(Step::Output(bytes) | Step::Error(bytes)) => Shown::Data(bytes),
            Ok(Step::Reply(Reply::Live)) => Shown::Live(true),
            Ok(Step::Reply(Reply::LogEnd { status, .. })) => {
                let ended = status.map(logs::state).unwrap_or_default();
                let last = v1::TerminalOutput { content: Some(Shown::Ended(ended)) };
                let _ = send.send(Ok(last)).await;
                return;
            }
            Ok(Step::Reply(_)) => continue,
            Err(error) => {
                let _ = send.send(Err(status_of(problem_of(error)))).await;
                return;
            }
        };
        if send.send(Ok(v1::TerminalOutput { content: Some(content) })).await.is_err() {
            return;
        }
    }
}

/// Returns only when the viewer has said something that makes no sense. One who has nothing more to
/// type still watches; one who leaves is noticed by whoever shows.
async fn type_in(mut sender: Sender, mut said: impl Said, send: &Pieces) {
    while let Some(input) = said.next().await {
        let input = match input {
            Ok(input) => input,
            // It cannot be understood, or the viewer is gone and will not hear this.
            Err(status) => {
                let _ = send.send(Err(status)).await;
                return;
            }
        };
        let told = match input.content {
            Some(Input::Data(bytes)) => sender.input(&bytes).await,
            Some(Input::Size(asked)) => match size(asked.rows, asked.columns) {
                Ok((rows, columns)) => sender.control(Control::Resize { rows, columns }).await,
                Err(problem) => return refuse(send, problem).await,
            },
            Some(Input::Attach(_)) => {
                return refuse(send, Problem::invalid("a stream is for one terminal")).await;
            }
            None => Ok(()),
        };
        // A terminal that takes nothing more is about to say how it ended.
        if told.is_err() {
            break;
        }
    }
    std::future::pending().await
}

async fn refuse(send: &Pieces, problem: Problem) {
    let _ = send.send(Err(status_of(problem))).await;
}

/// As far as it has been recorded now.
fn play(mut recording: File) -> FileChunks {
    let (send, receive) = mpsc::channel(4);
    tokio::task::spawn_blocking(move || {
        loop {
            let mut data = vec![0; PIECE];
            let piece = match recording.read(&mut data) {
                Ok(0) => return,
                Ok(n) => {
                    data.truncate(n);
                    Ok(v1::FileChunk { data: data.into() })
                }
                Err(e) => Err(status_of(Problem::internal("read the recording", e))),
            };
            let over = piece.is_err();
            if send.blocking_send(piece).is_err() || over {
                return;
            }
        }
    });
    ReceiverStream::new(receive)
}

#[tonic::async_trait]
impl TerminalService for Services {
    type AttachTerminalStream = Screen;
    type TerminalRecordingStream = FileChunks;

    async fn open_terminal(
        &self,
        request: Request<v1::OpenTerminalRequest>,
    ) -> Answer<v1::Terminal> {
        answer(Services::open_terminal(self, request).await)
    }

    async fn list_terminals(
        &self,
        request: Request<v1::ListTerminalsRequest>,
    ) -> Answer<v1::ListTerminalsResponse> {
        answer(Services::list_terminals(self, request).await)
    }

    async fn attach_terminal(
        &self,
        request: Request<Streaming<v1::TerminalInput>>,
    ) -> Answer<Self::AttachTerminalStream> {
        answer(Services::attach_terminal(self, request).await)
    }

    async fn resize_terminal(
        &self,
        request: Request<v1::ResizeTerminalRequest>,
    ) -> Answer<v1::Empty> {
        answer(Services::resize_terminal(self, request).await)
    }

    async fn close_terminal(
        &self,
        request: Request<v1::CloseTerminalRequest>,
    ) -> Answer<v1::Empty> {
        answer(Services::close_terminal(self, request).await)
    }

    async fn terminal_recording(
        &self,
        request: Request<v1::CloseTerminalRequest>,
    ) -> Answer<Self::TerminalRecordingStream> {
        let caller = caller(&request).map_err(status_of)?;
        let asked = request.into_inner();
        let recording =
            self.sandboxes.recording(&caller.account, &asked.sandbox_id, &asked.terminal_id);
        Ok(Response::new(play(recording.map_err(status_of)?)))
    }
}
