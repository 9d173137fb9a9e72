//! Connections: taking them in, one protocol or the other, and letting them end in order.
//!
//! The same port speaks HTTP/1 (REST, WebSocket) and HTTP/2 (gRPC, REST); the first bytes tell
//! which. Everything that one peer can make the server hold is bounded here.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

/// Connections at a time, on all listeners together; more wait in the kernel's queue.
const MOST_CONNECTIONS: usize = 8192;
/// Calls at a time on one HTTP/2 connection.
const MOST_STREAMS: u32 = 1024;
/// How long a peer may take to say what it wants.
const FIRST_WORD: Duration = Duration::from_secs(30);
/// How often a silent HTTP/2 peer is asked whether it is still there, and how long it may take.
const STILL_THERE: Duration = Duration::from_secs(60);
/// What may be under way to the server, on one call and on one connection.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
/// What waits for a slow reader, on one connection.
const SEND_BUFFER: usize = 1 << 20;
const HEADERS: u32 = 64 * 1024;

/// Who is at the other end of a connection, as far as the kernel knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    Tcp(SocketAddr),
    /// The user of a process on this host.
    Unix(Option<u32>),
}

/// Where to listen.
pub(crate) enum Listener {
    Tcp(TcpListener, Option<TlsAcceptor>),
    Unix(UnixListener),
}

/// Takes connections in until `stop` says true, then waits for them to end, but no longer than
/// `farewell`.
pub(crate) async fn run(
    listeners: Vec<Listener>,
    app: Router,
    stop: watch::Receiver<bool>,
    farewell: Duration,
) {
    let doors = Arc::new(Doors {
        app,
        builder: builder(),
        graceful: GracefulShutdown::new(),
        room: Arc::new(Semaphore::new(MOST_CONNECTIONS)),
    });
    let tasks: Vec<_> = listeners
        .into_iter()
        .map(|listener| tokio::spawn(take_in(listener, doors.clone(), stop.clone())))
        .collect();
    for task in tasks {
        let _ = task.await;
    }
    if let Ok(doors) = Arc::try_unwrap(doors) {
        let _ = tokio::time::timeout(farewell, doors.graceful.shutdown()).await;
    }
}

struct Doors {
    app: Router,
    builder: Builder<TokioExecutor>,
    graceful: GracefulShutdown,
    room: Arc<Semaphore>,
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(FIRST_WORD)
        .max_buf_size(HEADERS as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(HEADERS)
        .keep_alive_interval(STILL_THERE)
        .keep_alive_timeout(STILL_THERE);
    builder
}

async fn take_in(listener: Listener, doors: Arc<Doors>, mut stop: watch::Receiver<bool>) {
    loop {
        // Semaphores here are never closed.
        let Ok(room) = doors.room.clone().acquire_owned().await else { return };
        let taken = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            taken = listener.accept(&doors, room) => taken,
        };
        if let Err(error) = taken {
            tracing::warn!(%error, "a connection could not be taken in");
            // Descriptors have run out, most likely: others must end first.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Listener {
    async fn accept(&self, doors: &Arc<Doors>, room: OwnedSemaphorePermit) -> io::Result<()> {
        match self {
            Self::Tcp(listener, tls) => {
                let (stream, address) = listener.accept().await?;
                let _ = stream.set_nodelay(true);
                let peer = Peer::Tcp(address);
                match tls {
                    None => doors.plain(stream, peer, room),
                    Some(tls) => doors.secure(stream, tls.clone(), peer, room),
                }
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let uid = stream.peer_cred().ok().map(|peer| peer.uid());
                doors.local(stream, Peer::Unix(uid), room);
            }
        }
        Ok(())
    }
}

impl Doors {
    fn plain(self: &Arc<Self>, stream: TcpStream, peer: Peer, room: OwnedSemaphorePermit) {
        let watcher = self.graceful.watcher();
        let (app, builder) = (self.app.clone(), self.builder.clone());
        tokio::spawn(async move {
            if within(FIRST_WORD, stream.readable()).await.is_some() {
                talk(stream, app, builder, peer, watcher).await;
            }
            drop(room);
        });
    }

    fn local(self: &Arc<Self>, stream: UnixStream, peer: Peer, room: OwnedSemaphorePermit) {
        let watcher = self.graceful.watcher();
        let (app, builder) = (self.app.clone(), self.builder.clone());
        tokio::spawn(async move {
            if within(FIRST_WORD, stream.readable()).await.is_some() {
                talk(stream, app, builder, peer, watcher).await;
            }
            drop(room);
        });
    }

    fn secure(
        self: &Arc<Self>,
        stream: TcpStream,
        tls: TlsAcceptor,
        peer: Peer,
        room: OwnedSemaphorePermit,
    ) {
        let watcher = self.graceful.watcher();
        let (app, builder) = (self.app.clone(), self.builder.clone());
        tokio::spawn(async move {
            match within(FIRST_WORD, tls.accept(stream)).await {
                Some(stream) => talk(stream, app, builder, peer, watcher).await,
                None => tracing::debug!(?peer, "no handshake"),
            }
            drop(room);
        });
    }
}

async fn within<T>(time: Duration, what: impl Future<Output = io::Result<T>>) -> Option<T> {
    tokio::time::timeout(time, what).await.ok()?.ok()
}

/// One connection, to its end. Every request on it carries who the peer is.
async fn talk<S>(
    stream: S,
    app: Router,
    builder: Builder<TokioExecutor>,
    peer: Peer,
    watcher: hyper_util::server::graceful::Watcher,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer);
        app.clone().oneshot(request)
    });
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(connection.into_owned()).await {
        tracing::debug!(?peer, %error, "a connection ended badly");
    }
}

/// Listens on a Unix socket that only its owner can connect to. One that nobody answers on was left
/// by a crash.
pub(crate) fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let is_socket = path.symlink_metadata().is_ok_and(|found| found.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}
