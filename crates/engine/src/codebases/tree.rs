//! Reaching files beneath a directory descriptor.
//!
//! The kernel is told to stay beneath it and to follow no symlink, so whatever was planted in a
//! tree leads nowhere. A path fits into one call (`path.rs` sees to that), however deep it is.

use std::os::fd::OwnedFd;
use std::path::Path;

use ringfence_policy::WorkspacePath;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, openat2};
use rustix::io::{Errno, Result, retry_on_intr};

use crate::problem::{self, Problem};

use super::path::relative;
use super::trouble::{bad_path, cannot_write};

const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// One version of a codebase, or a directory used in place.
#[derive(Debug)]
pub(super) struct Tree {
    root: OwnedFd,
}

impl Tree {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { root: rustix::fs::open(path, flags, Mode::empty())? })
    }

    /// A new, empty one.
    pub(super) fn make(path: &Path) -> Result<Self> {
        rustix::fs::mkdir(path, Mode::from_raw_mode(0o755))?;
        let tree = Self::open(path)?;
        // The mode above went through the umask.
        rustix::fs::chmod(path, Mode::from_raw_mode(0o755))?;
        Ok(tree)
    }

    pub(super) fn open_at(&self, path: &WorkspacePath, flags: OFlags) -> Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        retry_on_intr(|| openat2(&self.root, relative(path), flags, Mode::empty(), BENEATH))
    }

    pub(super) fn directory(&self, path: &WorkspacePath) -> Result<OwnedFd> {
        self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// For reading. Opening a FIFO or a device has no effect and does not wait.
    pub(super) fn file(&self, path: &WorkspacePath) -> Result<OwnedFd> {
        self.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
    }

    /// Something that is only looked at; a symlink itself and not what it points to.
    pub(super) fn look(&self, path: &WorkspacePath) -> Result<(OwnedFd, Stat)> {
        let fd = self.open_at(path, OFlags::PATH)?;
        let stat = rustix::fs::fstat(&fd)?;
        Ok((fd, stat))
    }

    pub(super) fn stat(&self, path: &WorkspacePath) -> Result<Stat> {
        Ok(self.look(path)?.1)
    }

    /// The directory that holds `path`, which is not the root.
    pub(super) fn parent(&self, path: &WorkspacePath) -> Result<OwnedFd> {
        self.directory(&path.parent().unwrap_or_else(WorkspacePath::root))
    }

    /// The directory that holds `path`, made with those above it if need be.
    pub(super) fn make_parent(&self, path: &WorkspacePath) -> problem::Result<OwnedFd> {
        match self.parent(path) {
            Ok(parent) => Ok(parent),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => self.make_steps(path),
            Err(errno) => Err(cannot_write(errno)),
        }
    }

    fn make_steps(&self, path: &WorkspacePath) -> problem::Result<OwnedFd> {
        let mut walked = WorkspacePath::root();
        let mut here = self.directory(&walked).map_err(cannot_write)?;
        for name in path.parent().iter().flat_map(WorkspacePath::components) {
            walked = walked.join(name);
            here = enter_or_make(&here, name, 0o755).map_err(|errno| match errno {
                Errno::NOTDIR | Errno::LOOP => bad_path(&walked, "is not a directory"),
                errno => cannot_write(errno),
            })?;
        }
        Ok(here)
    }
}

/// One step down. `mode` is for a directory that has to be made.
pub(super) fn enter_or_make(parent: &OwnedFd, name: &[u8], mode: u32) -> Result<OwnedFd> {
    let mode = Mode::from_raw_mode(mode);
    let made = match rustix::fs::mkdirat(parent, name, mode) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(errno),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    if made {
        rustix::fs::fchmod(&directory, mode)?;
    }
    Ok(directory)
}

/// The names in a directory and what they are, in no order.
pub(super) fn names(directory: OwnedFd) -> Result<Vec<(Box<[u8]>, FileType)>> {
    let mut found = Vec::new();
    let mut entries = Dir::new(directory)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            // Some filesystems do not say.
            FileType::Unknown => match rustix::fs::statat(entries.fd()?, name, NO_FOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno),
            },
            known => known,
        };
        found.push((name.to_bytes().into(), kind));
    }
    Ok(found)
}

pub(super) const NO_FOLLOW: AtFlags = AtFlags::SYMLINK_NOFOLLOW;

/// A problem of ours: a tree that must be there is not.
pub(super) fn open_own(path: &Path) -> problem::Result<Tree> {
    Tree::open(path).map_err(|errno| Problem::internal("find the files of the codebase", errno))
}
