//! Logs as streams: of processes, and of what sessions left running.

use bytes::Bytes;
use ringfence_engine::sandboxes::ask::problem_of;
use ringfence_engine::wardens::call::{Call, Step, Steps};
use ringfence_link::warden::{ProcessStatus, Reply};
use ringfence_wire::v1;
use ringfence_wire::v1::exec_output::OutputType;
use ringfence_wire::v1::process_state::Status as State;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::status::status_of;

/// Pieces that wait for a slow reader; then the warden waits, whose ring goes on without it.
const WAITING: usize = 16;

pub(super) type Chunks = ReceiverStream<Result<v1::LogChunk, Status>>;
type Sender = mpsc::Sender<Result<v1::LogChunk, Status>>;

/// Passes a log on as it comes. Who leaves hangs up; a log that breaks off ends with an error.
pub(super) fn chunks(call: Call) -> Chunks {
    let (send, receive) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        // The half that speaks stays open: closing it would be hanging up.
        let Call { steps, sender: _sender } = call;
        tokio::select! {
            () = send.closed() => {}
            () = pass_on(steps, &send) => {}
        }
    });
    ReceiverStream::new(receive)
}

async fn pass_on(mut steps: Steps, send: &Sender) {
    let mut offset = 0;
    loop {
        let message = match steps.next().await {
            Ok(Step::Output(data)) => Ok(piece(&mut offset, OutputType::Stdout, data)),
            Ok(Step::Error(data)) => Ok(piece(&mut offset, OutputType::Stderr, data)),
            Ok(Step::Reply(Reply::Log { from })) => {
                offset = from as i64;
                continue;
            }
            Ok(Step::Reply(Reply::LogEnd { next, status })) => {
                if let Some(last) = last_piece(next, status) {
                    let _ = send.send(Ok(last)).await;
                }
                return;
            }
            Ok(Step::Reply(_)) => continue,
            Err(error) => Err(status_of(problem_of(error))),
        };
        let over = message.is_err();
        if send.send(message).await.is_err() || over {
            return;
        }
    }
}

fn piece(offset: &mut i64, kind: OutputType, data: Bytes) -> v1::LogChunk {
    let start = *offset;
    *offset += data.len() as i64;
    v1::LogChunk { offset: start, r#type: kind.into(), data, ended: None }
}

/// How it ended, if it has: a log that is only read so far has no last word.
fn last_piece(next: u64, status: Option<ProcessStatus>) -> Option<v1::LogChunk> {
    let status = status.filter(|status| *status != ProcessStatus::Running)?;
    Some(v1::LogChunk { offset: next as i64, ended: Some(state(status)), ..Default::default() })
}

pub(super) fn state(status: ProcessStatus) -> v1::ProcessState {
    let is = |status: State| v1::ProcessState { status: status.into(), ..Default::default() };
    match status {
        ProcessStatus::Running => is(State::Running),
        ProcessStatus::Exited(code) => v1::ProcessState { exit_code: code, ..is(State::Exited) },
        // As a shell would say it.
        ProcessStatus::Killed(signal) => {
            v1::ProcessState { signal, exit_code: 128 + signal, ..is(State::Killed) }
        }
        ProcessStatus::Failed(reason) => v1::ProcessState { reason, ..is(State::Failed) },
    }
}
