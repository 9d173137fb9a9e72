//! Files that are sent: into a stored codebase, or into the workspace that stands for it.

use bytes::Bytes;
use ringfence_engine::codebases::{Upload, UploadDone, UploadTarget};
use ringfence_engine::problem::{Problem, Result};
use ringfence_engine::sandboxes::contents::{Incoming, WriteAs};
use ringfence_wire::v1;
use ringfence_wire::v1::upload_chunk::{Content as Piece, Metadata};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Status};

use super::Services;
use super::codebases::blocking;
use super::files::take_in;
use crate::caller::caller;
use crate::repeats::{Answered, Asked, content};
use crate::status::status_of;

/// What a sender sends, on whichever way.
pub(crate) trait Chunks:
    Stream<Item = std::result::Result<v1::UploadChunk, Status>> + Send + Unpin
{
}

impl<S> Chunks for S where
    S: Stream<Item = std::result::Result<v1::UploadChunk, Status>> + Send + Unpin
{
}

/// Where the bytes of an upload go.
enum Taking {
    Stored(Upload),
    Workspace(Incoming),
}

impl Taking {
    async fn take(self, data: Bytes) -> Result<Self> {
        match self {
            Self::Stored(upload) => blocking(move || write(upload, &data)).await.map(Self::Stored),
            Self::Workspace(incoming) => take_in(incoming, data).await.map(Self::Workspace),
        }
    }

    async fn finish(self) -> Result<UploadDone> {
        match self {
            Self::Stored(upload) => blocking(move || upload.finish()).await,
            Self::Workspace(incoming) => incoming.finish_upload().await,
        }
    }
}

fn write(mut upload: Upload, data: &[u8]) -> Result<Upload> {
    upload.write(data)?;
    Ok(upload)
}

impl Services {
    pub(crate) async fn upload(
        &self,
        request: Request<impl Chunks>,
    ) -> std::result::Result<v1::UploadResult, Status> {
        let account = caller(&request).map_err(status_of)?.account;
        let mut chunks = request.into_inner();
        let metadata = metadata(&mut chunks).await?;
        let asked = Asked {
            account: account.clone(),
            request_id: metadata.request_id.clone(),
            method: "UploadFiles",
            content: content(&metadata),
        };
        let upload = self.receive(account, metadata, &mut chunks);
        let Answered { message, is_repeated } = self.repeats.once(asked, upload).await?;
        if is_repeated {
            compare(&message, &mut chunks).await?;
        }
        Ok(message)
    }

    /// The bytes are passed on piece by piece.
    async fn receive(
        &self,
        account: String,
        metadata: Metadata,
        chunks: &mut impl Chunks,
    ) -> std::result::Result<v1::UploadResult, Status> {
        let mut taking = self.begin_upload(account, &metadata).await.map_err(status_of)?;
        while let Some(data) = next_data(chunks).await? {
            taking = taking.take(data).await.map_err(status_of)?;
        }
        let done = taking.finish().await.map_err(status_of)?;
        Ok(v1::UploadResult {
            codebase_id: metadata.codebase_id,
            file_path: metadata.file_path,
            size: done.size as i64,
            checksum: done.md5,
            blake3: done.blake3,
        })
    }

    async fn begin_upload(&self, account: String, metadata: &Metadata) -> Result<Taking> {
        let (id, path, mode) =
            (metadata.codebase_id.clone(), metadata.file_path.clone(), metadata.mode);
        if !metadata.staged
            && let Some(at) = self.in_workspace(&account, &id, &path)?
        {
            let write_as = WriteAs { mode, programs_run: true, parents: true };
            return self.sandboxes.begin_write(at, write_as).map(Taking::Workspace);
        }
        let target = match metadata.staged {
            true => UploadTarget::Stage { digest: None },
            false => UploadTarget::File { path, mode },
        };
        let codebases = self.codebases.clone();
        let begin = move || codebases.begin_upload(&account, &id, target);
        blocking(begin).await.map(Taking::Stored)
    }
}

fn invalid(message: &str) -> Status {
    status_of(Problem::invalid(message))
}

/// What the first message says.
async fn metadata(chunks: &mut impl Chunks) -> std::result::Result<Metadata, Status> {
    match chunks.next().await.transpose()?.and_then(|chunk| chunk.content) {
        Some(Piece::Metadata(metadata)) => Ok(metadata),
        Some(Piece::Data(_)) => Err(invalid("metadata comes before data")),
        None => Err(invalid("metadata is required")),
    }
}

async fn next_data(chunks: &mut impl Chunks) -> std::result::Result<Option<Bytes>, Status> {
    match chunks.next().await.transpose()?.map(|chunk| chunk.content) {
        None => Ok(None),
        Some(Some(Piece::Data(data))) => Ok(Some(data)),
        Some(Some(Piece::Metadata(_))) => Err(invalid("metadata comes once")),
        Some(None) => Ok(Some(Bytes::new())),
    }
}

/// The same request must have the same bytes, which only shows when they have come.
async fn compare(
    former: &v1::UploadResult,
    chunks: &mut impl Chunks,
) -> std::result::Result<(), Status> {
    let mut hasher = blake3::Hasher::new();
    while let Some(data) = next_data(chunks).await? {
        hasher.update(&data);
    }
    match hasher.finalize().to_hex().as_str() == former.blake3 {
        true => Ok(()),
        false => Err(invalid("the request id was used for something else")),
    }
}
