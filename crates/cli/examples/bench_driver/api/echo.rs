//! A bare gRPC server in a process of its own: one method, always the same answer.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ringfence_wire::v1;
use ringfence_wire::v1::server_service_client::ServerServiceClient;
use ringfence_wire::v1::server_service_server::{ServerService, ServerServiceServer};
use tokio::net::{TcpListener, UnixListener};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};

use super::ask::Via;
use super::served::{over_tcp, over_unix, ready};
use crate::order::Trouble;

/// The echo's process. It ends with this, because its standard input does.
#[derive(Debug)]
pub(crate) struct Echo {
    child: Child,
    address: String,
    socket: PathBuf,
}

impl Echo {
    /// One that answers with so many bytes.
    pub(crate) fn start(scratch: &Path, bytes: usize) -> Result<Self, Trouble> {
        let socket = scratch.join("echo.sock");
        let _ = std::fs::remove_file(&socket);
        let mut child = Command::new(std::env::current_exe()?)
            .args(["echo", &bytes.to_string()])
            .arg(&socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        match ready(child.stdout.take()) {
            Some(address) => Ok(Self { child, address, socket }),
            None => Err(Trouble::new("the echo did not start")),
        }
    }

    pub(crate) async fn connect(&self, via: Via) -> Result<ServerServiceClient<Channel>, Trouble> {
        let mut client = ServerServiceClient::new(match via {
            Via::Tcp => over_tcp(&self.address).await?,
            Via::Unix => over_unix(&self.socket).await?,
        });
        client.info(v1::InfoRequest {}).await?;
        Ok(client)
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

struct Answering(v1::InfoResponse);

#[tonic::async_trait]
impl ServerService for Answering {
    async fn info(
        &self,
        _: Request<v1::InfoRequest>,
    ) -> Result<Response<v1::InfoResponse>, Status> {
        Ok(Response::new(self.0.clone()))
    }
}

/// What the process does, on as many threads as `ringfence serve` has, until its input ends.
pub(crate) fn serve(bytes: &Path, socket: &Path) -> Result<(), Trouble> {
    let bytes = bytes.to_str().and_then(|text| text.parse().ok());
    let bytes = bytes.ok_or_else(|| Trouble::new("how many bytes?"))?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let answer = v1::InfoResponse { version: "x".repeat(bytes), ..Default::default() };
        let service = ServerServiceServer::new(Answering(answer));
        let (tcp, unix) = (TcpListener::bind("127.0.0.1:0").await?, UnixListener::bind(socket)?);
        println!("ready {}", tcp.local_addr()?);
        let quick = TcpListenerStream::new(tcp).map(|stream| {
            let stream = stream?;
            stream.set_nodelay(true)?;
            Ok::<_, std::io::Error>(stream)
        });
        let served = || Server::builder().add_service(service.clone());
        let end = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0]));
        tokio::select! {
            done = served().serve_with_incoming(quick) => done?,
            done = served().serve_with_incoming(UnixListenerStream::new(unix)) => done?,
            _ = end => {}
        }
        Ok(())
    })
}
