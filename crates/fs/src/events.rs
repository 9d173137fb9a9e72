//! Access events: what was asked of the workspace and what was answered.
//!
//! They leave through a bounded channel. The thread that serves the kernel never waits for a
//! reader: when the channel is full the event is counted as lost, and the count is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use ringfence_policy::{Level, Rule, WorkspacePath};

/// What a program tried to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    Lookup,
    List,
    ReadLink,
    Read,
    Write,
    Create,
    Remove,
    Rename,
    Link,
    SetAttributes,
    GetXattr,
    SetXattr,
    /// Not asked for by a program: a policy change left it a file it may no longer open.
    KeptOpen,
}

impl Operation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lookup => "lookup",
            Self::List => "list",
            Self::ReadLink => "readlink",
            Self::Read => "read",
            Self::Write => "write",
            Self::Create => "create",
            Self::Remove => "remove",
            Self::Rename => "rename",
            Self::Link => "link",
            Self::SetAttributes => "setattr",
            Self::GetXattr => "getxattr",
            Self::SetXattr => "setxattr",
            Self::KeptOpen => "kept-open",
        }
    }
}

/// One decision of the guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessEvent {
    pub pid: u32,
    /// On whose behalf the process runs, as the sink's owner numbers it; 0 if nobody knows.
    pub origin: u64,
    pub operation: Operation,
    pub path: WorkspacePath,
    /// The level the operation needs at this path, and the one it has.
    pub needed: Level,
    pub level: Level,
    pub granted: bool,
    /// The rule that decided, under the policy of that moment; none if no rule matches.
    pub rule: Option<Rule>,
}

/// Says on whose behalf a process runs. Called while the process waits for the answer, so it is
/// still there to be asked about.
pub type Origins = Arc<dyn Fn(u32) -> u64 + Send + Sync>;

/// Where the guard sends its events.
#[derive(Clone, Default)]
pub struct EventSink {
    sender: Option<Sender<AccessEvent>>,
    origins: Option<Origins>,
    counts: Arc<Counts>,
}

impl std::fmt::Debug for EventSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventSink").field("counts", &self.counts).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Counts {
    capacity: u64,
    sent: AtomicU64,
    read: AtomicU64,
    lost: AtomicU64,
}

impl Counts {
    fn is_full(&self) -> bool {
        // An event can be read before it was counted as sent.
        let sent = self.sent.load(Ordering::Relaxed);
        sent.saturating_sub(self.read.load(Ordering::Relaxed)) >= self.capacity
    }
}

/// Where events are read.
#[derive(Debug)]
pub struct Events {
    receiver: Receiver<AccessEvent>,
    counts: Arc<Counts>,
}

/// A channel that holds about `capacity` unread events at most. It takes memory for those that are
/// there, not for those that could be.
pub fn channel(capacity: u64) -> (EventSink, Events) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let counts = Arc::new(Counts { capacity, ..Counts::default() });
    let sink = EventSink { sender: Some(sender), origins: None, counts: counts.clone() };
    (sink, Events { receiver, counts })
}

impl EventSink {
    /// Whether anybody listens; events are not even made up if not.
    pub fn is_on(&self) -> bool {
        self.sender.is_some()
    }

    /// Fills in the origin of each event.
    pub fn with_origins(mut self, origins: Origins) -> Self {
        self.origins = Some(origins);
        self
    }

    pub fn send(&self, mut event: AccessEvent) {
        let Some(sender) = &self.sender else { return };
        if let Some(origins) = &self.origins {
            event.origin = origins(event.pid);
        }
        if self.counts.is_full() || sender.send(event).is_err() {
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
        } else {
            self.counts.sent.fetch_add(1, Ordering::Release);
        }
    }

    /// How many events have been sent so far: who has read as many has read all of now.
    pub fn sent(&self) -> u64 {
        self.counts.sent.load(Ordering::Acquire)
    }
}

impl Events {
    /// The next event; `None` when the guard is gone and all were read.
    pub fn next(&self) -> Option<AccessEvent> {
        let event = self.receiver.recv().ok()?;
        self.counts.read.fetch_add(1, Ordering::Relaxed);
        Some(event)
    }

    /// The next event if there is one already.
    pub fn try_next(&self) -> Option<AccessEvent> {
        let event = self.receiver.try_recv().ok()?;
        self.counts.read.fetch_add(1, Ordering::Relaxed);
        Some(event)
    }

    /// How many events were lost since this was last asked.
    pub fn take_lost(&self) -> u64 {
        self.counts.lost.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted_and_never_waited_for() {
        let (sink, events) = channel(2);
        for pid in 0..5 {
            sink.send(AccessEvent {
                pid,
                origin: 0,
                operation: Operation::Read,
                path: WorkspacePath::root(),
                needed: Level::Read,
                level: Level::None,
                granted: false,
                rule: None,
            });
        }
        drop(sink);
        assert_eq!(events.take_lost(), 3);
        assert_eq!(events.take_lost(), 0);
        let seen: Vec<_> = std::iter::from_fn(|| events.next()).map(|event| event.pid).collect();
        assert_eq!(seen, [0, 1]);
    }
}
