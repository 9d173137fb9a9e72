//! `ringfence serve`: the API in front of all sandboxes of this host.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ringfence_runtime::users::HOST_LOCKS;
use ringfence_server::serve::{Options, ServeError, serve};
use ringfence_server::{Settings, Stored};
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;
use crate::state::StateArgs;

/// Serve codebases and sandboxes over gRPC
///
/// Sandboxes outlive the server: they run on when it ends, and the next one takes them over.
///
/// Examples:
///   ringfence serve
///   ringfence serve --listen 127.0.0.1:9000 --unix /run/ringfence.sock
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ServeArgs {
    /// The address to listen on, of this machine
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "RINGFENCE_LISTEN",
        default_value = "127.0.0.1:9000"
    )]
    listen: SocketAddr,
    /// Listen on a Unix socket too; its callers may name directories of this host
    #[arg(long, value_name = "PATH", env = "RINGFENCE_UNIX")]
    unix: Option<PathBuf>,
    /// How many sandboxes an account may have
    #[arg(long, value_name = "N", env = "RINGFENCE_MAX_SANDBOXES", default_value_t = 1000)]
    max_sandboxes: usize,
    #[command(flatten)]
    state: StateArgs,
}

pub(crate) fn run(args: &ServeArgs) -> Result<ExitCode, Failure> {
    ringfence_sys::memory::raise_open_file_limit();
    let options = Options {
        listen: Some(args.listen),
        unix: args.unix.clone(),
        sandboxes: Settings {
            // Apart from what `ringfence run` keeps for itself.
            state: args.state.dir()?.join("server"),
            private: None,
            program: std::env::current_exe().map_err(Failure::broken)?,
            users: HOST_LOCKS.into(),
            most_per_account: args.max_sandboxes,
            lease: Duration::from_secs(60),
        },
        stored: Stored::default(),
    };
    let runtime = tokio::runtime::Runtime::new().map_err(Failure::broken)?;
    let listen = args.listen;
    let served = runtime.block_on(async move {
        let ready = move || println!("ready {listen}");
        serve(options, ready, asked_to_stop()).await
    });
    match served {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error @ (ServeError::Transport(_) | ServeError::Engine(_))) => {
            Err(Failure::broken(error))
        }
        Err(error) => Err(Failure::bad_input(error.to_string())),
    }
}

/// Ctrl-C, or the way services are stopped.
async fn asked_to_stop() {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
