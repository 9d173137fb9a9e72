//! Waiting for processes, with the account of what they used.

use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::process::Pid;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Exited(i32),
    Signalled(i32),
}

/// What a process and the children it waited for used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub user: Duration,
    pub system: Duration,
    pub peak_memory: u64,
}

/// Collects one child that has ended, if there is one.
pub fn reap() -> Option<(Pid, Ending, Usage)> {
    loop {
        let mut status = 0;
        // SAFETY: all fields of the structure are integers, for which zero is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are valid for writing.
        let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage) };
        // 0: none has ended; negative: there are none at all, which is not a number of a process.
        let pid = Pid::from_raw(pid.max(0))?;
        let ending = match (libc::WIFEXITED(status), libc::WIFSIGNALED(status)) {
            (true, _) => Ending::Exited(libc::WEXITSTATUS(status)),
            (_, true) => Ending::Signalled(libc::WTERMSIG(status)),
            _ => continue,
        };
        let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
        let peak_memory = usage.ru_maxrss as u64 * 1024;
        let (user, system) = (time(usage.ru_utime), time(usage.ru_stime));
        return Some((pid, ending, Usage { user, system, peak_memory }));
    }
}

/// A descriptor that becomes readable when a child ends; SIGCHLD is blocked for this thread.
#[derive(Debug)]
pub struct ChildSignal(OwnedFd);

impl ChildSignal {
    pub fn new() -> io::Result<Self> {
        let set = crate::signals::set_of(std::iter::once(libc::SIGCHLD));
        // SAFETY: the set is initialised and the old one is not asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
        // SAFETY: the set is initialised; -1 asks for a new descriptor.
        let fd =
            unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this descriptor for us.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Forgets the signals received so far.
    pub fn clear(&self) {
        let mut buffer = [0u8; 1024];
        while rustix::io::read(&self.0, &mut buffer).is_ok_and(|n| n > 0) {}
    }
}

impl AsFd for ChildSignal {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}
