//! `ringfence shell`: a terminal in a sandbox of its own.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use ringfence_link::client::{Client, ClientError, Event, Ongoing};
use ringfence_link::warden::{
    Command, Control, Info, OpenTerminal, Outcome, ProcessStatus, Reply, Request,
};
use ringfence_sys::signals::{self, BlockedSignals};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::failure::Failure;
use crate::launch::{Launched, new_id};
use crate::run::{Finished, told};
use crate::run_end;
use crate::sandbox_args::SandboxArgs;
use crate::typing::Typing;

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
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Failure::bad_input("standard input and output must be a terminal")
            .hint("for programs without one: ringfence run DIR -- COMMAND"));
    }
    let timeout = args.sandbox.timeout()?;
    let config = args.sandbox.config(&new_id()?)?;
    run_end::check_json(args.sandbox.json.as_deref())?;
    let watched = [signals::SIGWINCH, signals::SIGTERM, signals::SIGHUP];
    let blocked = BlockedSignals::block(&watched).map_err(Failure::broken)?;
    let launched = Launched::start(config)?;
    let info = match launched.client.ask(Request::Info).map_err(told)? {
        Reply::Info(info) => *info,
        _ => return Err(told(ClientError::Unexpected)),
    };
    let conversation = converse(&launched.client, &request(args), blocked, timeout)?;
    let config = launched.end();
    finish(args, &config, info, conversation)
}

fn finish(
    args: &ShellArgs,
    config: &ringfence_warden::Config,
    info: Info,
    Conversation { status, timed_out }: Conversation,
) -> Result<ExitCode, Failure> {
    let exit_code = match status {
        _ if timed_out => 124,
        Some(ProcessStatus::Exited(code)) => code,
        Some(ProcessStatus::Killed(signal)) => 128 + signal,
        Some(ProcessStatus::Failed(reason)) => return Err(Failure::bad_input(reason)),
        Some(ProcessStatus::Running) | None => return Err(Failure::broken("the sandbox ended")),
    };
    let argv = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let denied = run_end::denied_on_record(&config.dir);
    let outcome = Outcome { exit_code, timed_out, denied, ..Outcome::default() };
    run_end::settle(
        &args.sandbox,
        config,
        &Finished { info, argv, outcome },
        args.sandbox.json.as_deref(),
    )?;
    Ok(ExitCode::from(exit_code.clamp(0, 255) as u8))
}

fn request(args: &ShellArgs) -> OpenTerminal {
    let size = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
    let (rows, columns) = size.map_or((24, 80), |size| (size.ws_row, size.ws_col));
    let command =
        (!args.command.is_empty()).then(|| Command::Argv(crate::run::argv(&args.command)));
    let term = std::env::var("TERM").unwrap_or_else(|_| "xterm-256color".into());
    OpenTerminal {
        command,
        session: None,
        env: vec![(b"TERM".to_vec(), term.into_bytes())],
        cwd: args.sandbox.workdir.as_ref().map(|dir| dir.clone().into_bytes()),
        rows,
        columns,
        id: None,
        end_when_left: true,
        record: false,
    }
}

/// How what ran on the terminal ended.
struct Conversation {
    status: Option<ProcessStatus>,
    timed_out: bool,
}

/// Puts the terminal of this process through to the one inside until that ends.
fn converse(
    client: &Client,
    request: &OpenTerminal,
    signals: BlockedSignals,
    timeout: Option<Duration>,
) -> Result<Conversation, Failure> {
    let opened = client.ask(Request::OpenTerminal(request.clone())).map_err(told)?;
    let Reply::Terminal(terminal) = opened else { return Err(told(ClientError::Unexpected)) };
    let id = terminal.id;
    let call = client.call(Request::Attach { id: id.clone() }).map_err(told)?;
    let timed_out = Arc::new(AtomicBool::new(false));
    if let Some(timeout) = timeout {
        let (client, timed_out) = (client.clone(), timed_out.clone());
        std::thread::spawn(move || {
            std::thread::sleep(timeout);
            timed_out.store(true, Ordering::Release);
            let _ = client.ask(Request::CloseTerminal { id });
        });
    }
    let _raw = RawMode::enter()?;
    let resizing = call.try_clone().map_err(Failure::broken)?;
    let _typing = Typing::forward(&call)?;
    std::thread::spawn(move || forward_size(&resizing, signals));
    let mut out = io::stdout();
    let last = call.finish(|event| {
        if let Event::Output(bytes) | Event::Error(bytes) = event {
            let _ = out.write_all(bytes).and_then(|()| out.flush());
        }
    });
    let status = match last.map_err(told)? {
        Reply::LogEnd { status, .. } => status,
        _ => None,
    };
    Ok(Conversation { status, timed_out: timed_out.load(Ordering::Acquire) })
}

fn forward_size(call: &Ongoing, signals: BlockedSignals) {
    while let Ok(signal) = signals.wait() {
        if signal != signals::SIGWINCH {
            call.hang_up();
            return;
        }
        if let Ok(size) = tcgetwinsize(io::stdout()) {
            let (rows, columns) = (size.ws_row, size.ws_col);
            let _ = call.control(Control::Resize { rows, columns });
        }
    }
}

/// The terminal passes every key on while this lives.
struct RawMode(Termios);

impl RawMode {
    fn enter() -> Result<Self, Failure> {
        let before = tcgetattr(io::stdin()).map_err(Failure::broken)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw).map_err(Failure::broken)?;
        Ok(Self(before))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.0);
    }
}
