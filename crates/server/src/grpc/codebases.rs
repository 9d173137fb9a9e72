//! Stored files.

use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;

use ringfence_engine::codebases::{Content, Entry, FileKind, ManifestEntry, NewCodebase, OpenFile};
use ringfence_engine::problem::{Problem, Result};
use ringfence_engine::sandboxes::files::{FileAt, parse_path};
use ringfence_engine::store::{Codebase, CodebaseFilter, Page};
use ringfence_link::files::View;
use ringfence_wire::v1;
use ringfence_wire::v1::codebase_service_server::CodebaseService;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Streaming};

use super::Services;
use super::files::{FileChunks, listing, range, send};
use super::sandboxes::{Answer, answer, required};
use crate::caller::caller;
use crate::convert;
use crate::repeats::{Asked, to_the_end};
use crate::status::status_of;

const PIECE: usize = 64 * 1024;

/// Does something with files away from the threads that serve.
pub(super) async fn blocking<T: Send + 'static>(
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
        fleeting: codebase.fleeting,
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

impl Services {
    /// The file as the only started sandbox of the codebase has it, if there is such a sandbox: who
    /// has run something expects to find what that wrote.
    pub(super) fn in_workspace(
        &self,
        account: &str,
        codebase: &str,
        path: &str,
    ) -> Result<Option<FileAt>> {
        self.codebases.get(account, codebase)?;
        let Some(sandbox) = self.sandboxes.only_started(account, codebase)? else {
            return Ok(None);
        };
        let (account, view, path) = (account.to_owned(), View::Owner, parse_path(path)?);
        Ok(Some(FileAt { account, sandbox, view, path }))
    }

    async fn download(&self, request: Request<v1::DownloadFileRequest>) -> Result<FileChunks> {
        let account = caller(&request)?.account;
        let asked = request.into_inner();
        required("file_path", &asked.file_path)?;
        let range = range(asked.offset, asked.length)?;
        if let Some(at) = self.in_workspace(&account, &asked.codebase_id, &asked.file_path)? {
            return Ok(send(self.sandboxes.read_file(&at, range).await?));
        }
        let codebases = self.codebases.clone();
        let open = move || codebases.open_file(&account, &asked.codebase_id, &asked.file_path);
        Ok(send_file(blocking(open).await?, range.offset, range.length))
    }

    async fn list(&self, request: Request<v1::ListFilesRequest>) -> Result<v1::ListFilesResponse> {
        let account = caller(&request)?.account;
        let asked = request.into_inner();
        if let Some(at) = self.in_workspace(&account, &asked.codebase_id, &asked.path)? {
            let entries = self.sandboxes.list_directory(&at, asked.recursive).await?;
            return Ok(listing(entries, &at.path));
        }
        let codebases = self.codebases.clone();
        let list = move || {
            codebases.list_files(&account, &asked.codebase_id, &asked.path, asked.recursive)
        };
        let found = blocking(list).await?;
        Ok(v1::ListFilesResponse { files: found.into_iter().map(file).collect() })
    }
}

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
            default_mask: asked.default_mask,
            ignore_files: asked.ignore_files,
            fleeting: asked.fleeting,
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
        Ok(Response::new(self.upload(request).await?))
    }

    async fn download_file(
        &self,
        request: Request<v1::DownloadFileRequest>,
    ) -> Answer<Self::DownloadFileStream> {
        answer(self.download(request).await)
    }

    async fn list_files(
        &self,
        request: Request<v1::ListFilesRequest>,
    ) -> Answer<v1::ListFilesResponse> {
        answer(self.list(request).await)
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

    async fn stage_files(
        &self,
        request: Request<Streaming<v1::StageChunk>>,
    ) -> Answer<v1::StageResult> {
        Ok(Response::new(self.stage(request).await?))
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
