//! What is recorded: one variant per kind of entry, each with a plain struct of its fields.
//!
//! Ids are strings, times are microseconds, sizes are bytes. Contents of files, values of variables
//! and output are never here.

use ringfence_policy::Rule;
use serde::{Deserialize, Serialize};

pub use super::access::{Access, Decision, KeptOpen, RuleName};
pub use super::file_call::{FileCall, Viewer};
use super::text::{List, Text};

/// Something that happened. The variant's name in snake case is the `kind` of the entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// Always the first entry. Written by the journal itself.
    JournalCreated(JournalCreated),
    /// Another process continues the journal. Written by the journal itself.
    JournalResumed(JournalResumed),
    SandboxStarted(SandboxStarted),
    SandboxEnded(SandboxEnded),
    CommandStarted(CommandStarted),
    CommandEnded(CommandEnded),
    SessionOpened(SessionOpened),
    SessionClosed(SessionClosed),
    ProcessOpened(ProcessOpened),
    ProcessClosed(ProcessClosed),
    TerminalOpened(TerminalOpened),
    TerminalClosed(TerminalClosed),
    TerminalBytes(TerminalBytes),
    Access(Access),
    KeptOpen(KeptOpen),
    FileCall(FileCall),
    PolicyChanged(PolicyChanged),
    LimitHit(LimitHit),
    EventsLost(EventsLost),
    /// Stands for an entry that would have been too long. Written by the journal itself.
    Oversized(Oversized),
    /// A kind this version does not know.
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalCreated {
    pub sandbox: String,
    pub format: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalResumed {
    /// Whether the one who wrote before closed the journal in order.
    pub closed: bool,
    /// The size of the incomplete entry that was cut off the end.
    pub torn_bytes: u64,
}

/// What is in force from here on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxStarted {
    pub runtime: String,
    /// The uid on the host that everything inside runs as.
    pub uid: u32,
    pub limits: Limits,
    pub network: String,
    pub policy: PolicyInForce,
    /// The walls that stand, each by a short name (`seccomp`, `landlock 6`, `cgroup v1`).
    pub confinement: Vec<String>,
}

/// Limits that are enforced; none where there is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub memory_bytes: Option<u64>,
    /// Processor time per 100 ms.
    pub cpu_quota_us: Option<u64>,
    pub cpu_shares: Option<u64>,
    pub pids: Option<u64>,
    pub wall_time_us: Option<u64>,
}

/// Names a policy without repeating it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyInForce {
    pub rules: u64,
    /// BLAKE3 of the rules, in order, as JSON.
    pub digest: String,
}

impl PolicyInForce {
    pub fn of(rules: &[Rule]) -> Self {
        let text = serde_json::to_vec(rules).expect("rules are plain data with text keys");
        Self { rules: rules.len() as u64, digest: blake3::hash(&text).to_string() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxEnded {
    pub reason: String,
    /// Whether everything it held was given back.
    pub clean: bool,
}

/// Which of the four ways a command is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    Exec,
    Session,
    Process,
    Terminal,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandStarted {
    pub command: String,
    pub how: How,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What was asked for: `{"shell": TEXT}` or `{"argv": [...]}`.
    #[serde(flatten)]
    pub line: CommandLine,
    pub cwd: Text,
    /// Names of the variables given with the command; never their values.
    pub env: List,
    /// What the call is part of, as the caller named it (a `traceparent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandLine {
    /// A text for a shell.
    Shell(Text),
    /// A program and its arguments, without a shell.
    Argv(List),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnded {
    pub command: String,
    /// One of these two, unless it could not be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    pub duration_us: u64,
    /// None where this host cannot measure it for one command.
    pub cpu_us: Option<u64>,
    /// The most that any one process had at once; in a session, as much of that as was seen while
    /// the process ran. None if nobody knows, as of a shell that ended at once.
    pub peak_memory_bytes: Option<u64>,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    pub timed_out: bool,
    pub cancelled: bool,
    pub oom_killed: bool,
    /// The shell ended with the command.
    pub session_ended: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionOpened {
    pub session: String,
    pub name: Text,
    pub shell: Text,
    pub cwd: Text,
    /// Names of variables; never their values.
    pub env: List,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionClosed {
    pub session: String,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessOpened {
    pub process: String,
    /// The command it runs; its start and end are entries of their own.
    pub command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessClosed {
    pub process: String,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalOpened {
    pub terminal: String,
    /// The command it runs; its start and end are entries of their own.
    pub command: String,
    pub columns: u16,
    pub rows: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalClosed {
    pub terminal: String,
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Typed,
    Shown,
}

/// Bytes of a terminal by reference: who has a recording can show that it is the right one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalBytes {
    pub terminal: String,
    pub direction: Direction,
    /// Where in the stream of that direction they begin.
    pub offset: u64,
    pub size: u64,
    pub blake3: String,
}

impl TerminalBytes {
    pub fn of(terminal: &str, direction: Direction, offset: u64, bytes: &[u8]) -> Self {
        Self {
            terminal: terminal.to_owned(),
            direction,
            offset,
            size: bytes.len() as u64,
            blake3: blake3::hash(bytes).to_string(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyChanged {
    pub policy: PolicyInForce,
    /// Who asked for it, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitHit {
    pub limit: Limit,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    Memory,
    Cpu,
    Pids,
    WallTime,
    Disk,
    Output,
    /// The journal reached its size: granted accesses are only counted from here on.
    JournalSize,
    #[serde(other)]
    Unknown,
}

/// Accesses that happened and have no entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsLost {
    pub count: u64,
    pub why: Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Lost {
    /// The filesystem was faster than the one who records.
    Channel,
    /// The journal had reached its size.
    JournalSize,
    /// The journal could not be written (a full disk) for so long that they could not be held.
    NotWritable,
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Oversized {
    pub size: u64,
    /// BLAKE3 of the event that was left out, as JSON.
    pub blake3: String,
}
