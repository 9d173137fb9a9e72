//! Files of a workspace: contents and listings.

use bytes::Bytes;
use ringfence_engine::problem::{Problem, Result};
use ringfence_engine::sandboxes::contents::{Content, Incoming, Range, WriteAs};
use ringfence_engine::sandboxes::files::{FileAt, caller_spelling, parse_path};
use ringfence_link::files::{Entry, EntryKind, View};
use ringfence_policy::WorkspacePath;
use ringfence_wire::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Status};

use super::Services;
use super::sandboxes::required;
use crate::caller::caller;
use crate::convert;
use crate::status::status_of;

pub(super) type FileChunks = ReceiverStream<std::result::Result<v1::FileChunk, Status>>;

/// Who asks, and for which file.
pub(super) fn at<T>(request: &Request<T>, sandbox: &str, path: &str, view: i32) -> Result<FileAt> {
    let account = caller(request)?.account;
    let sandbox = required("sandbox_id", sandbox)?.to_owned();
    Ok(FileAt { account, sandbox, view: self::view(view)?, path: parse_path(path)? })
}

fn view(given: i32) -> Result<View> {
    match v1::View::try_from(given) {
        Ok(v1::View::Unspecified | v1::View::Owner) => Ok(View::Owner),
        Ok(v1::View::Agent) => Ok(View::Agent),
        Err(_) => Err(Problem::invalid(format!("there is no view {given}"))),
    }
}

pub(super) fn range(offset: i64, length: i64) -> Result<Range> {
    let number = |name: &str, value: i64| {
        u64::try_from(value).map_err(|_| Problem::invalid(format!("{name} is negative")))
    };
    let length = Some(number("length", length)?).filter(|length| *length > 0);
    Ok(Range { offset: number("offset", offset)?, length })
}

/// A file as it is listed in `directory`.
pub(super) fn info(entry: Entry, directory: &WorkspacePath) -> v1::FileInfo {
    let kind = match entry.kind {
        EntryKind::File => v1::FileKind::File,
        EntryKind::Directory => v1::FileKind::Directory,
        EntryKind::Symlink => v1::FileKind::Symlink,
        EntryKind::Fifo | EntryKind::Socket | EntryKind::Device => v1::FileKind::Other,
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let below = entry.path.strip_prefix(directory.as_bytes()).unwrap_or(&entry.path);
    let relative = below.strip_prefix(b"/").unwrap_or(below);
    let name = entry.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let full = WorkspacePath::parse(&entry.path).map(|path| caller_spelling(&path));
    let full = full.unwrap_or_else(|_| entry.path.clone());
    v1::FileInfo {
        path: text(relative),
        name: text(name),
        is_dir: kind == v1::FileKind::Directory,
        size: if kind == v1::FileKind::File { entry.size as i64 } else { 0 },
        modified_at: Some(convert::time(entry.modified_ns.div_euclid(1_000_000))),
        full_path: text(&full),
        mode: entry.mode,
        kind: kind.into(),
        target: entry.target.as_deref().map(text).unwrap_or_default(),
        raw_path: match std::str::from_utf8(&full) {
            Ok(_) => Bytes::new(),
            Err(_) => full.into(),
        },
    }
}

pub(super) fn listing(entries: Vec<Entry>, directory: &WorkspacePath) -> v1::ListFilesResponse {
    let files = entries.into_iter().map(|entry| info(entry, directory)).collect();
    v1::ListFilesResponse { files }
}

/// Who reads slowly makes the reading slow, and nothing else.
pub(super) fn send(mut content: Content) -> FileChunks {
    let (send, receive) = mpsc::channel(4);
    tokio::spawn(async move {
        loop {
            let piece = tokio::select! {
                () = send.closed() => return,
                piece = content.next() => piece,
            };
            let message = match piece {
                Ok(None) => return,
                Ok(Some(data)) => Ok(v1::FileChunk { data: data.into() }),
                Err(problem) => Err(status_of(problem)),
            };
            let over = message.is_err();
            if send.send(message).await.is_err() || over {
                return;
            }
        }
    });
    ReceiverStream::new(receive)
}

/// Takes in the next bytes away from the threads that serve.
pub(super) async fn take_in(mut incoming: Incoming, data: Bytes) -> Result<Incoming> {
    let write = move || incoming.write(&data).map(|()| incoming);
    let done = tokio::task::spawn_blocking(write).await;
    done.map_err(|e| Problem::internal("take a file in", e))?
}

impl Services {
    /// The first message says what; the rest is passed on piece by piece.
    pub(crate) async fn write_file<S>(
        &self,
        request: Request<S>,
    ) -> std::result::Result<v1::FileInfo, Status>
    where
        S: Stream<Item = std::result::Result<v1::WriteFileChunk, Status>> + Send + Unpin,
    {
        use v1::write_file_chunk::Content as Piece;
        let account = caller(&request).map_err(status_of)?.account;
        let mut chunks = request.into_inner();
        let invalid = |message: &str| status_of(Problem::invalid(message));
        let first = chunks.next().await.transpose()?.and_then(|chunk| chunk.content);
        let Some(Piece::Begin(begin)) = first else {
            return Err(invalid("the first message must say which file"));
        };
        let (at, write_as) = write_begin(account, &begin).map_err(status_of)?;
        let mut incoming = self.sandboxes.begin_write(at, write_as).map_err(status_of)?;
        while let Some(chunk) = chunks.next().await.transpose()? {
            match chunk.content {
                Some(Piece::Data(data)) => {
                    incoming = take_in(incoming, data).await.map_err(status_of)?;
                }
                Some(Piece::Begin(_)) => return Err(invalid("a file begins once")),
                None => {}
            }
        }
        let entry = incoming.finish().await.map_err(status_of)?;
        Ok(info(entry, &WorkspacePath::root()))
    }
}

fn write_begin(account: String, begin: &v1::write_file_chunk::Begin) -> Result<(FileAt, WriteAs)> {
    let sandbox = required("sandbox_id", &begin.sandbox_id)?.to_owned();
    let (view, path) = (view(begin.view)?, parse_path(&begin.path)?);
    let write_as = WriteAs { mode: begin.mode, parents: begin.parents, programs_run: false };
    Ok((FileAt { account, sandbox, view, path }, write_as))
}
