//! How much can be stored: in a codebase, and by an account in all of them.
//!
//! What is in a codebase is counted in its record. Changes of one codebase take turns, so its own
//! limits cannot be passed by several at once; for the sum over an account those who are about to
//! add to it take turns too ([`Quotas::share`]), for the moment between the look and the record.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use ringfence_policy::WorkspacePath;

use crate::problem::Result;
use crate::store::Codebase;

use super::Inner;
use super::manifest::{Manifest, Wanted};
use super::path::relative;
use super::trouble::over_limit;

#[derive(Debug, Default)]
pub(super) struct Quotas {
    shares: Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

/// What putting a file in its place takes and gives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Bytes of the file that was there.
    pub(super) freed: u64,
    /// How many directories have to be made.
    pub(super) directories: u64,
}

impl Quotas {
    /// Held by whoever adds to what an account stores. Taken after the codebase's turn.
    pub(super) fn share(&self, account: &str) -> Arc<Mutex<()>> {
        self.shares.lock().entry(account.to_owned()).or_default().clone()
    }
}

impl Inner {
    /// Whether a file of this size at `path` stays within all limits.
    pub(super) fn check_room(
        &self,
        codebase: &Codebase,
        path: &WorkspacePath,
        size: u64,
    ) -> Result<Room> {
        let state = self.tree_state(&codebase.id)?;
        let before = self.store.file(&codebase.id, relative(path))?;
        let freed = before.as_ref().map_or(0, |file| file.stamp.size);
        let directories = self.missing_directories(codebase, path)?;
        self.check_size(state.size.saturating_sub(freed).saturating_add(size))?;
        self.check_account(&codebase.account, freed, size)?;
        let there = state.file_count + state.directory_count;
        self.check_count(there + u64::from(before.is_none()) + directories)?;
        Ok(Room { freed, directories })
    }

    fn missing_directories(&self, codebase: &Codebase, path: &WorkspacePath) -> Result<u64> {
        let tree = self.view(codebase)?.tree;
        let above = above(path);
        Ok(above.iter().filter(|directory| tree.stat(directory).is_err()).count() as u64)
    }

    /// Whether a file that is being sent may become this big where `room` bytes can be stored.
    pub(super) fn check_growth(&self, size: u64, room: u64) -> Result<()> {
        self.check_file_size(size)?;
        self.check_size(size)?;
        self.check_within(size, room)
    }

    pub(super) fn check_size(&self, size: u64) -> Result<()> {
        let most = self.limits.max_codebase_size;
        match size > most {
            true => Err(over_limit("max_codebase_size", most, "the codebase gets too big")),
            false => Ok(()),
        }
    }

    pub(super) fn check_count(&self, count: u64) -> Result<()> {
        let most = self.limits.max_files;
        match count > most {
            true => Err(over_limit("max_files", most, "the codebase gets too many files")),
            false => Ok(()),
        }
    }

    /// Whether the account stays within its limit when so much goes and so much comes.
    pub(super) fn check_account(&self, account: &str, freed: u64, added: u64) -> Result<()> {
        let stored = self.store.stored_size(account)?;
        let size = stored.saturating_sub(freed).saturating_add(added);
        self.check_within(size, self.limits.max_account_size)
    }

    /// Whether this fits into what [`Inner::room`] found.
    pub(super) fn check_within(&self, size: u64, room: u64) -> Result<()> {
        let most = self.limits.max_account_size;
        match size > room {
            true => Err(over_limit("max_account_size", most, "the account stores too much")),
            false => Ok(()),
        }
    }

    /// What a codebase could hold if everything in it went.
    pub(super) fn room(&self, codebase: &Codebase) -> Result<u64> {
        let others = self.store.stored_size(&codebase.account)?.saturating_sub(codebase.size);
        Ok(self.limits.max_account_size.saturating_sub(others))
    }

    pub(super) fn check_file_size(&self, size: u64) -> Result<()> {
        let most = self.limits.max_file_size;
        match size > most {
            true => Err(over_limit("max_file_size", most, "a file is too big")),
            false => Ok(()),
        }
    }

    /// Before gigabytes are sent for nothing.
    pub(super) fn check_manifest(&self, codebase: &Codebase, manifest: &Manifest) -> Result<()> {
        let (size, files) = (manifest.size(), manifest.files().count() as u64);
        self.check_count(files + manifest.symlinks() + manifest.directories())?;
        manifest.files().try_for_each(|(_, _, size)| self.check_file_size(size))?;
        self.check_size(size)?;
        self.check_account(&codebase.account, codebase.size, size)
    }
}

impl Manifest {
    pub(super) fn size(&self) -> u64 {
        self.files().fold(0, |total, (_, _, size)| total.saturating_add(size))
    }

    fn symlinks(&self) -> u64 {
        let is = |wanted: &&Wanted| matches!(wanted, Wanted::Symlink { .. });
        self.entries.values().filter(is).count() as u64
    }

    /// Those that are named, and those that only have something in them.
    pub(super) fn directories(&self) -> u64 {
        let mut all = BTreeSet::new();
        for (path, wanted) in &self.entries {
            if matches!(wanted, Wanted::Directory { .. }) {
                all.insert(path.clone());
            }
            let mut next = path.parent();
            while let Some(directory) = next.filter(|directory| !directory.is_root()) {
                next = directory.parent();
                // What is above a known one is known.
                if !all.insert(directory) {
                    break;
                }
            }
        }
        all.len() as u64
    }
}

/// The directories that hold `path`, without the root.
fn above(path: &WorkspacePath) -> Vec<WorkspacePath> {
    let step = |path: &WorkspacePath| path.parent().filter(|directory| !directory.is_root());
    std::iter::successors(step(path), step).collect()
}
