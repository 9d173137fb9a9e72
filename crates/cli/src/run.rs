//! `ringfence run`: one command in a sandbox of its own.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};

use clap::Args;
use ringfence_link::client::{Client, ClientError, Event, Ongoing};
use ringfence_link::warden::{Command, Control, Exec, Info, Outcome, Reply, Request};
use ringfence_sys::signals::{self, BlockedSignals};

use crate::failure::Failure;
use crate::launch::{Launched, new_id};
use crate::run_end;
use crate::sandbox_args::SandboxArgs;
use crate::typing::Typing;

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
    pub(crate) info: Info,
    pub(crate) argv: Vec<String>,
    pub(crate) outcome: Outcome,
}

const FORWARDED: [i32; 4] = [signals::SIGINT, signals::SIGTERM, signals::SIGHUP, signals::SIGQUIT];

pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let timeout = args.sandbox.timeout()?;
    let exec = Exec {
        cwd: args.sandbox.workdir.as_ref().map(|dir| dir.clone().into_bytes()),
        timeout_ms: timeout.map(|time| time.as_millis() as u64),
        stdin: true,
        ..Exec::new(Command::Argv(argv(&args.command)))
    };
    let config = args.sandbox.config(&new_id()?)?;
    run_end::check_json(args.sandbox.json.as_deref())?;
    // Before any thread starts, so that all of them leave the signals to the one that waits.
    let blocked = BlockedSignals::block(&FORWARDED).map_err(Failure::broken)?;
    let launched = Launched::start(config)?;
    let (info, outcome) = conduct(&launched.client, exec, blocked)?;
    let config = launched.end();
    let argv = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let finished = Finished { info, argv, outcome };
    run_end::settle(&args.sandbox, &config, &finished, args.sandbox.json.as_deref())?;
    Ok(ExitCode::from(finished.outcome.exit_code.clamp(0, 255) as u8))
}

pub(crate) fn argv(words: &[std::ffi::OsString]) -> Vec<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// Runs the command with this process's streams and signals as its own.
fn conduct(
    client: &Client,
    exec: Exec,
    signals: BlockedSignals,
) -> Result<(Info, Outcome), Failure> {
    let info = match client.ask(Request::Info).map_err(told)? {
        Reply::Info(info) => *info,
        _ => return Err(told(ClientError::Unexpected)),
    };
    let call = client.call(Request::Exec(exec)).map_err(told)?;
    let (started, announced) = channel();
    let canceller = call.try_clone().map_err(Failure::broken)?;
    let _typing = Typing::forward(&call)?;
    let other = client.clone();
    std::thread::spawn(move || forward_signals(&other, &canceller, signals, &announced));
    let mut out = Streams::default();
    let reply = call.finish(|event| match event {
        Event::Output(bytes) => out.write(&mut io::stdout(), bytes, &call),
        Event::Error(bytes) => out.write(&mut io::stderr(), bytes, &call),
        Event::Reply(Reply::Started { command }, _) => drop(started.send(command.clone())),
        Event::Reply(..) => {}
    });
    match reply.map_err(told)? {
        Reply::Done(outcome) => Ok((info, *outcome)),
        _ => Err(told(ClientError::Unexpected)),
    }
}

pub(crate) fn told(error: ClientError) -> Failure {
    match error {
        ClientError::Refused(failure) => Failure::bad_input(failure.message),
        other => Failure::broken(other),
    }
}

/// Output as it comes. When nobody reads it any more the command is ended, as a pipe would.
#[derive(Default)]
struct Streams {
    broken: bool,
}

impl Streams {
    fn write(&mut self, stream: &mut impl Write, bytes: &[u8], call: &Ongoing) {
        if self.broken {
            return;
        }
        if stream.write_all(bytes).and_then(|()| stream.flush()).is_err() {
            self.broken = true;
            let _ = call.control(Control::Cancel);
        }
    }
}

/// Whoever insists (three times) ends a command that does not listen.
const INSISTED: u32 = 3;

fn forward_signals(
    client: &Client,
    call: &Ongoing,
    signals: BlockedSignals,
    announced: &Receiver<String>,
) {
    let Ok(command) = announced.recv() else { return };
    let mut count = 0;
    while let Ok(signal) = signals.wait() {
        count += 1;
        let command = command.clone();
        let _ = client.ask(Request::Signal { command, signal });
        if count == INSISTED {
            let _ = call.control(Control::Cancel);
        }
    }
}
