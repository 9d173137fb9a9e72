//! What was changed in a sandbox, and what becomes of it.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Subcommand;
use ringfence_fs::diff::quoted;
use ringfence_wire::v1;

use super::super::connect::Server;
use super::super::trouble::told;
use crate::failure::{Failure, NO};
use crate::output::{self, Colour, Paint};

#[derive(Debug, Subcommand)]
pub(super) enum ChangesCommand {
    /// List what was changed in a sandbox
    Changes { id: String },
    /// Show what was changed in a sandbox as a diff
    Diff { id: String },
    /// Write what was changed back to the codebase; exit code 1 and nothing written if both sides
    /// were changed
    Apply {
        id: String,
        /// Also what was changed on both sides
        #[arg(long)]
        force: bool,
        /// Say what would be done and write nothing
        #[arg(long)]
        dry_run: bool,
    },
}

pub(super) async fn act(
    server: &Server,
    json: bool,
    command: &ChangesCommand,
) -> Result<ExitCode, Failure> {
    match command {
        ChangesCommand::Changes { id } => {
            let request = v1::ChangesRequest { sandbox_id: id.clone() };
            let found = server.workspace().changes(request).await.map_err(told)?.into_inner();
            match json {
                true => output::print_json(&found.changes)?,
                false => output::print(lines(&found.changes, "").as_bytes())?,
            }
        }
        ChangesCommand::Diff { id } => diff(server, json, id).await?,
        ChangesCommand::Apply { id, force, dry_run } => {
            let request =
                v1::ApplyRequest { sandbox_id: id.clone(), force: *force, dry_run: *dry_run };
            return apply(server, json, request).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn diff(server: &Server, json: bool, id: &str) -> Result<(), Failure> {
    let request = v1::ChangesRequest { sandbox_id: id.into() };
    let patch = server.workspace().diff(request).await.map_err(told)?.into_inner();
    if json {
        output::print_json(&patch)
    } else if std::io::stdout().is_terminal() {
        output::print(&output::patch_for_terminal(&patch.diff, Paint::for_stdout()))
    } else {
        output::print(&patch.diff)
    }
}

async fn apply(
    server: &Server,
    json: bool,
    request: v1::ApplyRequest,
) -> Result<ExitCode, Failure> {
    let force = request.force;
    let done = server.workspace().apply(request).await.map_err(told)?.into_inner();
    match json {
        true => output::print_json(&done)?,
        false => report(&done)?,
    }
    let refused = !done.conflicts.is_empty() && !force;
    Ok(if refused { ExitCode::from(NO) } else { ExitCode::SUCCESS })
}

fn report(done: &v1::ApplyResponse) -> Result<(), Failure> {
    output::print((lines(&done.applied, "") + &lines(&done.refused, "refused ")).as_bytes())?;
    for path in &done.conflicts {
        eprintln!("conflict: {}", quoted(path.as_bytes()));
    }
    if !done.conflicts.is_empty() && !done.written {
        eprintln!("nothing was applied: the codebase has changed meanwhile");
    }
    Ok(())
}

/// In the manner of `git status --short`.
fn lines(changes: &[v1::FileChange], before: &str) -> String {
    let paint = Paint::for_stdout();
    let line = |change: &v1::FileChange| {
        let (letter, colour) = match change.kind.as_str() {
            "added" => ("A", Colour::Green),
            "modified" => ("M", Colour::Yellow),
            "deleted" => ("D", Colour::Red),
            "renamed" => ("R", Colour::Cyan),
            "mode" => ("m", Colour::Yellow),
            other => (other, Colour::Grey),
        };
        let from = match change.from.is_empty() {
            true => String::new(),
            false => format!("{} -> ", quoted(change.from.as_bytes())),
        };
        let path = quoted(change.path.as_bytes());
        format!("{before}{} {from}{path}\n", paint.text(colour, letter))
    };
    changes.iter().map(line).collect()
}
