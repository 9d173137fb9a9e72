//! Turns in a directory.
//!
//! The kernel lets only one of its requests at a time change a directory, and none look a name up in
//! it meanwhile; the tree relies on that. Calls of the API do not come through the kernel. So each
//! of its requests holds the turn of the directories that the kernel has locked for it, shared with
//! others of its requests, and each step of a call holds them alone.

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::node::NodeId;

/// Directories share locks by their numbers: as many as there are bits in a word.
const LOCKS: u64 = 64;

#[derive(Debug)]
pub(super) struct Turns {
    locks: Vec<RwLock<()>>,
}

impl Default for Turns {
    fn default() -> Self {
        Self { locks: (0..LOCKS).map(|_| RwLock::default()).collect() }
    }
}

/// A turn that lasts as long as this value. Most have one directory.
#[derive(Debug)]
pub struct Turn<G> {
    _first: Option<G>,
    _others: Vec<G>,
}

impl Turns {
    pub(super) fn shared(&self, dirs: &[NodeId]) -> Turn<RwLockReadGuard<'_, ()>> {
        taken(self.of(dirs).map(RwLock::read))
    }

    pub(super) fn alone(&self, dirs: &[NodeId]) -> Turn<RwLockWriteGuard<'_, ()>> {
        taken(self.of(dirs).map(RwLock::write))
    }

    pub(super) fn everywhere(&self) -> Turn<RwLockWriteGuard<'_, ()>> {
        taken(self.locks.iter().map(RwLock::write))
    }

    /// The locks of some directories, each once and always in the same order.
    fn of(&self, dirs: &[NodeId]) -> impl Iterator<Item = &RwLock<()>> {
        let bits = dirs.iter().fold(0u64, |bits, dir| bits | 1 << (dir.0 % LOCKS));
        self.locks
            .iter()
            .enumerate()
            .filter(move |(at, _)| bits >> at & 1 == 1)
            .map(|(_, lock)| lock)
    }
}

fn taken<G>(mut guards: impl Iterator<Item = G>) -> Turn<G> {
    Turn { _first: guards.next(), _others: guards.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_that_share_a_lock_take_it_once() {
        let turns = Turns::default();
        let alone = turns.alone(&[NodeId(70), NodeId(6), NodeId(3), NodeId(70)]);
        assert!(turns.locks[3].try_read().is_none() && turns.locks[6].try_read().is_none());
        assert!(turns.locks[5].try_read().is_some());
        drop(alone);
        let _one = turns.shared(&[NodeId(6), NodeId(5)]);
        let _other = turns.shared(&[NodeId(70)]);
        assert!(turns.locks[6].try_write().is_none());
    }
}
