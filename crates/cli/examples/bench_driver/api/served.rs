//! The server's process, and connections to it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use hyper_util::rt::TokioIo;
use ringfence_wire::v1;
use ringfence_wire::v1::codebase_service_client::CodebaseServiceClient;
use ringfence_wire::v1::sandbox_service_client::SandboxServiceClient;
use ringfence_wire::v1::server_service_client::ServerServiceClient;
use ringfence_wire::v1::workspace_service_client::WorkspaceServiceClient;
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};

use super::ask::Via;
use crate::order::Trouble;

/// As the command line's client has it.
const WINDOW: u32 = 1 << 20;

/// A `ringfence serve`. It ends with this, and its sandboxes with it.
#[derive(Debug)]
pub(crate) struct Served {
    child: Child,
    pub(crate) address: String,
    socket: PathBuf,
    state: PathBuf,
}

/// Whom to ask, all on one connection.
#[derive(Debug, Clone)]
pub(crate) struct Callers {
    pub(crate) info: ServerServiceClient<Channel>,
    pub(crate) codebases: CodebaseServiceClient<Channel>,
    pub(crate) sandboxes: SandboxServiceClient<Channel>,
    pub(crate) workspace: WorkspaceServiceClient<Channel>,
}

impl Served {
    pub(crate) fn start(ringfence: &Path, scratch: &Path) -> Result<Self, Trouble> {
        let (state, socket) = (scratch.join("served"), scratch.join("served.sock"));
        let mut child = Command::new(ringfence)
            .args(["serve", "--stop-sandboxes", "--listen", "127.0.0.1:0", "--unix"])
            .arg(&socket)
            .arg("--state")
            .arg(&state)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(scratch.join("serve.log"))?)
            .spawn()?;
        match ready(child.stdout.take()) {
            Some(address) => Ok(Self { child, address, socket, state }),
            None => {
                let _ = child.kill();
                child.wait()?;
                Err(Trouble::new("the server did not start: see serve.log"))
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where the warden of a sandbox listens.
    pub(crate) fn warden_socket(&self, id: &str) -> PathBuf {
        self.state.join("server/sandboxes").join(id).join("warden.sock")
    }

    pub(crate) async fn connect(&self, via: Via) -> Result<Callers, Trouble> {
        let mut callers = Callers::over(match via {
            Via::Tcp => over_tcp(&self.address).await?,
            Via::Unix => over_unix(&self.socket).await?,
        });
        // The first call of a connection pays for its beginning.
        callers.info.info(v1::InfoRequest {}).await?;
        Ok(callers)
    }

    /// Waits until it has stopped all sandboxes.
    pub(crate) fn end(mut self) -> Result<(), Trouble> {
        self.ask_to_end();
        match self.child.wait()?.success() {
            true => Ok(()),
            false => Err(Trouble::new("the server did not end in order")),
        }
    }

    fn ask_to_end(&self) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.ask_to_end();
            let _ = self.child.wait();
        }
    }
}

impl Callers {
    fn over(channel: Channel) -> Self {
        Self {
            info: ServerServiceClient::new(channel.clone()),
            codebases: CodebaseServiceClient::new(channel.clone()),
            sandboxes: SandboxServiceClient::new(channel.clone()),
            workspace: WorkspaceServiceClient::new(channel),
        }
    }
}

/// Where a program says that it listens.
pub(super) fn ready(said: Option<ChildStdout>) -> Option<String> {
    let mut line = String::new();
    BufReader::new(said?).read_line(&mut line).ok()?;
    Some(line.strip_prefix("ready ")?.trim().to_owned())
}

pub(super) async fn over_tcp(address: &str) -> Result<Channel, Trouble> {
    Ok(shaped(Endpoint::from_shared(format!("http://{address}"))?).connect().await?)
}

pub(super) async fn over_unix(socket: &Path) -> Result<Channel, Trouble> {
    let socket = socket.to_owned();
    let dial = tower::service_fn(move |_| {
        let socket = socket.clone();
        async move { UnixStream::connect(socket).await.map(TokioIo::new) }
    });
    let endpoint = shaped(Endpoint::from_static("http://localhost"));
    Ok(endpoint.connect_with_connector(dial).await?)
}

fn shaped(endpoint: Endpoint) -> Endpoint {
    endpoint
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .tcp_nodelay(true)
}
