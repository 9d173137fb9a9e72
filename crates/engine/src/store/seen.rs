//! Records of sandboxes that were looked at since anything was written.
//!
//! Every call about a sandbox begins with its record, many thousand times between two changes, and
//! SQLite takes about as long for it as all the rest of a short call. This process alone writes to
//! the store, so whatever was read since the last write is still true; any write forgets it all.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::sandboxes::SandboxRecord;

#[derive(Debug, Default)]
pub(super) struct Seen {
    writes: AtomicU64,
    records: Mutex<Records>,
}

#[derive(Debug, Default)]
struct Records {
    /// How many writes there had been when these were read.
    after: u64,
    by_id: HashMap<String, Arc<SandboxRecord>>,
}

/// How many writes there had been before somebody began to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment(u64);

impl Seen {
    /// Called by whoever has written, before anybody hears of it.
    pub(super) fn forget(&self) {
        self.writes.fetch_add(1, Ordering::Release);
    }

    pub(super) fn now(&self) -> Moment {
        Moment(self.writes.load(Ordering::Acquire))
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<SandboxRecord>> {
        let records = self.records.lock();
        let is_true = records.after == self.now().0;
        records.by_id.get(id).filter(|_| is_true).cloned()
    }

    /// Keeps what was read since `moment`, unless something was written meanwhile.
    pub(super) fn keep(&self, moment: Moment, record: &SandboxRecord) {
        let mut records = self.records.lock();
        if moment != self.now() {
            return;
        }
        if records.after != moment.0 {
            records.by_id.clear();
            records.after = moment.0;
        }
        records.by_id.insert(record.id.clone(), Arc::new(record.clone()));
    }
}
