//! One rule, as people write it. What rules mean together is decided in `policy.rs`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::RuleError;
use crate::glob::Glob;
use crate::level::Level;

/// How a rule's pattern is read.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum PatternType {
    /// Wildcards, anchored at the workspace root.
    #[default]
    Glob,
    /// This directory and everything below it, no wildcards.
    Directory,
    /// Exactly this path, no wildcards.
    File,
}

impl PatternType {
    const ALL: [PatternType; 3] = [PatternType::Glob, PatternType::Directory, PatternType::File];

    pub fn as_str(self) -> &'static str {
        match self {
            PatternType::Glob => "glob",
            PatternType::Directory => "directory",
            PatternType::File => "file",
        }
    }
}

impl fmt::Display for PatternType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for PatternType {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        PatternType::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| RuleError::UnknownType { text: text.to_owned() })
    }
}

/// Where a rule came from, so that `explain` can say whom to ask.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleSource {
    /// A preset, by name.
    Preset(String),
    /// The person or program that made the sandbox.
    #[default]
    User,
}

impl fmt::Display for RuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleSource::Preset(name) => write!(f, "preset {name}"),
            RuleSource::User => f.write_str("user"),
        }
    }
}

/// A pattern and the level it gives to the paths it matches.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub pattern: String,
    #[serde(rename = "type", default)]
    pub pattern_type: PatternType,
    pub level: Level,
    #[serde(default)]
    pub priority: i32,
    #[serde(default)]
    pub source: RuleSource,
}

impl Rule {
    /// A user's glob rule of priority 0.
    pub fn glob(level: Level, pattern: impl Into<String>) -> Self {
        Rule {
            pattern: pattern.into(),
            pattern_type: PatternType::Glob,
            level,
            priority: 0,
            source: RuleSource::User,
        }
    }

    /// The same rule with another priority.
    pub fn at(self, priority: i32) -> Self {
        Rule { priority, ..self }
    }

    /// The same rule with another pattern type.
    pub fn of_type(self, pattern_type: PatternType) -> Self {
        Rule { pattern_type, ..self }
    }

    /// Reads `LEVEL:PATTERN[@PRIORITY]`, always a glob: `none:**/*.key@100`, `write:/output/**`.
    ///
    /// An `@` inside the last component is the start of a priority, and anything but a whole number
    /// behind it is refused: `none:*.key@high` must not become a pattern that matches nothing. At
    /// the start of a component it is a character (`read:/@types`); elsewhere it is written `\@`
    /// (`read:/mail\@2024`), or with a priority behind it (`read:/mail@2024@0`).
    pub fn parse_cli(text: &str) -> Result<Rule, RuleError> {
        let (level, rest) =
            text.split_once(':').ok_or_else(|| RuleError::NoLevel { text: text.to_owned() })?;
        let level = level.parse()?;
        let (pattern, priority) = split_priority(rest)?;
        let rule = Rule::glob(level, pattern).at(priority);
        Glob::parse(&rule)
            .map_err(|source| RuleError::Pattern { pattern: pattern.to_owned(), source })?;
        Ok(rule)
    }
}

/// Splits at a final `@NUMBER`. A number too big for a priority is refused instead of being taken
/// as part of the pattern: it would silently match nothing.
fn split_priority(text: &str) -> Result<(&str, i32), RuleError> {
    let Some((pattern, number)) = text.rsplit_once('@') else {
        return Ok((text, 0));
    };
    let starts_component = pattern.is_empty() || pattern.ends_with('/');
    let literal = starts_component || number.contains('/') || ends_in_escape(pattern);
    if literal && !(starts_component && is_whole_number(number)) {
        return Ok((text, 0));
    }
    match number.parse() {
        Ok(priority) => Ok((pattern, priority)),
        Err(_) => Err(RuleError::Priority { text: number.to_owned() }),
    }
}

fn is_whole_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn ends_in_escape(text: &str) -> bool {
    let backslashes = text.bytes().rev().take_while(|byte| *byte == b'\\').count();
    backslashes % 2 == 1
}

/// The form `parse_cli` reads, for globs; other types are named behind it.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}@{}", self.level, self.pattern, self.priority)?;
        match self.pattern_type {
            PatternType::Glob => Ok(()),
            other => write!(f, " ({other})"),
        }
    }
}
