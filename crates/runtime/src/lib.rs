//! How is init started in isolation?
//!
//! A runtime answers one request: start init with this workspace, these limits and this network,
//! and hand back the socket to it. What runs inside, and on whose behalf, is not known here; nor
//! are policies, layers or storage.
//!
//! Start with [`Runtime`], then [`bwrap`] or [`docker`]. [`cgroup`] is where limits are made and processes are
//! counted and killed; [`stage`] prepares what the inside sees beside the workspace.

pub mod bwrap;
pub mod cgroup;
pub mod docker;
pub mod etc;
pub mod limits;
pub mod probe;
pub mod stage;
pub mod users;

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use ringfence_sys::spawn::Child;
use serde::{Deserialize, Serialize};

use cgroup::SandboxGroup;
use docker::Container;
pub use limits::Limits;
use stage::Stage;

/// What the inside can reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Its own loopback and nothing else.
    #[default]
    None,
    /// Whatever the host reaches.
    Host,
    /// A network of the container engine's.
    Bridge,
}

/// Everything a runtime needs to start init. All paths are host paths in the mount namespace of
/// the caller, which must be private (see `ringfence_sys::namespaces::enter_private_mounts`).
#[derive(Debug)]
pub struct Start {
    pub id: String,
    /// The sandbox's own directory.
    pub dir: PathBuf,
    /// The guarded workspace, already mounted; seen inside at `/workspace`.
    pub workspace: PathBuf,
    /// Directories that live as long as the sandbox, seen as the user's home and as `/tmp`.
    pub home: PathBuf,
    pub tmp: PathBuf,
    /// The static program that becomes PID 1. It is called with the one argument `init`.
    pub init: PathBuf,
    /// Further host paths shown read-only at the same place.
    pub read_only: Vec<PathBuf>,
    pub network: Network,
    /// Enforced by the groups of the sandbox; filesystems in memory are kept below that of memory.
    pub limits: Limits,
    /// The host user and group to be outside. `None`: the caller's own.
    pub user: Option<(u32, u32)>,
    /// A directory to put what init will see together in. It is covered with a private filesystem,
    /// so it stays empty for everybody else, and what was in it is hidden from the caller. With a
    /// `user`, that user must be able to walk to it: [`stage::PLACE`] is meant for that.
    pub stage: PathBuf,
}

/// Init, started and isolated.
#[derive(Debug)]
pub struct Started {
    /// The outermost process; when it ends everything inside has ended.
    pub child: Child,
    /// The socket to init: descriptor 3 there.
    pub socket: OwnedFd,
    /// Variables that the inside brings along, as `NAME=value`.
    pub env: Vec<String>,
    /// Init, as the host numbers it.
    pub init_pid: i32,
    /// Its descriptor, unless it has ended already.
    init: Option<OwnedFd>,
    hold: Hold,
}

/// What the inside was put together from.
#[derive(Debug)]
enum Hold {
    /// With what bwrap and then init said on standard error, as a file in memory.
    Stage {
        stage: Stage,
        stderr: OwnedFd,
    },
    Container(Container),
}

impl Started {
    /// Init is the outermost process of a container.
    pub(crate) fn in_container(
        child: Child,
        socket: OwnedFd,
        env: Vec<String>,
        container: Container,
    ) -> Self {
        let init_pid = child.pid.as_raw_pid();
        Self { child, socket, env, init_pid, init: None, hold: Hold::Container(container) }
    }

    /// What was said on standard error so far, at most its first few KiB. A container has none.
    pub fn complaint(&self) -> String {
        match &self.hold {
            Hold::Stage { stderr, .. } => bwrap::complaint(stderr),
            Hold::Container(_) => String::new(),
        }
    }

    /// Waits for init's first word. False if there will be none: bwrap has ended, while what it had
    /// forked to become init may wait for it for ever, with the socket open.
    pub fn answers(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, poll};
        loop {
            let mut set = [
                PollFd::new(&self.socket, PollFlags::IN),
                PollFd::new(&self.child.pidfd, PollFlags::IN),
            ];
            match poll(&mut set, None) {
                Ok(_) => return !set[0].revents().is_empty(),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Ends bwrap and init, whichever of them is there.
    pub fn kill(&self) {
        for process in std::iter::once(&self.child.pidfd).chain(&self.init) {
            let _ = rustix::process::pidfd_send_signal(process, rustix::process::Signal::KILL);
        }
    }

    /// Ends everything that was started, for who cannot use it.
    pub fn end(&self) {
        self.kill();
        self.clear_away();
    }

    /// To be called when init has said hello: it has everything it needs from the stage, whose binds
    /// would keep the workspace busy when it is to be unmounted.
    pub fn settled(&self) {
        if let Hold::Stage { stage, .. } = &self.hold {
            stage.take_down();
        }
    }

    /// To be called when everything inside has ended: what was made around it goes too.
    pub fn clear_away(&self) {
        if let Hold::Container(container) = &self.hold {
            container.remove();
        }
    }

    /// Why init never said hello. For a caller whose socket ended before that.
    pub fn failure(&self) -> RuntimeError {
        match &self.hold {
            Hold::Stage { .. } => bwrap::failure(&self.complaint()),
            Hold::Container(_) => docker::ended(),
        }
    }
}

/// A way of making isolation.
pub trait Runtime: Send + Sync {
    fn name(&self) -> &'static str;

    /// How many processes in the groups of a sandbox are ours.
    fn own_processes(&self) -> u64;

    /// Starts init. The calling thread must live as long as the sandbox: what it starts ends with
    /// it.
    fn start(&self, start: &Start, group: &SandboxGroup) -> Result<Started, RuntimeError>;
}

#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error("{program} is not installed")]
    Missing { program: &'static str, hint: String },
    #[error("cannot {step}: {source}")]
    Io { step: String, source: std::io::Error },
    #[error("{message}")]
    Unsupported { message: String, hint: String },
    #[error("{limit} cannot be limited here: {reason}")]
    Unenforceable { limit: &'static str, reason: String, hint: String },
    /// What was asked for cannot be, whatever the host.
    #[error("{message}")]
    Refused { message: String, hint: String },
}

impl RuntimeError {
    pub(crate) fn io(step: impl Into<String>, source: impl Into<std::io::Error>) -> Self {
        Self::Io { step: step.into(), source: source.into() }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Io { .. } => None,
            Self::Missing { hint, .. }
            | Self::Unsupported { hint, .. }
            | Self::Unenforceable { hint, .. }
            | Self::Refused { hint, .. } => Some(hint),
        }
    }
}
