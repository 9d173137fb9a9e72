//! Telling the kernel what to forget.
//!
//! None of this may be called by who holds a lock that a request of the kernel needs: the kernel
//! finishes what it does in a directory before it forgets a name there.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use fuser::{INodeNo, Notifier};

use crate::tree::{NodeId, Tree};

/// The kernel's side of a mount, for telling it what to forget.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    connection: OnceLock<(Notifier, OwnedFd)>,
}

impl Kernel {
    /// A mount has been made; there is none before.
    pub(crate) fn connect(&self, notifier: Notifier, device: OwnedFd) {
        let _ = self.connection.set((notifier, device));
    }

    /// Every name is looked up again at its next use. Says whether the kernel knows how.
    pub(crate) fn forget_names(&self) -> bool {
        let connection = self.connection.get();
        connection.is_some_and(|(_, fd)| ringfence_sys::files::bump_fuse_epoch(fd).is_ok())
    }

    pub(crate) fn forget_name(&self, dir: NodeId, name: &[u8]) {
        if let Some((notifier, _)) = self.connection.get() {
            let name = std::os::unix::ffi::OsStrExt::from_bytes(name);
            let _ = notifier.inval_entry(INodeNo(dir.0), name);
        }
    }

    /// Attributes and cached content (of a directory: its listing) are read again.
    pub(crate) fn forget_content(&self, id: NodeId) {
        if let Some((notifier, _)) = self.connection.get() {
            let _ = notifier.inval_inode(INodeNo(id.0), 0, 0);
        }
    }

    /// The same where the kernel does not know how: name by name.
    pub(crate) fn forget_all_names(&self, tree: &Tree) {
        if self.forget_names() || self.connection.get().is_none() {
            return;
        }
        for dir in tree.known_directories() {
            tree.known_names(dir).iter().for_each(|name| self.forget_name(dir, name));
        }
    }
}
