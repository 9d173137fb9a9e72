//! Stored files.

use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;

use ringfence_engine::codebases::{
    Codebases, Content, Entry, FileKind, ManifestEntry, NewCodebase, OpenFile, Upload, UploadTarget,
};
use ringfence_engine::problem::{Problem, Result};
use ringfence_engine::store::{Codebase, CodebaseFilter, Page};
use ringfence_wire::v1;
use ringfence_wire::v1::codebase_service_server::CodebaseService;
use ringfence_wire::v1::upload_chunk::{Content as Piece, Metadata};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::Services;
use super::sandboxes::{Answer, answer, required};
use crate::caller::caller;
use crate::convert;
use crate::repeats::{Answered, Asked, content, to_the_end};
use crate::status::status_of;

const PIECE: usize = 64 * 1024;

/// Does something with files away from the threads that serve.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|e| Problem::internal("finish", e))?
}

fn shown(codebase: Codebase) -> v1::Codebase {
    v1::Codebase {
        id: codebase.id,
        name: codebase.name,
        owner_id: codebase.owner_id,
        size: codebase.size as i64,
        file_count: i32::try_from(codebase.file_count).unwrap_or(i32::MAX),
        created_at: Some(convert::time(codebase.created_ms)),
        updated_at: Some(convert::time(codebase.updated_ms)),
        local_path: codebase.local_path.map(|p| p.display().to_string()).unwrap_or_default(),
        version: codebase.version,
    }
}

pub(super) fn file(entry: Entry) -> v1::FileInfo {
    let kind = match entry.kind {
        FileKind::File => v1::FileKind::File,
        FileKind::Directory => v1::FileKind::Directory,
        FileKind::Symlink => v1::FileKind::Symlink,
        FileKind::Other => v1::FileKind::Other,
    };
    let raw = entry.full_path.as_os_str();
    let raw_path = match raw.to_str() {
        Some(_) => Default::default(),
        None => raw.as_bytes().to_vec().into(),
    };
    v1::FileInfo {
        path: entry.path.to_string_lossy().into_owned(),
        name: entry.name.to_string_lossy().into_owned(),
        is_dir: entry.is_dir,
        size: entry.size as i64,
        modified_at: Some(convert::time(entry.modified_ms)),
        full_path: raw.to_string_lossy().into_owned(),
        mode: entry.mode,
        kind: kind.into(),
        target: entry.target.map(|t| t.to_string_lossy().into_owned()).unwrap_or_default(),
        raw_path,
    }
}

fn manifest(entries: Vec<v1::ManifestEntry>) -> Vec<ManifestEntry> {
    let each = |entry: v1::ManifestEntry| {
        let mode = Some(entry.mode).filter(|mode| *mode != 0);
        let content = match (entry.is_dir, entry.symlink_target.is_empty()) {
            (true, _) => Content::Directory { mode },
            (false, false) => Content::Symlink { target: entry.symlink_target.into() },
            (false, true) => {
                Content::File { mode, size: entry.size.max(0) as u64, digest: entry.blake3 }
            }
        };
        ManifestEntry { path: entry.path, content }
    };
    entries.into_iter().map(each).collect()
}

fn invalid(message: &str) -> Status {
    status_of(Problem::invalid(message))
}

/// What the first message says.
async fn metadata(
    chunks: &mut Streaming<v1::UploadChunk>,
) -> std::result::Result<Metadata, Status> {
    match chunks.message().await?.and_then(|chunk| chunk.content) {
        Some(Piece::Metadata(metadata)) => Ok(metadata),
        Some(Piece::Data(_)) => Err(invalid("metadata comes before data")),
        None => Err(invalid("metadata is required")),
    }
}

async fn next_data(
    chunks: &mut Streaming<v1::UploadChunk>,
) -> std::result::Result<Option<bytes::Bytes>, Status> {
    match chunks.message().await?.map(|chunk| chunk.content) {
        None => Ok(None),
        Some(Some(Piece::Data(data))) => Ok(Some(data)),
        Some(Some(Piece::Metadata(_))) => Err(invalid("metadata comes once")),
        Some(None) => Ok(Some(bytes::Bytes::new())),
    }
}

/// The same request must have the same bytes, which only shows when they have come.
async fn compare(
    former: &v1::UploadResult,
    chunks: &mut Streaming<v1::UploadChunk>,
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

/// The bytes are passed on piece by piece.
async fn receive(
    codebases: Codebases,
    account: String,
    metadata: Metadata,
    chunks: &mut Streaming<v1::UploadChunk>,
) -> std::result::Result<v1::UploadResult, Status> {
    let target = match metadata.staged {
        true => UploadTarget::Stage { digest: None },
        false => UploadTarget::File { path: metadata.file_path.clone(), mode: metadata.mode },
    };
    let id = metadata.codebase_id.clone();
    let begin = move || codebases.begin_upload(&account, &id, target);
    let mut upload = blocking(begin).await.map_err(status_of)?;
    while let Some(data) = next_data(chunks).await? {
        upload = blocking(move || write(upload, &data)).await.map_err(status_of)?;
    }
    let done = blocking(move || upload.finish()).await.map_err(status_of)?;
    Ok(v1::UploadResult {
        codebase_id: metadata.codebase_id,
        file_path: metadata.file_path,
        size: done.size as i64,
        checksum: done.md5,
        blake3: done.blake3,
    })
}

fn write(mut upload: Upload, data: &[u8]) -> Result<Upload> {
    upload.write(data)?;
    Ok(upload)
}

type FileChunks = ReceiverStream<std::result::Result<v1::FileChunk, Status>>;

/// Who reads slowly makes the reading slow, and nothing else.
fn send_file(mut file: OpenFile, offset: u64, length: Option<u64>) -> FileChunks {
    let (send, receive) = mpsc::channel(4);
    tokio::task::spawn_blocking(move || {
        let mut left = length.unwrap_or(u64::MAX);
        let mut failed = file.seek(SeekFrom::Start(offset)).err();
        while failed.is_none() && left > 0 {
            let mut piece = vec![0; PIECE.min(usize::try_from(left).unwrap_or(PIECE))];
            match file.read(&mut piece) {
                Ok(0) => return,
                Ok(n) => {
                    piece.truncate(n);
                    left -= n as u64;
                    if send.blocking_send(Ok(v1::FileChunk { data: piece.into() })).is_err() {
                        return;
                    }
                }
                Err(e) => failed = Some(e),
            }
        }
        if let Some(e) = failed {
            let _ = send.blocking_send(Err(status_of(Problem::internal("read the file", e))));
        }
    });
    ReceiverStream::new(receive)
}

#[tonic::async_trait]
impl CodebaseService for Services {
    type DownloadFileStream = FileChunks;

    async fn create_codebase(
        &self,
        request: Request<v1::CreateCodebaseRequest>,
    ) -> Answer<v1::Codebase> {
        let caller = caller(&request).map_err(status_of)?;
        let repeat = Asked::of(&request, "CreateCodebase", &request.get_ref().request_id)?;
        let asked = request.into_inner();
        if !asked.local_path.is_empty() {
            caller.may_name_host_paths().map_err(status_of)?;
        }
        let wanted = NewCodebase {
            owner_id: asked.owner_id,
            name: asked.name,
            local_path: Some(asked.local_path).filter(|path| !path.is_empty()).map(Into::into),
            mask: asked.mask,
            ignore_files: asked.ignore_files,
        };
        let (codebases, repeats) = (self.codebases.clone(), self.repeats.clone());
        let made = to_the_end(async move {
            let create = blocking(move || codebases.create(&caller.account, wanted));
            repeats.once(repeat, async { create.await.map(shown).map_err(status_of) }).await
        });
        Ok(made.await?.response())
    }

    async fn get_codebase(&self, request: Request<v1::GetCodebaseRequest>) -> Answer<v1::Codebase> {
        let caller = caller(&request).map_err(status_of)?;
        let found = self.codebases.get(&caller.account, &request.get_ref().codebase_id);
        answer(found.map(shown))
    }

    async fn list_codebases(
        &self,
        request: Request<v1::ListCodebasesRequest>,
    ) -> Answer<v1::ListCodebasesResponse> {
        let caller = caller(&request).map_err(status_of)?;
        let asked = request.into_inner();
        let filter =
            CodebaseFilter { owner_id: Some(asked.owner_id).filter(|owner| !owner.is_empty()) };
        let page = Page { limit: asked.page_size.max(0) as usize, token: asked.page_token };
        let listed = self.codebases.list(&caller.account, &filter, &page);
        answer(listed.map(|listed| v1::ListCodebasesResponse {
            codebases: listed.items.into_iter().map(shown).collect(),
            next_page_token: listed.next.unwrap_or_default(),
        }))
    }

    async fn delete_codebase(
        &self,
        request: Request<v1::DeleteCodebaseRequest>,
    ) -> Answer<v1::Empty> {
        let caller = caller(&request).map_err(status_of)?;
        let (codebases, id) = (self.codebases.clone(), request.into_inner().codebase_id);
        let deleted = blocking(move || codebases.delete(&caller.account, &id)).await;
        answer(deleted.map(|()| v1::Empty {}))
    }

    async fn upload_files(
        &self,
        request: Request<Streaming<v1::UploadChunk>>,
    ) -> Answer<v1::UploadResult> {
        let caller = caller(&request).map_err(status_of)?;
        let mut chunks = request.into_inner();
        let metadata = metadata(&mut chunks).await?;
        let asked = Asked {
            account: caller.account.clone(),
            request_id: metadata.request_id.clone(),
            method: "UploadFiles",
            content: content(&metadata),
        };
        let upload = receive(self.codebases.clone(), caller.account, metadata, &mut chunks);
        let Answered { message, is_repeated } = self.repeats.once(asked, upload).await?;
        if is_repeated {
            compare(&message, &mut chunks).await?;
        }
        Ok(Response::new(message))
    }

    async fn download_file(
        &self,
        request: Request<v1::DownloadFileRequest>,
    ) -> Answer<Self::DownloadFileStream> {
        let caller = caller(&request).map_err(status_of)?;
        let asked = request.into_inner();
        required("file_path", &asked.file_path).map_err(status_of)?;
        let offset = u64::try_from(asked.offset);
        let offset = offset.map_err(|_| status_of(Problem::invalid("offset is negative")))?;
        let length = u64::try_from(asked.length).ok().filter(|length| *length > 0);
        let codebases = self.codebases.clone();
        let open =
            move || codebases.open_file(&caller.account, &asked.codebase_id, &asked.file_path);
        let file = blocking(open).await;
        answer(file.map(|file| send_file(file, offset, length)))
    }

    async fn list_files(
        &self,
        request: Request<v1::ListFilesRequest>,
    ) -> Answer<v1::ListFilesResponse> {
        let caller = caller(&request).map_err(status_of)?;
        let (codebases, asked) = (self.codebases.clone(), request.into_inner());
        let list = move || {
            codebases.list_files(&caller.account, &asked.codebase_id, &asked.path, asked.recursive)
        };
        let found = blocking(list).await;
        answer(
            found.map(|found| v1::ListFilesResponse {
                files: found.into_iter().map(file).collect(),
            }),
        )
    }

    async fn negotiate_upload(
        &self,
        request: Request<v1::NegotiateUploadRequest>,
    ) -> Answer<v1::NegotiateUploadResponse> {
        let caller = caller(&request).map_err(status_of)?;
        let (codebases, asked) = (self.codebases.clone(), request.into_inner());
        let look = move || {
            codebases.negotiate(&caller.account, &asked.codebase_id, &manifest(asked.entries))
        };
        let missing = blocking(look).await;
        answer(missing.map(|missing| v1::NegotiateUploadResponse { missing }))
    }

    async fn commit_upload(
        &self,
        request: Request<v1::CommitUploadRequest>,
    ) -> Answer<v1::Codebase> {
        let caller = caller(&request).map_err(status_of)?;
        let repeat = Asked::of(&request, "CommitUpload", &request.get_ref().request_id)?;
        let (codebases, asked) = (self.codebases.clone(), request.into_inner());
        let commit =
            move || codebases.commit(&caller.account, &asked.codebase_id, &manifest(asked.entries));
        let repeats = self.repeats.clone();
        let done = to_the_end(async move {
            let commit = async { blocking(commit).await.map(shown).map_err(status_of) };
            repeats.once(repeat, commit).await
        });
        Ok(done.await?.response())
    }
}
