//! What a person types: the one binary `ringfence`.
//!
//! Each command is a thin file: it reads arguments, calls a library and prints. Start with
//! [`policy_args`] for how rules are given, then the command you are interested in.

mod audit;
mod audit_rows;
mod client;
mod doctor;
mod failure;
mod for_process;
mod layer;
mod layer_apply;
mod layer_changes;
mod layer_life;
mod logging;
mod mount;
mod output;
mod own_sandbox;
mod owner;
mod place;
mod policy;
mod policy_args;
mod policy_check;
mod policy_tree;
mod private;
mod run;
mod run_end;
mod sandbox_args;
mod serve;
mod serve_options;
mod shape_args;
mod shell;
mod state;
mod warden;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::client::{codebase, completions, process, sandbox, session, token};
use crate::failure::NOT_RUN;

/// Run untrusted commands on real code: what the policy hides does not exist for them, what they
/// change lands in a layer of its own.
///
/// Exit codes: 0 success; 1 the answer is "no" (a conflict, a finding of `policy check`);
/// 2 bad input or nothing could be done; 3 a failure while running. What runs a command (`run`,
/// `sandbox exec`, …) ends with its code, or with 125 if there was none.
#[derive(Debug, Parser)]
#[command(name = "ringfence", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArgs),
    Shell(shell::ShellArgs),
    /// Mount a directory as a guarded workspace, in the foreground
    Mount(mount::MountArgs),
    Layer(layer::LayerArgs),
    Policy(policy::PolicyCommandArgs),
    Audit(audit::AuditArgs),
    Doctor(doctor::DoctorArgs),
    Serve(serve::ServeArgs),
    Codebase(codebase::CodebaseArgs),
    Sandbox(sandbox::SandboxCommandArgs),
    Session(session::SessionArgs),
    Process(process::ProcessArgs),
    Token(token::TokenArgs),
    Completions(completions::CompletionsArgs),
    #[command(hide = true)]
    Warden(warden::WardenArgs),
}

fn main() -> std::process::ExitCode {
    if let Some(code) = warden::init_if_asked() {
        return code;
    }
    ringfence_sys::memory::keep_large_blocks_mapped();
    let cli = parse().unwrap_or_else(|error| exit_with_usage(&error));
    let result = match cli.command {
        Command::Run(args) => run::run(&args).map_err(|failure| failure.with_code(NOT_RUN)),
        Command::Shell(args) => shell::run(&args),
        Command::Mount(args) => mount::run(args),
        Command::Layer(args) => layer::run(args),
        Command::Policy(args) => policy::run(args),
        Command::Audit(args) => audit::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Codebase(args) => codebase::run(&args),
        Command::Sandbox(args) => sandbox::run(&args),
        Command::Session(args) => session::run(&args),
        Command::Process(args) => process::run(&args),
        Command::Token(args) => token::run(&args),
        Command::Completions(args) => completions::run(&args, Cli::command()),
        Command::Warden(args) => warden::run(&args),
    };
    match result {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

fn parse() -> Result<Cli, clap::Error> {
    let command = match for_process::is_asked(std::env::args_os()) {
        true => for_process::without_variables(Cli::command()),
        false => Cli::command(),
    };
    Cli::from_arg_matches_mut(&mut command.try_get_matches()?)
}

/// Prints the help or the mistake and ends. For `run` a mistake has the code that no command has.
fn exit_with_usage(error: &clap::Error) -> ! {
    let _ = error.print();
    let is_run = std::env::args_os().nth(1).is_some_and(|word| word == "run");
    match (error.exit_code(), is_run) {
        (0, _) => std::process::exit(0),
        (_, true) => std::process::exit(NOT_RUN.into()),
        (code, false) => std::process::exit(code),
    }
}
