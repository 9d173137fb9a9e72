//! `ringfence serve`, started for a test.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hyper_util::rt::TokioIo;
use ringfence_link::client::Client;
use ringfence_link::warden::Request;
use tempfile::TempDir;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};

use super::Sandbox;

/// A server of its own, on a free port and on a Unix socket. Its sandboxes end with it.
pub(crate) struct Server {
    /// Over loopback.
    pub(crate) tcp: Channel,
    /// Over the Unix socket, as the server's own user.
    pub(crate) unix: Channel,
    child: Child,
    arguments: Vec<String>,
    dir: TempDir,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    pub(crate) async fn with(arguments: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).into()).collect();
        let (child, tcp, unix) = launch(dir.path(), &arguments).await;
        Self { tcp, unix, child, arguments, dir }
    }

    /// Kills it without a warning and starts another on the same state.
    pub(crate) async fn kill_and_restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        (self.child, self.tcp, self.unix) = launch(self.dir.path(), &self.arguments).await;
    }

    /// Where the server keeps something.
    pub(crate) fn state(&self, name: &str) -> PathBuf {
        self.dir.path().join("state/server").join(name)
    }

    pub(crate) async fn sandbox(&self) -> Sandbox {
        Sandbox::start(&self.tcp, &[]).await
    }
}

async fn launch(dir: &Path, arguments: &[String]) -> (Child, Channel, Channel) {
    let socket = dir.join("api.sock");
    let address = free_address();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ringfence"))
        .args(["serve", "--listen", &address.to_string(), "--unix"])
        .arg(&socket)
        .arg("--state")
        .arg(dir.join("state"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("ready"), "{line:?}");
    let tcp = Endpoint::from_shared(format!("http://{address}")).unwrap();
    (child, tcp.connect().await.unwrap(), connect(socket).await)
}

/// A connection to a Unix socket.
pub(crate) async fn connect(socket: PathBuf) -> Channel {
    let connector = tower::service_fn(move |_| {
        let socket = socket.clone();
        async move { UnixStream::connect(socket).await.map(TokioIo::new) }
    });
    let unix = Endpoint::from_static("http://localhost");
    unix.connect_with_connector(connector).await.unwrap()
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Sandboxes outlive a server, and nobody will take these over.
        for sandbox in std::fs::read_dir(self.state("sandboxes")).into_iter().flatten().flatten() {
            let _ = Client::new(&sandbox.path().join("warden.sock")).ask(Request::Stop);
        }
    }
}
