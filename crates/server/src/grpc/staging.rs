//! The contents of many files in one stream.

use ringfence_engine::codebases::{Piece, Staging};
use ringfence_engine::problem::{Problem, Result};
use ringfence_wire::v1;
use tokio_stream::StreamExt;
use tonic::{Request, Status, Streaming};

use super::Services;
use super::codebases::blocking;
use super::sandboxes::required;
use crate::caller::caller;
use crate::status::status_of;

impl Services {
    /// A message is one piece of work, however many files it has.
    pub(super) async fn stage(
        &self,
        request: Request<Streaming<v1::StageChunk>>,
    ) -> std::result::Result<v1::StageResult, Status> {
        let account = caller(&request).map_err(status_of)?.account;
        let mut chunks = request.into_inner();
        let mut next = chunks.next().await.transpose()?;
        let id = next.as_ref().map(|first| first.codebase_id.clone()).unwrap_or_default();
        let mut staging = self.begin_staging(account, &id).await.map_err(status_of)?;
        while let Some(chunk) = next {
            check_codebase(&id, &chunk.codebase_id).map_err(status_of)?;
            staging = take(staging, chunk.pieces).await.map_err(status_of)?;
            next = chunks.next().await.transpose()?;
        }
        let done = staging.finish().map_err(status_of)?;
        Ok(v1::StageResult { blake3: done.blake3, bytes: done.bytes as i64 })
    }

    async fn begin_staging(&self, account: String, id: &str) -> Result<Staging> {
        let id = required("codebase_id", id)?.to_owned();
        let codebases = self.codebases.clone();
        blocking(move || codebases.begin_staging(&account, &id)).await
    }
}

/// Only the first message needs to say it.
fn check_codebase(first: &str, later: &str) -> Result<()> {
    match later.is_empty() || later == first {
        true => Ok(()),
        false => Err(Problem::invalid("a stream is for one codebase")),
    }
}

async fn take(mut staging: Staging, pieces: Vec<v1::stage_chunk::Piece>) -> Result<Staging> {
    blocking(move || {
        staging.take(pieces.iter().map(|piece| Piece { data: &piece.data, end: piece.end }))?;
        Ok(staging)
    })
    .await
}
