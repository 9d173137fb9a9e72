//! Everything a session's thread waits for, in one place.
//!
//! FIFOs are watched by their edges: one without a writer would otherwise report its end for ever.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Someone has something for the session.
    Wake,
    /// The shell.
    Process,
    Caller,
    Status,
    Answer,
    Stream(usize),
    /// What the shell itself prints, outside of any command.
    Own,
    Terminal,
    Input,
    /// There is room for more lines.
    Driver,
    /// Output of a command that is over.
    Log(u32),
}

const FIXED: [Source; 11] = [
    Source::Wake,
    Source::Process,
    Source::Caller,
    Source::Status,
    Source::Answer,
    Source::Stream(0),
    Source::Stream(1),
    Source::Own,
    Source::Terminal,
    Source::Input,
    Source::Driver,
];

impl Source {
    fn encode(self) -> EventData {
        let fixed = FIXED.iter().position(|source| *source == self);
        EventData::new_u64(match self {
            Self::Log(number) => (FIXED.len() as u64) + u64::from(number),
            _ => fixed.unwrap_or(0) as u64,
        })
    }

    fn decode(data: EventData) -> Self {
        let number = data.u64();
        let fixed = FIXED.get(number as usize).copied();
        fixed.unwrap_or_else(|| Self::Log((number - FIXED.len() as u64) as u32))
    }
}

/// Events taken in one turn.
const AT_ONCE: usize = 16;

#[derive(Debug)]
pub(super) struct Watch {
    epoll: OwnedFd,
}

impl Watch {
    pub(super) fn new() -> rustix::io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { epoll })
    }

    pub(super) fn add(
        &self,
        fd: impl AsFd,
        source: Source,
        flags: EventFlags,
    ) -> rustix::io::Result<()> {
        epoll::add(&self.epoll, fd, source.encode(), flags)
    }

    /// To be told once when there is something new to read.
    pub(super) fn add_edge(&self, fd: impl AsFd, source: Source) -> rustix::io::Result<()> {
        self.add(fd, source, EventFlags::IN | EventFlags::ET)
    }

    /// To be told again about what is still there to read.
    pub(super) fn rearm(&self, fd: impl AsFd, source: Source) {
        self.change(fd, source, EventFlags::IN | EventFlags::ET);
    }

    pub(super) fn change(&self, fd: impl AsFd, source: Source, flags: EventFlags) {
        // It is watched, so this cannot fail.
        let _ = epoll::modify(&self.epoll, fd, source.encode(), flags);
    }

    pub(super) fn remove(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// What has happened; nothing if the deadline came first.
    pub(super) fn wait(&self, deadline: Option<Instant>) -> Vec<(Source, EventFlags)> {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = left.map(|left| Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        });
        let mut space = [MaybeUninit::<Event>::uninit(); AT_ONCE];
        match epoll::wait(&self.epoll, &mut space, timeout.as_ref()) {
            Ok((events, _)) => events.iter().map(|e| (Source::decode(e.data), e.flags)).collect(),
            Err(Errno::INTR) => Vec::new(),
            Err(_) => {
                // Not to be expected; without the pause it would be a busy loop.
                std::thread::sleep(std::time::Duration::from_millis(10));
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_survive_the_kernel() {
        for source in FIXED.into_iter().chain([Source::Log(0), Source::Log(u32::MAX)]) {
            assert_eq!(Source::decode(source.encode()), source);
        }
    }
}
