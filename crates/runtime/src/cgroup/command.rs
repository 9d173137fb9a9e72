//! The processes of one command, however often they fork and whatever they leave behind.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::process::Signal;

use super::group::Group;

/// A version 2 group below the sandbox's. Dropping it kills what is in it and removes it.
#[derive(Debug)]
pub struct CommandGroup {
    group: Group,
    dir: OwnedFd,
}

impl CommandGroup {
    pub(super) fn new(group: Group, dir: OwnedFd) -> Self {
        Self { group, dir }
    }

    /// The directory, to be born into with `CLONE_INTO_CGROUP`.
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// The members, as host pids.
    pub fn pids(&self) -> Vec<i32> {
        self.group.pids()
    }

    /// Whether this process is the only member. Cheaper than to ask for all.
    pub fn holds_only(&self, pid: i32) -> bool {
        self.group.read("cgroup.procs").is_ok_and(|pids| pids.trim_ascii_end() == pid.to_string())
    }

    /// Whether no member is alive. One that has ended and was not waited for does not count.
    pub fn is_empty(&self) -> bool {
        self.group.is_empty()
    }

    /// Ends every member, those included that are forked at this moment. Returns when they have
    /// been told, which is a little before they are gone.
    pub fn kill(&self) -> io::Result<()> {
        self.group.kill()
    }

    /// Sends a signal to every member except those.
    pub fn signal(&self, signal: i32, except: &[i32]) -> io::Result<()> {
        let signal = Signal::from_named_raw(signal).ok_or(io::ErrorKind::InvalidInput)?;
        self.group.signal(signal, except);
        Ok(())
    }

    /// Makes a process a member. Its children so far stay where they are.
    ///
    /// Only a real number will do: 0 means the caller to the kernel, who would then be killed with
    /// the group.
    pub fn move_in(&self, pid: i32) -> io::Result<()> {
        if pid <= 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.group.write("cgroup.procs", &pid.to_string())
    }

    /// Processor time used by all members so far, those that have ended included.
    pub fn cpu_time(&self) -> Option<Duration> {
        self.group.number("cpu.stat", "usage_usec").map(Duration::from_micros)
    }

    /// Stops every member; returns when all of them stand still.
    pub fn freeze(&self) -> io::Result<()> {
        self.group.freeze()
    }

    pub fn thaw(&self) -> io::Result<()> {
        self.group.thaw()
    }

    /// Removes the group, waiting a moment for members that are on their way out. One that is not
    /// is the error `ResourceBusy`; the group then stays until it is dropped.
    pub fn remove(&self) -> io::Result<()> {
        self.group.remove()
    }
}

impl Drop for CommandGroup {
    fn drop(&mut self) {
        if self.group.path.exists() {
            // What cannot be removed now goes with the sandbox's group.
            let _ = self.group.kill().and_then(|()| self.group.remove());
        }
    }
}
