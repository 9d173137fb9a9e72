//! Why something could not be done, in words that stay the same.
//!
//! The codes are those of `api/errors.json`; a test compares them.

use std::collections::BTreeMap;

/// What went wrong, as programs tell it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    InvalidArgument,
    Unauthenticated,
    CodebaseNotFound,
    SandboxNotFound,
    SessionNotFound,
    ProcessNotFound,
    TerminalNotFound,
    SnapshotNotFound,
    FileNotFound,
    RouteNotFound,
    TokenNotFound,
    PermissionDenied,
    SandboxNotRunning,
    SandboxRunning,
    SessionClosed,
    CodebaseInUse,
    SnapshotInUse,
    ApplyConflict,
    SessionAlreadyExists,
    ProcessAlreadyExists,
    TerminalAlreadyExists,
    FileAlreadyExists,
    ProcessExited,
    CommandTimeout,
    WaitTimeout,
    ResourceLimitExceeded,
    Unsupported,
    Internal,
}

impl Code {
    pub const ALL: [Self; 28] = [
        Self::InvalidArgument,
        Self::Unauthenticated,
        Self::CodebaseNotFound,
        Self::SandboxNotFound,
        Self::SessionNotFound,
        Self::ProcessNotFound,
        Self::TerminalNotFound,
        Self::SnapshotNotFound,
        Self::FileNotFound,
        Self::RouteNotFound,
        Self::TokenNotFound,
        Self::PermissionDenied,
        Self::SandboxNotRunning,
        Self::SandboxRunning,
        Self::SessionClosed,
        Self::CodebaseInUse,
        Self::SnapshotInUse,
        Self::ApplyConflict,
        Self::SessionAlreadyExists,
        Self::ProcessAlreadyExists,
        Self::TerminalAlreadyExists,
        Self::FileAlreadyExists,
        Self::ProcessExited,
        Self::CommandTimeout,
        Self::WaitTimeout,
        Self::ResourceLimitExceeded,
        Self::Unsupported,
        Self::Internal,
    ];

    /// `SANDBOX_NOT_FOUND` and so on.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::CodebaseNotFound => "CODEBASE_NOT_FOUND",
            Self::SandboxNotFound => "SANDBOX_NOT_FOUND",
            Self::SessionNotFound => "SESSION_NOT_FOUND",
            Self::ProcessNotFound => "PROCESS_NOT_FOUND",
            Self::TerminalNotFound => "TERMINAL_NOT_FOUND",
            Self::SnapshotNotFound => "SNAPSHOT_NOT_FOUND",
            Self::FileNotFound => "FILE_NOT_FOUND",
            Self::RouteNotFound => "ROUTE_NOT_FOUND",
            Self::TokenNotFound => "TOKEN_NOT_FOUND",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::SandboxNotRunning => "SANDBOX_NOT_RUNNING",
            Self::SandboxRunning => "SANDBOX_RUNNING",
            Self::SessionClosed => "SESSION_CLOSED",
            Self::CodebaseInUse => "CODEBASE_IN_USE",
            Self::SnapshotInUse => "SNAPSHOT_IN_USE",
            Self::ApplyConflict => "APPLY_CONFLICT",
            Self::SessionAlreadyExists => "SESSION_ALREADY_EXISTS",
            Self::ProcessAlreadyExists => "PROCESS_ALREADY_EXISTS",
            Self::TerminalAlreadyExists => "TERMINAL_ALREADY_EXISTS",
            Self::FileAlreadyExists => "FILE_ALREADY_EXISTS",
            Self::ProcessExited => "PROCESS_EXITED",
            Self::CommandTimeout => "COMMAND_TIMEOUT",
            Self::WaitTimeout => "WAIT_TIMEOUT",
            Self::ResourceLimitExceeded => "RESOURCE_LIMIT_EXCEEDED",
            Self::Unsupported => "UNSUPPORTED",
            Self::Internal => "INTERNAL",
        }
    }
}

/// A refusal or a failure. The message is for people and never holds a path of the host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    pub code: Code,
    pub message: String,
    /// What programs may want to know: `path`, `level_needed`, `rule`, `status`, …
    pub details: BTreeMap<String, String>,
}

impl Problem {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: BTreeMap::new() }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// Something of ours broke. What exactly goes to the log: it may name paths of the host.
    pub fn internal(what: &str, cause: impl std::fmt::Display) -> Self {
        tracing::error!(what, %cause, "internal problem");
        Self::new(Code::Internal, format!("internal error: cannot {what}"))
    }

    pub fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        self.details.insert(key.into(), value.into());
        self
    }
}

pub type Result<T> = std::result::Result<T, Problem>;
