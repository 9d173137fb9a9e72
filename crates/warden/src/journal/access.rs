//! Accesses: the filesystem's decisions as entries.

use std::borrow::Cow;

use ringfence_fs::events::{AccessEvent, Operation};
use ringfence_policy::{Level, Rule};
use serde::{Deserialize, Serialize};

use super::event::Event;
use super::text::Text;

/// A decision of the guard. See `Event::access`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    pub operation: Cow<'static, str>,
    pub path: Text,
    pub decision: Decision,
    pub needed: Level,
    pub level: Level,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleName>,
    pub pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Text>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// How many equal accesses this entry stands for, if more than one. Set by the journal.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u64,
    /// When the last of them was, if more than one. Set by the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
}

fn one() -> u64 {
    1
}

fn is_one(count: &u64) -> bool {
    *count == 1
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Granted,
    Denied,
}

/// A rule as people write it (`none:**/.env*@100`) and where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleName {
    pub text: String,
    pub source: String,
}

impl From<&Rule> for RuleName {
    fn from(rule: &Rule) -> Self {
        Self { text: rule.to_string(), source: rule.source.to_string() }
    }
}

/// A policy change left a program a file it may no longer open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptOpen {
    pub path: Text,
    /// The level the open file stands for, and the one the path has now.
    pub needed: Level,
    pub level: Level,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleName>,
    pub pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// Who is known to have asked; nothing of it need be known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    pub command: Option<String>,
    pub session: Option<String>,
    /// The name of the program, as the kernel knows it.
    pub program: Option<Text>,
}

impl Event {
    /// The entry for a decision of the guard.
    pub fn access(event: &AccessEvent, caller: Caller) -> Self {
        match event.operation {
            Operation::KeptOpen => Self::KeptOpen(kept_open(event, caller)),
            _ => Self::Access(access(event, caller)),
        }
    }

    /// Whether this is an access that was refused, by a program or in its view.
    pub fn is_denial(&self) -> bool {
        match self {
            Self::Access(access) => access.decision == Decision::Denied,
            Self::FileCall(call) => call.decision == Decision::Denied,
            _ => false,
        }
    }
}

fn access(event: &AccessEvent, caller: Caller) -> Access {
    Access {
        operation: Cow::Borrowed(event.operation.as_str()),
        path: Text::new(event.path.as_bytes()),
        decision: if event.granted { Decision::Granted } else { Decision::Denied },
        needed: event.needed,
        level: event.level,
        rule: event.rule.as_ref().map(RuleName::from),
        pid: event.pid,
        program: caller.program,
        command: caller.command,
        session: caller.session,
        count: 1,
        last: None,
    }
}

fn kept_open(event: &AccessEvent, caller: Caller) -> KeptOpen {
    KeptOpen {
        path: Text::new(event.path.as_bytes()),
        needed: event.needed,
        level: event.level,
        rule: event.rule.as_ref().map(RuleName::from),
        pid: event.pid,
        command: caller.command,
    }
}
