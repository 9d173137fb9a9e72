//! What a warden is told at its start.

use std::path::PathBuf;

use ringfence_fs::layers::mask::MaskOptions;
use ringfence_policy::Rule;
use ringfence_runtime::{Limits, Network};
use serde::{Deserialize, Serialize};

/// One sandbox, as whoever starts the warden describes it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Config {
    pub id: String,
    /// The sandbox's own directory: socket, journal, home and temporary files.
    pub dir: PathBuf,
    /// What is worked on; never written to.
    pub base: PathBuf,
    /// Where changes go.
    pub layer: PathBuf,
    pub rules: Vec<Rule>,
    #[serde(default)]
    pub mask: MaskOptions,
    #[serde(default)]
    pub limits: Limits,
    #[serde(default)]
    pub network: Network,
    /// Variables of every command.
    #[serde(default)]
    pub env: Vec<(String, String)>,
    #[serde(default)]
    pub read_only: Vec<PathBuf>,
    /// End when standard input ends: whoever started the warden is gone.
    #[serde(default)]
    pub ends_with_caller: bool,
    /// Home and temporary files outlive this warden: the sandbox may be started again.
    #[serde(default)]
    pub keeps_files: bool,
    /// The bubblewrap to use instead of the one that is found.
    #[serde(default)]
    pub bwrap: Option<PathBuf>,
    /// Where users are allotted from, if the warden runs as root.
    pub users: PathBuf,
}

impl Config {
    pub fn socket(&self) -> PathBuf {
        self.dir.join("warden.sock")
    }
}
