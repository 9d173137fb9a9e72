//! A file that is filled over time, by somebody who may never finish.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::{Mode, RenameFlags};
use rustix::io::Result;

use super::copy::{MODE_BITS, Work, remove_tree};

/// A file in the work directory of the layer that was live when it was begun. Removed on drop
/// unless it was published; and by the next open of the layer after a crash.
#[derive(Debug)]
pub struct Temporary {
    work: Arc<Work>,
    name: Vec<u8>,
    file: File,
    published: bool,
}

impl Temporary {
    pub(crate) fn new(work: &Arc<Work>) -> Result<Self> {
        let (name, file) = work.unowned_file(0o600)?;
        Ok(Self { work: work.clone(), name, file, published: false })
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// Puts the file at `name` with this mode, in the place of whatever file is there. The layer it
    /// was begun in may be frozen by now; the one it goes to is on the same filesystem.
    pub(crate) fn publish(mut self, dir: impl AsFd, name: &[u8], mode: u32) -> Result<()> {
        rustix::fs::fchmod(&self.file, Mode::from(mode & MODE_BITS))?;
        ringfence_sys::files::start_writeback(&self.file);
        let flags = RenameFlags::empty();
        rustix::fs::renameat_with(self.work.dir(), &self.name[..], dir, name, flags)?;
        self.published = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.published {
            remove_tree(self.work.dir(), &self.name);
        }
    }
}
