//! Terminals for browsers: a WebSocket.
//!
//! Bytes typed and shown are binary messages. Everything else is a text message with the JSON of the
//! stream's messages: `{"size": {"rows": 24, "columns": 80}}` from the viewer, `{"live": true}` and
//! `{"ended": {…}}` to it, and `{"error": {…}}` before the socket is closed for one.

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::response::Response;
use futures_util::{SinkExt, StreamExt};
use ringfence_engine::problem::Problem;
use ringfence_wire::v1;
use ringfence_wire::v1::terminal_input::{Attach, Content as Input};
use ringfence_wire::v1::terminal_output::Content as Shown;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::with_caller;
use crate::grpc::Services;
use crate::grpc::terminals::Screen;
use crate::status::{rest_error, rest_refusal, status_of};

/// What a viewer may say at once: much more than anybody types.
const LARGEST_MESSAGE: usize = 1 << 20;
/// Messages of a viewer that wait for a program that does not read.
const WAITING: usize = 16;

type Heard = Result<v1::TerminalInput, Status>;

pub(super) async fn attach(State(services): State<Services>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let named = Path::<(String, String)>::from_request_parts(&mut parts, &()).await;
    let socket = WebSocketUpgrade::from_request_parts(&mut parts, &()).await;
    let (Ok(Path((sandbox_id, terminal_id))), Ok(socket)) = (named, socket) else {
        let problem = Problem::invalid("a terminal is attached to over a WebSocket");
        return rest_refusal(&status_of(problem));
    };
    let (tell, said) = mpsc::channel::<Heard>(WAITING);
    let first = Input::Attach(Attach { sandbox_id, terminal_id });
    let first = tokio_stream::once(Ok(v1::TerminalInput { content: Some(first) }));
    let said = tokio_stream::StreamExt::chain(first, ReceiverStream::new(said));
    let asked = with_caller(&parts.extensions, said);
    match services.attach_terminal(asked).await {
        // Only now: a terminal that is not there is an answer like any other.
        Ok(screen) => socket
            .max_message_size(LARGEST_MESSAGE)
            .on_upgrade(move |socket| show(socket, screen, tell)),
        Err(problem) => rest_refusal(&status_of(problem)),
    }
}

async fn show(socket: WebSocket, mut screen: Screen, tell: mpsc::Sender<Heard>) {
    let (mut out, mut typed) = socket.split();
    let typing = async {
        while let Some(Ok(message)) = typed.next().await {
            let Some(input) = heard(message) else { continue };
            if tell.send(input).await.is_err() {
                break;
            }
        }
    };
    let showing = async {
        while let Some(piece) = screen.next().await {
            if out.send(shown(piece)).await.is_err() {
                return;
            }
        }
        let _ = out.send(Message::Close(None)).await;
    };
    tokio::select! {
        () = typing => {}
        () = showing => {}
    }
}

fn heard(message: Message) -> Option<Heard> {
    match message {
        Message::Binary(data) => Some(Ok(v1::TerminalInput { content: Some(Input::Data(data)) })),
        Message::Text(text) => Some(
            serde_json::from_str(&text)
                .map_err(|e| Status::invalid_argument(format!("that cannot be understood: {e}"))),
        ),
        _ => None,
    }
}

fn shown(piece: Result<v1::TerminalOutput, Status>) -> Message {
    match piece {
        Ok(v1::TerminalOutput { content: Some(Shown::Data(data)) }) => Message::Binary(data),
        Ok(other) => Message::Text(serde_json::to_string(&other).unwrap_or_default().into()),
        Err(status) => {
            let error = serde_json::json!({"error": rest_error(&status).1});
            Message::Text(error.to_string().into())
        }
    }
}
