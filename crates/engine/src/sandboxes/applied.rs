//! What a sandbox has written to its stored codebase before.
//!
//! A sandbox keeps the version it stands on, so after an apply the newest version differs from it where
//! the sandbox itself changed it. Who goes on working and applies again would conflict with himself. So
//! what was written is remembered beside the journal, by content: where the codebase still has that, only
//! this sandbox has changed it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ringfence_link::files::{Conflict, LayerChange};

use crate::codebases::Codebases;
use crate::problem::{Problem, Result};

const FILE: &str = "applied.json";

/// Digests of files, by their paths from the root.
#[derive(Debug, Default)]
pub(super) struct OwnWork {
    file: PathBuf,
    digests: BTreeMap<String, String>,
}

impl OwnWork {
    /// Of the sandbox that has this directory. What cannot be read is forgotten: then there are
    /// conflicts, which is safe.
    pub(super) fn load(dir: &Path) -> Self {
        let file = dir.join(FILE);
        let text = std::fs::read(&file).unwrap_or_default();
        Self { digests: serde_json::from_slice(&text).unwrap_or_default(), file }
    }

    /// Whether the newest version has at this path what the sandbox wrote there.
    fn covers(&self, codebases: &Codebases, id: &str, conflict: &Conflict) -> Result<bool> {
        let path = String::from_utf8_lossy(&conflict.path);
        let Some(written) = self.digests.get(&*path) else { return Ok(false) };
        Ok(conflict.yields_to_force
            && codebases.digest_of(id, &conflict.path)?.as_ref() == Some(written))
    }

    /// Leaves the conflicts with somebody else's work.
    pub(super) fn take_out(
        &self,
        codebases: &Codebases,
        id: &str,
        conflicts: &mut Vec<Conflict>,
    ) -> Result<()> {
        let mut others = Vec::new();
        for conflict in conflicts.drain(..) {
            if !self.covers(codebases, id, &conflict)? {
                others.push(conflict);
            }
        }
        *conflicts = others;
        Ok(())
    }

    /// Remembers what was written just now. Should that fail, the next apply meets conflicts.
    pub(super) fn remember(mut self, codebases: &Codebases, id: &str, changes: &[LayerChange]) {
        if let Err(problem) = self.add(codebases, id, changes).and_then(|()| self.save()) {
            tracing::warn!(%problem, "what was applied is not remembered");
        }
    }

    fn add(&mut self, codebases: &Codebases, id: &str, changes: &[LayerChange]) -> Result<()> {
        for change in changes {
            let path = String::from_utf8_lossy(&change.path).into_owned();
            match codebases.digest_of(id, &change.path)? {
                Some(digest) => self.digests.insert(path, digest),
                None => self.digests.remove(&path),
            };
        }
        Ok(())
    }

    fn save(&self) -> Result<()> {
        let failed = |e: std::io::Error| Problem::internal("remember what was applied", e);
        let text = serde_json::to_vec(&self.digests).map_err(|e| failed(e.into()))?;
        let aside = self.file.with_extension("new");
        std::fs::write(&aside, text)
            .and_then(|()| std::fs::rename(aside, &self.file))
            .map_err(failed)
    }
}
