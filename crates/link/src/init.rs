//! Between a warden and the init of its sandbox.
//!
//! The warden's side is trusted by init. Init's side is **not** trusted by the warden: it runs
//! beside the code that is fenced in. Frames from it are bounded, ids that were not asked for are
//! ignored, numbers are checked, and whether a process lives is decided by its pidfd.

use serde::{Deserialize, Serialize};

/// What init is asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToInit {
    /// Start a program. Descriptors: those of [`Stdio`], then the cgroup's directory if
    /// `in_cgroup`.
    Spawn(Spawn),
    /// Send a signal to a program started before and to whatever is found to come from it. For a
    /// sandbox without cgroups, which know better.
    Signal { pid: i32, signal: i32 },
    /// Make the directory that a session's shell is driven through (see [`ShellFiles`]).
    ShellFiles { id: u64, session: u64, spec: ShellFiles },
    /// Remove what was made for a session.
    RemoveFiles { session: u64 },
    /// Connect to a port on the loopback inside and hand out the socket.
    Connect { id: u64, port: u16 },
    /// Say which file a program is: `name` as `execvp` would look for it in `path`, links followed.
    FindProgram { id: u64, name: Vec<u8>, path: Vec<u8> },
}

/// A program to start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn {
    /// Chosen by the warden, unique for the life of the sandbox.
    pub id: u64,
    /// The first one is looked for in `PATH` of `env` if it has no slash.
    pub argv: Vec<Vec<u8>>,
    /// The file to run, where the first argument is not its name.
    pub program: Option<Vec<u8>>,
    /// As `NAME=value`.
    pub env: Vec<Vec<u8>>,
    pub cwd: Vec<u8>,
    pub stdio: Stdio,
    pub in_cgroup: bool,
    pub oom_score_adj: i16,
}

/// What a program's descriptors are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdio {
    /// Three descriptors are sent along: 0, 1 and 2. With `extra` one more, which becomes 3.
    #[default]
    Given,
    GivenAndScript,
    /// Three descriptors are sent along, and the program gets a controlling terminal that nobody
    /// types on: job control works, questions asked on it are answered with end of file. Its other
    /// side is sent back with `Started` and tells (`TIOCPKT`) when the answers were thrown away.
    GivenWithSilentTerminal,
    /// A terminal of this size is all three; its other side is sent back with `Started`.
    Terminal {
        rows: u16,
        columns: u16,
    },
}

/// The names of the files through which a shell is driven, in `/run/shell/<session>/`. One that is
/// there already is replaced: who has the old one open keeps it. At most eight in one request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellFiles {
    /// Regular files; a descriptor open for writing is sent back for each.
    pub files: Vec<(String, Vec<u8>)>,
    /// FIFOs to read from: a descriptor open for reading is sent back for each.
    pub outgoing: Vec<String>,
    /// FIFOs to write to: a descriptor open for reading and writing is sent back for each, so that
    /// neither side has to wait for the other.
    pub incoming: Vec<String>,
}

/// What init says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromInit {
    /// The first message.
    Hello { version: u32, confinement: Confinement },
    /// The program runs. Descriptors: its pidfd, then the terminal's other side if it has one.
    Started { id: u64, pid: i32 },
    /// The program does not run.
    Failed { id: u64, step: Step, errno: i32 },
    /// A program that was started has ended.
    Ended { id: u64, ending: Ending, usage: Usage },
    /// The files are there. Descriptors in the order of the request.
    Made { id: u64 },
    /// Descriptor: the connected socket.
    Connected { id: u64 },
    /// A request other than a spawn could not be carried out.
    Refused { id: u64, errno: i32 },
    /// The file a program is.
    Found { id: u64, file: Vec<u8> },
}

/// What init has done to itself and everything it starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    pub seccomp: bool,
    /// The version of Landlock in force; 0 if there is none.
    pub landlock: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// No process could be made: a limit.
    Fork,
    /// Something of the sandbox itself.
    SetUp,
    /// The working directory could not be entered.
    Directory,
    /// The program could not be run.
    Exec,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    Exited(i32),
    Signalled(i32),
}

impl Ending {
    /// As a shell says it: death by signal n is 128 + n.
    pub fn code(self) -> i32 {
        match self {
            Self::Exited(code) => code & 0xff,
            Self::Signalled(signal) => 128 + (signal & 0x7f),
        }
    }
}

/// What a process and the children it waited for used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub user_micros: u64,
    pub system_micros: u64,
    pub peak_memory: u64,
}
