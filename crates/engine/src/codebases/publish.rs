//! Putting a complete file in its place, and taking one away.
//!
//! Everything here happens in the codebase's turn to change, and in this order: the path is written
//! down as an intent, the file is renamed into the tree, the records follow.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

use ringfence_policy::WorkspacePath;
use rustix::fs::{AtFlags, CWD, FileType};
use rustix::io::Errno;

use crate::problem::Result;
use crate::store::FileRow;

use super::life::Staged;
use super::path::{self, relative};
use super::tree::{NO_FOLLOW, Tree};
use super::trouble::{bad_path, cannot_find, cannot_write, no_file};
use super::upload::Complete;
use super::{Codebases, Inner};

impl Codebases {
    /// Takes a file or a symlink away. Directories stay, even when they are empty.
    pub fn remove_file(&self, account: &str, id: &str, path: impl AsRef<OsStr>) -> Result<()> {
        let path = path::parse_file(path)?;
        let inner = &self.inner;
        let codebase = inner.stored_record(account, id)?;
        let life = inner.life(id);
        let _turn = life.change.lock();
        let stat = inner.view(&codebase)?.tree.stat(&path);
        let stat = stat.map_err(|errno| cannot_find(&path, errno))?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            return Err(bad_path(&path, "is a directory"));
        }
        let tree = inner.open_for_change(id, &life)?;
        let (parent, name) = entry(&tree, &path)?;
        inner.store.intend(id, relative(&path))?;
        rustix::fs::unlinkat(parent, name, AtFlags::empty()).map_err(cannot_write)?;
        inner.store.settle(id, relative(&path), None)
    }
}

impl Inner {
    /// Puts a complete file at `path`, over whatever file or symlink is there.
    pub(super) fn put(
        &self,
        account: &str,
        id: &str,
        path: &WorkspacePath,
        complete: Complete,
    ) -> Result<()> {
        let life = self.life(id);
        let _turn = life.change.lock();
        // It may have been deleted while the file was sent.
        let codebase = self.stored_record(account, id)?;
        let size = complete.stamp.size;
        let room = self.check_room(&codebase, path, size)?;
        let tree = self.open_for_change(id, &life)?;
        let share = self.quotas.share(account);
        let _share = share.lock();
        // Others may have stored something meanwhile.
        self.check_account(account, room.freed, size)?;
        self.store.count_directories(id, room.directories)?;
        let parent = tree.make_parent(path)?;
        let name = path.file_name().unwrap_or_default();
        refuse_directory(&parent, path)?;
        self.store.intend(id, relative(path))?;
        rustix::fs::renameat(CWD, complete.scratch.path(), parent, name).map_err(cannot_write)?;
        let file = FileRow {
            path: relative(path).to_vec(),
            digest: Some(complete.digest),
            stamp: complete.stamp,
            mode: complete.mode,
        };
        self.store.settle(id, relative(path), Some(&file))
    }

    /// Keeps contents for a commit, each once. Those before the first that is too much are kept.
    pub(super) fn stage(&self, account: &str, id: &str, contents: Vec<Complete>) -> Result<()> {
        let life = self.life(id);
        let _turn = life.change.lock();
        let codebase = self.stored_record(account, id)?;
        // A commit puts what is staged in the place of what is stored.
        let room = self.room(&codebase)?;
        let stage = self.place(id).stage();
        let mut staged = life.staged.lock();
        let mut before = match *staged {
            Some(known) => known,
            None => count_staged(&stage).map_err(cannot_write)?,
        };
        for complete in contents {
            let target = stage.join(complete.digest.to_hex().as_str());
            if target.exists() {
                continue;
            }
            let size = complete.stamp.size;
            let after = Staged { bytes: before.bytes + size, files: before.files + 1 };
            self.check_staged(after, room)?;
            std::fs::rename(complete.scratch.path(), target).map_err(cannot_write)?;
            before = after;
            *staged = Some(after);
        }
        Ok(())
    }

    fn check_staged(&self, staged: Staged, room: u64) -> Result<()> {
        self.check_size(staged.bytes)?;
        self.check_count(staged.files)?;
        self.check_within(staged.bytes, room)
    }
}

fn count_staged(stage: &std::path::Path) -> std::io::Result<Staged> {
    let mut staged = Staged::default();
    for entry in std::fs::read_dir(stage)? {
        staged.bytes += entry?.metadata()?.len();
        staged.files += 1;
    }
    Ok(staged)
}

fn refuse_directory(parent: &OwnedFd, path: &WorkspacePath) -> Result<()> {
    match rustix::fs::statat(parent, path.file_name().unwrap_or_default(), NO_FOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
            Err(bad_path(path, "is a directory"))
        }
        Ok(_) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(cannot_write(errno)),
    }
}

fn entry<'p>(tree: &Tree, path: &'p WorkspacePath) -> Result<(OwnedFd, &'p [u8])> {
    let parent = tree.parent(path).map_err(|errno| cannot_find(path, errno))?;
    let name = path.file_name().ok_or_else(|| no_file(path))?;
    Ok((parent, name))
}
