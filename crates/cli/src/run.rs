//! `ringfence run`: one command in a sandbox of its own.

use std::process::ExitCode;

use clap::Args;
use ringfence_link::warden::{Denied, Outcome};
use ringfence_wire::v1;
use ringfence_wire::v1::exec_input::Content;

use crate::client::attached::attached;
use crate::client::runtime;
use crate::client::sandbox::{argv, wire_duration};
use crate::client::signals::{FORWARDED, Signals};
use crate::failure::Failure;
use crate::own_sandbox::{OwnSandbox, Place, Wanted};
use crate::run_end;
use crate::sandbox_args::SandboxArgs;

/// Run a command on DIR, isolated: it sees what the policy shows, and changes a layer instead of DIR
///
/// Standard input, output and error are the command's own, and so is the exit code (124 after a
/// timeout, 125 if the command could not be started in a sandbox). Signals are passed on. At the end
/// it is said, on standard error, what was changed, what was refused and why, and which limits were
/// met; nothing if there is nothing to say. Changes are kept in a layer unless --apply or --discard
/// says otherwise; on a terminal you are asked.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence run . -- pytest
  ringfence run --preset development --apply . -- npm run format
  ringfence run --rule 'write:/**' --memory 1G --timeout 5m . -- sh -c 'make && make check'
  ringfence run --runtime docker --image python:3.11-slim . -- python3 -m unittest
  ringfence run --net host --ro-path ~/.rustup --env PATH=/usr/bin:$HOME/.rustup/bin . -- cargo build
  ringfence run --discard --json record.json . -- ./untrusted.sh")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    sandbox: SandboxArgs,

    /// The program to run, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<std::ffi::OsString>,
}

/// Everything known about a run that is over.
pub(crate) struct Finished {
    pub(crate) sandbox: v1::Sandbox,
    pub(crate) place: Place,
    pub(crate) argv: Vec<String>,
    pub(crate) outcome: Outcome,
}

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let timeout = args.sandbox.timeout()?;
    let command = v1::ExecRequest {
        argv: argv(&args.command),
        workdir: args.sandbox.workdir.clone().unwrap_or_default(),
        timeout: timeout.map(wire_duration),
        options: Some(v1::ResultOptions { bytes: true, ..Default::default() }),
        ..Default::default()
    };
    let wanted = args.sandbox.wanted()?;
    run_end::check_json(args.sandbox.json.as_deref())?;
    let runtime = runtime()?;
    let conducted = runtime.block_on(conduct(wanted, command));
    runtime.shutdown_background();
    let (sandbox, place, result) = conducted?;
    let argv = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let finished = Finished { sandbox, place, argv, outcome: outcome(result) };
    run_end::settle(&args.sandbox, &finished, args.sandbox.json.as_deref())?;
    Ok(ExitCode::from(finished.outcome.exit_code.clamp(0, 255) as u8))
}

/// Runs the command with this process's streams and signals as its own.
async fn conduct(
    wanted: Wanted,
    command: v1::ExecRequest,
) -> Result<(v1::Sandbox, Place, v1::ExecResult), Failure> {
    // Before anything starts: a signal that comes meanwhile is for the command.
    let signals = Signals::watch(&FORWARDED)?;
    let own = OwnSandbox::start(wanted).await?;
    let command = v1::ExecRequest { sandbox_id: own.sandbox.id.clone(), ..command };
    let result = attached(own.server(), Content::Command(command), true, signals).await;
    let ended = own.end().await;
    let (result, (sandbox, place)) = (result?, ended?);
    Ok((sandbox, place, result))
}

/// A result as the record and the remarks have it.
fn outcome(result: v1::ExecResult) -> Outcome {
    let bill = result.bill.unwrap_or_default();
    let time = result.duration.unwrap_or_default();
    Outcome {
        command: bill.command_id,
        exit_code: result.exit_code,
        signal: Some(bill.signal).filter(|signal| *signal != 0),
        timed_out: bill.timed_out,
        cancelled: bill.cancelled,
        oom_killed: bill.oom_killed,
        pids_refused: bill.pids_refused,
        session_ended: bill.session_ended,
        reason: Some(bill.reason).filter(|reason| !reason.is_empty()),
        duration_micros: (time.seconds * 1_000_000 + i64::from(time.nanos) / 1000) as u64,
        cpu_micros: bill.cpu_micros as u64,
        peak_memory: bill.peak_memory_bytes as u64,
        stdout_bytes: bill.stdout_total as u64,
        stderr_bytes: bill.stderr_total as u64,
        denied: bill.denied.into_iter().map(denied).collect(),
        denied_more: bill.denied_more as u64,
        changes: None,
    }
}

fn denied(access: v1::DeniedAccess) -> Denied {
    let rule = Some(access.rule).filter(|rule| !rule.is_empty());
    Denied {
        operation: access.operation,
        path: access.path,
        needed: access.needed,
        level: access.level,
        priority: rule.is_some().then_some(access.priority),
        rule,
        count: access.count as u64,
    }
}
