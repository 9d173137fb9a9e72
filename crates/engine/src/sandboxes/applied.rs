//! What a sandbox has written to its stored codebase before, remembered beside its journal.

use std::path::{Path, PathBuf};

use ringfence_link::files::{ChangeKind, LayerChange};

use crate::codebases::Codebases;
use crate::codebases::undo::Work;
use crate::problem::{Problem, Result};
use crate::store::SandboxRecord;

const FILE: &str = "applied.json";

#[derive(Debug, Default)]
pub(super) struct OwnWork {
    file: PathBuf,
    work: Work,
}

impl OwnWork {
    /// Of the sandbox that has this directory. What cannot be read is forgotten: then there are
    /// conflicts, which is safe.
    pub(super) fn load(dir: &Path) -> Self {
        let file = dir.join(FILE);
        let text = std::fs::read(&file).unwrap_or_default();
        let work: Vec<_> = serde_json::from_slice(&text).unwrap_or_default();
        Self { file, work: work.into_iter().collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    /// In a copy of the newest version. Says whether there was anything to take back.
    pub(super) fn take_back(
        &self,
        codebases: &Codebases,
        record: &SandboxRecord,
        copy: &Path,
    ) -> Result<bool> {
        match record.codebase_version {
            Some(base) => codebases.take_back(&record.codebase_id, copy, base, &self.work),
            None => Ok(false),
        }
    }

    /// Remembers what was written just now. Should that fail, the next apply meets conflicts.
    pub(super) fn remember(
        mut self,
        codebases: &Codebases,
        record: &SandboxRecord,
        changes: &[LayerChange],
    ) {
        let paths = changes.iter().flat_map(|change| {
            let from = match &change.kind {
                ChangeKind::Renamed { from } => Some(from.as_slice()),
                _ => None,
            };
            from.into_iter().chain([change.path.as_slice()])
        });
        let left = codebases.left_at(&record.account, &record.codebase_id, paths);
        let done = left.and_then(|work| {
            self.work = work;
            self.save()
        });
        if let Err(problem) = done {
            tracing::warn!(%problem, "what was applied is not remembered");
        }
    }

    fn save(&self) -> Result<()> {
        let failed = |e: std::io::Error| Problem::internal("remember what was applied", e);
        let work: Vec<_> = self.work.iter().collect();
        let text = serde_json::to_vec(&work).map_err(|e| failed(e.into()))?;
        let aside = self.file.with_extension("new");
        std::fs::write(&aside, text)
            .and_then(|()| std::fs::rename(aside, &self.file))
            .map_err(failed)
    }
}
