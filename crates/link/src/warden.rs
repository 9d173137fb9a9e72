//! Between a caller (server, CLI, tests) and a warden.
//!
//! One connection is one call: the caller sends a [`Call`], then [`Control`] messages and input
//! bytes while it lasts; the warden answers with [`Reply`] messages and output bytes until
//! [`Reply::is_last`]. So back-pressure, cancellation (hanging up) and the end of a stream are the
//! socket's own.

use serde::{Deserialize, Serialize};

use crate::files::{Applied, Apply, Entry, FileRequest, LayerChange};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    pub version: u32,
    pub request: Request,
    /// What the call is part of, as the caller names it; it goes on record.
    pub trace: Option<String>,
}

/// Everything that can be asked of a sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    Info,
    /// Run one command; hanging up cancels it.
    Exec(Exec),
    OpenSession(OpenSession),
    Sessions,
    Session {
        which: String,
    },
    /// Run a command in a session, by id or name; hanging up cancels the command.
    SessionExec {
        which: String,
        exec: SessionExec,
    },
    CloseSession {
        which: String,
    },
    /// What background jobs of a session have printed, from a byte offset.
    SessionLog {
        which: String,
        from: u64,
        follow: bool,
    },
    StartProcess(StartProcess),
    Processes,
    Process {
        id: String,
    },
    /// Output of a process from a byte offset; hanging up leaves it alone.
    ProcessLog {
        id: String,
        from: u64,
        follow: bool,
    },
    WaitProcess {
        id: String,
        until: Until,
        timeout_ms: Option<u64>,
    },
    /// To the whole tree of the process.
    KillProcess {
        id: String,
        signal: i32,
    },
    KillAllProcesses,
    OpenTerminal(OpenTerminal),
    Terminals,
    /// See and type on a terminal; hanging up detaches.
    Attach {
        id: String,
    },
    ResizeTerminal {
        id: String,
        rows: u16,
        columns: u16,
    },
    CloseTerminal {
        id: String,
    },
    /// A socket connected to a port inside, as a descriptor with the reply.
    Connect {
        port: u16,
    },
    /// Put other rules in force: a JSON list of the policy's rules.
    SetPolicy {
        rules: String,
    },
    /// Signal a running command, by the name its `Started` gave, and its whole tree.
    Signal {
        command: String,
        signal: i32,
    },
    /// Something with a file of the workspace.
    File(FileRequest),
    /// What differs from the base: `Reply::Changes`, then `Reply::Ok`.
    Changes,
    /// The same as a patch, as output; then `Reply::Ok`.
    Diff,
    /// Write the changes to a directory: `Reply::Changes`, then `Reply::Applied`. To write them to
    /// the base itself a sandbox has to be stopped, and that is answered as unsupported.
    Apply(Apply),
    /// Freeze the layer the workspace has now, as a snapshot, and go on in a new one at this path of
    /// the host. Everything inside stands still meanwhile.
    Freeze {
        path: Vec<u8>,
    },
    /// End everything inside. The warden answers when it is done, and ends.
    Stop,
    /// Write down everything that is on record so far.
    FlushRecord,
    /// The same as `Stop`, with what the record says about why.
    StopBecause {
        reason: String,
    },
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// A text for `/bin/sh`.
    Shell(Vec<u8>),
    /// A program and its arguments, without a shell.
    Argv(Vec<Vec<u8>>),
}

/// A name and a value, both bytes.
pub type Variable = (Vec<u8>, Vec<u8>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    pub command: Command,
    pub env: Vec<Variable>,
    /// Default: `/workspace`.
    pub cwd: Option<Vec<u8>>,
    pub timeout_ms: Option<u64>,
    /// Input will be sent as it comes; otherwise there is none.
    pub stdin: bool,
    /// Say which files the command changed.
    pub changes: bool,
}

impl Exec {
    pub fn new(command: Command) -> Self {
        let (env, cwd, timeout_ms) = (vec![], None, None);
        Self { command, env, cwd, timeout_ms, stdin: false, changes: false }
    }

    pub fn shell(text: impl Into<Vec<u8>>) -> Self {
        Self::new(Command::Shell(text.into()))
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenSession {
    /// Unique in the sandbox; made up if not given.
    pub name: Option<String>,
    /// A path or a name to look for; default `bash`, or `sh` where there is no bash.
    pub shell: Option<String>,
    pub cwd: Option<Vec<u8>>,
    pub env: Vec<Variable>,
    /// For commands that give none.
    pub timeout_ms: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionExec {
    pub text: Vec<u8>,
    /// These apply to this call only.
    pub env: Vec<Variable>,
    pub cwd: Option<Vec<u8>>,
    pub timeout_ms: Option<u64>,
    pub stdin: bool,
    pub changes: bool,
    /// If the shell has ended: start another one with its last directory and exported variables.
    pub restart: bool,
}

impl SessionExec {
    pub fn new(text: impl Into<Vec<u8>>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartProcess {
    pub command: Command,
    /// Start with the directory and exported variables of this session, and end with it.
    pub session: Option<String>,
    pub env: Vec<Variable>,
    pub cwd: Option<Vec<u8>>,
    pub id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenTerminal {
    /// Default: an interactive shell.
    pub command: Option<Command>,
    /// Start with the directory and exported variables of this session, and end with it.
    pub session: Option<String>,
    pub env: Vec<Variable>,
    pub cwd: Option<Vec<u8>>,
    pub rows: u16,
    pub columns: u16,
    pub id: Option<String>,
    /// End it when the last one who watches hangs up.
    pub end_when_left: bool,
    /// Keep an asciicast (v2) of everything shown.
    pub record: bool,
}

/// What to wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Until {
    Exit,
    Text(Vec<u8>),
    Pattern(String),
    Port { port: u16, http: Option<HttpCheck> },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpCheck {
    pub path: String,
    pub status_from: u16,
    pub status_to: u16,
}

/// What a caller may add while a call lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Control {
    EndOfInput,
    /// To the whole tree of the command.
    Signal(i32),
    Resize {
        rows: u16,
        columns: u16,
    },
    /// End the command and report what there is.
    Cancel,
}

/// What a warden answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    Info(Box<Info>),
    /// The command runs; output follows.
    Started {
        command: String,
    },
    /// The command is over.
    Done(Box<Outcome>),
    Session(SessionInfo),
    Sessions(Vec<SessionInfo>),
    Process(ProcessInfo),
    Processes(Vec<ProcessInfo>),
    Terminal(TerminalInfo),
    Terminals(Vec<TerminalInfo>),
    /// The bytes that follow begin at this offset (later than asked for if the ring has moved on).
    Log {
        from: u64,
    },
    /// A log or terminal has no more to say, and how it ended if it has.
    LogEnd {
        next: u64,
        status: Option<ProcessStatus>,
    },
    /// What was waited for has come; for a text or pattern, the line it was in.
    Ready {
        line: Option<Vec<u8>>,
    },
    /// Scrollback has been replayed; what follows is live.
    Live,
    Count(u64),
    /// Descriptor: the socket.
    Connected,
    File(Entry),
    /// Some entries; more may follow.
    Entries(Vec<Entry>),
    /// The file's bytes follow.
    Reading(Entry),
    /// The bytes of a file are awaited.
    Send,
    /// Some changes; more may follow.
    Changes(Vec<LayerChange>),
    Applied(Applied),
    /// Where the layer is that was frozen.
    Frozen {
        path: Vec<u8>,
    },
    Ok,
    Error(Failure),
}

impl Reply {
    /// Whether nothing follows in this call.
    pub fn is_last(&self) -> bool {
        !matches!(self, Self::Started { .. } | Self::Log { .. } | Self::Live | Self::Send)
            && !matches!(self, Self::Entries(_) | Self::Reading(_) | Self::Changes(_))
            && !matches!(self, Self::Terminal(info) if info.attached)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub code: Code,
    pub message: String,
    /// What the message says, for programs: names and values.
    pub details: Vec<(String, String)>,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Vec::new() }
    }

    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.details.push((name.into(), value.to_string()));
        self
    }

    pub fn detail(&self, name: &str) -> Option<&str> {
        self.details.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Code {
    InvalidArgument,
    SessionNotFound,
    SessionClosed,
    SessionExists,
    ProcessNotFound,
    ProcessExists,
    TerminalNotFound,
    TerminalExists,
    /// A number of something that is limited has been reached.
    LimitReached,
    /// A wait ran out of time.
    TimedOut,
    /// The process ended before what was waited for came.
    ExitedFirst,
    NotRunning,
    FileNotFound,
    /// Details: `path`, and if the policy decided `needed`, `level` and (if there is one) `rule`.
    PermissionDenied,
    FileExists,
    NotADirectory,
    IsADirectory,
    DirectoryNotEmpty,
    Unsupported,
    Internal,
}

/// How a command ended and what it used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub command: String,
    /// 128 + n for death by signal n, 124 after a timeout.
    pub exit_code: i32,
    pub signal: Option<i32>,
    pub timed_out: bool,
    pub cancelled: bool,
    /// The memory limit ended it.
    pub oom_killed: bool,
    /// Forks were refused by the limit on processes meanwhile.
    pub pids_refused: bool,
    /// The session's shell is gone.
    pub session_ended: bool,
    /// Why, where the code alone does not say.
    pub reason: Option<String>,
    pub duration_micros: u64,
    pub cpu_micros: u64,
    /// The most that any one process had at once, in bytes; 0 if nobody knows. In a session it is as
    /// much of that as was seen while the process ran.
    pub peak_memory: u64,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    pub denied: Vec<Denied>,
    /// More accesses were denied than are listed.
    pub denied_more: u64,
    /// Only if asked for.
    pub changes: Option<Vec<Change>>,
}

/// An access that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    pub operation: String,
    pub path: String,
    pub needed: String,
    pub level: String,
    pub rule: Option<String>,
    /// That of the rule.
    pub priority: Option<i32>,
    pub count: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// `added`, `modified`, `deleted`, …, as `ringfence layer changes` says it.
    pub kind: String,
    pub path: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionInfo {
    pub id: String,
    pub name: String,
    pub shell: String,
    pub cwd: String,
    /// Milliseconds since 1970.
    pub created_ms: u64,
    pub last_used_ms: u64,
    pub busy: bool,
    pub ended: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcessStatus {
    Running,
    Exited(i32),
    Killed(i32),
    Failed(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    pub id: String,
    pub pid: i32,
    pub command: String,
    pub session: Option<String>,
    pub status: ProcessStatus,
    pub created_ms: u64,
    pub ended_ms: Option<u64>,
    /// Bytes of log written so far.
    pub log_end: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalInfo {
    pub id: String,
    pub pid: i32,
    pub command: String,
    pub session: Option<String>,
    pub status: ProcessStatus,
    pub rows: u16,
    pub columns: u16,
    pub created_ms: u64,
    pub watchers: u32,
    /// Sent as the first answer to an attach: bytes follow.
    pub attached: bool,
}

/// What is in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Info {
    pub id: String,
    pub version: u32,
    pub runtime: String,
    /// The host user inside is, outside.
    pub uid: u32,
    pub network: String,
    pub seccomp: bool,
    pub landlock: u32,
    pub memory: Option<u64>,
    pub cpu_quota: Option<u64>,
    pub cpu_shares: Option<u64>,
    pub pids: Option<u64>,
    /// Whether a command's processes are tracked by the kernel (cgroup), or as well as can be.
    pub tracking: String,
    pub warden_pid: i32,
    pub init_pid: i32,
}
