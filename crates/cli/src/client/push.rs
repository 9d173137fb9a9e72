//! `ringfence codebase push`: a directory as a new version of a codebase, sending what is missing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::Args;
use ringfence_wire::v1;

use super::connect::Server;
use super::show;
use super::staging::{Sent, send_contents};
use super::trouble::told;
use super::walk::{Tree, walk};
use crate::failure::Failure;
use crate::shape_args::{existing_dir, owner};

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
    send_contents(server, id, root, files).await
}
