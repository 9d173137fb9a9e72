//! `ringfence serve --for-process`: a server that belongs to one process and leaves nothing behind.
//!
//! ```text
//! STATE/processes/PID-RANDOM   everything it has; on the disk, since layers can be large
//! ```

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::Resettable;
use ringfence_runtime::users::HOST_LOCKS;
use ringfence_server::serve::{Options, serve};
use ringfence_server::{Belongs, Stored, clean_up_after};
use ringfence_sys::removal::remove_tree;

use crate::failure::Failure;
use crate::owner::Owner;
use crate::place::{self, Place};
use crate::private::settings;
use crate::serve::outcome;

/// Options of `ringfence serve` that such a server does not have.
pub(crate) const OF_A_HOST: [&str; 12] = [
    "config",
    "listen",
    "unix",
    "tls_cert",
    "tls_key",
    "require_token",
    "stop_sandboxes",
    "max_sandboxes",
    "max_file_size",
    "max_codebase_size",
    "max_storage",
    "keep_journals",
];

/// Whether a command line asks for such a server.
pub(crate) fn is_asked(mut words: impl Iterator<Item = OsString>) -> bool {
    words.nth(1).is_some_and(|word| word == "serve")
        && words.any(|word| word.as_encoded_bytes().starts_with(b"--for-process"))
}

/// Variables that are set for the server of this host are not meant for it.
pub(crate) fn without_variables(command: clap::Command) -> clap::Command {
    let deaf = |arg: clap::Arg| arg.env(Resettable::Reset);
    let deaf =
        |serve: clap::Command| OF_A_HOST.iter().fold(serve, |serve, id| serve.mut_arg(id, deaf));
    command.mut_subcommand("serve", deaf)
}

pub(crate) fn run(pid: i32, state: &Path) -> Result<ExitCode, Failure> {
    let owner = Owner::find(pid)?;
    // Out of the terminal, and all that is started with it. That fails for the first of a group.
    let _ = rustix::process::setsid();
    let runtime = tokio::runtime::Runtime::new().map_err(Failure::broken)?;
    let watch = {
        let _inside = runtime.enter();
        owner.watch()?
    };
    let all = state.join("processes");
    let place = Place::among(&all)?;
    let (socket, _beside) = socket(&place, state)?;
    let options = options(&place, socket.clone())?;
    let ready = move |_| {
        say_ready(&socket);
        tokio::spawn(sweep(all));
    };
    let served = runtime.block_on(serve(options, ready, watch.over()));
    // What is still being copied may be in the way of removing it.
    runtime.shutdown_timeout(Duration::from_secs(5));
    drop(place);
    outcome(served)
}

/// In its place, or beside it where a shorter path is to be had.
fn socket(place: &Place, state: &Path) -> Result<(PathBuf, Option<Place>), Failure> {
    if let Some(socket) = place.socket() {
        return Ok((socket, None));
    }
    let beside = Place::fleeting(state)?;
    let socket =
        beside.socket().ok_or_else(|| Failure::broken("no path for a socket is short enough"))?;
    Ok((socket, Some(beside)))
}

fn options(place: &Place, socket: PathBuf) -> Result<Options, Failure> {
    Ok(Options {
        listen: None,
        unix: Some(socket),
        tls: None,
        require_token: false,
        stop_sandboxes: false,
        sandboxes: settings(place.dir.clone(), Belongs::Process)?,
        stored: Stored::default(),
    })
}

/// Its owner may have gone already, and the pipe with it.
fn say_ready(socket: &Path) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "ready {}", socket.display()).and_then(|()| out.flush());
}

/// Removes what servers that were killed have left.
async fn sweep(all: PathBuf) {
    for dir in place::left(&all) {
        if !clean_up_after(&dir, Path::new(HOST_LOCKS)).await {
            continue;
        }
        tracing::info!(dir = %dir.display(), "a server was killed; what it left is removed");
        let removed = tokio::task::spawn_blocking(move || remove_tree(&dir)).await;
        if let Ok(Err(error)) = removed {
            tracing::warn!(%error, "what a server left cannot be removed");
        }
    }
}
