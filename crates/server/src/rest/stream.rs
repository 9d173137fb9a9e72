//! Answers that go on: server-sent events for those who ask for them, otherwise a line of JSON for
//! each message. Who reads slowly is waited for; who leaves ends the call.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use ringfence_engine::problem::Problem;
use ringfence_wire::v1;
use serde::Serialize;
use tokio_stream::{Stream, StreamExt};
use tonic::Status;

use crate::status::{rest_error, status_of};

/// Something is said this often, so that nobody in between takes the connection for dead.
const STILL_HERE: Duration = Duration::from_secs(15);

pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted
        .flat_map(|value| value.split(','))
        .any(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == "text/event-stream"))
}

/// The last event says how it ended: `end`, or `error` with what REST says of one.
pub(super) fn events<A: Serialize + Send + 'static>(
    answers: impl Stream<Item = Result<A, Status>> + Send + 'static,
) -> Response {
    let events = told(answers).map(|told| {
        let event = match &told {
            Told::Message(_) => Event::default(),
            Told::Error(_) => Event::default().event("error"),
            Told::End => Event::default().event("end"),
        };
        Ok::<_, Infallible>(event.data(told.json()))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(STILL_HERE)).into_response()
}

/// The last line of what went wrong is `{"error": {…}}`. Without it, all of it has come.
pub(super) fn lines<A: Serialize + Send + 'static>(
    answers: impl Stream<Item = Result<A, Status>> + Send + 'static,
) -> Response {
    let lines = told(answers).filter_map(|told| match told {
        Told::End => None,
        Told::Error(json) => Some(line(format!("{{\"error\":{json}}}"))),
        Told::Message(json) => Some(line(json)),
    });
    ([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response()
}

/// The bytes of a file. One that cannot be read to its end is cut off, so that nobody takes what has
/// come for all of it.
pub(super) fn bytes(
    pieces: impl Stream<Item = Result<v1::FileChunk, Status>> + Send + 'static,
) -> Response {
    let pieces = pieces.map(|piece| piece.map(|piece| piece.data));
    let unread = [
        (CONTENT_TYPE, "application/octet-stream"),
        // Whatever it is, a browser must not take it for a page of ours.
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_DISPOSITION, "attachment"),
    ];
    (unread, Body::from_stream(pieces)).into_response()
}

fn line(mut json: String) -> Result<Bytes, Infallible> {
    json.push('\n');
    Ok(json.into())
}

enum Told {
    Message(String),
    Error(String),
    End,
}

impl Told {
    fn json(self) -> String {
        match self {
            Self::Message(json) | Self::Error(json) => json,
            Self::End => "{}".into(),
        }
    }
}

/// Every message, then how it ended.
fn told<A: Serialize + Send + 'static>(
    answers: impl Stream<Item = Result<A, Status>> + Send + 'static,
) -> impl Stream<Item = Told> + Send + 'static {
    let mut failed = false;
    let messages = answers.map(Some).chain(tokio_stream::once(None));
    messages.map_while(move |answer| match answer {
        _ if failed => None,
        None => Some(Told::End),
        Some(answer) => Some(one(answer).unwrap_or_else(|status| {
            failed = true;
            Told::Error(rest_error(&status).1.to_string())
        })),
    })
}

fn one<A: Serialize>(answer: Result<A, Status>) -> Result<Told, Status> {
    let text = serde_json::to_string(&answer?);
    text.map(Told::Message).map_err(|e| status_of(Problem::internal("write the answer", e)))
}
