//! `ringfence serve`: the API in front of all sandboxes of this host.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ringfence_link::socket::LONGEST;
use ringfence_runtime::users::HOST_LOCKS;
use ringfence_server::serve::{Options, ServeError, serve};
use ringfence_server::{Belongs, Settings, Stored, TlsFiles};
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;
use crate::for_process;
use crate::logging;
use crate::serve_options::{Listen, ServeOptions};
use crate::state::StateArgs;

/// Serve codebases and sandboxes over gRPC, REST and WebSocket, on one port
///
/// Sandboxes outlive the server: they run on when it ends, and the next one takes them over.
/// Callers on this machine need no token unless --require-token is given; listening where other
/// machines can come needs TLS and a token. Every option can be set in a TOML file too
/// (`listen = "127.0.0.1:9000"`) and in the environment (RINGFENCE_LISTEN); what is nearer to the
/// command line wins.
///
/// Examples:
///   ringfence serve
///   ringfence serve --listen off --unix /run/ringfence.sock
///   ringfence serve --config /etc/ringfence.toml
///   ringfence serve --listen 0.0.0.0:9000 --tls-cert cert.pem --tls-key key.pem
///   ringfence serve --for-process $$
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ServeArgs {
    /// Be the server of this process alone, on a socket of its own: everything the server has ends
    /// and is removed when the process ends, however that happens, or on SIGTERM; only the logging
    /// and the state directory can be chosen
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    #[arg(conflicts_with_all = for_process::OF_A_HOST)]
    for_process: Option<i32>,
    /// Read options from this TOML file; a key it does not know is an error
    #[arg(long, value_name = "FILE", env = "RINGFENCE_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    options: ServeOptions,
    #[command(flatten)]
    state: StateArgs,
}

const USUAL_ADDRESS: &str = "127.0.0.1:9000";
const USUAL_SANDBOXES: usize = 1000;
const USUAL_LEASE: Duration = Duration::from_secs(60);
const USUAL_ABANDONED: Duration = Duration::from_secs(10 * 60);
const USUAL_JOURNAL_DAYS: u32 = 30;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Where the server of a state directory keeps its things.
pub(crate) const PLACE: &str = "server";
/// Its socket, if no other is named.
pub(crate) const SOCKET: &str = "api.sock";

pub(crate) fn run(args: &ServeArgs) -> Result<ExitCode, Failure> {
    let asked = args.options.clone().over_file(args.config.as_deref())?;
    logging::start(asked.log_level.as_deref(), asked.log_format.unwrap_or_default())?;
    ringfence_sys::memory::raise_open_file_limit();
    if let Some(pid) = args.for_process {
        return for_process::run(pid, &state(&asked, args)?);
    }
    let options = options(&asked, args)?;
    let runtime = tokio::runtime::Runtime::new().map_err(Failure::broken)?;
    let served = runtime.block_on(async move {
        let place = options.unix.clone();
        serve(options, move |address| say_ready(address, place), asked_to_stop()).await
    });
    // Somebody's long copy is not waited for: what is half done is settled at the next start.
    runtime.shutdown_timeout(Duration::from_secs(5));
    outcome(served)
}

pub(crate) fn outcome(served: Result<(), ServeError>) -> Result<ExitCode, Failure> {
    match served {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(ServeError::Engine(problem)) => Err(Failure::broken(problem)),
        Err(error) => Err(Failure::bad_input(sentence(&error))),
    }
}

/// Absolute, since wardens look at it from another directory.
fn state(asked: &ServeOptions, args: &ServeArgs) -> Result<PathBuf, Failure> {
    let state = match &asked.state {
        Some(dir) if !args.state.is_given() => dir.clone(),
        _ => args.state.dir()?,
    };
    std::path::absolute(state).map_err(Failure::broken)
}

fn options(asked: &ServeOptions, args: &ServeArgs) -> Result<Options, Failure> {
    // Apart from what `ringfence run` keeps for itself.
    let place = state(asked, args)?.join(PLACE);
    let listen = match &asked.listen {
        None => Some(USUAL_ADDRESS.parse().map_err(Failure::broken)?),
        Some(Listen::Off) => None,
        Some(Listen::At(address)) => Some(*address),
    };
    let own_socket = place.join(SOCKET);
    let unix = asked
        .unix
        .clone()
        .or_else(|| (own_socket.as_os_str().len() <= LONGEST).then_some(own_socket));
    let usual = Stored::default();
    Ok(Options {
        listen,
        unix,
        tls: tls(asked)?,
        require_token: asked.require_token,
        stop_sandboxes: asked.stop_sandboxes,
        sandboxes: Settings {
            state: place,
            belongs: Belongs::Host,
            host_network: asked.require_token || listen.is_none_or(is_far),
            fetch_images: !asked.no_image_fetch,
            program: std::env::current_exe().map_err(Failure::broken)?,
            users: HOST_LOCKS.into(),
            most_per_account: asked.max_sandboxes.unwrap_or(USUAL_SANDBOXES),
            lease: asked.lease_seconds.map_or(USUAL_LEASE, seconds),
            abandoned: asked.abandoned_seconds.map_or(USUAL_ABANDONED, seconds),
            journals_kept: DAY * asked.keep_journals.unwrap_or(USUAL_JOURNAL_DAYS),
        },
        stored: Stored {
            max_file_size: asked.max_file_size.unwrap_or(usual.max_file_size),
            max_codebase_size: asked.max_codebase_size.unwrap_or(usual.max_codebase_size),
            max_account_size: asked.max_storage.unwrap_or(usual.max_account_size),
            ..usual
        },
    })
}

fn seconds(count: NonZeroU32) -> Duration {
    Duration::from_secs(count.get().into())
}

fn tls(asked: &ServeOptions) -> Result<Option<TlsFiles>, Failure> {
    match (asked.tls_cert.clone(), asked.tls_key.clone()) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        _ => Err(Failure::bad_input("TLS needs both a certificate and its key")
            .hint("give --tls-cert FILE and --tls-key FILE")),
    }
}

fn say_ready(address: Option<SocketAddr>, socket: Option<PathBuf>) {
    match (address, socket) {
        (Some(address), _) => println!("ready {address}"),
        (None, Some(path)) => println!("ready {}", path.display()),
        (None, None) => {}
    }
}

/// Where other machines can come, everybody needs a token.
fn is_far(address: SocketAddr) -> bool {
    !address.ip().to_canonical().is_loopback()
}

/// An error and what caused it, in one sentence.
fn sentence(error: &ServeError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let further = error.to_string();
        if !text.ends_with(&further) {
            text = format!("{text}: {further}");
        }
        cause = error.source();
    }
    text
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
