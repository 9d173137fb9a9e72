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
    pub mask: Vec<String>,
    #[serde(default)]
    pub default_mask: Vec<String>,
    #[serde(default)]
    pub ignore_files: Vec<String>,
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
    /// Run in a container of this image, by a container engine, and not by bubblewrap.
    #[serde(default)]
    pub image: Option<String>,
    /// Be who the image says, and not a user of the host that nobody else is.
    #[serde(default)]
    pub image_user: bool,
    /// The bubblewrap to use instead of the one that is found.
    #[serde(default)]
    pub bwrap: Option<PathBuf>,
    /// Where users are allotted from, if the warden runs as root.
    pub users: PathBuf,
}

impl Config {
    /// What of the base does not exist in the workspace.
    pub fn mask_options(&self) -> MaskOptions {
        MaskOptions {
            patterns: self.mask.clone(),
            files: self.ignore_files.clone(),
            weak: self.default_mask.clone(),
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.join("warden.sock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While a binary is being replaced, a server of the old one starts wardens of the new one. What
    /// was left out before must not show up then.
    #[test]
    fn what_an_older_server_leaves_out_is_left_out() {
        let older = r#"{"id": "sb_1", "dir": "/d", "base": "/b", "layer": "/l", "rules": [],
            "users": "/u", "mask": [], "ignore_files": [".gitignore"]}"#;
        let config: Config = serde_json::from_str(older).unwrap();
        assert_eq!(config.mask_options().files, [".gitignore"]);
        let older = older.replace(r#""mask": []"#, r#""mask": ["a"]"#);
        let config: Config = serde_json::from_str(&older).unwrap();
        assert_eq!(config.mask_options().patterns, ["a"]);
    }
}
