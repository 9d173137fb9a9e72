//! Codebases that belong to their sandboxes: made for them, and gone with the last of them.
//!
//! The record goes in the very step that takes away the last sandbox or snapshot on it (`store`). So
//! whoever asks for a sandbox at that moment either keeps the codebase or does not find it, and a
//! server that is killed leaves nothing but files that are on no record. Those go here, afterwards.
//!
//! One that no sandbox was ever made of was given up by whoever sent files to it, once there has been
//! no call to do so for a while.

use std::time::Duration;

use crate::problem::Result;

use super::{Codebases, Inner};

impl Codebases {
    /// A record that stood on the codebase is gone, and perhaps the codebase's own with it.
    pub fn release(&self, id: &str, version: Option<i64>) -> Result<()> {
        match (self.inner.store.tree_state(id)?, version) {
            (None, _) => {
                self.inner.remove_files(id);
                Ok(())
            }
            (Some(_), Some(version)) => self.unpin(id, version),
            (Some(_), None) => Ok(()),
        }
    }

    /// Deletes the fleeting ones that nobody stands on and nobody has sent anything to for so long.
    /// Says which.
    pub fn sweep_abandoned(&self, idle: Duration) -> Result<Vec<String>> {
        let mut gone = Vec::new();
        for id in self.inner.store.unused_fleeting()? {
            if self.inner.give_up(&id, idle)? {
                gone.push(id);
            }
        }
        Ok(gone)
    }
}

impl Inner {
    /// Somebody is at work on it. Nothing if it has just been deleted.
    pub(super) fn touch(&self, id: &str) {
        if let Some(life) = self.lives.lock().get(id) {
            life.touched.now();
        }
    }

    fn give_up(&self, id: &str, idle: Duration) -> Result<bool> {
        let life = self.life(id);
        // A commit may take longer than that, and whoever is at it has not given up.
        let Some(turn) = life.change.try_lock() else { return Ok(false) };
        if life.touched.elapsed() < idle || !self.store.delete_unused_fleeting(id)? {
            return Ok(false);
        }
        drop(turn);
        self.remove_files(id);
        Ok(true)
    }

    /// Of a codebase whose record is gone. A directory used in place is not among them: these are
    /// found by the id. Who is at work on them gets to the end first.
    fn remove_files(&self, id: &str) {
        let life = self.life(id);
        let turn = life.change.lock();
        let gone = self.take_away(id);
        self.lives.lock().remove(id);
        drop(turn);
        drop(gone);
    }
}
