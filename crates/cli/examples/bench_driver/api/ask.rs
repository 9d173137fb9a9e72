//! What can be asked for through the API.

use std::path::PathBuf;

use serde::Deserialize;

/// How the server is reached.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Via {
    Tcp,
    Unix,
}

/// What is made of a sandbox's files.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Copying {
    Fork,
    Snapshot,
}

/// `count` is how often; every single time is told.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub(crate) enum Ask {
    /// Start a server; its state is in the driver's directory.
    Serve,
    End,
    /// Create sandboxes and keep them. The other orders use the first.
    Open {
        base: PathBuf,
        size: usize,
        start: bool,
    },
    Close,
    /// An answer of the same size as `get`'s, from a server that does nothing else.
    Echo {
        via: Via,
        count: usize,
    },
    Info {
        via: Via,
        count: usize,
    },
    Get {
        via: Via,
        count: usize,
    },
    Exec {
        via: Via,
        argv: Vec<String>,
        count: usize,
    },
    ExecOutput {
        via: Via,
        argv: Vec<String>,
        bytes: u64,
        count: usize,
    },
    SessionOpen {
        via: Via,
        count: usize,
    },
    /// All of them in one session.
    SessionExec {
        via: Via,
        text: String,
        count: usize,
    },
    SessionOutput {
        via: Via,
        text: String,
        bytes: u64,
        count: usize,
    },
    /// In the same session, but straight to the warden.
    Straight {
        text: String,
        count: usize,
    },
    /// A sandbox from nothing to nothing, with one command in it.
    Life {
        via: Via,
        base: PathBuf,
        count: usize,
    },
    /// The same on a codebase that is stored.
    LifeOf {
        via: Via,
        codebase: String,
        count: usize,
    },
    /// As many of them at once.
    Crowd {
        via: Via,
        base: PathBuf,
        size: usize,
        count: usize,
    },
    /// Of a running sandbox in which so many files were changed.
    Copy {
        via: Via,
        base: PathBuf,
        copying: Copying,
        files: usize,
        count: usize,
    },
    Upload {
        via: Via,
        bytes: usize,
        count: usize,
    },
    Download {
        via: Via,
        bytes: usize,
        count: usize,
    },
}
