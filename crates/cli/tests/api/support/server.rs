//! A server of a test's own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hyper_util::rt::TokioIo;
use ringfence_link::client::Client;
use ringfence_link::warden::Request;
use ringfence_wire::v1::codebase_service_client::CodebaseServiceClient;
use ringfence_wire::v1::sandbox_service_client::SandboxServiceClient;
use ringfence_wire::v1::workspace_service_client::WorkspaceServiceClient;
use tempfile::TempDir;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};

/// `ringfence serve` with a state directory of its own. When this is dropped it ends, and so does
/// everything it has started.
pub(crate) struct Server {
    child: Child,
    channel: Channel,
    pub(crate) scratch: TempDir,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let (child, channel) = begin(scratch.path()).await;
        Self { child, channel, scratch }
    }

    /// Ends the server as a crash does, and starts another one on what it left.
    pub(crate) async fn kill_and_restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        (self.child, self.channel) = begin(self.scratch.path()).await;
    }

    pub(crate) fn codebases(&self) -> CodebaseServiceClient<Channel> {
        CodebaseServiceClient::new(self.channel.clone())
    }

    pub(crate) fn sandboxes(&self) -> SandboxServiceClient<Channel> {
        SandboxServiceClient::new(self.channel.clone())
    }

    pub(crate) fn workspaces(&self) -> WorkspaceServiceClient<Channel> {
        WorkspaceServiceClient::new(self.channel.clone())
    }

    /// Where the server keeps everything.
    pub(crate) fn state(&self) -> PathBuf {
        self.scratch.path().join("state/server")
    }

    /// A directory of the host, made for a test.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let path = self.scratch.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }
}

async fn begin(scratch: &Path) -> (Child, Channel) {
    // Nobody listens on a port that was free a moment ago, as a rule.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let socket = scratch.join("api.sock");
    let mut child = Command::new(env!("CARGO_BIN_EXE_ringfence"))
        .args(["serve", "--listen", &free.to_string()])
        .arg("--unix")
        .arg(&socket)
        .arg("--state")
        .arg(scratch.join("state"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("ready"), "the server says {line:?}");
    let connect = tower::service_fn(move |_| {
        let socket = socket.clone();
        async move { UnixStream::connect(socket).await.map(TokioIo::new) }
    });
    let endpoint = Endpoint::from_static("http://ringfence");
    (child, endpoint.connect_with_connector(connect).await.unwrap())
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for sandbox in std::fs::read_dir(self.state().join("sandboxes")).into_iter().flatten() {
            let socket = sandbox.unwrap().path().join("warden.sock");
            let _ = Client::new(&socket).ask(Request::Stop);
        }
    }
}
