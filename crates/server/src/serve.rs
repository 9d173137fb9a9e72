//! Listening, and letting in.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringfence_engine::Caller;
use ringfence_engine::codebases::{Codebases, Limits};
use ringfence_engine::problem::Problem;
use ringfence_engine::sandboxes::{Sandboxes, Settings};
use ringfence_engine::store::{LOCAL, OpenError, Store};
use ringfence_wire::v1::codebase_service_server::CodebaseServiceServer;
use ringfence_wire::v1::sandbox_service_server::SandboxServiceServer;
use tokio::net::{TcpListener, UnixListener};
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic::transport::Server;
use tonic::transport::server::UdsConnectInfo;
use tonic::{Request, Status};

use crate::grpc::Services;

/// What a server is told.
#[derive(Debug, Clone)]
pub struct Options {
    pub listen: Option<SocketAddr>,
    pub unix: Option<PathBuf>,
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
    #[error("{0} is not an address of this machine alone: listening there needs TLS and tokens")]
    Open4All(SocketAddr),
    #[error("cannot serve: {0}")]
    Transport(#[from] tonic::transport::Error),
}

/// A message with a command or a piece of a file; anything larger is refused.
const LARGEST_MESSAGE: usize = 16 * 1024 * 1024;

/// Serves until `stop`. Sandboxes run on.
pub async fn serve(
    options: Options,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    if options.listen.is_none() && options.unix.is_none() {
        return Err(ServeError::Nowhere);
    }
    if let Some(address) = options.listen.filter(|address| !address.ip().is_loopback()) {
        return Err(ServeError::Open4All(address));
    }
    let store = match options.sandboxes.private {
        Some(_) => Store::open_fleeting(&options.sandboxes.state)?,
        None => Store::open(&options.sandboxes.state)?,
    };
    let codebases = Codebases::new(store.clone(), options.stored)?;
    for sentence in codebases.reconcile()? {
        tracing::info!("{sentence}");
    }
    let sandboxes = Sandboxes::new(options.sandboxes, store, codebases.clone());
    for sentence in sandboxes.reconcile().await? {
        tracing::info!("{sentence}");
    }
    tokio::spawn(sandboxes.clone().expire());
    let services = Services { sandboxes, codebases };
    let stop = Arc::new(tokio::sync::Notify::new()).tap_spawn(stop);
    let mut tasks = Vec::new();
    if let Some(address) = options.listen {
        let listener = TcpListener::bind(address).await.map_err(at(address.to_string()))?;
        let incoming = TcpListenerStream::new(listener);
        let (services, stop) = (services.clone(), stop.clone());
        tasks.push(tokio::spawn(async move {
            let router = router(services, from_loopback);
            router
                .serve_with_incoming_shutdown(incoming, async move { stop.notified().await })
                .await
        }));
    }
    if let Some(path) = &options.unix {
        let listener = bind(path).map_err(at("the socket".into()))?;
        let incoming = UnixListenerStream::new(listener);
        let (services, stop) = (services.clone(), stop.clone());
        tasks.push(tokio::spawn(async move {
            let router = router(services, from_socket);
            router
                .serve_with_incoming_shutdown(incoming, async move { stop.notified().await })
                .await
        }));
    }
    ready();
    for task in tasks {
        if let Ok(served) = task.await {
            served?;
        }
    }
    if let Some(path) = &options.unix {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Several wait for one end.
trait Tap {
    fn tap_spawn(self, stop: impl Future<Output = ()> + Send + 'static) -> Self;
}

impl Tap for Arc<tokio::sync::Notify> {
    fn tap_spawn(self, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        let told = self.clone();
        tokio::spawn(async move {
            stop.await;
            told.notify_waiters();
        });
        self
    }
}

fn at(place: String) -> impl FnOnce(std::io::Error) -> ServeError {
    move |source| ServeError::Listen { place, source }
}

/// A socket that nobody answers on was left by a crash.
fn bind(path: &Path) -> std::io::Result<UnixListener> {
    if path.exists() && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    UnixListener::bind(path)
}

type LetIn = fn(Request<()>) -> Result<Request<()>, Status>;

fn router(services: Services, let_in: LetIn) -> tonic::transport::server::Router {
    let sandboxes = SandboxServiceServer::new(services.clone())
        .max_decoding_message_size(LARGEST_MESSAGE)
        .max_encoding_message_size(usize::MAX);
    let codebases = CodebaseServiceServer::new(services)
        .max_decoding_message_size(LARGEST_MESSAGE)
        .max_encoding_message_size(usize::MAX);
    Server::builder()
        .add_service(tonic::service::interceptor::InterceptedService::new(sandboxes, let_in))
        .add_service(tonic::service::interceptor::InterceptedService::new(codebases, let_in))
}

/// Whoever is on this machine is the account of this machine, and may not name its directories.
fn from_loopback(mut request: Request<()>) -> Result<Request<()>, Status> {
    request.extensions_mut().insert(Caller { account: LOCAL.into(), local: false });
    Ok(request)
}

/// The kernel says who is at the other end.
fn from_socket(mut request: Request<()>) -> Result<Request<()>, Status> {
    let peer = request.extensions().get::<UdsConnectInfo>().and_then(|info| info.peer_cred);
    let own = peer.is_some_and(|peer| peer.uid() == rustix::process::geteuid().as_raw());
    match own {
        true => {
            request.extensions_mut().insert(Caller { account: LOCAL.into(), local: true });
            Ok(request)
        }
        false => Err(Status::unauthenticated("this socket is for the server's own user")),
    }
}
