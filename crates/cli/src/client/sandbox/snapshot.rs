//! Going back to how files were, and another sandbox with the same files.

use clap::{Args, Subcommand};
use ringfence_wire::v1;

use super::super::connect::Server;
use super::super::show;
use super::super::trouble::told;
use super::create::labels;
use crate::failure::Failure;
use crate::output;

/// Make another sandbox with the same files and rules
#[derive(Debug, Args)]
pub(super) struct ForkArgs {
    /// The sandbox
    id: String,
    /// A label of the new one; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<String>,
}

/// Keep how the files of a sandbox are, and go back to it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence sandbox snapshot create sb_0123456789abcdef --name before-refactoring
  ringfence sandbox snapshot restore sb_0123456789abcdef snap_0123456789abcdef")]
pub(super) struct SnapshotArgs {
    #[command(subcommand)]
    command: SnapshotCommand,
}

#[derive(Debug, Subcommand)]
enum SnapshotCommand {
    /// Keep how the files are now
    Create {
        /// The sandbox
        id: String,
        #[arg(long, default_value = "")]
        name: String,
    },
    /// List snapshots
    Ls {
        /// Only those of this sandbox
        id: Option<String>,
        /// Only those of this codebase
        #[arg(long, value_name = "ID")]
        codebase: Option<String>,
    },
    /// Remove a snapshot; one that is stood on is refused
    Rm { snapshot: String },
    /// Make the files of a sandbox what they were
    Restore {
        /// The sandbox
        id: String,
        snapshot: String,
    },
}

pub(super) async fn fork(server: &Server, json: bool, args: &ForkArgs) -> Result<(), Failure> {
    let request = v1::ForkSandboxRequest {
        sandbox_id: args.id.clone(),
        labels: labels(&args.label)?,
        ..Default::default()
    };
    let sandbox = server.workspace().fork_sandbox(request).await.map_err(told)?.into_inner();
    show::made(json, &sandbox, &sandbox.id)
}

pub(super) async fn act(server: &Server, json: bool, args: &SnapshotArgs) -> Result<(), Failure> {
    let mut workspace = server.workspace();
    match &args.command {
        SnapshotCommand::Create { id, name } => {
            let request = v1::CreateSnapshotRequest { sandbox_id: id.clone(), name: name.clone() };
            let made = workspace.create_snapshot(request).await.map_err(told)?.into_inner();
            show::made(json, &made, &made.id)
        }
        SnapshotCommand::Ls { id, codebase } => {
            let request = v1::ListSnapshotsRequest {
                sandbox_id: id.clone().unwrap_or_default(),
                codebase_id: codebase.clone().unwrap_or_default(),
            };
            let found = workspace.list_snapshots(request).await.map_err(told)?.into_inner();
            list(json, &found.snapshots)
        }
        SnapshotCommand::Rm { snapshot } => {
            let request = v1::DeleteSnapshotRequest { snapshot_id: snapshot.clone() };
            workspace.delete_snapshot(request).await.map_err(told).map(drop)
        }
        SnapshotCommand::Restore { id, snapshot } => {
            let request = v1::RestoreSnapshotRequest {
                sandbox_id: id.clone(),
                snapshot_id: snapshot.clone(),
            };
            let sandbox = workspace.restore_snapshot(request).await.map_err(told)?.into_inner();
            if json { output::print_json(&sandbox) } else { Ok(()) }
        }
    }
}

fn list(json: bool, snapshots: &[v1::Snapshot]) -> Result<(), Failure> {
    show::list(json, snapshots, &["ID", "NAME", "SANDBOX", "CODEBASE", "CREATED"], |snapshot| {
        vec![
            snapshot.id.clone(),
            snapshot.name.clone(),
            snapshot.sandbox_id.clone(),
            snapshot.codebase_id.clone(),
            show::ago(snapshot.created_at.as_ref()),
        ]
    })
}
