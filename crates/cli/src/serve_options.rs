//! The options of `ringfence serve`: on the command line, in the environment, in a file.

use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use serde::Deserialize;

use crate::failure::Failure;
use crate::logging::LogFormat;

/// Each is an option, a variable and a key of the file; the names differ in their dashes only.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServeOptions {
    /// The address to listen on, or `off` for the Unix socket alone [default: 127.0.0.1:9000]
    #[arg(long, value_name = "ADDRESS", env = "RINGFENCE_LISTEN")]
    pub(crate) listen: Option<Listen>,
    /// The Unix socket to listen on; the server's own user may name directories of this host there
    /// [default: server/api.sock in the state directory]
    #[arg(long, value_name = "PATH", env = "RINGFENCE_UNIX")]
    pub(crate) unix: Option<PathBuf>,
    /// The certificate chain, as PEM; with it everything on the address is TLS
    #[arg(long, value_name = "FILE", env = "RINGFENCE_TLS_CERT")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its private key, as PEM
    #[arg(long, value_name = "FILE", env = "RINGFENCE_TLS_KEY")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Ask callers on this machine for a token too
    #[arg(long, env = "RINGFENCE_REQUIRE_TOKEN")]
    pub(crate) require_token: bool,
    /// Stop all sandboxes when the server ends
    #[arg(long, env = "RINGFENCE_STOP_SANDBOXES")]
    pub(crate) stop_sandboxes: bool,
    /// Refuse images that the container engine does not have yet, instead of fetching them
    #[arg(long, env = "RINGFENCE_NO_IMAGE_FETCH")]
    pub(crate) no_image_fetch: bool,
    /// How many sandboxes an account may have [default: 1000]
    #[arg(long, value_name = "N", env = "RINGFENCE_MAX_SANDBOXES")]
    pub(crate) max_sandboxes: Option<usize>,
    /// The largest file that can be uploaded, in bytes
    #[arg(long, value_name = "BYTES", env = "RINGFENCE_MAX_FILE_SIZE")]
    pub(crate) max_file_size: Option<u64>,
    /// The most that the files of a codebase may have together, in bytes
    #[arg(long, value_name = "BYTES", env = "RINGFENCE_MAX_CODEBASE_SIZE")]
    pub(crate) max_codebase_size: Option<u64>,
    /// The most that all codebases of an account may have together, in bytes
    #[arg(long, value_name = "BYTES", env = "RINGFENCE_MAX_STORAGE")]
    pub(crate) max_storage: Option<u64>,
    /// How many days the record of a sandbox is kept after its end [default: 30]
    #[arg(long, value_name = "DAYS", env = "RINGFENCE_KEEP_JOURNALS")]
    pub(crate) keep_journals: Option<u32>,
    /// How many seconds a leased sandbox is kept without a sign of its holder [default: 60]
    #[arg(long, value_name = "N", env = "RINGFENCE_LEASE_SECONDS")]
    pub(crate) lease_seconds: Option<NonZeroU32>,
    /// How many seconds a codebase that was made to go with its sandboxes is kept if none is made,
    /// after the last call that sends files to it [default: 600]
    #[arg(long, value_name = "N", env = "RINGFENCE_ABANDONED_SECONDS")]
    pub(crate) abandoned_seconds: Option<NonZeroU32>,
    /// What to log: error, warn, info, debug, trace, or a filter such as `ringfence_engine=debug`
    /// [default: info]
    #[arg(long, value_name = "LEVEL", env = "RINGFENCE_LOG_LEVEL")]
    pub(crate) log_level: Option<String>,
    /// How to log, on standard error
    #[arg(long, value_name = "FORMAT", env = "RINGFENCE_LOG_FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    /// The state directory, which has an option of its own on the command line.
    #[arg(skip)]
    pub(crate) state: Option<PathBuf>,
}

/// Where to listen for TCP connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Listen {
    Off,
    At(SocketAddr),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::Off);
        }
        let bad = || format!("{text:?} is not an address and a port, such as 127.0.0.1:9000");
        // `:9000` is what others call all addresses of a host; here it is none, on purpose.
        let mut found = text.to_socket_addrs().map_err(|_| bad())?;
        found.next().map(Self::At).ok_or_else(bad)
    }
}

impl TryFrom<String> for Listen {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl ServeOptions {
    /// What is not given is taken from the file.
    pub(crate) fn over_file(self, file: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = file else { return Ok(self) };
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::bad_input(format!("cannot read {shown}: {e}")))?;
        let file: Self = toml::from_str(&text).map_err(|e| {
            let place = e.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            let message = e.message().replace('\n', " ");
            Failure::bad_input(format!("{shown}, line {place}: {message}"))
        })?;
        Ok(self.or(file))
    }

    fn or(self, other: Self) -> Self {
        Self {
            listen: self.listen.or(other.listen),
            unix: self.unix.or(other.unix),
            tls_cert: self.tls_cert.or(other.tls_cert),
            tls_key: self.tls_key.or(other.tls_key),
            require_token: self.require_token || other.require_token,
            stop_sandboxes: self.stop_sandboxes || other.stop_sandboxes,
            no_image_fetch: self.no_image_fetch || other.no_image_fetch,
            max_sandboxes: self.max_sandboxes.or(other.max_sandboxes),
            max_file_size: self.max_file_size.or(other.max_file_size),
            max_codebase_size: self.max_codebase_size.or(other.max_codebase_size),
            max_storage: self.max_storage.or(other.max_storage),
            keep_journals: self.keep_journals.or(other.keep_journals),
            lease_seconds: self.lease_seconds.or(other.lease_seconds),
            abandoned_seconds: self.abandoned_seconds.or(other.abandoned_seconds),
            log_level: self.log_level.or(other.log_level),
            log_format: self.log_format.or(other.log_format),
            state: self.state.or(other.state),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_file(text: &str) -> Result<ServeOptions, Failure> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ringfence.toml");
        std::fs::write(&path, text).unwrap();
        let typed = ServeOptions { max_sandboxes: Some(3), ..ServeOptions::default() };
        typed.over_file(Some(&path))
    }

    #[test]
    fn what_is_typed_wins_over_the_file() {
        let read = from_file("max_sandboxes = 9\nlisten = \"localhost:9001\"\n").unwrap();
        assert_eq!(read.max_sandboxes, Some(3));
        assert!(matches!(read.listen, Some(Listen::At(address)) if address.port() == 9001));
    }

    #[test]
    fn a_mistake_in_the_file_is_told_with_its_line() {
        let unknown = from_file("listen = \"off\"\nlisen = 1\n").unwrap_err();
        let unknown = format!("{unknown:?}");
        assert!(unknown.contains("line 2") && unknown.contains("lisen"), "{unknown}");
        assert!(from_file("listen = \"nowhere\"").is_err());
        assert!(from_file("max_sandboxes = \"many\"").is_err());
        assert!(ServeOptions::default().over_file(Some(Path::new("/nonexistent"))).is_err());
    }
}
