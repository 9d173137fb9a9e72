//! `ringfence shell`: a terminal in a sandbox of its own.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ringfence_link::warden::Outcome;
use ringfence_wire::v1;

use crate::client::runtime;
use crate::client::sandbox::argv;
use crate::client::signals::Signals;
use crate::client::terminal::{Conversation, WATCHED, converse, request, require_terminal};
use crate::failure::Failure;
use crate::own_sandbox::{OwnSandbox, Place, Wanted};
use crate::run::Finished;
use crate::run_end;
use crate::sandbox_args::SandboxArgs;

/// Open an interactive shell on DIR, isolated: it sees what the policy shows, and changes a layer
///
/// Job control works, the size follows the window, and the exit code is the shell's. At the end it
/// is said what was changed, and you are asked what becomes of it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence shell .
  ringfence shell --preset development --net host ./project
  ringfence shell --discard . -- python3 -i")]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    sandbox: SandboxArgs,

    /// Run this on the terminal instead of a shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<std::ffi::OsString>,
}

pub(crate) fn run(args: &ShellArgs) -> Result<ExitCode, Failure> {
    require_terminal("ringfence run DIR -- COMMAND")?;
    let timeout = args.sandbox.timeout()?;
    let wanted = args.sandbox.wanted()?;
    run_end::check_json(args.sandbox.json.as_deref())?;
    let runtime = runtime()?;
    let conducted = runtime.block_on(conduct(args, wanted, timeout));
    runtime.shutdown_background();
    let (sandbox, place, conversation) = conducted?;
    let (exit_code, timed_out) = (conversation.exit_code()?, conversation.timed_out);
    let argv = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let denied = run_end::denied_on_record(&place.dir);
    let outcome = Outcome { exit_code, timed_out, denied, ..Outcome::default() };
    let finished = Finished { sandbox, place, argv, outcome };
    run_end::settle(&args.sandbox, &finished, args.sandbox.json.as_deref())?;
    Ok(ExitCode::from(exit_code.clamp(0, 255) as u8))
}

async fn conduct(
    args: &ShellArgs,
    wanted: Wanted,
    timeout: Option<Duration>,
) -> Result<(v1::Sandbox, Place, Conversation), Failure> {
    let signals = Signals::watch(&WATCHED)?;
    let own = OwnSandbox::start(wanted).await?;
    let id = own.sandbox.id.clone();
    let request = request(id, argv(&args.command), args.sandbox.workdir.clone());
    let conversation = converse(own.server(), request, signals, timeout).await;
    let ended = own.end().await;
    let (conversation, (sandbox, place)) = (conversation?, ended?);
    Ok((sandbox, place, conversation))
}
