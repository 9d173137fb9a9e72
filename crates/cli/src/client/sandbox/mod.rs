//! `ringfence sandbox`: sandboxes of a server.
//!
//! | file | what is in it |
//! |---|---|
//! | [`create`] | making one |
//! | [`life`] | start, stop, list, show, remove |
//! | [`exec`] | commands and shells inside |
//! | [`changes`] | what was changed, and what becomes of it |
//! | [`snapshot`] | going back, and forks |
//! | [`policy`] | the rules in force |
//! | [`copy`] | one file, in or out |
//! | [`audit`] | what happened |

mod audit;
mod changes;
mod copy;
mod create;
pub(super) mod exec;
mod life;
mod policy;
mod snapshot;

use std::process::ExitCode;

use clap::{Args, Subcommand};

pub(crate) use create::wire_duration;
pub(crate) use exec::argv;

use super::connect::{ConnectArgs, Server};
use super::runtime;
use crate::failure::{Failure, NOT_RUN};

/// Make sandboxes on a server, run things in them, and look at what they did
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence sandbox create --codebase cb_0123456789abcdef --start
  ringfence sandbox exec sb_0123456789abcdef -- make test
  ringfence sandbox diff sb_0123456789abcdef
  ringfence sandbox rm sb_0123456789abcdef")]
pub(crate) struct SandboxCommandArgs {
    #[command(flatten)]
    connect: ConnectArgs,

    /// Print answers as JSON
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: SandboxCommand,
}

#[derive(Debug, Subcommand)]
enum SandboxCommand {
    Create(Box<create::CreateArgs>),
    #[command(flatten)]
    Life(life::LifeCommand),
    Exec(exec::ExecArgs),
    Shell(exec::ShellArgs),
    #[command(flatten)]
    Changes(changes::ChangesCommand),
    Fork(snapshot::ForkArgs),
    Snapshot(snapshot::SnapshotArgs),
    Policy(policy::PolicyArgs),
    Cp(copy::CopyArgs),
    Audit(audit::AuditArgs),
}

pub(crate) fn run(args: &SandboxCommandArgs) -> Result<ExitCode, Failure> {
    let runs = matches!(args.command, SandboxCommand::Exec(_) | SandboxCommand::Shell(_));
    let done = runtime()?.block_on(async {
        let server = args.connect.connect().await?;
        act(&server, args.json, &args.command).await
    });
    done.map_err(|failure| if runs { failure.with_code(NOT_RUN) } else { failure })
}

async fn act(server: &Server, json: bool, command: &SandboxCommand) -> Result<ExitCode, Failure> {
    match command {
        SandboxCommand::Exec(args) => return exec::exec(server, args).await,
        SandboxCommand::Shell(args) => return exec::shell(server, args).await,
        SandboxCommand::Changes(command) => return changes::act(server, json, command).await,
        SandboxCommand::Create(args) => create::create(server, json, args).await?,
        SandboxCommand::Life(command) => life::act(server, json, command).await?,
        SandboxCommand::Fork(args) => snapshot::fork(server, json, args).await?,
        SandboxCommand::Snapshot(args) => snapshot::act(server, json, args).await?,
        SandboxCommand::Policy(args) => policy::act(server, json, args).await?,
        SandboxCommand::Cp(args) => copy::copy(server, json, args).await?,
        SandboxCommand::Audit(args) => audit::audit(server, json, args).await?,
    }
    Ok(ExitCode::SUCCESS)
}
