//! Taking back what somebody wrote to a codebase before, where it still is what they left.
//!
//! A sandbox keeps the version it stands on. When it applies its changes again, what it applied
//! before is in the newest version already and would look like somebody else's work, and what it has
//! undone since would stay. So its earlier work is taken back first, and then all of its changes are
//! written.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;

use ringfence_policy::WorkspacePath;
use rustix::fs::{AtFlags, FileType, Mode, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::path::relative;
use super::tree::{self, Tree, enter_or_make};
use super::trouble::cannot_write;
use super::versions::link_file;
use super::{Codebases, Inner};
use crate::problem::{Problem, Result};

/// What was left at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Left {
    Nothing,
    Directory,
    /// Its digest, in hexadecimal digits.
    File(String),
    /// Where it points to.
    Symlink(Vec<u8>),
    /// Nothing that could be written here.
    Other,
}

/// Paths, from the root, and what was left there.
pub type Work = BTreeMap<Vec<u8>, Left>;

impl Codebases {
    /// What the newest version has at these paths and below them.
    pub fn left_at<'p>(
        &self,
        account: &str,
        id: &str,
        paths: impl Iterator<Item = &'p [u8]>,
    ) -> Result<Work> {
        self.with_newest(account, id, |root| {
            let tree = tree::open_own(root)?;
            let mut work = Work::new();
            for path in paths {
                self.inner.note(id, &tree, parsed(path)?, &mut work)?;
            }
            Ok(work)
        })
    }

    /// Takes work back in a copy of the newest version: as the version `base` has it. Says whether
    /// there was anything to take back.
    pub fn take_back(&self, id: &str, copy: &Path, base: i64, work: &Work) -> Result<bool> {
        let base = tree::open_own(&self.inner.place(id).version(base))?;
        let tree = tree::open_own(copy)?;
        let mut ours = Vec::new();
        for (path, left) in work {
            let path = parsed(path)?;
            if self.inner.left(id, &tree, &path)? == *left {
                ours.push((path, left));
            }
        }
        // What is in a directory comes after it, so it is taken away before it.
        for (path, left) in ours.iter().rev() {
            remove(&tree, path, left).map_err(cannot_write)?;
        }
        for (path, left) in &ours {
            restore(&base, &tree, path, **left == Left::Nothing).map_err(cannot_write)?;
        }
        Ok(!ours.is_empty())
    }
}

fn parsed(path: &[u8]) -> Result<WorkspacePath> {
    WorkspacePath::parse(path).map_err(|e| Problem::internal("read what was applied", e))
}

impl Inner {
    fn note(&self, id: &str, tree: &Tree, path: WorkspacePath, work: &mut Work) -> Result<()> {
        let left = self.left(id, tree, &path)?;
        if left == Left::Directory {
            let directory = tree.directory(&path).map_err(cannot_write)?;
            for (name, _) in tree::names(directory).map_err(cannot_write)? {
                self.note(id, tree, path.join(&name), work)?;
            }
        }
        work.insert(path.as_bytes().to_vec(), left);
        Ok(())
    }

    /// The tree is the newest version or a copy of it, so its files are those on record.
    fn left(&self, id: &str, tree: &Tree, path: &WorkspacePath) -> Result<Left> {
        let Some((found, stat)) = look(tree, path).map_err(cannot_write)? else {
            return Ok(Left::Nothing);
        };
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Left::Directory,
            FileType::Symlink => {
                let target =
                    rustix::fs::readlinkat(&found, "", Vec::new()).map_err(cannot_write)?;
                Left::Symlink(target.into_bytes())
            }
            FileType::RegularFile => {
                let digest = self.store.file(id, relative(path))?.and_then(|file| file.digest);
                digest.map_or(Left::Other, |digest| Left::File(digest.to_hex().to_string()))
            }
            _ => Left::Other,
        })
    }
}

/// Something that is not there, or not there any more on the way to it, is nothing.
fn look(tree: &Tree, path: &WorkspacePath) -> std::io::Result<Option<(OwnedFd, Stat)>> {
    match tree.look(path) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn remove(tree: &Tree, path: &WorkspacePath, left: &Left) -> std::io::Result<()> {
    let flags = match left {
        Left::Nothing | Left::Other => return Ok(()),
        Left::Directory => AtFlags::REMOVEDIR,
        Left::File(_) | Left::Symlink(_) => AtFlags::empty(),
    };
    let name = path.file_name().unwrap_or_default();
    match rustix::fs::unlinkat(tree.parent(path)?, name, flags) {
        // Somebody else's things are in it.
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        done => Ok(done?),
    }
}

/// As the base has it. What was taken away as a whole comes back as a whole.
fn restore(base: &Tree, tree: &Tree, path: &WorkspacePath, whole: bool) -> std::io::Result<()> {
    let Some((found, was)) = look(base, path)? else { return Ok(()) };
    let Ok(parent) = tree.parent(path) else { return Ok(()) };
    let name = path.file_name().unwrap_or_default();
    let kind = FileType::from_raw_mode(was.st_mode);
    if let Some((_, now)) = look(tree, path)? {
        let both = kind == FileType::Directory && FileType::from_raw_mode(now.st_mode) == kind;
        if both {
            let mode = Mode::from_raw_mode(was.st_mode & 0o777);
            rustix::fs::chmodat(&parent, name, mode, AtFlags::empty())?;
        }
        return Ok(());
    }
    match kind {
        FileType::Directory => {
            enter_or_make(&parent, name, was.st_mode & 0o777)?;
            let inside = if whole { tree::names(base.directory(path)?)? } else { vec![] };
            inside.iter().try_for_each(|(name, _)| restore(base, tree, &path.join(name), true))
        }
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(&found, "", Vec::new())?;
            Ok(rustix::fs::symlinkat(target, &parent, name)?)
        }
        _ => link_file(&base.parent(path)?, &parent, name),
    }
}
