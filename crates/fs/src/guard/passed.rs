//! Operations without a decision: they work on what an open has granted, or tell nothing about any
//! path.

use rustix::io::Result;

use super::Guard;
use crate::tree::{Handle, NodeId, SharedTurn};

impl Guard {
    /// Held while a request is served that finds or changes names in these directories.
    pub fn turn(&self, dirs: &[NodeId]) -> SharedTurn<'_> {
        self.tree.turn(dirs)
    }

    /// The same for names of directories, which are themselves locked with the ones they are in.
    pub fn turn_with(&self, names: &[(NodeId, &[u8])]) -> SharedTurn<'_> {
        self.tree.turn_of(names)
    }

    pub fn forget(&self, id: NodeId, count: u64) {
        self.tree.forget(id, count);
    }

    pub fn release(&self, handle: Handle) {
        self.tree.release(handle);
    }

    pub fn read(&self, handle: Handle, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.tree.read(handle, offset, buffer)
    }

    pub fn write(&self, handle: Handle, offset: u64, data: &[u8]) -> Result<usize> {
        self.tree.write(handle, offset, data)
    }

    pub fn fsync(&self, handle: Handle, data_only: bool) -> Result<()> {
        self.tree.fsync(handle, data_only)
    }

    pub fn fsync_dir(&self, id: NodeId) -> Result<()> {
        self.tree.fsync_dir(id)
    }

    pub fn fallocate(&self, handle: Handle, mode: i32, offset: u64, length: u64) -> Result<()> {
        self.tree.fallocate(handle, mode, offset, length)
    }

    pub fn seek_data(&self, handle: Handle, offset: u64) -> Result<u64> {
        self.tree.seek_data(handle, offset)
    }

    pub fn seek_hole(&self, handle: Handle, offset: u64) -> Result<u64> {
        self.tree.seek_hole(handle, offset)
    }

    pub fn copy_range(
        &self,
        from: (Handle, u64),
        to: (Handle, u64),
        length: usize,
    ) -> Result<usize> {
        self.tree.copy_range(from, to, length)
    }

    pub fn statfs(&self) -> Result<rustix::fs::StatVfs> {
        self.tree.statfs()
    }
}
