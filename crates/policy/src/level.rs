//! The four levels, ordered from nothing to everything.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::RuleError;

/// What code in the sandbox may do with a path. The order is the meaning: each level includes the
/// ones below it, so "may it be read" is `level >= Level::Read`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The path does not exist. The default, because a path nobody mentioned stays hidden.
    #[default]
    None,
    /// Name, type, size and times are visible; content is not.
    View,
    /// Content can be read and executed.
    Read,
    /// Everything, including deletion.
    Write,
}

impl Level {
    /// Every level, lowest first.
    pub const ALL: [Level; 4] = [Level::None, Level::View, Level::Read, Level::Write];

    /// The name used in rules, policy files and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::None => "none",
            Level::View => "view",
            Level::Read => "read",
            Level::Write => "write",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Level {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        Level::ALL
            .into_iter()
            .find(|level| level.as_str() == text)
            .ok_or_else(|| RuleError::UnknownLevel { text: text.to_owned() })
    }
}
