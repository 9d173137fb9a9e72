//! Which processes, or terminals, there are.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use ringfence_link::warden::{Code, Failure};

use super::Background;
use crate::environment::invalid;
use crate::sandbox::failure;

/// What differs between the two.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) noun: &'static str,
    pub(crate) prefix: &'static str,
    pub(crate) not_found: Code,
    pub(crate) exists: Code,
    /// How many may run at once.
    pub(crate) most: usize,
    /// How many that are over are remembered.
    pub(crate) remembered: usize,
}

/// Bytes of log kept of all that are over together; of the oldest only the record stays.
const OLD_LOGS: usize = 32 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Registry {
    kind: &'static Kind,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Ids that are about to be used.
    reserved: HashSet<String>,
    /// Oldest first.
    records: Vec<Arc<Background>>,
}

impl Registry {
    pub(crate) fn new(kind: &'static Kind) -> Self {
        Self { kind, inner: Mutex::default() }
    }

    /// Oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Background>> {
        self.inner.lock().records.clone()
    }

    pub(crate) fn find(&self, id: &str) -> Result<Arc<Background>, Failure> {
        let found = self.inner.lock().records.iter().find(|record| record.id == id).cloned();
        let missing = || failure(self.kind.not_found, format!("no {} {id:?}", self.kind.noun));
        found.ok_or_else(missing)
    }

    /// Takes an id, the one given or a new one, and a place among those that may run at once.
    pub(crate) fn reserve(&self, given: Option<&str>) -> Result<Reservation<'_>, Failure> {
        let Kind { noun, prefix, exists, most, .. } = *self.kind;
        if given.is_some_and(|id| !is_id(id)) {
            return Err(invalid(format!(
                "the id of a {noun} has 1 to 64 letters, digits, '-', '_' and '.', and begins with \
                 none of the last three but '_'"
            )));
        }
        let id = given.map_or_else(|| new_id(prefix), str::to_owned);
        let mut inner = self.inner.lock();
        let lives = |record: &&Arc<Background>| record.is_live();
        if inner.reserved.contains(&id) || inner.records.iter().filter(lives).any(|r| r.id == id) {
            return Err(failure(exists, format!("there is a {noun} {id:?} already")));
        }
        if inner.records.iter().filter(lives).count() + inner.reserved.len() >= most {
            let message = format!("{most} run at once in this sandbox already, which is the limit");
            let limit = format!("{noun}s");
            let refusal = failure(Code::LimitReached, message);
            return Err(refusal.with("limit", limit).with("most", most));
        }
        inner.reserved.insert(id.clone());
        Ok(Reservation { registry: self, id })
    }

    /// Forgets the oldest of those that are over, where there are too many.
    pub(crate) fn tidy(&self) {
        let mut inner = self.inner.lock();
        let over = inner.records.iter().filter(|record| !record.is_live()).count();
        let mut surplus = over.saturating_sub(self.kind.remembered);
        inner.records.retain(|record| {
            let goes = surplus > 0 && !record.is_live();
            surplus -= usize::from(goes);
            !goes
        });
        let mut kept = 0;
        for record in inner.records.iter().rev().filter(|record| !record.is_live()) {
            kept += record.ring.len();
            if kept > OLD_LOGS {
                record.ring.discard();
            }
        }
    }
}

/// An id that is nobody else's until this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    registry: &'a Registry,
    pub(crate) id: String,
}

impl Reservation<'_> {
    /// Puts the record of that id in its place. One that is over and had the same id is forgotten.
    pub(crate) fn fill(self, record: &Arc<Background>) {
        let mut inner = self.registry.inner.lock();
        inner.records.retain(|known| known.id != record.id);
        inner.records.push(record.clone());
        drop(inner);
        self.registry.tidy();
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.registry.inner.lock().reserved.remove(&self.id);
    }
}

/// Ids become file names.
fn is_id(id: &str) -> bool {
    let starts_well = id.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    starts_well && id.len() <= 64 && id.chars().all(plain)
}

fn new_id(prefix: &str) -> String {
    let mut bytes = [0; 8];
    let _ = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    format!("{prefix}{:016x}", u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_plain_names() {
        for good in ["a", "_x", "web-1.2", &"x".repeat(64), "0"] {
            assert!(is_id(good), "{good}");
        }
        for bad in ["", ".", "..", "-x", "a/b", "a b", "é", &"x".repeat(65), "a\0"] {
            assert!(!is_id(bad), "{bad}");
        }
        assert!(is_id(&new_id("proc_")) && new_id("proc_").len() == 21);
    }
}
