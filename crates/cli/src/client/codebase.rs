//! `ringfence codebase`: stored files.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use ringfence_wire::v1;
use tonic::Streaming;

use super::connect::{ConnectArgs, Server};
use super::push::{PushArgs, push};
use super::trouble::told;
use super::{runtime, show};
use crate::failure::Failure;
use crate::output;

/// Store directories on a server, for sandboxes to stand on
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence codebase push .
  ringfence codebase ls
  ringfence codebase get cb_0123456789abcdef /README.md
  ringfence codebase rm cb_0123456789abcdef")]
pub(crate) struct CodebaseArgs {
    #[command(flatten)]
    connect: ConnectArgs,

    /// Print answers as JSON
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: CodebaseCommand,
}

#[derive(Debug, Subcommand)]
enum CodebaseCommand {
    Push(PushArgs),
    /// List codebases
    Ls {
        /// Only those with this label
        #[arg(long)]
        owner: Option<String>,
    },
    /// Show one codebase
    Show {
        id: String,
    },
    /// List what is in a codebase
    Files {
        id: String,
        /// The directory to look into
        #[arg(default_value = "/")]
        path: String,
        /// All files below it
        #[arg(long, short)]
        recursive: bool,
    },
    /// Print a file, or save it
    Get {
        id: String,
        /// The file, from the root of the codebase
        path: String,
        /// Save it here instead of printing it
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Remove codebases; one that sandboxes stand on is refused
    Rm {
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

pub(crate) fn run(args: &CodebaseArgs) -> Result<ExitCode, Failure> {
    runtime()?.block_on(async {
        let server = args.connect.connect().await?;
        act(&server, args.json, &args.command).await
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn act(server: &Server, json: bool, command: &CodebaseCommand) -> Result<(), Failure> {
    match command {
        CodebaseCommand::Push(args) => push(server, json, args).await,
        CodebaseCommand::Ls { owner } => list(server, json, owner.as_deref()).await,
        CodebaseCommand::Show { id } => {
            let request = v1::GetCodebaseRequest { codebase_id: id.clone() };
            let found = server.codebases().get_codebase(request).await.map_err(told)?;
            show::one(json, found.get_ref(), fields)
        }
        CodebaseCommand::Files { id, path, recursive } => {
            let request = v1::ListFilesRequest {
                codebase_id: id.clone(),
                path: path.clone(),
                recursive: *recursive,
            };
            let found = server.codebases().list_files(request).await.map_err(told)?;
            files(json, &found.get_ref().files)
        }
        CodebaseCommand::Get { id, path, output } => get(server, id, path, output.as_deref()).await,
        CodebaseCommand::Rm { ids } => {
            for id in ids {
                let request = v1::DeleteCodebaseRequest { codebase_id: id.clone() };
                server.codebases().delete_codebase(request).await.map_err(told)?;
            }
            Ok(())
        }
    }
}

async fn list(server: &Server, json: bool, owner: Option<&str>) -> Result<(), Failure> {
    let request = v1::ListCodebasesRequest {
        owner_id: owner.unwrap_or_default().into(),
        ..Default::default()
    };
    let found = server.codebases().list_codebases(request).await.map_err(told)?.into_inner();
    let titles = ["ID", "NAME", "OWNER", "FILES", "SIZE", "VERSION", "CHANGED"];
    show::list(json, &found.codebases, &titles, |codebase| {
        vec![
            codebase.id.clone(),
            codebase.name.clone(),
            codebase.owner_id.clone(),
            codebase.file_count.to_string(),
            show::size(codebase.size),
            codebase.version.to_string(),
            show::ago(codebase.updated_at.as_ref()),
        ]
    })
}

fn fields(codebase: &v1::Codebase) -> Vec<(&'static str, String)> {
    vec![
        ("id", codebase.id.clone()),
        ("name", codebase.name.clone()),
        ("owner", codebase.owner_id.clone()),
        ("files", codebase.file_count.to_string()),
        ("size", show::size(codebase.size)),
        ("version", codebase.version.to_string()),
        ("in place", codebase.local_path.clone()),
        ("created", show::ago(codebase.created_at.as_ref())),
        ("changed", show::ago(codebase.updated_at.as_ref())),
    ]
}

pub(super) fn files(json: bool, files: &[v1::FileInfo]) -> Result<(), Failure> {
    show::list(json, files, &["MODE", "SIZE", "CHANGED", "PATH"], |file| {
        let end = match file.kind() {
            v1::FileKind::Directory => "/".into(),
            v1::FileKind::Symlink => format!(" -> {}", file.target),
            _ => String::new(),
        };
        vec![
            format!("{:04o}", file.mode & 0o7777),
            show::size(file.size),
            show::ago(file.modified_at.as_ref()),
            format!("{}{end}", file.path),
        ]
    })
}

async fn get(server: &Server, id: &str, path: &str, to: Option<&Path>) -> Result<(), Failure> {
    let request = v1::DownloadFileRequest {
        codebase_id: id.into(),
        file_path: path.into(),
        ..Default::default()
    };
    let chunks = server.codebases().download_file(request).await.map_err(told)?.into_inner();
    save(chunks, to).await
}

/// To a file, which is there when all of it is, or to standard output.
pub(super) async fn save(
    mut chunks: Streaming<v1::FileChunk>,
    to: Option<&Path>,
) -> Result<(), Failure> {
    let Some(to) = to else {
        while let Some(chunk) = chunks.message().await.map_err(told)? {
            output::print(&chunk.data)?;
        }
        return Ok(());
    };
    let failed = |e| Failure::bad_input(format!("cannot write {}: {e}", to.display()));
    let name = to.file_name().ok_or_else(|| failed(std::io::ErrorKind::InvalidFilename.into()))?;
    let part =
        to.with_file_name(format!(".{}.{}.part", name.to_string_lossy(), std::process::id()));
    let mut file = std::fs::File::create_new(&part).map_err(failed)?;
    let bar = counter();
    let saved = async {
        while let Some(chunk) = chunks.message().await.map_err(told)? {
            file.write_all(&chunk.data).map_err(failed)?;
            bar.inc(chunk.data.len() as u64);
        }
        std::fs::rename(&part, to).map_err(failed)
    }
    .await;
    bar.finish_and_clear();
    if saved.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    saved
}

/// What has come so far, on a terminal. Nobody says beforehand how much it will be.
fn counter() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::no_length();
    match ProgressStyle::with_template("{spinner} {bytes} {bytes_per_sec}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
