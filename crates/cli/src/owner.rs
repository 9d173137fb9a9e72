//! The process that a server belongs to.

use std::io;
use std::os::fd::OwnedFd;

use ringfence_server::Watched;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// A process of this user that had not ended when it was looked for.
///
/// It is held by a pidfd. A pipe would stay open in whatever the process forks, and the signal that
/// Linux sends at the end of a parent comes when the thread ends that started us.
#[derive(Debug)]
pub(crate) struct Owner {
    pidfd: OwnedFd,
}

impl Owner {
    pub(crate) fn find(pid: i32) -> Result<Self, Failure> {
        let none = || Failure::bad_input(format!("there is no process {pid}"));
        let number = Pid::from_raw(pid).ok_or_else(none)?;
        let pidfd = match pidfd_open(number, PidfdFlags::NONBLOCK) {
            // A thread that is not the first of its process has a number too, but no pidfd.
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Err(none()),
            Err(e) => {
                return Err(Failure::bad_input(format!("cannot watch process {pid}: {e}")));
            }
            Ok(pidfd) => pidfd,
        };
        let user = user_of(pid);
        // Looked up by its number, which is nobody else's as long as it has not ended.
        if has_ended(&pidfd).map_err(Failure::broken)? {
            return Err(none());
        }
        match user.map_err(Failure::broken)? == geteuid().as_raw() {
            true => Ok(Self { pidfd }),
            false => Err(Failure::bad_input(format!("process {pid} is another user's"))
                .hint("run the server as the user of the process")),
        }
    }

    /// From here on signals do not end this process; must be called inside a runtime.
    pub(crate) fn watch(self) -> Result<Watch, Failure> {
        // Ctrl-C and the like in a terminal go to everybody there; what they mean is the owner's
        // decision. Not ignored but caught: what is ignored would be inherited by commands.
        let deaf = [SignalKind::interrupt(), SignalKind::quit(), SignalKind::hangup()];
        let deaf = deaf.map(signal).into_iter().collect::<io::Result<Vec<_>>>();
        Ok(Watch {
            owner: Watched::of(self.pidfd).map_err(Failure::broken)?,
            terminate: signal(SignalKind::terminate()).map_err(Failure::broken)?,
            _deaf: deaf.map_err(Failure::broken)?,
        })
    }
}

/// Waits for the end of an owner.
#[derive(Debug)]
pub(crate) struct Watch {
    owner: Watched,
    terminate: Signal,
    _deaf: Vec<Signal>,
}

impl Watch {
    /// Returns when the owner has ended, or this process was asked to.
    pub(crate) async fn over(mut self) {
        tokio::select! {
            () = self.owner.ended() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

fn has_ended(pidfd: &OwnedFd) -> io::Result<bool> {
    let mut look = [PollFd::new(pidfd, PollFlags::IN)];
    Ok(poll(&mut look, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? > 0)
}

/// The user whose rights it has now, which is who it is on a socket. (Its files in `/proc` may be
/// root's.)
fn user_of(pid: i32) -> io::Result<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let effective = users.and_then(|users| users.split_whitespace().nth(1)?.parse().ok());
    effective.ok_or_else(|| io::ErrorKind::InvalidData.into())
}
