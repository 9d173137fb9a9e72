//! Start, stop, list, show, remove.

use clap::{Subcommand, ValueEnum};
use ringfence_wire::v1;

use super::super::connect::Server;
use super::super::trouble::told;
use super::super::{rules, show};
use super::create::labels;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(super) enum LifeCommand {
    /// Start a sandbox; one that runs stays as it is
    Start { id: String },
    /// End everything in a sandbox; its files stay
    Stop { id: String },
    /// List sandboxes
    Ls {
        /// Only those with this label; may be repeated
        #[arg(long, value_name = "KEY=VALUE")]
        label: Vec<String>,
        /// Only those in this state
        #[arg(long, value_enum)]
        status: Option<StatusArg>,
        /// Only those that stand on this codebase
        #[arg(long, value_name = "ID")]
        codebase: Option<String>,
    },
    /// Show one sandbox and what is in force in it
    Show { id: String },
    /// Remove sandboxes and everything that is theirs
    Rm {
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum StatusArg {
    Pending,
    Running,
    Stopped,
    Error,
}

impl From<StatusArg> for v1::SandboxStatus {
    fn from(status: StatusArg) -> Self {
        match status {
            StatusArg::Pending => Self::Pending,
            StatusArg::Running => Self::Running,
            StatusArg::Stopped => Self::Stopped,
            StatusArg::Error => Self::Error,
        }
    }
}

pub(super) async fn act(server: &Server, json: bool, command: &LifeCommand) -> Result<(), Failure> {
    let mut sandboxes = server.sandboxes();
    match command {
        LifeCommand::Start { id } => {
            let request = v1::StartSandboxRequest { sandbox_id: id.clone() };
            let sandbox = sandboxes.start_sandbox(request).await.map_err(told)?;
            quietly(json, sandbox.get_ref())
        }
        LifeCommand::Stop { id } => {
            let request = v1::StopSandboxRequest { sandbox_id: id.clone() };
            let sandbox = sandboxes.stop_sandbox(request).await.map_err(told)?;
            quietly(json, sandbox.get_ref())
        }
        LifeCommand::Ls { label, status, codebase } => {
            let request = v1::ListSandboxesRequest {
                codebase_id: codebase.clone().unwrap_or_default(),
                labels: labels(label)?,
                status: status.map_or(v1::SandboxStatus::Unspecified, Into::into).into(),
                ..Default::default()
            };
            let found = sandboxes.list_sandboxes(request).await.map_err(told)?;
            list(json, &found.get_ref().sandboxes)
        }
        LifeCommand::Show { id } => {
            let request = v1::GetSandboxRequest { sandbox_id: id.clone() };
            let sandbox = sandboxes.get_sandbox(request).await.map_err(told)?;
            show::one(json, sandbox.get_ref(), fields)
        }
        LifeCommand::Rm { ids } => {
            for id in ids {
                let request =
                    v1::DestroySandboxRequest { sandbox_id: id.clone(), ..Default::default() };
                sandboxes.destroy_sandbox(request).await.map_err(told)?;
            }
            Ok(())
        }
    }
}

/// Who asked for it knows what was done.
fn quietly(json: bool, sandbox: &v1::Sandbox) -> Result<(), Failure> {
    if json { crate::output::print_json(sandbox) } else { Ok(()) }
}

fn list(json: bool, sandboxes: &[v1::Sandbox]) -> Result<(), Failure> {
    let titles = ["ID", "STATUS", "CODEBASE", "CREATED", "EXPIRES", "LABELS"];
    show::list(json, sandboxes, &titles, |sandbox| {
        vec![
            sandbox.id.clone(),
            status(sandbox),
            sandbox.codebase_id.clone(),
            show::ago(sandbox.created_at.as_ref()),
            show::ago(sandbox.expires_at.as_ref()),
            show::pairs(&sandbox.labels),
        ]
    })
}

fn status(sandbox: &v1::Sandbox) -> String {
    show::word(sandbox.status().as_str_name(), "SANDBOX_STATUS_")
}

fn fields(sandbox: &v1::Sandbox) -> Vec<(&'static str, String)> {
    let limits = sandbox.resources.unwrap_or_default();
    let number = |limit: i64, text: String| if limit == 0 { String::new() } else { text };
    let confined = sandbox.confinement.clone().unwrap_or_default();
    let mut fields = vec![
        ("id", sandbox.id.clone()),
        ("status", status(sandbox)),
        ("reason", sandbox.reason.clone()),
        ("codebase", sandbox.codebase_id.clone()),
        ("version", number(sandbox.codebase_version, sandbox.codebase_version.to_string())),
        ("labels", show::pairs(&sandbox.labels)),
        ("variables", show::pairs(&sandbox.env)),
        ("network", show::word(sandbox.network().as_str_name(), "NETWORK_MODE_")),
        ("memory", number(limits.memory_bytes, show::size(limits.memory_bytes))),
        ("processors", number(limits.cpu_quota, format!("{}", limits.cpu_quota as f64 / 1e5))),
        ("processes", number(limits.pids_limit, limits.pids_limit.to_string())),
        ("user", number(confined.uid.into(), confined.uid.to_string())),
        ("created", show::ago(sandbox.created_at.as_ref())),
        ("started", show::ago(sandbox.started_at.as_ref())),
        ("stopped", show::ago(sandbox.stopped_at.as_ref())),
        ("expires", show::ago(sandbox.expires_at.as_ref())),
    ];
    fields.extend(sandbox.permissions.iter().map(|rule| ("rule", rules::shown(rule))));
    fields
}
