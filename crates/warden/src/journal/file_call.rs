//! What callers do with files, beside what programs do.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::access::{Decision, RuleName};
use super::text::Text;

/// A call of the API about the workspace's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCall {
    pub operation: Cow<'static, str>,
    pub path: Text,
    /// Where something was moved to, or a link leads; of a snapshot, where the workspace goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Text>,
    pub view: Viewer,
    /// Of the policy; the owner is never refused by it.
    pub decision: Decision,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleName>,
    /// Why it came to nothing all the same, or how the refusal was put.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'static, str>>,
    /// What the call is part of, as the caller named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Viewer {
    Owner,
    Agent,
}

impl FileCall {
    /// A call of the owner that succeeded.
    pub fn new(operation: &'static str, path: &[u8]) -> Self {
        Self {
            operation: Cow::Borrowed(operation),
            path: Text::new(path),
            to: None,
            view: Viewer::Owner,
            decision: Decision::Granted,
            rule: None,
            error: None,
            trace: crate::trace::current(),
        }
    }
}
