//! What can be asked for, and what is answered.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ringfence_link::client::ClientError;
use ringfence_link::warden::Code;
use serde::{Deserialize, Serialize};

use crate::api::Ask;

/// `count` is how often; every single time is told.
#[derive(Debug, Deserialize)]
#[serde(tag = "work", rename_all = "kebab-case")]
pub(crate) enum Order {
    /// Start a program of the host and wait for its end.
    Spawn {
        argv: Vec<String>,
        count: usize,
    },
    /// The same with a plain fork, as init does it.
    Fork {
        program: String,
        count: usize,
    },
    /// Read all that a program of the host prints.
    SpawnOutput {
        argv: Vec<String>,
        bytes: u64,
        count: usize,
    },
    /// Mount a directory and look into it.
    Mount {
        base: PathBuf,
        count: usize,
    },
    /// A sandbox from nothing to nothing, with one command in it.
    Life {
        base: PathBuf,
        count: usize,
    },
    /// As many of them at once.
    Crowd {
        base: PathBuf,
        size: usize,
        count: usize,
    },
    /// Start sandboxes and keep them. The other orders use the first.
    Open {
        base: PathBuf,
        size: usize,
    },
    Close,
    Exec {
        argv: Vec<String>,
        count: usize,
    },
    /// Read all that a command in the sandbox prints.
    ExecOutput {
        argv: Vec<String>,
        bytes: u64,
        count: usize,
    },
    SessionOpen {
        count: usize,
    },
    /// All of them in one session.
    SessionExec {
        text: String,
        count: usize,
    },
    SessionOutput {
        text: String,
        bytes: u64,
        count: usize,
    },
    /// Of a server instead of wardens.
    Api(Ask),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// By what was timed.
    Times(BTreeMap<&'static str, Vec<f64>>),
    /// The wardens of the sandboxes that were started.
    Wardens(Vec<u32>),
    /// A server that was started, and where it listens.
    Server {
        pid: u32,
        address: String,
    },
    Done,
    /// This build cannot do it.
    Unavailable(String),
    Failed(String),
}

/// Why something was not measured.
#[derive(Debug)]
pub(crate) enum Trouble {
    Unavailable(String),
    Failed(String),
}

impl Trouble {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }
}

impl From<Trouble> for Answer {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Unavailable(reason) => Self::Unavailable(reason),
            Trouble::Failed(reason) => Self::Failed(reason),
        }
    }
}

impl From<ClientError> for Trouble {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(failure) if failure.code == Code::Unsupported => {
                Self::Unavailable(failure.message)
            }
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<serde_json::Error> for Trouble {
    fn from(error: serde_json::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<tonic::Status> for Trouble {
    fn from(status: tonic::Status) -> Self {
        Self::Failed(format!("{:?}: {}", status.code(), status.message()))
    }
}

impl From<tonic::transport::Error> for Trouble {
    fn from(error: tonic::transport::Error) -> Self {
        Self::Failed(format!("{error:?}"))
    }
}
