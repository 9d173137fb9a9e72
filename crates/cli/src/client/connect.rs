//! Which server is meant, and a connection to it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use hyper_util::rt::TokioIo;
use ringfence_wire::v1;
use ringfence_wire::v1::audit_service_client::AuditServiceClient;
use ringfence_wire::v1::codebase_service_client::CodebaseServiceClient;
use ringfence_wire::v1::image_service_client::ImageServiceClient;
use ringfence_wire::v1::process_service_client::ProcessServiceClient;
use ringfence_wire::v1::sandbox_service_client::SandboxServiceClient;
use ringfence_wire::v1::server_service_client::ServerServiceClient;
use ringfence_wire::v1::terminal_service_client::TerminalServiceClient;
use ringfence_wire::v1::token_service_client::TokenServiceClient;
use ringfence_wire::v1::workspace_service_client::WorkspaceServiceClient;
use tokio::net::UnixStream;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};

use super::trouble::told;
use crate::failure::Failure;
use crate::state::StateArgs;

/// Where a server listens if nothing else is said.
const USUAL: &str = "127.0.0.1:9000";
const PATIENCE: Duration = Duration::from_secs(10);
/// What may be under way: a command's output is not to wait for the sign that some was read.
const WINDOW: u32 = 1 << 20;

/// Which server is asked. Without an endpoint it is the one of the state directory, by its socket, or
/// else the one on the usual port.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConnectArgs {
    /// The server: HOST:PORT, https://HOST:PORT or unix:///PATH [default: the server of the state
    /// directory, else 127.0.0.1:9000]
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "RINGFENCE_ENDPOINT",
        global = true,
        help_heading = "Server"
    )]
    endpoint: Option<String>,

    /// Who you are, for a server that wants to know
    #[arg(
        long,
        value_name = "TOKEN",
        env = "RINGFENCE_TOKEN",
        hide_env_values = true,
        global = true,
        help_heading = "Server"
    )]
    token: Option<String>,

    /// Trust what this certificate has signed, instead of the system's
    #[arg(
        long,
        value_name = "FILE",
        env = "RINGFENCE_TLS_CA",
        global = true,
        help_heading = "Server"
    )]
    tls_ca: Option<PathBuf>,

    /// The state directory whose server is asked [default: as `ringfence serve` has it]
    #[arg(long, value_name = "DIR", global = true, help_heading = "Server")]
    state: Option<PathBuf>,
}

/// An address as it was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Address {
    Plain(String),
    Tls(String),
    Unix(PathBuf),
}

/// What goes with every request.
#[derive(Debug, Clone)]
pub(crate) struct Credentials(Option<MetadataValue<Ascii>>);

impl Interceptor for Credentials {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

type Connection = InterceptedService<Channel, Credentials>;

/// A server that can be asked. Clones share the connection.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    connection: Connection,
}

impl ConnectArgs {
    pub(crate) async fn connect(&self) -> Result<Server, Failure> {
        let credentials = self.credentials()?;
        match &self.endpoint {
            Some(text) => {
                let address = Address::parse(text)?;
                let channel = open(&address, self.tls_ca.as_deref()).await;
                let channel = channel.map_err(|e| unreachable(text, &e))?;
                Ok(Server::new(channel, credentials))
            }
            None => self.look(credentials).await?.ok_or_else(nobody),
        }
    }

    /// The server of the state directory by its socket, if it runs: whoever reaches that one is its
    /// own user, and may do what others may not.
    pub(crate) async fn own_server(&self) -> Result<Option<Server>, Failure> {
        let socket = self.state().dir()?.join("server/api.sock");
        answering(&Address::Unix(socket), self.credentials()?).await
    }

    pub(crate) fn names_a_server(&self) -> bool {
        self.endpoint.is_some()
    }

    pub(crate) fn state(&self) -> StateArgs {
        StateArgs::named(self.state.clone())
    }

    async fn look(&self, credentials: Credentials) -> Result<Option<Server>, Failure> {
        match self.own_server().await? {
            Some(server) => Ok(Some(server)),
            None => answering(&Address::Plain(USUAL.into()), credentials).await,
        }
    }

    fn credentials(&self) -> Result<Credentials, Failure> {
        let Some(token) = self.token.as_deref().filter(|token| !token.is_empty()) else {
            return Ok(Credentials(None));
        };
        // What it is stays out of the message.
        let value = format!("Bearer {token}").parse::<MetadataValue<Ascii>>();
        let mut value = value.map_err(|_| Failure::bad_input("the token is not one"))?;
        value.set_sensitive(true);
        Ok(Credentials(Some(value)))
    }
}

impl Address {
    fn parse(text: &str) -> Result<Self, Failure> {
        let bad = || {
            Failure::bad_input(format!("{text:?} is not the address of a server"))
                .hint("give it as HOST:PORT, https://HOST:PORT or unix:///PATH")
        };
        if let Some(path) = text.strip_prefix("unix://") {
            return match path.starts_with('/') {
                true => Ok(Self::Unix(path.into())),
                false => Err(bad()),
            };
        }
        let (place, tls) = match text.split_once("://") {
            None => (text, false),
            Some(("http", place)) => (place, false),
            Some(("https", place)) => (place, true),
            Some(_) => return Err(bad()),
        };
        let place = place.trim_end_matches('/');
        let port = place.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_none() || place.starts_with(':') || place.contains(['/', '@', ' ']) {
            return Err(bad());
        }
        Ok(if tls { Self::Tls(place.into()) } else { Self::Plain(place.into()) })
    }
}

/// Through to the last cause, which is the one that says something.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

fn unreachable(place: &str, error: &tonic::transport::Error) -> Failure {
    Failure::bad_input(format!("cannot reach the server at {place}: {}", root_cause(error)))
        .hint("`ringfence serve` starts one; --endpoint names another")
}

fn nobody() -> Failure {
    Failure::bad_input("no Ringfence server is running here")
        .hint("start one with `ringfence serve`, or name one with --endpoint")
}

async fn open(
    address: &Address,
    trusted: Option<&Path>,
) -> Result<Channel, tonic::transport::Error> {
    let shape = |endpoint: Endpoint| {
        endpoint
            .connect_timeout(PATIENCE)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .tcp_nodelay(true)
    };
    match address {
        Address::Plain(place) => {
            shape(Endpoint::from_shared(format!("http://{place}"))?).connect().await
        }
        Address::Tls(place) => {
            let endpoint = Endpoint::from_shared(format!("https://{place}"))?;
            shape(endpoint).tls_config(tls(trusted))?.connect().await
        }
        Address::Unix(path) => {
            let path = path.clone();
            let dial = tower::service_fn(move |_| {
                let path = path.clone();
                async move { UnixStream::connect(path).await.map(TokioIo::new) }
            });
            shape(Endpoint::from_static("http://localhost")).connect_with_connector(dial).await
        }
    }
}

/// A file that cannot be read trusts nobody, so the connection fails and says so.
fn tls(trusted: Option<&Path>) -> ClientTlsConfig {
    match trusted {
        None => ClientTlsConfig::new().with_native_roots(),
        Some(path) => {
            let pem = std::fs::read(path).unwrap_or_default();
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem))
        }
    }
}

/// The server at this place, if there is one and it is one of ours.
async fn answering(address: &Address, credentials: Credentials) -> Result<Option<Server>, Failure> {
    if let Address::Unix(path) = address
        && !path.exists()
    {
        return Ok(None);
    }
    let Ok(channel) = open(address, None).await else { return Ok(None) };
    let server = Server::new(channel, credentials);
    match server.info().info(v1::InfoRequest {}).await {
        Ok(info) if info.get_ref().server == "ringfence" => Ok(Some(server)),
        Ok(_) => Ok(None),
        // One of ours that wants to know who asks says so with our details.
        Err(status) if status.code() == Code::Unauthenticated => Err(told(status)),
        // A server from before this call; what is no gRPC server at all does not get so far.
        Err(status) if status.code() == Code::Unimplemented => Ok(Some(server)),
        Err(_) => Ok(None),
    }
}

/// One for each service; answers may have any size, since they were asked for.
macro_rules! services {
    ($($name:ident: $client:ident,)*) => {
        impl Server {
            $(pub(crate) fn $name(&self) -> $client<Connection> {
                $client::new(self.connection.clone()).max_decoding_message_size(usize::MAX)
            })*
        }
    };
}

services! {
    info: ServerServiceClient,
    codebases: CodebaseServiceClient,
    sandboxes: SandboxServiceClient,
    workspace: WorkspaceServiceClient,
    processes: ProcessServiceClient,
    terminals: TerminalServiceClient,
    audit: AuditServiceClient,
    images: ImageServiceClient,
    tokens: TokenServiceClient,
}

impl Server {
    fn new(channel: Channel, credentials: Credentials) -> Self {
        Self { connection: InterceptedService::new(channel, credentials) }
    }

    /// The server that listens on this socket.
    pub(crate) async fn at(socket: &Path) -> Result<Self, Failure> {
        let channel = open(&Address::Unix(socket.into()), None).await;
        let channel = channel.map_err(|e| Failure::broken(root_cause(&e)))?;
        Ok(Self::new(channel, Credentials(None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_understood_as_they_are_written() {
        let parsed = |text: &str| Address::parse(text).ok();
        assert_eq!(parsed("localhost:9000"), Some(Address::Plain("localhost:9000".into())));
        assert_eq!(parsed("http://[::1]:9000/"), Some(Address::Plain("[::1]:9000".into())));
        assert_eq!(parsed("https://h.example:443"), Some(Address::Tls("h.example:443".into())));
        assert_eq!(parsed("unix:///run/a b.sock"), Some(Address::Unix("/run/a b.sock".into())));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "localhost", ":9000", "h:port", "ftp://h:1", "unix://x", "h:1/x", "u@h:1"]
        {
            assert!(Address::parse(text).is_err(), "{text:?}");
        }
    }
}
