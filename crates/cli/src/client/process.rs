//! `ringfence process`: commands in the background.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use ringfence_wire::v1;
use ringfence_wire::v1::exec_output::OutputType;
use ringfence_wire::v1::process_state::Status;
use ringfence_wire::v1::wait_process_request::{Port, Until};
use tonic::Streaming;

use super::connect::{ConnectArgs, Server};
use super::sandbox::exec::{argv, duration};
use super::trouble::told;
use super::{runtime, show};
use crate::failure::Failure;
use crate::shape_args::variables;

/// Run commands in the background of a sandbox, with logs and waits
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence process start sb_0123456789abcdef --id web -- python3 -m http.server 8000
  ringfence process wait sb_0123456789abcdef web --port 8000 --timeout 30s
  ringfence process log -f sb_0123456789abcdef web
  ringfence process kill sb_0123456789abcdef web")]
pub(crate) struct ProcessArgs {
    #[command(flatten)]
    connect: ConnectArgs,

    /// Print answers as JSON
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: ProcessCommand,
}

#[derive(Debug, Subcommand)]
enum ProcessCommand {
    Start(StartArgs),
    /// List the processes of a sandbox
    Ls {
        /// The sandbox
        sandbox: String,
    },
    /// Show one process
    Show {
        sandbox: String,
        process: String,
    },
    /// Print what a process has printed
    Log {
        sandbox: String,
        process: String,
        /// Go on as more is printed, until it ends
        #[arg(long, short)]
        follow: bool,
    },
    Wait(WaitArgs),
    /// Send a signal to a process and all it started
    Kill {
        sandbox: String,
        process: String,
        /// The number of the signal [default: SIGTERM]
        #[arg(long, short, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
        signal: i32,
    },
}

/// Start a command in the background
#[derive(Debug, Args)]
struct StartArgs {
    /// The sandbox
    sandbox: String,
    /// What to call it
    #[arg(long)]
    id: Option<String>,
    /// Start where this session is, with its variables, and end with it
    #[arg(long)]
    session: Option<String>,
    /// Set a variable; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Start here instead of /workspace
    #[arg(long, value_name = "DIR")]
    workdir: Option<String>,
    /// The program to run, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Wait for a process to end, to print something or to listen
///
/// Exit codes: 0 it came; 1 it did not come in time, or the process ended first. Waiting for the
/// end ends with the code of the process.
#[derive(Debug, Args)]
struct WaitArgs {
    sandbox: String,
    process: String,
    /// Until this is in its log
    #[arg(long, group = "until")]
    text: Option<String>,
    /// Until a line of its log matches this regular expression
    #[arg(long, value_name = "REGEX", group = "until")]
    pattern: Option<String>,
    /// Until something listens on this port inside
    #[arg(long, group = "until")]
    port: Option<u16>,
    /// Until a request for this path on the port is answered well
    #[arg(long, value_name = "PATH", requires = "port")]
    http: Option<String>,
    /// For no longer than this, e.g. 30s
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
}

pub(crate) fn run(args: &ProcessArgs) -> Result<ExitCode, Failure> {
    runtime()?.block_on(async {
        let server = args.connect.connect().await?;
        act(&server, args.json, &args.command).await
    })
}

async fn act(server: &Server, json: bool, command: &ProcessCommand) -> Result<ExitCode, Failure> {
    let mut processes = server.processes();
    match command {
        ProcessCommand::Start(args) => {
            let made = processes.start_process(start(args)?).await.map_err(told)?.into_inner();
            show::made(json, &made, &made.id)?;
        }
        ProcessCommand::Ls { sandbox } => {
            let request = v1::ListProcessesRequest { sandbox_id: sandbox.clone() };
            let found = processes.list_processes(request).await.map_err(told)?.into_inner();
            list(json, &found.processes)?;
        }
        ProcessCommand::Show { sandbox, process } => {
            let (sandbox_id, process_id) = (sandbox.clone(), process.clone());
            let request = v1::GetProcessRequest { sandbox_id, process_id };
            let found = processes.get_process(request).await.map_err(told)?.into_inner();
            show::one(json, &found, fields)?;
        }
        ProcessCommand::Log { sandbox, process, follow } => {
            let (sandbox_id, process_id) = (sandbox.clone(), process.clone());
            let request =
                v1::ProcessLogRequest { sandbox_id, process_id, from: 0, follow: *follow };
            let chunks = processes.process_log(request).await.map_err(told)?.into_inner();
            print_log(chunks).await?;
        }
        ProcessCommand::Wait(args) => return wait(server, json, args).await,
        ProcessCommand::Kill { sandbox, process, signal } => {
            let (sandbox_id, process_id) = (sandbox.clone(), process.clone());
            let request = v1::KillProcessRequest { sandbox_id, process_id, signal: *signal };
            processes.kill_process(request).await.map_err(told)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn start(args: &StartArgs) -> Result<v1::StartProcessRequest, Failure> {
    Ok(v1::StartProcessRequest {
        sandbox_id: args.sandbox.clone(),
        argv: argv(&args.command),
        session: args.session.clone().unwrap_or_default(),
        env: variables(&args.env)?,
        cwd: args.workdir.clone().unwrap_or_default(),
        id: args.id.clone().unwrap_or_default(),
        ..Default::default()
    })
}

async fn wait(server: &Server, json: bool, args: &WaitArgs) -> Result<ExitCode, Failure> {
    let until = match (&args.text, &args.pattern, args.port) {
        (Some(text), ..) => Until::Text(text.clone()),
        (_, Some(pattern), _) => Until::Pattern(pattern.clone()),
        (.., Some(port)) => Until::Port(Port {
            port: port.into(),
            http_path: args.http.clone().unwrap_or_default(),
            ..Default::default()
        }),
        _ => Until::Exit(true),
    };
    let for_the_end = matches!(until, Until::Exit(_));
    let request = v1::WaitProcessRequest {
        sandbox_id: args.sandbox.clone(),
        process_id: args.process.clone(),
        timeout: args.timeout.as_deref().map(duration).transpose()?,
        until: Some(until),
    };
    let came = server.processes().wait_process(request).await.map_err(told)?.into_inner();
    if json {
        crate::output::print_json(&came)?;
    } else if !came.line.is_empty() {
        let line = String::from_utf8_lossy(&came.line);
        crate::output::print(format!("{}\n", line.trim_end()).as_bytes())?;
    }
    let state = came.process.and_then(|process| process.state).filter(|_| for_the_end);
    Ok(ExitCode::from(state.map_or(0, |state| code(&state)).clamp(0, 255) as u8))
}

/// As a shell would say it.
fn code(state: &v1::ProcessState) -> i32 {
    match state.status() {
        Status::Killed => 128 + state.signal,
        _ => state.exit_code,
    }
}

/// Prints a log, each stream to its own.
pub(super) async fn print_log(mut chunks: Streaming<v1::LogChunk>) -> Result<(), Failure> {
    while let Some(chunk) = chunks.message().await.map_err(told)? {
        match chunk.r#type() {
            OutputType::Stderr => {
                let mut out = std::io::stderr();
                let _ = out.write_all(&chunk.data).and_then(|()| out.flush());
            }
            _ => crate::output::print(&chunk.data)?,
        }
    }
    Ok(())
}

fn status(process: &v1::Process) -> String {
    let Some(state) = &process.state else { return String::new() };
    match state.status() {
        Status::Exited => format!("exited {}", state.exit_code),
        Status::Killed => format!("killed by {}", state.signal),
        Status::Failed => format!("failed: {}", state.reason),
        other => show::word(other.as_str_name(), "STATUS_"),
    }
}

fn list(json: bool, processes: &[v1::Process]) -> Result<(), Failure> {
    let titles = ["ID", "PID", "STATUS", "STARTED", "COMMAND"];
    show::list(json, processes, &titles, |process| {
        vec![
            process.id.clone(),
            process.pid.to_string(),
            status(process),
            show::ago(process.created_at.as_ref()),
            process.command.clone(),
        ]
    })
}

fn fields(process: &v1::Process) -> Vec<(&'static str, String)> {
    vec![
        ("id", process.id.clone()),
        ("sandbox", process.sandbox_id.clone()),
        ("pid", process.pid.to_string()),
        ("status", status(process)),
        ("command", process.command.clone()),
        ("session", process.session_id.clone()),
        ("log", show::size(process.log_end)),
        ("started", show::ago(process.created_at.as_ref())),
        ("ended", show::ago(process.ended_at.as_ref())),
    ]
}
