//! Finishing a rename that a crash cut in two.
//!
//! Moving an entry over another and leaving a whiteout at its old name takes two renames: no single
//! one does both. Before the first, the intent is written down beside the prepared whiteout; an
//! open after a crash in between publishes the whiteout, so that the rename has happened or not.

use std::os::fd::{AsFd, OwnedFd};

use ringfence_policy::WorkspacePath;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, statat};
use rustix::io::{Errno, Result};

use super::marks;

/// Names of intents in the work directory start with this; prepared entries are plain numbers.
pub(super) const PREFIX: u8 = b'i';

/// The entry with `inode` moves from `old` to `new`, paths in the layer's own tree; then the
/// prepared entry `whiteout` goes to `old`. Without one, a whiteout that came to `old` by an
/// exchange is to be removed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Intent {
    pub(super) old: WorkspacePath,
    pub(super) new: WorkspacePath,
    pub(super) inode: u64,
    pub(super) whiteout: Option<Vec<u8>>,
}

impl Intent {
    pub(super) fn encode(&self) -> Vec<u8> {
        let inode = self.inode.to_string();
        let whiteout = self.whiteout.as_deref().unwrap_or_default();
        [self.old.as_bytes(), self.new.as_bytes(), inode.as_bytes(), whiteout].join(&0)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.split(|byte| *byte == 0);
        Some(Self {
            old: WorkspacePath::parse(parts.next()?).ok()?,
            new: WorkspacePath::parse(parts.next()?).ok()?,
            inode: std::str::from_utf8(parts.next()?).ok()?.parse().ok()?,
            whiteout: parts.next().filter(|name| !name.is_empty()).map(Vec::from),
        })
    }

    /// Publishes the whiteout if the move has happened and the whiteout has not.
    fn finish(&self, tree: &OwnedFd, work: &OwnedFd) -> Result<()> {
        let (Some(old_name), Some(new_name)) = (self.old.file_name(), self.new.file_name()) else {
            return Ok(());
        };
        let old = open_parent(tree, &self.old)?;
        let new = open_parent(tree, &self.new)?;
        let moved = statat(&new, new_name, AtFlags::SYMLINK_NOFOLLOW)?.st_ino == self.inode;
        if !moved {
            return Ok(());
        }
        let Some(whiteout) = &self.whiteout else { return remove_whiteout(&old, old_name) };
        match rustix::fs::renameat_with(work, &whiteout[..], old, old_name, RenameFlags::NOREPLACE)
        {
            Err(Errno::EXIST | Errno::NOENT) => Ok(()),
            other => other,
        }
    }
}

fn remove_whiteout(dir: &OwnedFd, name: &[u8]) -> Result<()> {
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    match marks::is_whiteout(dir, name, &stat) {
        true => rustix::fs::unlinkat(dir, name, AtFlags::empty()),
        false => Ok(()),
    }
}

/// Finishes what the intents in `work` say. One that does not fit the tree is left alone: the
/// rename it belongs to did not happen.
pub(super) fn finish_all(tree: &OwnedFd, work: &OwnedFd, names: &[Vec<u8>]) {
    for name in names.iter().filter(|name| name.first() == Some(&PREFIX)) {
        if let Some(intent) = read(work, name).and_then(|bytes| Intent::decode(&bytes)) {
            let _ = intent.finish(tree, work);
        }
    }
}

fn read(work: &OwnedFd, name: &[u8]) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(work, name, flags, Mode::empty()).ok()?;
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut std::fs::File::from(file), &mut bytes).ok()?;
    Some(bytes)
}

fn open_parent(tree: &OwnedFd, path: &WorkspacePath) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut here = rustix::io::fcntl_dupfd_cloexec(tree.as_fd(), 3)?;
    for name in path.parent().iter().flat_map(WorkspacePath::components) {
        here = rustix::fs::openat(&here, name, flags, Mode::empty())?;
    }
    Ok(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intent_survives_being_written_down() {
        let intent = Intent {
            old: WorkspacePath::parse(b"/a\n/\xff").unwrap(),
            new: WorkspacePath::parse(b"/b").unwrap(),
            inode: u64::MAX,
            whiteout: Some(b"1f".to_vec()),
        };
        assert_eq!(Intent::decode(&intent.encode()), Some(intent));
    }
}
