//! Commands: from a call to a warden to a result or a stream of output.

use bytes::Bytes;
use ringfence_engine::problem::{Code, Problem, Result};
use ringfence_engine::sandboxes::ask::problem_of;
use ringfence_engine::wardens::call::{Call, Sender, Step, Steps};
use ringfence_link::warden::{Control, Outcome, Reply};
use ringfence_wire::v1;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use crate::convert::span;
use crate::output::Kept;
use crate::status::status_of;

/// For each stream, for those who say nothing else.
const USUAL_CAP: usize = 16 * 1024 * 1024;
/// What the published client can take in all, after decoding.
const PUBLISHED_CAP: usize = 3_500_000;
/// What of the output fits into the details of a status.
const TAIL: usize = 4096;
/// Pieces of a stream that wait for a slow reader; then the command waits.
const WAITING: usize = 16;

pub(crate) type Output = ReceiverStream<std::result::Result<v1::ExecOutput, Status>>;

/// How a result is wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    bytes: bool,
    cap: usize,
}

impl Wanted {
    pub(crate) fn of(options: Option<&v1::ResultOptions>) -> Result<Self> {
        let Some(options) = options else { return Ok(Self { bytes: false, cap: PUBLISHED_CAP }) };
        let cap = match options.max_output_bytes {
            0 => USUAL_CAP,
            1.. => (options.max_output_bytes as usize).min(USUAL_CAP),
            _ => return Err(Problem::invalid("max_output_bytes cannot be negative")),
        };
        Ok(Self { bytes: options.bytes, cap })
    }
}

/// Sends all input, and says that it is all. A command that does not read it is none of our concern.
fn feed(mut sender: Sender, input: Option<Bytes>) -> Telling<Sender> {
    let Some(input) = input else { return Telling::Nothing(sender) };
    Telling::Going(tokio::spawn(async move {
        if sender.input(&input).await.is_ok() {
            let _ = sender.control(Control::EndOfInput).await;
        }
        sender
    }))
}

/// Follows a command to its end.
pub(crate) async fn collect(
    call: Call,
    input: Option<Bytes>,
    wanted: Wanted,
) -> Result<v1::ExecResult> {
    let Call { mut steps, sender } = call;
    // A caller who goes away takes this, and with it the connection, along.
    let _feeding = feed(sender, input);
    let (mut stdout, mut stderr) = (Kept::new(wanted.cap), Kept::new(wanted.cap));
    let outcome = loop {
        match steps.next().await.map_err(problem_of)? {
            Step::Output(bytes) => stdout.push(&bytes),
            Step::Error(bytes) => stderr.push(&bytes),
            Step::Reply(Reply::Done(outcome)) => break *outcome,
            Step::Reply(_) => {}
        }
    };
    result(outcome, stdout, stderr, wanted)
}

/// What a command is told beside its output. It goes with whoever waits for the command, and holds
/// the sending half until then: letting go of that would be hanging up.
enum Telling<T> {
    /// Most commands have no input, and a task would take longer to wake than they do to run.
    Nothing(#[expect(dead_code, reason = "held, not used")] Sender),
    Going(JoinHandle<T>),
}

impl<T> Drop for Telling<T> {
    fn drop(&mut self) {
        if let Self::Going(task) = self {
            task.abort();
        }
    }
}

fn result(outcome: Outcome, stdout: Kept, stderr: Kept, wanted: Wanted) -> Result<v1::ExecResult> {
    if outcome.timed_out && !wanted.bytes {
        return Err(out_of_time(&outcome, &stdout, &stderr));
    }
    let mut result = v1::ExecResult {
        exit_code: outcome.exit_code,
        duration: Some(span(outcome.duration_micros)),
        bill: Some(bill(outcome, &stdout, &stderr)),
        ..Default::default()
    };
    if wanted.bytes {
        (result.stdout_bytes, result.stderr_bytes) = (stdout.into_bytes(), stderr.into_bytes());
    } else {
        result.stderr = stderr.into_text(wanted.cap / 2);
        result.stdout = stdout.into_text(wanted.cap - result.stderr.len());
    }
    Ok(result)
}

fn out_of_time(outcome: &Outcome, stdout: &Kept, stderr: &Kept) -> Problem {
    let text = |kept: &Kept| String::from_utf8_lossy(&kept.last(TAIL / 2)).into_owned();
    let seconds = outcome.duration_micros as f64 / 1e6;
    Problem::new(Code::CommandTimeout, format!("command timed out after {seconds:.1} seconds"))
        .with("seconds", format!("{seconds:.3}"))
        .with("stdout_tail", shortened(text(stdout)))
        .with("stderr_tail", shortened(text(stderr)))
}

/// Replaced bytes are longer than what they replace.
fn shortened(text: String) -> String {
    text[text.ceil_char_boundary(text.len().saturating_sub(TAIL / 2))..].to_owned()
}

fn bill(outcome: Outcome, stdout: &Kept, stderr: &Kept) -> v1::ExecBill {
    v1::ExecBill {
        command_id: outcome.command,
        timed_out: outcome.timed_out,
        cancelled: outcome.cancelled,
        oom_killed: outcome.oom_killed,
        pids_refused: outcome.pids_refused,
        session_ended: outcome.session_ended,
        reason: outcome.reason.unwrap_or_default(),
        cpu_micros: outcome.cpu_micros as i64,
        peak_memory_bytes: outcome.peak_memory as i64,
        stdout_total: stdout.total() as i64,
        stderr_total: stderr.total() as i64,
        stdout_cut: stdout.is_cut(),
        stderr_cut: stderr.is_cut(),
        denied: outcome.denied.into_iter().map(denied).collect(),
        denied_more: outcome.denied_more as i64,
        changes: outcome.changes.into_iter().flatten().map(change).collect(),
        signal: outcome.signal.unwrap_or(0),
    }
}

fn denied(access: ringfence_link::warden::Denied) -> v1::DeniedAccess {
    v1::DeniedAccess {
        operation: access.operation,
        path: access.path,
        needed: access.needed,
        level: access.level,
        rule: access.rule.unwrap_or_default(),
        priority: access.priority.unwrap_or(0),
        count: access.count as i64,
    }
}

pub(crate) fn change(change: ringfence_link::warden::Change) -> v1::FileChange {
    v1::FileChange { kind: change.kind, path: change.path, from: String::new() }
}

/// Passes output on as it comes; who stops reading makes the command wait, who leaves ends it.
pub(crate) fn stream(call: Call, input: Option<Bytes>) -> Output {
    let Call { steps, sender } = call;
    passing_on(steps, feed(sender, input), false)
}

/// The same with what the caller says meanwhile.
pub(crate) fn attached(call: Call, said: Streaming<v1::ExecInput>) -> Output {
    let Call { steps, sender } = call;
    passing_on(steps, Telling::Going(tokio::spawn(tell(sender, said))), true)
}

/// Tells a command what its caller says. A caller who leaves in the middle ends the command; one
/// who has only said all still hears what becomes of it.
async fn tell(mut sender: Sender, mut said: Streaming<v1::ExecInput>) -> Option<Sender> {
    use v1::exec_input::Content;
    loop {
        let told = match said.message().await {
            Ok(Some(input)) => match input.content {
                Some(Content::Stdin(bytes)) => sender.input(&bytes).await,
                Some(Content::EndOfStdin(true)) => sender.control(Control::EndOfInput).await,
                Some(Content::Signal(signal)) => sender.control(Control::Signal(signal)).await,
                Some(Content::Cancel(true)) => sender.control(Control::Cancel).await,
                _ => Ok(()),
            },
            Ok(None) => return Some(sender),
            Err(_) => return None,
        };
        // A command that takes nothing more is about to say how it ended.
        if told.is_err() {
            return Some(sender);
        }
    }
}

type Pieces = mpsc::Sender<std::result::Result<v1::ExecOutput, Status>>;

fn passing_on<T: Send + 'static>(steps: Steps, telling: Telling<T>, tell_start: bool) -> Output {
    let (send, receive) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        let _telling = telling;
        tokio::select! {
            // Nobody reads any more: dropping the call hangs up.
            () = send.closed() => {}
            () = pass_on(steps, &send, tell_start) => {}
        }
    });
    ReceiverStream::new(receive)
}

async fn pass_on(mut steps: Steps, send: &Pieces, tell_start: bool) {
    let (mut stdout, mut stderr) = (Kept::new(0), Kept::new(0));
    loop {
        let message = match steps.next().await {
            Ok(Step::Output(bytes)) => {
                stdout.push(&bytes);
                piece(v1::exec_output::OutputType::Stdout, bytes)
            }
            Ok(Step::Error(bytes)) => {
                stderr.push(&bytes);
                piece(v1::exec_output::OutputType::Stderr, bytes)
            }
            Ok(Step::Reply(Reply::Done(outcome))) => {
                let _ = send.send(Ok(last_piece(*outcome, &stdout, &stderr))).await;
                return;
            }
            Ok(Step::Reply(Reply::Started { command })) if tell_start => {
                v1::ExecOutput { started: command, ..Default::default() }
            }
            Ok(Step::Reply(_)) => continue,
            Err(error) => {
                let _ = send.send(Err(status_of(problem_of(error)))).await;
                return;
            }
        };
        if send.send(Ok(message)).await.is_err() {
            return;
        }
    }
}

fn last_piece(outcome: Outcome, stdout: &Kept, stderr: &Kept) -> v1::ExecOutput {
    let (exit_code, duration) = (outcome.exit_code, Some(span(outcome.duration_micros)));
    // Nothing was kept because everything was passed on.
    let bill =
        v1::ExecBill { stdout_cut: false, stderr_cut: false, ..bill(outcome, stdout, stderr) };
    let result = v1::ExecResult { exit_code, duration, bill: Some(bill), ..Default::default() };
    v1::ExecOutput { result: Some(result), ..Default::default() }
}

fn piece(kind: v1::exec_output::OutputType, data: Bytes) -> v1::ExecOutput {
    v1::ExecOutput { r#type: kind.into(), data, ..Default::default() }
}
