//! The directory that changes are written to, reached only beneath its descriptor.
//!
//! It is read as a stack of one layer, so that entries on both sides are the same kind of thing to
//! compare. Nothing is opened through a symlink: a symlink where a directory is expected is an
//! obstacle that gets reported.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringfence_policy::WorkspacePath;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat};
use rustix::io::{Errno, Result};

use crate::changes::open_directory;
use crate::error::LayerError;
use crate::layers::pool::DirPool;
use crate::layers::stack::{BASE, Found, Leaf, Merged, Part, Stack};

#[derive(Debug)]
pub(super) struct Target {
    pub(super) path: PathBuf,
    stack: Stack,
    /// Whether this is the directory the layer was made over: then stamps can be compared.
    pub(super) is_base: bool,
}

/// What is at a path of the target.
#[derive(Debug)]
pub(super) enum Place {
    Absent,
    Leaf(Leaf),
    Dir(Merged),
    /// Something that is not a directory is in the way, at this path.
    Blocked(WorkspacePath),
}

/// One entry below a directory, with its path relative to it.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) names: Vec<Box<[u8]>>,
    pub(super) stat: Stat,
}

impl Target {
    pub(super) fn open(path: &Path, base: &Path) -> std::result::Result<Self, LayerError> {
        let found = path.canonicalize().map_err(|e| LayerError::io("find", path, e))?;
        let fd = open_directory("open", &found)?;
        let same = is_same(&fd, base).unwrap_or(false);
        let root = Part::root(BASE, fd, None, &DirPool::for_this_process());
        Ok(Self { path: found, stack: Stack::new(vec![root]), is_base: same })
    }

    pub(super) fn at(&self, path: &WorkspacePath) -> Result<Place> {
        let mut here = self.stack.root()?;
        let mut walked = WorkspacePath::root();
        let mut names = path.components().peekable();
        while let Some(name) = names.next() {
            walked = walked.join(name);
            match self.stack.find(&here.parts, name)? {
                Found::Absent => return Ok(Place::Absent),
                Found::Dir(next) => here = next,
                Found::Leaf(leaf) if names.peek().is_none() => return Ok(Place::Leaf(leaf)),
                Found::Leaf(_) => return Ok(Place::Blocked(walked)),
            }
        }
        Ok(Place::Dir(here))
    }

    /// Everything below a directory.
    pub(super) fn scan(&self, dir: &Merged) -> Result<Vec<Inner>> {
        let mut found = Vec::new();
        let mut pending = vec![(Vec::new(), dir.clone())];
        while let Some((above, dir)) = pending.pop() {
            for entry in self.stack.list(&dir.parts)? {
                let mut names: Vec<Box<[u8]>> = above.clone();
                names.push(entry.name.clone());
                match self.stack.find(&dir.parts, &entry.name)? {
                    Found::Absent => {}
                    Found::Leaf(leaf) => found.push(Inner { names, stat: leaf.stat }),
                    Found::Dir(inner) => {
                        found.push(Inner { names: names.clone(), stat: inner.stat });
                        pending.push((names, inner));
                    }
                }
            }
        }
        Ok(found)
    }

    /// The directory that holds `path`. Directories that are missing are made by `make`, which is
    /// given the path of each.
    pub(super) fn parent(
        &self,
        path: &WorkspacePath,
        make: impl Fn(&Arc<Part>, &[u8], &WorkspacePath) -> Result<()>,
    ) -> Result<Arc<Part>> {
        let parent = path.parent().ok_or(Errno::BUSY)?;
        let mut here = self.stack.roots().first().ok_or(Errno::NOENT)?.clone();
        let mut walked = WorkspacePath::root();
        for name in parent.components() {
            walked = walked.join(name);
            match here.stat(name)? {
                None => make(&here, name, &walked)?,
                Some(stat) if FileType::from_raw_mode(stat.st_mode).is_dir() => {}
                Some(_) => return Err(Errno::NOTDIR),
            }
            here = Part::below(&here, name)?;
        }
        Ok(here)
    }

    /// Deletes whatever is at `name`; a directory with everything in it.
    pub(super) fn remove(&self, dir: &Arc<Part>, name: &[u8]) -> Result<()> {
        match dir.stat(name)? {
            None => return Ok(()),
            Some(stat) if FileType::from_raw_mode(stat.st_mode).is_dir() => {}
            Some(_) => return rustix::fs::unlinkat(dir.fd()?, name, AtFlags::empty()),
        }
        let mut open = vec![(dir.clone(), Box::<[u8]>::from(name))];
        while let Some((above, name)) = open.last().cloned() {
            let inner = Part::below(&above, &name)?;
            let below = self.remove_leaves(&inner)?;
            if below.is_empty() {
                rustix::fs::unlinkat(above.fd()?, &name[..], AtFlags::REMOVEDIR)?;
                open.pop();
            }
            open.extend(below.into_iter().map(|name| (inner.clone(), name)));
        }
        Ok(())
    }

    /// Deletes what is not a directory and returns the names of those that are.
    fn remove_leaves(&self, dir: &Arc<Part>) -> Result<Vec<Box<[u8]>>> {
        let mut below = Vec::new();
        for entry in self.stack.list(std::slice::from_ref(dir))? {
            match entry.kind {
                FileType::Directory => below.push(entry.name),
                _ => rustix::fs::unlinkat(dir.fd()?, &entry.name[..], AtFlags::empty())?,
            }
        }
        Ok(below)
    }

    /// Waits until everything written is on the disk.
    pub(super) fn sync(&self) -> Result<()> {
        let root = self.stack.roots().first().ok_or(Errno::NOENT)?.fd()?;
        rustix::fs::syncfs(root)
    }
}

impl Inner {
    pub(super) fn below(&self, dir: &WorkspacePath) -> WorkspacePath {
        self.names.iter().fold(dir.clone(), |path, name| path.join(name))
    }
}

fn is_same(fd: &OwnedFd, base: &Path) -> Result<bool> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let base = fstat(rustix::fs::open(base, flags, Mode::empty())?)?;
    let own = fstat(fd)?;
    Ok((own.st_dev, own.st_ino) == (base.st_dev, base.st_ino))
}
