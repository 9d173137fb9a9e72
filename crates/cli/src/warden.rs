//! The entries of this program that other parts of it start: a sandbox's warden and its init.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use ringfence_warden::Config;
use ringfence_warden::life::Warden;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Own one sandbox; started by other commands.
#[derive(Debug, Args)]
pub(crate) struct WardenArgs {
    /// The description of the sandbox
    config: PathBuf,
}

/// What a warden prints, once, on its standard output.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Greeting {
    Ready { socket: PathBuf },
    Failed { message: String, hint: Option<String> },
}

pub(crate) fn run(args: &WardenArgs) -> Result<ExitCode, Failure> {
    // Ctrl-C in the terminal of whoever started it is for the command, not for its warden.
    let _ = rustix::process::setsid();
    ringfence_sys::memory::raise_open_file_limit();
    ringfence_sys::memory::make_room_for_descriptors();
    let config = read(&args.config)?;
    if !config.ends_with_caller {
        // What outlives its caller does not keep the caller's directory from going.
        std::env::set_current_dir("/").map_err(Failure::broken)?;
    }
    let socket = config.socket();
    match Warden::start(config) {
        Ok(warden) => {
            say(&Greeting::Ready { socket });
            warden.run();
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            say(&Greeting::Failed { message: error.to_string(), hint: error.hint() });
            Ok(ExitCode::FAILURE)
        }
    }
}

fn read(path: &PathBuf) -> Result<Config, Failure> {
    let text = std::fs::read(path)
        .map_err(|e| Failure::bad_input(format!("cannot read {}: {e}", path.display())))?;
    serde_json::from_slice(&text)
        .map_err(|e| Failure::bad_input(format!("{}: {e}", path.display())))
}

fn say(greeting: &Greeting) {
    let mut out = std::io::stdout();
    let line = serde_json::to_string(greeting).unwrap_or_default();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Whether this process was started as the init of a sandbox; then it never returns from it.
pub(crate) fn init_if_asked() -> Option<ExitCode> {
    if std::env::args_os().nth(1).is_none_or(|word| word != "init") {
        return None;
    }
    let socket = match std::env::args_os().nth(2) {
        Some(path) => ringfence_init::connect(path.as_ref()),
        None => ringfence_sys::files::take_inherited(ringfence_init::SOCKET),
    };
    match socket {
        Ok(socket) => Some(ringfence_init::serve(socket)),
        Err(_) => {
            eprintln!("error: init is started by a warden, not by hand");
            Some(ExitCode::from(2))
        }
    }
}
