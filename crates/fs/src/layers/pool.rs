//! A bound on how many directories are held open.
//!
//! The kernel may remember more directories than this process may open. A second-chance queue
//! closes those not used lately; each is opened again from its parent when it is needed.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::stack::Part;

#[derive(Debug)]
pub struct DirPool {
    most: usize,
    open: Mutex<VecDeque<Weak<Part>>>,
}

impl DirPool {
    /// A pool that holds about `most` directories open.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: most.max(16), open: Mutex::default() })
    }

    /// A pool that leaves half of this process's descriptors to files and everything else.
    pub fn for_this_process() -> Arc<Self> {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        Self::new(usize::try_from(limit.unwrap_or(1 << 20) / 2).unwrap_or(1 << 20))
    }

    pub(super) fn opened(&self, part: &Arc<Part>) {
        let mut open = self.open.lock();
        open.push_back(Arc::downgrade(part));
        let mut tries = open.len();
        while open.len() > self.most && tries > 0 {
            tries -= 1;
            let Some(oldest) = open.pop_front() else { return };
            if oldest.upgrade().is_some_and(|part| !part.close_if_idle()) {
                open.push_back(oldest);
            }
        }
    }
}
