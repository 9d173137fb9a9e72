//! Equal accesses become one entry with a count, so that a loop of `stat` does not fill the disk.
//!
//! The rule: an access that equals one of the last 32 different ones, with nothing but accesses in
//! between and within one flush interval, only raises that one's count. Entries keep the order of
//! the first of each kind; `time` is the first and `last` the last of them.

use std::collections::VecDeque;
use std::time::SystemTime;

use super::event::Access;
use super::time::rfc3339;

const WINDOW: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Window {
    pending: VecDeque<Pending>,
}

#[derive(Debug)]
struct Pending {
    access: Access,
    first: SystemTime,
    last: SystemTime,
    count: u64,
}

impl Window {
    /// Takes an access in. What no longer fits comes out and is to be written now.
    pub(super) fn push(&mut self, access: Access, now: SystemTime) -> Option<(Access, SystemTime)> {
        // The newest is the likeliest.
        if let Some(known) = self.pending.iter_mut().rev().find(|known| known.access == access) {
            known.count += access.count;
            known.last = now;
            return None;
        }
        let oldest = if self.pending.len() == WINDOW { self.pop() } else { None };
        self.pending.push_back(Pending { count: access.count, access, first: now, last: now });
        oldest
    }

    /// The oldest, with its count, and when it was first asked for.
    pub(super) fn pop(&mut self) -> Option<(Access, SystemTime)> {
        self.pending.pop_front().map(|Pending { access, first, last, count }| {
            let last = (count > 1).then(|| rfc3339(last));
            (Access { count, last, ..access }, first)
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }
}
