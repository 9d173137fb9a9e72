//! What is going on with a codebase at this moment.
//!
//! Two locks. `change` is held by whoever changes the newest version, for as long as that takes.
//! `holds` is held for moments, by whoever takes hold of a version or takes one away; so a version
//! that was found in the record is still there when it is opened, and nobody who reads waits for
//! somebody who writes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

#[derive(Debug, Default)]
pub(super) struct Life {
    pub(super) change: Mutex<()>,
    pub(super) holds: Mutex<Holds>,
    /// What is staged, once somebody has counted.
    pub(super) staged: Mutex<Option<Staged>>,
    pub(super) touched: Touched,
}

/// When somebody last sent something, or asked what to send. This is not kept over a restart: then
/// the time begins anew.
#[derive(Debug)]
pub(super) struct Touched(Mutex<Instant>);

impl Default for Touched {
    fn default() -> Self {
        Self(Mutex::new(Instant::now()))
    }
}

impl Touched {
    pub(super) fn now(&self) {
        *self.0.lock() = Instant::now();
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.0.lock().elapsed()
    }
}

/// How many look at each version, or are about to put on record that they stand on it.
#[derive(Debug, Default)]
pub(super) struct Holds {
    counts: BTreeMap<i64, usize>,
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Staged {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

/// Keeps a version from being taken away.
#[derive(Debug)]
pub(super) struct Hold {
    life: Arc<Life>,
    pub(super) version: i64,
}

impl Holds {
    pub(super) fn is_held(&self, version: i64) -> bool {
        self.counts.contains_key(&version)
    }

    /// `self` is what is locked in `life`.
    pub(super) fn take(&mut self, life: &Arc<Life>, version: i64) -> Hold {
        *self.counts.entry(version).or_default() += 1;
        Hold { life: life.clone(), version }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut holds = self.life.holds.lock();
        if let Some(count) = holds.counts.get_mut(&self.version) {
            *count -= 1;
            if *count == 0 {
                holds.counts.remove(&self.version);
            }
        }
    }
}
