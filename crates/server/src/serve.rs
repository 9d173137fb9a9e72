//! A server from its start to its end.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use ringfence_engine::codebases::{Codebases, Limits};
use ringfence_engine::problem::Problem;
use ringfence_engine::sandboxes::{Belongs, Sandboxes, Settings};
use ringfence_engine::store::{OpenError, Store};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::grpc::{self, Services};
use crate::letting_in::{Door, let_in};
use crate::listen::{self, Listener, bind_unix};
use crate::metrics::{self, Metrics};
use crate::repeats::Repeats;
use crate::rest;
use crate::tls::{TlsError, TlsFiles, acceptor};

/// How long calls that are going on may take to end when the server does.
const FAREWELL: Duration = Duration::from_secs(5);

/// What a server is told.
#[derive(Debug, Clone)]
pub struct Options {
    pub listen: Option<SocketAddr>,
    pub unix: Option<PathBuf>,
    pub tls: Option<TlsFiles>,
    /// Also of callers on this host who come over TCP.
    pub require_token: bool,
    /// End all sandboxes when the server ends; otherwise they run on.
    pub stop_sandboxes: bool,
    pub sandboxes: Settings,
    pub stored: Limits,
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("{0}")]
    Engine(#[from] Problem),
    #[error("cannot listen on {place}: {source}")]
    Listen { place: String, source: std::io::Error },
    #[error("there is nothing to listen on: name an address or a socket")]
    Nowhere,
    #[error(
        "{0} can be reached from other machines: listening there needs TLS (--tls-cert, --tls-key) \
         and a token (`ringfence token create`)"
    )]
    Unprotected(SocketAddr),
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Serves until `stop`. `ready` hears where, once callers can come.
pub async fn serve(
    options: Options,
    ready: impl FnOnce(Option<SocketAddr>),
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let tls = options.tls.as_ref().map(acceptor).transpose()?;
    let belongs = options.sandboxes.belongs.clone();
    let store = match belongs {
        Belongs::Host => Store::open(&options.sandboxes.state)?,
        Belongs::Command(_) | Belongs::Process => Store::open_fleeting(&options.sandboxes.state)?,
    };
    check_protection(&options, &store)?;
    // Before anything is taken over: a port that is taken must change nothing.
    let (listeners, address) = listeners(&options, tls).await?;
    let services = open(&options, &store).await?;
    let sandboxes = services.sandboxes.clone();
    let background =
        [tokio::spawn(sandboxes.clone().expire()), tokio::spawn(sandboxes.clone().keep_house())];
    let door = Door { store, require_token: options.require_token || is_far(&options).is_some() };
    let (app, farewell) = match belongs {
        Belongs::Host => (app(services, door), FAREWELL),
        // Its one caller speaks gRPC, waits for it to begin, and needs no answer when it ends.
        Belongs::Command(_) | Belongs::Process => {
            (grpc::routes(services).layer(from_fn_with_state(door, let_in)), Duration::ZERO)
        }
    };
    let (tell, told) = watch::channel(false);
    tokio::spawn(async move {
        stop.await;
        let _ = tell.send(true);
    });
    ready(address);
    listen::run(listeners, app, told, farewell).await;
    background.iter().for_each(tokio::task::JoinHandle::abort);
    match belongs {
        Belongs::Process => sandboxes.destroy_all().await,
        _ if options.stop_sandboxes => sandboxes.stop_all().await,
        _ => {}
    }
    if let Some(path) = &options.unix {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// The address from which other machines could come.
fn is_far(options: &Options) -> Option<SocketAddr> {
    options.listen.filter(|address| !address.ip().to_canonical().is_loopback())
}

fn check_protection(options: &Options, store: &Store) -> Result<(), ServeError> {
    if options.listen.is_none() && options.unix.is_none() {
        return Err(ServeError::Nowhere);
    }
    let Some(address) = is_far(options) else { return Ok(()) };
    let someone = store.tokens(None)?.iter().any(|token| token.revoked_ms.is_none());
    match options.tls.is_some() && someone {
        true => Ok(()),
        false => Err(ServeError::Unprotected(address)),
    }
}

async fn listeners(
    options: &Options,
    tls: Option<tokio_rustls::TlsAcceptor>,
) -> Result<(Vec<Listener>, Option<SocketAddr>), ServeError> {
    let at = |place: String| move |source| ServeError::Listen { place, source };
    let (mut listeners, mut bound) = (Vec::new(), None);
    if let Some(address) = options.listen {
        let listener = TcpListener::bind(address).await.map_err(at(address.to_string()))?;
        bound = listener.local_addr().ok();
        listeners.push(Listener::Tcp(listener, tls));
    }
    if let Some(path) = &options.unix {
        let listener = bind_unix(path).map_err(at(path.display().to_string()))?;
        listeners.push(Listener::Unix(listener));
    }
    Ok((listeners, bound))
}

/// Makes records and reality agree, and says what it took.
async fn open(options: &Options, store: &Store) -> Result<Services, ServeError> {
    let codebases = Codebases::new(store.clone(), options.stored)?;
    for sentence in codebases.reconcile()? {
        tracing::info!("{sentence}");
    }
    let sandboxes = Sandboxes::new(options.sandboxes.clone(), store.clone(), codebases.clone());
    for sentence in sandboxes.reconcile().await? {
        tracing::info!("{sentence}");
    }
    let (store, repeats) = (store.clone(), Repeats::new(store.clone()));
    Ok(Services { sandboxes, codebases, store, repeats })
}

/// Everything there is to ask, behind one door.
fn app(services: Services, door: Door) -> Router {
    let counted = Metrics::default();
    grpc::routes(services.clone())
        .merge(metrics::router(services.clone(), counted.clone()))
        .merge(rest::router(services))
        .layer(from_fn_with_state(door, let_in))
        .layer(from_fn_with_state(counted, metrics::count))
}
