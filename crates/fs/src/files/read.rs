//! Contents of a file, as they are now.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use ringfence_policy::WorkspacePath;
use rustix::fs::FileType;
use rustix::io::{Errno, Result};

use super::Entry;
use super::call::Call;
use super::resolve::Last;

/// A file that is open for reading. It stays the same file when it is replaced, and shows what
/// programs write to it meanwhile.
#[derive(Debug)]
pub struct Reading {
    entry: Entry,
    file: File,
}

impl Reading {
    /// As it was when it was opened.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Fills the buffer from an offset on as far as there is content; nothing at the end.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.file.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(filled)
    }
}

impl Call {
    pub(super) fn read(&self, path: &WorkspacePath) -> Result<Reading> {
        let (node, attr) = self.resolve(path, Last::Follow)?.existing(self)?;
        if attr.kind == FileType::Directory {
            return Err(Errno::ISDIR);
        }
        let mut entry = self.entry(path.clone(), node.id, &attr)?;
        let file = self.nodes.open(node.id)?;
        self.collect_mapped(node.id);
        entry.size = rustix::fs::fstat(&file)?.st_size as u64;
        Ok(Reading { entry, file })
    }
}
