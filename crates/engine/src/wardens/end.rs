//! Noticing that a warden has gone, and removing what it held.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use ringfence_runtime::cgroup::Cgroups;
use ringfence_runtime::users::{DEFAULT_RANGE, Users};
use ringfence_warden::life::is_owned;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::unix::AsyncFd;

/// A process that is not necessarily a child of this one.
#[derive(Debug)]
pub struct Watched {
    pidfd: AsyncFd<OwnedFd>,
}

impl Watched {
    /// Must be made while the process is known to be the one that is meant.
    pub fn new(pid: i32) -> io::Result<Self> {
        let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
        Self::of(pidfd_open(pid, PidfdFlags::NONBLOCK)?)
    }

    /// The process that a pidfd refers to.
    pub fn of(pidfd: OwnedFd) -> io::Result<Self> {
        // What is deprecated is that the descriptor could be closed while it is registered: this
        // one is owned here and nowhere else.
        #[allow(deprecated)]
        let pidfd = AsyncFd::new(pidfd)?;
        Ok(Self { pidfd })
    }

    /// Returns when it has ended.
    pub async fn ended(&self) {
        let _ = self.pidfd.readable().await;
    }

    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
    }
}

/// Whether a warden owns this directory now, or is about to.
pub fn is_alive(dir: &Path) -> bool {
    is_owned(dir) || is_starting(dir)
}

/// Its log is locked from the moment it is started; see [`super::launch`].
fn is_starting(dir: &Path) -> bool {
    let Ok(log) = std::fs::File::open(dir.join("warden.log")) else { return false };
    flock(&log, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

/// Removes what a warden that was killed held: processes, groups, its number and its socket. Doing
/// it for one that ended in order is fine. Home, temporary files and layer stay.
pub fn clean_up(dir: &Path, id: &str, users: &Path) {
    if let Ok(cgroups) = Cgroups::of_this_host() {
        let _ = cgroups.remove_leftovers(id);
    }
    if let Err(error) = ringfence_runtime::docker::remove_leftovers(dir, id) {
        tracing::warn!(sandbox = id, %error, "its container may be left");
    }
    Users::new(DEFAULT_RANGE, users).sweep();
    for name in ["warden.sock", "config.json"] {
        let _ = std::fs::remove_file(dir.join(name));
    }
    for name in ["stage", "workspace"] {
        let _ = std::fs::remove_dir(dir.join(name));
    }
}
