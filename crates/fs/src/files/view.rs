//! The two views of the nodes of a workspace. Whoever calls holds the turn of the directory.

use std::fs::File;
use std::sync::Arc;

use rustix::fs::FileType;
use rustix::io::{Errno, Result};

use crate::guard::{Guard, Looked, Pid};
use crate::layers::temporary::Temporary;
use crate::tree::{Attr, NodeId, RenameMode};

/// Calls are made by no process of the sandbox.
const NOBODY: Pid = 0;

/// Gets position, name and attributes of an entry; says whether it took it.
pub(super) type Each<'e> = &'e mut dyn FnMut(u64, &[u8], Attr) -> bool;

/// A name in a directory.
pub(super) type At<'n> = (NodeId, &'n [u8]);

/// What can be done with nodes. Whatever answers with attributes has counted a lookup.
pub(super) trait Nodes: Send + Sync {
    fn lookup(&self, dir: NodeId, name: &[u8]) -> Result<Option<Attr>>;
    /// Not counted.
    fn getattr(&self, id: NodeId) -> Result<Attr>;
    fn readlink(&self, id: NodeId) -> Result<Vec<u8>>;
    fn readdir(&self, dir: NodeId, offset: u64, each: Each<'_>) -> Result<()>;
    fn open(&self, id: NodeId) -> Result<File>;
    /// Whether a file may be put at a name; `there` is what can be seen there now.
    fn may_put(&self, at: At<'_>, there: Option<&Attr>) -> Result<()>;
    fn put(&self, at: At<'_>, staged: Temporary, mode: u32) -> Result<()>;
    fn mkdir(&self, at: At<'_>, mode: u32) -> Result<Attr>;
    fn symlink(&self, at: At<'_>, target: &[u8]) -> Result<Attr>;
    fn unlink(&self, at: At<'_>) -> Result<()>;
    fn rmdir(&self, at: At<'_>) -> Result<()>;
    /// Says whether levels of things the kernel knows may have changed.
    fn rename(&self, from: At<'_>, moved: &Attr, to: At<'_>) -> Result<bool>;
}

/// Nothing is refused.
pub(super) struct Owner {
    pub(super) guard: Arc<Guard>,
}

impl Nodes for Owner {
    fn lookup(&self, dir: NodeId, name: &[u8]) -> Result<Option<Attr>> {
        self.guard.owners_lookup(dir, name)
    }

    fn getattr(&self, id: NodeId) -> Result<Attr> {
        self.guard.tree().getattr(id)
    }

    fn readlink(&self, id: NodeId) -> Result<Vec<u8>> {
        self.guard.tree().readlink(id)
    }

    fn readdir(&self, dir: NodeId, offset: u64, each: Each<'_>) -> Result<()> {
        self.guard.owners_readdir(dir, offset, each)
    }

    fn open(&self, id: NodeId) -> Result<File> {
        self.guard.tree().open_beside(id)
    }

    fn may_put(&self, _: At<'_>, _: Option<&Attr>) -> Result<()> {
        Ok(())
    }

    fn put(&self, at: At<'_>, staged: Temporary, mode: u32) -> Result<()> {
        self.guard.tree().put(at, staged, mode)
    }

    fn mkdir(&self, at: At<'_>, mode: u32) -> Result<Attr> {
        self.guard.tree().mkdir(at.0, at.1, mode)
    }

    fn symlink(&self, at: At<'_>, target: &[u8]) -> Result<Attr> {
        self.guard.tree().symlink(at.0, at.1, target)
    }

    fn unlink(&self, at: At<'_>) -> Result<()> {
        self.guard.tree().unlink(at.0, at.1)
    }

    fn rmdir(&self, at: At<'_>) -> Result<()> {
        self.guard.tree().rmdir(at.0, at.1)
    }

    fn rename(&self, from: At<'_>, _: &Attr, to: At<'_>) -> Result<bool> {
        self.guard.owners_rename(from, to)
    }
}

/// The guard decides, and the permission bits as the kernel reads them: programs are the owner of
/// every file and have no privileges, so that only the first three bits count.
pub(super) struct Agent {
    pub(super) guard: Guard,
}

const READ: u32 = 0o400;
const WRITE: u32 = 0o200;
const ENTER: u32 = 0o100;

impl Agent {
    fn permits(&self, id: NodeId, bits: u32) -> Result<()> {
        let (attr, _) = self.guard.getattr(id)?;
        allowed(&attr, bits)
    }
}

fn allowed(attr: &Attr, bits: u32) -> Result<()> {
    if attr.mode & bits == bits { Ok(()) } else { Err(Errno::ACCESS) }
}

impl Nodes for Agent {
    fn lookup(&self, dir: NodeId, name: &[u8]) -> Result<Option<Attr>> {
        self.permits(dir, ENTER)?;
        match self.guard.lookup(NOBODY, dir, name)? {
            Looked::Found(attr, _) => Ok(Some(attr)),
            Looked::Absent(_) => Ok(None),
        }
    }

    fn getattr(&self, id: NodeId) -> Result<Attr> {
        Ok(self.guard.getattr(id)?.0)
    }

    fn readlink(&self, id: NodeId) -> Result<Vec<u8>> {
        self.guard.readlink(NOBODY, id)
    }

    fn readdir(&self, dir: NodeId, offset: u64, each: Each<'_>) -> Result<()> {
        self.permits(dir, READ)?;
        self.guard.readdir(dir, offset, true, |seen| match seen.attr {
            Some((attr, _)) => each(seen.position, seen.name, attr),
            None => true,
        })
    }

    fn open(&self, id: NodeId) -> Result<File> {
        self.permits(id, READ)?;
        self.guard.open_beside(NOBODY, id)
    }

    /// As for an open that makes the file if it is not there.
    fn may_put(&self, at: At<'_>, there: Option<&Attr>) -> Result<()> {
        match there {
            Some(attr) => allowed(attr, WRITE)?,
            None => self.permits(at.0, WRITE | ENTER)?,
        }
        self.guard.may_put(NOBODY, at)
    }

    fn put(&self, at: At<'_>, staged: Temporary, mode: u32) -> Result<()> {
        self.guard.put(NOBODY, at, staged, mode)
    }

    fn mkdir(&self, at: At<'_>, mode: u32) -> Result<Attr> {
        self.permits(at.0, WRITE | ENTER)?;
        Ok(self.guard.mkdir(NOBODY, at.0, at.1, mode)?.0)
    }

    fn symlink(&self, at: At<'_>, target: &[u8]) -> Result<Attr> {
        self.permits(at.0, WRITE | ENTER)?;
        Ok(self.guard.symlink(NOBODY, at.0, at.1, target)?.0)
    }

    fn unlink(&self, at: At<'_>) -> Result<()> {
        self.permits(at.0, WRITE | ENTER)?;
        self.guard.unlink(NOBODY, at.0, at.1)
    }

    fn rmdir(&self, at: At<'_>) -> Result<()> {
        self.permits(at.0, WRITE | ENTER)?;
        self.guard.rmdir(NOBODY, at.0, at.1)
    }

    fn rename(&self, from: At<'_>, moved: &Attr, to: At<'_>) -> Result<bool> {
        self.permits(from.0, WRITE | ENTER)?;
        self.permits(to.0, WRITE | ENTER)?;
        // A directory that gets another parent is itself written to.
        if moved.kind == FileType::Directory && from.0 != to.0 {
            allowed(moved, WRITE)?;
        }
        self.guard.rename(NOBODY, from, to, RenameMode::Replace)
    }
}
