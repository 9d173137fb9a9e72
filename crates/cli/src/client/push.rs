//! `ringfence codebase push`: a directory as a new version of a codebase, sending what is missing.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use ringfence_wire::v1;
use ringfence_wire::v1::upload_chunk::{Content, Metadata};
use tokio::io::AsyncReadExt;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_stream::wrappers::ReceiverStream;

use super::connect::Server;
use super::show;
use super::trouble::told;
use super::walk::{Tree, walk};
use crate::failure::Failure;
use crate::shape_args::{existing_dir, owner};

const PIECE: usize = 256 * 1024;
/// Files on their way at once.
const AT_ONCE: usize = 8;

/// Store a directory on the server, sending only what it does not have yet
///
/// What .gitignore and .sandboxignore say is left out, at every level. With --codebase the directory
/// becomes a new version of one that is there: running sandboxes keep the version they started on.
/// The id is printed on standard output.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence codebase push .
  ringfence codebase push --name api --owner team-a ./services/api
  ringfence codebase push --codebase cb_0123456789abcdef .")]
pub(super) struct PushArgs {
    /// What to call it [default: the name of DIR]
    #[arg(long, conflicts_with = "codebase")]
    name: Option<String>,

    /// A label to find it by [default: your user name]
    #[arg(long, conflicts_with = "codebase")]
    owner: Option<String>,

    /// Make a new version of this codebase instead of a new one
    #[arg(long, value_name = "ID")]
    codebase: Option<String>,

    /// Leave nothing out
    #[arg(long)]
    no_ignore: bool,

    /// The directory to store
    dir: PathBuf,
}

pub(super) async fn push(server: &Server, json: bool, args: &PushArgs) -> Result<(), Failure> {
    let root = existing_dir(&args.dir)?;
    let tree = walk(&root, args.no_ignore)?;
    for path in &tree.left_out {
        eprintln!("left out: {path} is neither a file nor a directory nor a link");
    }
    let id = match &args.codebase {
        Some(id) => id.clone(),
        None => create(server, args, &root).await?,
    };
    let stored = store(server, &id, tree).await;
    if stored.is_err() && args.codebase.is_none() {
        // Nobody has heard of it yet.
        let delete = v1::DeleteCodebaseRequest { codebase_id: id };
        let _ = server.codebases().delete_codebase(delete).await;
    }
    let (codebase, sent) = stored?;
    eprintln!(
        "{} files, {}: {} sent, {}",
        codebase.file_count,
        show::size(codebase.size),
        sent.files,
        show::size(sent.bytes)
    );
    show::made(json, &codebase, &codebase.id)
}

async fn create(server: &Server, args: &PushArgs, root: &Path) -> Result<String, Failure> {
    let usual = || root.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let request = v1::CreateCodebaseRequest {
        name: args.name.clone().unwrap_or_else(usual),
        owner_id: args.owner.clone().unwrap_or_else(owner),
        ..Default::default()
    };
    let made = server.codebases().create_codebase(request).await.map_err(told)?;
    Ok(made.into_inner().id)
}

/// What went over the wire.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    files: usize,
    bytes: i64,
}

/// What the server found it has may turn out not to be what it was: then it says so, and knows better
/// the second time.
async fn store(server: &Server, id: &str, tree: Tree) -> Result<(v1::Codebase, Sent), Failure> {
    let first = send_missing(server, id, &tree).await?;
    match commit(server, id, tree.entries.clone()).await {
        Ok(codebase) => Ok((codebase, first)),
        Err(_) => {
            let second = send_missing(server, id, &tree).await?;
            let codebase = commit(server, id, tree.entries).await.map_err(told)?;
            let files = first.files + second.files;
            Ok((codebase, Sent { files, bytes: first.bytes + second.bytes }))
        }
    }
}

async fn commit(
    server: &Server,
    id: &str,
    entries: Vec<v1::ManifestEntry>,
) -> Result<v1::Codebase, tonic::Status> {
    let commit = v1::CommitUploadRequest { codebase_id: id.into(), entries, ..Default::default() };
    Ok(server.codebases().commit_upload(commit).await?.into_inner())
}

async fn send_missing(server: &Server, id: &str, tree: &Tree) -> Result<Sent, Failure> {
    let Tree { root, entries, .. } = tree;
    let negotiate = v1::NegotiateUploadRequest { codebase_id: id.into(), entries: entries.clone() };
    let answer = server.codebases().negotiate_upload(negotiate).await.map_err(told)?;
    let by_digest: HashMap<&str, &v1::ManifestEntry> = entries
        .iter()
        .filter(|entry| !entry.blake3.is_empty())
        .map(|entry| (entry.blake3.as_str(), entry))
        .collect();
    let missing = answer.into_inner().missing;
    let files: Vec<v1::ManifestEntry> = missing
        .iter()
        .filter_map(|digest| by_digest.get(digest.as_str()))
        .map(|entry| v1::ManifestEntry::clone(entry))
        .collect();
    send_all(server, id, root, files).await
}

async fn send_all(
    server: &Server,
    id: &str,
    root: &Path,
    files: Vec<v1::ManifestEntry>,
) -> Result<Sent, Failure> {
    let sent = Sent { files: files.len(), bytes: files.iter().map(|file| file.size).sum() };
    let bar = progress(sent);
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut under_way = JoinSet::new();
    for file in files {
        let place = places.clone().acquire_owned().await.map_err(Failure::broken)?;
        let (server, id, root, bar) = (server.clone(), id.to_owned(), root.to_owned(), bar.clone());
        under_way.spawn(async move {
            let _place = place;
            send(&server, id, &root, &file, &bar).await
        });
    }
    while let Some(done) = under_way.join_next().await {
        done.map_err(Failure::broken)??;
    }
    bar.finish_and_clear();
    Ok(sent)
}

/// On a terminal, and only if there is something to wait for.
fn progress(sent: Sent) -> ProgressBar {
    if sent.files == 0 || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(sent.bytes.max(0) as u64);
    match ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {eta}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// One file, by its content. What has changed since it was looked at is not what was promised.
async fn send(
    server: &Server,
    codebase_id: String,
    root: &Path,
    file: &v1::ManifestEntry,
    bar: &ProgressBar,
) -> Result<(), Failure> {
    let unreadable =
        |e: std::io::Error| Failure::bad_input(format!("cannot read {}: {e}", file.path));
    let source = tokio::fs::File::open(root.join(&file.path)).await.map_err(unreadable)?;
    let (pieces, chunks) = mpsc::channel(4);
    let total_size = file.size;
    let metadata = Metadata { codebase_id, total_size, staged: true, ..Default::default() };
    let reading = tokio::spawn(read(source, metadata, pieces, bar.clone()));
    let result = server.codebases().upload_files(ReceiverStream::new(chunks)).await;
    let read = reading.await.map_err(Failure::broken)?;
    let result = result.map_err(told)?.into_inner();
    read.map_err(unreadable)?;
    match result.blake3 == file.blake3 {
        true => Ok(()),
        false => Err(Failure::bad_input(format!("{} was changed while it was sent", file.path))
            .hint("push again")),
    }
}

async fn read(
    mut source: tokio::fs::File,
    metadata: Metadata,
    to: mpsc::Sender<v1::UploadChunk>,
    bar: ProgressBar,
) -> std::io::Result<()> {
    let chunk = |content| v1::UploadChunk { content: Some(content) };
    let _ = to.send(chunk(Content::Metadata(metadata))).await;
    let mut buffer = vec![0; PIECE];
    loop {
        let count = source.read(&mut buffer).await?;
        let piece = Bytes::copy_from_slice(&buffer[..count]);
        // A server that takes no more says why in its answer.
        if count == 0 || to.send(chunk(Content::Data(piece))).await.is_err() {
            return Ok(());
        }
        bar.inc(count as u64);
    }
}
