//! Which version is whose: pinning, moving on to the next, and letting go of old ones.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringfence_fs::layers::mask::MaskOptions;
use ringfence_policy::WorkspacePath;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::problem::{Problem, Result};
use crate::store::TreeState;

use super::life::{Hold, Life};
use super::place::Place;
use super::scratch::{self, Scratch};
use super::sources::copy_content;
use super::tree::{self, NO_FOLLOW, Tree, enter_or_make};
use super::{Codebases, Inner, trouble};

/// What a sandbox stands on. Keep it until the version is on the sandbox's record; from then on the
/// record keeps the version.
#[derive(Debug)]
pub struct Pinned {
    pub version: i64,
    /// The tree, for the warden. It never changes, unless it is a directory used in place.
    pub path: PathBuf,
    pub mask: MaskOptions,
    hold: Option<Hold>,
}

impl Pinned {
    /// Whether these are stored files, which never change.
    pub fn is_stored(&self) -> bool {
        self.hold.is_some()
    }
}

impl Codebases {
    /// Gives a version to a sandbox: the one it stands on already, or else the newest. The next
    /// change makes another.
    pub fn pin(&self, account: &str, id: &str, version: Option<i64>) -> Result<Pinned> {
        let codebase = self.inner.record(account, id)?;
        let (path, hold) = match &codebase.local_path {
            Some(path) => (path.clone(), None),
            None => {
                let hold = match version {
                    Some(version) => self.inner.hold_version(id, version)?,
                    None => self.inner.hold_sealed(id)?,
                };
                (self.inner.place(id).version(hold.version), Some(hold))
            }
        };
        let version = hold.as_ref().map_or(codebase.version, |hold| hold.version);
        Ok(Pinned { version, path, mask: codebase.mask_options(), hold })
    }

    /// Nobody on record stands on this version any more, as far as the caller knows. It is removed
    /// if that is so and there is a newer one.
    pub fn unpin(&self, id: &str, version: i64) -> Result<()> {
        self.inner.remove_if_unused(id, version).map(|_| ())
    }

    /// Removes all versions but the newest ones, those in `in_use`, those on the records of sandboxes
    /// and snapshots, and those held at this moment. Says what was removed.
    pub fn sweep(&self, in_use: &[(String, i64)]) -> Result<Vec<(String, i64)>> {
        let mut removed = Vec::new();
        for codebase in self.inner.store.all_codebases()? {
            if codebase.local_path.is_some() {
                continue;
            }
            let present = self.inner.place(&codebase.id).present().unwrap_or_default();
            for version in present {
                let key = (codebase.id.clone(), version);
                if !in_use.contains(&key) && self.inner.remove_if_unused(&key.0, version)? {
                    removed.push(key);
                }
            }
        }
        Ok(removed)
    }

    /// Where the files are on the host now. An upload may make another version at any moment: what
    /// must not change is pinned.
    pub fn path_of(&self, account: &str, id: &str) -> Result<PathBuf> {
        let codebase = self.inner.record(account, id)?;
        Ok(match codebase.local_path {
            Some(path) => path,
            None => self.inner.place(id).version(codebase.version),
        })
    }
}

impl Inner {
    /// The newest version, for as long as the answer is kept.
    pub(super) fn hold_newest(&self, id: &str) -> Result<Hold> {
        let life = self.life(id);
        let mut holds = life.holds.lock();
        let state = self.tree_state(id)?;
        Ok(holds.take(&life, state.version))
    }

    /// The newest version, which will not change any more.
    fn hold_sealed(&self, id: &str) -> Result<Hold> {
        let life = self.life(id);
        if let Some(hold) = self.hold_if_sealed(id, &life)? {
            return Ok(hold);
        }
        // Whoever is changing it gets to the end first.
        let _turn = life.change.lock();
        if !self.tree_state(id)?.sealed {
            self.store.seal(id)?;
        }
        self.hold_if_sealed(id, &life)?.ok_or_else(trouble::no_codebase)
    }

    fn hold_if_sealed(&self, id: &str, life: &Arc<Life>) -> Result<Option<Hold>> {
        let mut holds = life.holds.lock();
        let state = self.tree_state(id)?;
        Ok(state.sealed.then(|| holds.take(life, state.version)))
    }

    fn hold_version(&self, id: &str, version: i64) -> Result<Hold> {
        let life = self.life(id);
        let mut holds = life.holds.lock();
        if !self.place(id).version(version).is_dir() {
            return Err(Problem::internal("find the version of the codebase", version));
        }
        Ok(holds.take(&life, version))
    }

    pub(super) fn tree_state(&self, id: &str) -> Result<TreeState> {
        self.store.tree_state(id)?.ok_or_else(trouble::no_codebase)
    }

    /// The newest version, open for changes. The caller has the turn to change.
    pub(super) fn open_for_change(&self, id: &str, life: &Life) -> Result<Tree> {
        let place = self.place(id);
        let state = self.tree_state(id)?;
        if !state.sealed && !self.store.is_version_used(id, state.version)? {
            return tree::open_own(&place.version(state.version));
        }
        let next = state.version + 1;
        if !self.rename_unused(id, life, state.version)? {
            let copy = place.scratch();
            link_tree(&place.version(state.version), copy.path()).map_err(trouble::cannot_write)?;
            put_in_place(&place, &copy, next)?;
            self.store.open_version(id, next)?;
        }
        tree::open_own(&place.version(next))
    }

    /// If nobody stands on a version any more, its tree simply becomes the next one.
    fn rename_unused(&self, id: &str, life: &Life, version: i64) -> Result<bool> {
        let holds = life.holds.lock();
        if holds.is_held(version) || self.store.is_version_used(id, version)? {
            return Ok(false);
        }
        let (now, next) = (self.place(id).version(version), self.place(id).version(version + 1));
        scratch::remove(&next)
            .and_then(|()| std::fs::rename(&now, &next))
            .map_err(trouble::cannot_write)?;
        let opened = self.store.open_version(id, version + 1);
        if opened.is_err() {
            // Back, so that the record is right.
            let _ = std::fs::rename(&next, &now);
        }
        opened.map(|()| true)
    }

    /// Takes a version away if it is old and nobody needs it. Says whether it did.
    pub(super) fn remove_if_unused(&self, id: &str, version: i64) -> Result<bool> {
        let life = self.life(id);
        let holds = life.holds.lock();
        let newest = match self.store.tree_state(id)? {
            Some(state) => state.version,
            None => return Ok(false),
        };
        let needed = version >= newest || holds.is_held(version);
        if needed || self.store.is_version_used(id, version)? {
            return Ok(false);
        }
        let gone = match self.root.discard(&self.place(id).version(version)) {
            Ok(gone) => gone,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(trouble::cannot_write(error)),
        };
        drop(holds);
        drop(gone);
        Ok(true)
    }
}

/// Something of that number may be there: a version that never got on record.
pub(super) fn put_in_place(place: &Place, built: &Scratch, version: i64) -> Result<()> {
    let target = place.version(version);
    scratch::remove(&target)
        .and_then(|()| std::fs::rename(built.path(), target))
        .map_err(trouble::cannot_write)
}

/// The same files under new directories.
pub(super) fn link_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    let (from, to) = (Tree::open(from)?, Tree::make(to)?);
    let mut pending = vec![WorkspacePath::root()];
    while let Some(path) = pending.pop() {
        let (source, target) = (from.directory(&path)?, to.directory(&path)?);
        for (name, kind) in tree::names(from.directory(&path)?)? {
            match kind {
                FileType::Directory => {
                    let mode = rustix::fs::statat(&source, &*name, NO_FOLLOW)?.st_mode & 0o777;
                    enter_or_make(&target, &name, mode)?;
                    pending.push(path.join(&name));
                }
                FileType::Symlink => {
                    let points_to = rustix::fs::readlinkat(&source, &*name, Vec::new())?;
                    rustix::fs::symlinkat(points_to, &target, &*name)?;
                }
                _ => link_file(&source, &target, &name)?,
            }
        }
    }
    Ok(())
}

pub(super) fn link_file(source: &OwnedFd, target: &OwnedFd, name: &[u8]) -> std::io::Result<()> {
    match rustix::fs::linkat(source, name, target, name, AtFlags::empty()) {
        // A file has so many names that the filesystem has no room for another.
        Err(Errno::MLINK) => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(source, name, flags, Mode::empty())?;
            let mode = Mode::from_raw_mode(rustix::fs::fstat(&file)?.st_mode & 0o777);
            copy_content(file.into(), target, name, mode).map(|_| ())
        }
        linked => Ok(linked?),
    }
}
