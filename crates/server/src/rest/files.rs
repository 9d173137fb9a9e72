//! Files as bodies of requests: `PUT` takes the bytes as they are, a form has a file in each part.

use axum::body::Body;
use axum::extract::{FromRequest, Multipart, Request, State};
use axum::response::Response;
use prost_reflect::MessageDescriptor;
use ringfence_engine::problem::Problem;
use ringfence_wire::v1;
use ringfence_wire::v1::upload_chunk::Content as Piece;
use ringfence_wire::v1::write_file_chunk::Content as Written;
use tokio_stream::{Stream, StreamExt};
use tonic::Status;

use super::message::from_path_and_query;
use super::{json, with_caller};
use crate::grpc::Services;
use crate::status::{rest_refusal, status_of};

/// Messages whose fields the path and the query of these routes name.
pub(super) const UPLOAD: &str = "sandbox.v1.UploadChunk.Metadata";
pub(super) const WRITE: &str = "sandbox.v1.WriteFileChunk.Begin";

/// One file of a codebase. What the path and the query say is the first message of an upload.
pub(super) async fn upload(
    services: Services,
    fields: MessageDescriptor,
    request: Request,
) -> Response {
    take(services, fields, request, false).await
}

/// Content for a tree that is committed as a whole.
pub(super) async fn stage(
    services: Services,
    fields: MessageDescriptor,
    request: Request,
) -> Response {
    take(services, fields, request, true).await
}

async fn take(
    services: Services,
    fields: MessageDescriptor,
    request: Request,
    staged: bool,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let mut metadata: v1::upload_chunk::Metadata =
        match from_path_and_query(&fields, &mut parts).await {
            Ok(metadata) => metadata,
            Err(problem) => return rest_refusal(&status_of(problem)),
        };
    metadata.staged |= staged;
    let first = v1::UploadChunk { content: Some(Piece::Metadata(metadata)) };
    let rest = pieces(body).map(|piece| Ok(v1::UploadChunk { content: Some(Piece::Data(piece?)) }));
    let chunks = tokio_stream::once(Ok(first)).chain(Box::pin(rest));
    answer(services.upload(with_caller(&parts.extensions, chunks)).await)
}

/// One file of a workspace.
pub(super) async fn write(
    services: Services,
    fields: MessageDescriptor,
    request: Request,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let begin = match from_path_and_query::<v1::write_file_chunk::Begin>(&fields, &mut parts).await
    {
        Ok(begin) => begin,
        Err(problem) => return rest_refusal(&status_of(problem)),
    };
    let first = v1::WriteFileChunk { content: Some(Written::Begin(begin)) };
    let rest =
        pieces(body).map(|piece| Ok(v1::WriteFileChunk { content: Some(Written::Data(piece?)) }));
    let chunks = tokio_stream::once(Ok(first)).chain(Box::pin(rest));
    answer(services.write_file(with_caller(&parts.extensions, chunks)).await)
}

/// Several files of a codebase at once: the name of each part's file is its path. They are put in
/// place one after the other, and the answer lists them.
pub(super) async fn upload_form(State(services): State<Services>, request: Request) -> Response {
    match take_form(services, request).await {
        Ok(done) => json(&serde_json::json!({"files": done})),
        Err(status) => rest_refusal(&status),
    }
}

async fn take_form(services: Services, request: Request) -> Result<Vec<v1::UploadResult>, Status> {
    let bad =
        |e: String| status_of(Problem::invalid(format!("the form cannot be understood: {e}")));
    let extensions = request.extensions().clone();
    let path = request.uri().path().to_owned();
    let codebase_id = path.split('/').nth(3).unwrap_or_default().to_owned();
    let mut form = Multipart::from_request(request, &()).await.map_err(|e| bad(e.body_text()))?;
    let mut done = Vec::new();
    while let Some(part) = form.next_field().await.map_err(|e| bad(e.body_text()))? {
        let name = part.file_name().map(str::to_owned);
        let file_path = name.ok_or_else(|| bad("a part has no file name".into()))?;
        let metadata = v1::upload_chunk::Metadata {
            codebase_id: codebase_id.clone(),
            file_path,
            ..Default::default()
        };
        let first = v1::UploadChunk { content: Some(Piece::Metadata(metadata)) };
        let rest = part.map(|piece| match piece {
            Ok(data) => Ok(v1::UploadChunk { content: Some(Piece::Data(data)) }),
            Err(e) => Err(bad(e.body_text())),
        });
        let chunks = tokio_stream::once(Ok(first)).chain(Box::pin(rest));
        done.push(services.upload(with_caller(&extensions, chunks)).await?);
    }
    match done.is_empty() {
        true => Err(bad("there is no file in it".into())),
        false => Ok(done),
    }
}

/// The bytes of a body as they come. One that is cut off is an error, so nothing is put in place.
fn pieces(body: Body) -> impl Stream<Item = Result<bytes::Bytes, Status>> + Send {
    body.into_data_stream().map(|piece| {
        piece.map_err(|_| status_of(Problem::invalid("the body ended before its end")))
    })
}

fn answer(done: Result<impl serde::Serialize, Status>) -> Response {
    match done {
        Ok(message) => json(&message),
        Err(status) => rest_refusal(&status),
    }
}
