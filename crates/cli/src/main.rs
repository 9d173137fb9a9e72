//! What a person types: the one binary `ringfence`.
//!
//! Each command is a thin file: it reads arguments, calls a library and prints. Start with
//! [`policy_args`] for how rules are given, then the command you are interested in.

mod audit;
mod audit_rows;
mod failure;
mod layer;
mod layer_apply;
mod layer_changes;
mod layer_life;
mod mount;
mod output;
mod policy;
mod policy_args;
mod policy_check;
mod policy_tree;
mod state;
mod warden;

use clap::{Parser, Subcommand};

/// Run untrusted commands on real code: what the policy hides does not exist for them, what they
/// change lands in a layer of its own.
///
/// Exit codes: 0 success; 1 the answer is "no" (a conflict, a finding of `policy check`);
/// 2 bad input or nothing could be done; 3 a failure while running.
#[derive(Debug, Parser)]
#[command(name = "ringfence", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Mount a directory as a guarded workspace, in the foreground
    Mount(mount::MountArgs),
    Layer(layer::LayerArgs),
    Policy(policy::PolicyCommandArgs),
    Audit(audit::AuditArgs),
    #[command(hide = true)]
    Warden(warden::WardenArgs),
}

fn main() -> std::process::ExitCode {
    if let Some(code) = warden::init_if_asked() {
        return code;
    }
    ringfence_sys::memory::keep_large_blocks_mapped();
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Mount(args) => mount::run(args),
        Command::Layer(args) => layer::run(args),
        Command::Policy(args) => policy::run(args),
        Command::Audit(args) => audit::run(&args),
        Command::Warden(args) => warden::run(&args),
    };
    match result {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
