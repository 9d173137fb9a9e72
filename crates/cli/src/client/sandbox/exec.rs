//! Commands and shells inside, with the streams of this process.

use std::process::ExitCode;

use bytes::Bytes;
use clap::Args;
use ringfence_wire::v1;
use ringfence_wire::v1::exec_input::Content;

use super::super::attached::attached;
use super::super::connect::Server;
use super::super::signals::{FORWARDED, Signals};
use super::super::terminal::{WATCHED, converse, request, require_terminal};
pub(in crate::client) use super::create::duration;
use crate::failure::Failure;
use crate::shape_args::variables;

/// Run a command in a sandbox, with its output and exit code as one's own
///
/// Signals are passed on. The exit code is the command's: 124 after a timeout, 125 if the command
/// could not be run at all.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence sandbox exec sb_0123456789abcdef -- pytest -q
  echo data | ringfence sandbox exec -i sb_0123456789abcdef -- wc -c
  ringfence sandbox exec --timeout 5m --workdir /workspace/api sb_0123456789abcdef -- make")]
pub(super) struct ExecArgs {
    /// Pass standard input on
    #[arg(long, short)]
    interactive: bool,

    #[command(flatten)]
    how: HowArgs,

    /// The sandbox
    id: String,

    /// The program to run, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<std::ffi::OsString>,
}

/// What goes for one command.
#[derive(Debug, Args)]
pub(in crate::client) struct HowArgs {
    /// End the command after this time, e.g. 60s or 5m (exit code 124)
    #[arg(long, value_name = "TIME")]
    pub(in crate::client) timeout: Option<String>,

    /// Set a variable for the command; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(in crate::client) env: Vec<String>,

    /// Start here instead of /workspace
    #[arg(long, value_name = "DIR")]
    pub(in crate::client) workdir: Option<String>,
}

/// Open a shell on a terminal in a sandbox; it ends when you leave
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence sandbox shell sb_0123456789abcdef
  ringfence sandbox shell sb_0123456789abcdef -- python3 -i")]
pub(super) struct ShellArgs {
    /// Start here instead of /workspace
    #[arg(long, value_name = "DIR")]
    workdir: Option<String>,

    /// The sandbox
    id: String,

    /// Run this on the terminal instead of a shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<std::ffi::OsString>,
}

pub(super) async fn exec(server: &Server, args: &ExecArgs) -> Result<ExitCode, Failure> {
    let command = v1::ExecRequest {
        sandbox_id: args.id.clone(),
        argv: argv(&args.command),
        env: variables(&args.how.env)?,
        workdir: args.how.workdir.clone().unwrap_or_default(),
        timeout: args.how.timeout.as_deref().map(duration).transpose()?,
        options: Some(v1::ResultOptions { bytes: true, ..Default::default() }),
        ..Default::default()
    };
    let signals = Signals::watch(&FORWARDED)?;
    let result = attached(server, Content::Command(command), args.interactive, signals).await?;
    Ok(over(&result))
}

/// Says what the exit code alone does not, and returns it.
pub(in crate::client) fn over(result: &v1::ExecResult) -> ExitCode {
    let bill = result.bill.clone().unwrap_or_default();
    if bill.timed_out {
        eprintln!("ended: the time was up (--timeout)");
    } else if bill.oom_killed {
        eprintln!("killed: the memory limit was reached");
    } else if !bill.reason.is_empty() {
        eprintln!("ended: {}", bill.reason);
    }
    if bill.pids_refused {
        eprintln!("refused: new processes, the limit was reached");
    }
    ExitCode::from(result.exit_code.clamp(0, 255) as u8)
}

pub(crate) fn argv(words: &[std::ffi::OsString]) -> Vec<Bytes> {
    use std::os::unix::ffi::OsStrExt;
    words.iter().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
}

pub(super) async fn shell(server: &Server, args: &ShellArgs) -> Result<ExitCode, Failure> {
    require_terminal("ringfence sandbox exec ID -- COMMAND")?;
    let signals = Signals::watch(&WATCHED)?;
    let request = request(args.id.clone(), argv(&args.command), args.workdir.clone());
    let conversation = converse(server, request, signals, None).await?;
    Ok(ExitCode::from(conversation.exit_code()?.clamp(0, 255) as u8))
}
