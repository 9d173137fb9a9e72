//! Where a commit gets the contents of its files from.
//!
//! A file that is there already gets another name (a hard link), unless that would show in this
//! tree or in another: two paths of one version never share a file, and the mode of a file is that
//! of all its names. Then the content is copied.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

use ringfence_policy::WorkspacePath;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fstat};
use rustix::io::Errno;

use crate::problem::Result;
use crate::store::{Content, Digest, FileRow, Stamp};

use super::Inner;
use super::reading::View;
use super::tree::Tree;
use super::trouble::cannot_write;

/// More files of one content are not tried.
const MOST_TRIED: usize = 16;

/// What a commit may take from.
#[derive(Debug)]
pub(super) struct Sources<'a> {
    pub(super) inner: &'a Inner,
    pub(super) account: &'a str,
    pub(super) id: &'a str,
    /// Codebases that were looked into.
    pub(super) views: HashMap<String, View>,
    pub(super) stage: PathBuf,
    /// Files that have a name in the new tree.
    pub(super) taken: HashSet<u64>,
}

/// A file to be made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needed<'a> {
    pub(super) directory: &'a OwnedFd,
    pub(super) name: &'a [u8],
    pub(super) digest: Digest,
    pub(super) mode: u32,
}

impl Sources<'_> {
    /// Takes over the file that is at the same path, if it is as it should be.
    pub(super) fn keep(&mut self, file: &FileRow, needed: &Needed<'_>) -> Result<Option<Stamp>> {
        if file.digest != Some(needed.digest) || file.mode != needed.mode {
            return Ok(None);
        }
        let content = Content { codebase_id: self.id.to_owned(), file: file.clone() };
        match self.open_content(&content)? {
            Some((file, stat)) => self.link(&file, &stat, needed),
            None => Ok(None),
        }
    }

    /// Gets the content from wherever it is. Nothing if it is nowhere.
    pub(super) fn fetch(&mut self, needed: &Needed<'_>) -> Result<Option<Stamp>> {
        if let Some(stamp) = self.staged(needed)? {
            return Ok(Some(stamp));
        }
        let mut other = None;
        for content in self.inner.store.contents(self.account, &needed.digest, MOST_TRIED)? {
            if other.is_some() && self.taken.contains(&content.file.stamp.inode) {
                continue;
            }
            let Some((file, stat)) = self.open_content(&content)? else { continue };
            if stat.st_mode & 0o777 == needed.mode
                && let Some(stamp) = self.link(&file, &stat, needed)?
            {
                return Ok(Some(stamp));
            }
            other = Some(file);
        }
        other.map(|file| self.copy(file, needed)).transpose()
    }

    /// A staged file belongs to nobody yet, so the first who takes it may set its mode.
    fn staged(&mut self, needed: &Needed<'_>) -> Result<Option<Stamp>> {
        let file = match File::open(self.stage.join(needed.digest.to_hex().as_str())) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(cannot_write(error)),
        };
        let stat = fstat(&file).map_err(cannot_write)?;
        if stat.st_nlink == 1 {
            rustix::fs::fchmod(&file, Mode::from_raw_mode(needed.mode)).map_err(cannot_write)?;
            if let Some(stamp) = self.link(file.as_fd(), &stat, needed)? {
                return Ok(Some(stamp));
            }
        }
        self.copy(file, needed).map(Some)
    }

    /// The file a row speaks of. If it is not what the row says, nobody will be sent there again.
    fn open_content(&mut self, content: &Content) -> Result<Option<(File, Stat)>> {
        let Ok(path) = WorkspacePath::parse(&content.file.path) else { return Ok(None) };
        let id = &content.codebase_id;
        for fresh in [false, true] {
            let Some(view) = self.view_of(id, fresh)? else { return Ok(None) };
            if let Some(found) = open_unchanged(&view.tree, &path, &content.file.stamp) {
                return Ok(Some(found));
            }
        }
        self.inner.store.forget_content(content)?;
        Ok(None)
    }

    /// The newest version of a codebase, or what was that a moment ago. Nothing if the codebase has
    /// been deleted.
    fn view_of(&mut self, id: &str, fresh: bool) -> Result<Option<&View>> {
        if fresh || !self.views.contains_key(id) {
            match self.inner.record(self.account, id) {
                Ok(codebase) => self.views.insert(id.to_owned(), self.inner.view(&codebase)?),
                Err(_) => return Ok(None),
            };
        }
        Ok(self.views.get(id))
    }

    /// Gives the file another name, if it has none in this tree yet.
    fn link(&mut self, file: impl AsFd, stat: &Stat, needed: &Needed<'_>) -> Result<Option<Stamp>> {
        if self.taken.contains(&stat.st_ino) {
            return Ok(None);
        }
        // The descriptor is what was checked; a name could have become another file's.
        let from = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
        let follow = AtFlags::SYMLINK_FOLLOW;
        match rustix::fs::linkat(CWD, from, needed.directory, needed.name, follow) {
            Ok(()) => {
                self.taken.insert(stat.st_ino);
                Ok(Some(Stamp::of(stat)))
            }
            // Too many names, removed meanwhile, or a kernel that lets nobody link what is not his.
            Err(Errno::MLINK | Errno::NOENT | Errno::PERM | Errno::XDEV) => Ok(None),
            Err(errno) => Err(cannot_write(errno)),
        }
    }

    fn copy(&mut self, file: File, needed: &Needed<'_>) -> Result<Stamp> {
        let mode = Mode::from_raw_mode(needed.mode);
        let copied = copy_content(file, needed.directory, needed.name, mode);
        let stat = copied.map_err(cannot_write)?;
        self.taken.insert(stat.st_ino);
        Ok(Stamp::of(&stat))
    }
}

fn open_unchanged(tree: &Tree, path: &WorkspacePath, stamp: &Stamp) -> Option<(File, Stat)> {
    let file = tree.file(path).ok()?;
    let stat = fstat(&file).ok()?;
    (Stamp::of(&stat) == *stamp).then(|| (file.into(), stat))
}

/// A new file with the content of another. The kernel shares the blocks where it can.
pub(super) fn copy_content(
    mut from: File,
    directory: &OwnedFd,
    name: &[u8],
    mode: Mode,
) -> std::io::Result<Stat> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut to = File::from(rustix::fs::openat(directory, name, flags, mode)?);
    std::io::copy(&mut from, &mut to)?;
    rustix::fs::fchmod(&to, mode)?;
    ringfence_sys::files::start_writeback(&to);
    Ok(fstat(&to)?)
}
