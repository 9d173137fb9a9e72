//! Telling a caller what was printed.

use std::time::Instant;

use ringfence_link::channel::{Channel, ChannelError, Frame, Kind};
use ringfence_link::warden::{Control, ProcessStatus, Reply};
use rustix::event::{PollFd, PollFlags};

use crate::pump::poll_until;
use crate::ring::{Piece, Ring, Stream, Watch};

/// Small enough to be sent without waiting whenever the socket says that there is room.
pub(crate) const STEP: usize = 32 * 1024;

pub(crate) fn kind_of(stream: Stream) -> Kind {
    match stream {
        Stream::Output => Kind::Output,
        Stream::Error => Kind::Error,
    }
}

/// Sends what is kept from an offset on; with `follow`, also what comes, until the end. The last
/// reply is returned; an error means that the caller has hung up.
///
/// A caller that does not read makes this wait and nothing else: when it goes on, it is told from
/// where.
pub(crate) fn send_log(
    caller: &Channel,
    ring: &Ring,
    (from, follow): (u64, bool),
    status: impl Fn() -> Option<ProcessStatus>,
) -> Result<Reply, ChannelError> {
    let listener = Listener::new(caller, ring.watch()?);
    let until = if follow { u64::MAX } else { ring.end() };
    let mut next = from.clamp(ring.start(), ring.end());
    caller.send(&Reply::Log { from: next }, &[])?;
    while next < until {
        listener.watch.clear();
        match ring.read(next, STEP.min((until - next) as usize)) {
            Piece::Bytes { from, stream, bytes } => {
                if from != next {
                    caller.send(&Reply::Log { from }, &[])?;
                }
                next = from + bytes.len() as u64;
                caller.send_bytes(kind_of(stream), &bytes)?;
            }
            Piece::End { .. } => break,
            Piece::Nothing { .. } => {
                if listener.wait(None) == Woke::HungUp {
                    return Err(ChannelError::Closed);
                }
            }
        }
    }
    Ok(Reply::LogEnd { next, status: status() })
}

/// Someone who waits for news and may hang up meanwhile.
#[derive(Debug)]
pub(crate) struct Listener<'a> {
    pub(crate) caller: &'a Channel,
    pub(crate) watch: Watch,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Woke {
    News,
    Deadline,
    HungUp,
}

impl<'a> Listener<'a> {
    pub(crate) fn new(caller: &'a Channel, watch: Watch) -> Self {
        Self { caller, watch }
    }

    /// Waits for news. What the caller says meanwhile means nothing here, except that it gives up.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> Woke {
        self.wait_also_for(None, deadline)
    }

    /// The same; something else to wait for counts as news.
    pub(crate) fn wait_also_for(
        &self,
        other: Option<PollFd<'_>>,
        deadline: Option<Instant>,
    ) -> Woke {
        loop {
            let mut set = vec![
                PollFd::new(self.caller, PollFlags::IN | PollFlags::RDHUP),
                PollFd::new(&self.watch, PollFlags::IN),
            ];
            set.extend(other.clone());
            if !poll_until(&mut set, deadline) {
                return Woke::Deadline;
            }
            let [said, news] = [!set[0].revents().is_empty(), set[1..].iter().any(has_come)];
            if said && !self.caller.receive_frame().is_ok_and(|frame| goes_on(&frame)) {
                return Woke::HungUp;
            }
            if news {
                return Woke::News;
            }
        }
    }
}

fn has_come(fd: &PollFd<'_>) -> bool {
    !fd.revents().is_empty()
}

fn goes_on(frame: &Frame) -> bool {
    !matches!(frame.message(), Ok(Control::Cancel))
}
