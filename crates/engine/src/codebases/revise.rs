//! The next version, out of a copy of the newest that somebody else changes.

use std::collections::HashMap;
use std::path::Path;

use ringfence_policy::WorkspacePath;
use rustix::fs::{FileType, Mode, Stat};

use crate::problem::Result;
use crate::store::{Digest, FileRow, Stamp};

use super::path::relative;
use super::tree::{self, NO_FOLLOW, Tree};
use super::trouble::cannot_write;
use super::versions::{link_tree, put_in_place};
use super::{Codebases, Inner};

impl Codebases {
    /// Lets `change` work on a copy of the newest version, and makes that the newest if it says so.
    /// Files in the copy have other names elsewhere: they are replaced, never changed in place.
    pub fn revise<T>(
        &self,
        account: &str,
        id: &str,
        change: impl FnOnce(&Path) -> Result<(bool, T)>,
    ) -> Result<T> {
        let inner = &self.inner;
        let record = inner.stored_record(account, id)?;
        let life = inner.life(id);
        let _turn = life.change.lock();
        let (place, version) = (inner.place(id), inner.tree_state(id)?.version);
        let copy = place.scratch();
        link_tree(&place.version(version), copy.path()).map_err(cannot_write)?;
        let (changed, answer) = change(copy.path())?;
        if changed {
            let (files, directories) = inner.look_at_all(id, copy.path())?;
            inner.check_count(files.len() as u64 + directories)?;
            let size = files.iter().map(|file| file.stamp.size).sum();
            inner.check_size(size)?;
            let share = inner.quotas.share(account);
            let _share = share.lock();
            inner.check_account(account, record.size, size)?;
            put_in_place(&place, &copy, version + 1)?;
            inner.store.replace_tree(id, version + 1, &files, directories, None)?;
            inner.remove_if_unused(id, version)?;
        }
        Ok(answer)
    }

    /// Looks at the newest version, which stays for as long as that takes.
    pub fn with_newest<T>(
        &self,
        account: &str,
        id: &str,
        look: impl FnOnce(&Path) -> Result<T>,
    ) -> Result<T> {
        self.inner.stored_record(account, id)?;
        let hold = self.inner.hold_newest(id)?;
        look(&self.inner.place(id).version(hold.version))
    }
}

impl Inner {
    /// What is in a tree, and how many directories. Only files that were not there before are read.
    fn look_at_all(&self, id: &str, root: &Path) -> Result<(Vec<FileRow>, u64)> {
        let key = |stamp: &Stamp| (stamp.inode, stamp.size, stamp.modified_ns);
        let before = self.store.files(id)?.into_iter();
        let known: HashMap<_, Digest> =
            before.filter_map(|file| Some((key(&file.stamp), file.digest?))).collect();
        let tree = tree::open_own(root)?;
        let (mut found, mut directories) = (Vec::new(), 0);
        let mut pending = vec![WorkspacePath::root()];
        while let Some(directory) = pending.pop() {
            let opened = tree.directory(&directory).map_err(cannot_write)?;
            for (name, kind) in tree::names(opened).map_err(cannot_write)? {
                let path = directory.join(&name);
                let stat = tree.stat(&path).map_err(cannot_write)?;
                let digest = |stamp: &Stamp| known.get(&key(stamp)).copied();
                match kind {
                    FileType::Directory => {
                        keep_open(&tree, &path, &stat, 0o700)?;
                        directories += 1;
                        pending.push(path);
                    }
                    FileType::RegularFile => {
                        // Before it is read: what looks endless may hold nothing.
                        if digest(&Stamp::of(&stat)).is_none() {
                            self.check_file_size(stat.st_size as u64)?;
                        }
                        found.push(regular(&tree, &path, &stat, digest)?);
                    }
                    FileType::Symlink => found.push(symlink(&path, &stat)),
                    _ => {}
                }
            }
        }
        Ok((found, directories))
    }
}

fn regular(
    tree: &Tree,
    path: &WorkspacePath,
    stat: &Stat,
    known: impl Fn(&Stamp) -> Option<Digest>,
) -> Result<FileRow> {
    keep_open(tree, path, stat, 0o600)?;
    let stamp = Stamp::of(stat);
    let digest = match known(&stamp) {
        Some(digest) => digest,
        None => digest_of(tree, path)?,
    };
    let mode = stat.st_mode & 0o777 | 0o600;
    Ok(FileRow { path: relative(path).to_vec(), digest: Some(digest), stamp, mode })
}

fn digest_of(tree: &Tree, path: &WorkspacePath) -> Result<Digest> {
    let file = tree.file(path).map_err(cannot_write)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(std::fs::File::from(file)).map_err(cannot_write)?;
    Ok(hasher.finalize())
}

fn symlink(path: &WorkspacePath, stat: &Stat) -> FileRow {
    let stamp = Stamp { size: 0, ..Stamp::of(stat) };
    FileRow { path: relative(path).to_vec(), digest: None, stamp, mode: 0o777 }
}

/// Nothing is stored that the server could not read or replace. A file that was there before has
/// these bits, so none that has other names is changed.
fn keep_open(tree: &Tree, path: &WorkspacePath, stat: &Stat, bits: u32) -> Result<()> {
    if stat.st_mode & bits == bits {
        return Ok(());
    }
    let parent = tree.parent(path).map_err(cannot_write)?;
    let name = path.file_name().unwrap_or_default();
    let mode = Mode::from_raw_mode(stat.st_mode & 0o777 | bits);
    let now = rustix::fs::statat(&parent, name, NO_FOLLOW).map_err(cannot_write)?;
    match FileType::from_raw_mode(now.st_mode) {
        FileType::Symlink => Ok(()),
        _ => rustix::fs::chmodat(&parent, name, mode, rustix::fs::AtFlags::empty())
            .map_err(cannot_write),
    }
}
