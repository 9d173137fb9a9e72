//! Journals outlive their sandboxes.
//!
//! When a sandbox is destroyed its journal is first put beside all others that are kept, by hard
//! links, so that it is whole in both places; then one transaction deletes the sandbox's record and
//! says whose the journal was; then the sandbox's directory goes. A server that is killed in between
//! leaves a directory that no record owns, in one place or the other, and reconciliation removes it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use ringfence_warden::journal::{HEAD_FILE, Head, JOURNAL_FILE, last_head};

use super::Sandboxes;
use super::life::make_private_dir;
use crate::problem::{Code, Problem, Result};
use crate::store::{KeptJournal, SandboxRecord, now_ms};

impl Sandboxes {
    fn journals(&self) -> PathBuf {
        self.inner.settings.state.join("journals")
    }

    /// Where the journal of a sandbox is that was destroyed. Ids come from records.
    pub(super) fn kept_dir(&self, id: &str) -> PathBuf {
        self.journals().join(id)
    }

    /// Takes note of how far the journal goes: one that is shorter later was cut. What could be read
    /// from the disk never makes the server forget that it went further once.
    pub(super) fn remember_head(&self, id: &str, dir: &Path) {
        if let Some(head) = self.furthest_head(id, dir)
            && let Err(problem) = self.inner.store.remember_journal_head(id, &head.to_string())
        {
            tracing::warn!(sandbox = id, %problem, "the end of its journal is not on record");
        }
    }

    /// A journal that got shorter while its sandbox was stopped is not continued: that would hide it.
    pub(super) fn check_journal(&self, id: &str) -> Result<()> {
        let Some(known) = self.known_head(id) else { return Ok(()) };
        let found = last_head(&self.dir(id)).ok().flatten();
        if found.is_some_and(|found| found.seq > known.seq || found == known) {
            return Ok(());
        }
        let message = "the sandbox cannot start: its record was changed while it was stopped";
        Err(Problem::new(Code::Unsupported, message)
            .with("hint", "VerifyAudit says what is wrong with it"))
    }

    fn furthest_head(&self, id: &str, dir: &Path) -> Option<Head> {
        let known = self.known_head(id);
        let found = last_head(dir).ok().flatten();
        match (known, found) {
            (Some(known), Some(found)) if found.seq > known.seq => Some(found),
            (None, found) => found,
            (known, _) => known,
        }
    }

    pub(super) fn known_head(&self, id: &str) -> Option<Head> {
        let text = self.inner.store.journal_head(id).ok().flatten()?;
        text.parse().ok()
    }

    /// Keeps the journal of a sandbox that is about to go, and takes its record away.
    pub(super) fn keep_journal(&self, record: &SandboxRecord, reason: &str) -> Result<()> {
        let (id, dir) = (&record.id, self.dir(&record.id));
        let head = self.furthest_head(id, &dir).map(|head| head.to_string());
        put_aside(&dir, &self.kept_dir(id))
            .map_err(|e| Problem::internal("keep the sandbox's journal", e))?;
        let kept = KeptJournal {
            sandbox_id: id.clone(),
            account: record.account.clone(),
            ended_ms: now_ms(),
            reason: reason.into(),
            head,
        };
        self.inner.store.end_sandbox(&kept)?;
        Ok(())
    }

    /// Removes journals that have been kept long enough. Says how many.
    pub fn sweep_journals(&self) -> Result<usize> {
        let kept = i64::try_from(self.inner.settings.journals_kept.as_millis());
        let before = now_ms().saturating_sub(kept.unwrap_or(i64::MAX));
        let forgotten = self.inner.store.forget_journals(before)?;
        for journal in &forgotten {
            super::life::remove_dir(&self.kept_dir(&journal.sandbox_id));
        }
        Ok(forgotten.len())
    }

    /// Removes what a server that was killed had put aside and not put on record, or the reverse.
    pub(super) fn reconcile_journals(&self) -> Result<Vec<String>> {
        let kept = self.inner.store.kept_journals()?;
        let known: BTreeSet<&str> = kept.iter().map(|kept| kept.sandbox_id.as_str()).collect();
        let entries = match std::fs::read_dir(self.journals()) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Problem::internal("look at the journals", e)),
        };
        let mut done = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !known.contains(name.as_str()) {
                super::life::remove_dir(&entry.path());
                done.push(format!("the journal {name} was on no record and is gone"));
            }
        }
        Ok(done)
    }
}

/// Makes `kept` hold the journal of `dir`, all of it from the first moment on. A sandbox that never
/// ran has none.
fn put_aside(dir: &Path, kept: &Path) -> io::Result<()> {
    let new = kept.with_extension("new");
    for old in [&new, &kept.to_path_buf()] {
        match std::fs::remove_dir_all(old) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    make_private_dir(&new)?;
    for name in [JOURNAL_FILE, HEAD_FILE] {
        match put_file_aside(&dir.join(name), &new.join(name)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    std::fs::rename(new, kept)
}

fn put_file_aside(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::hard_link(from, to) {
        // The sandboxes are on another disk.
        Err(e) if e.kind() == io::ErrorKind::CrossesDevices => std::fs::copy(from, to).map(|_| ()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_put_aside_whole_again_and_again() {
        let state = tempfile::tempdir().unwrap();
        let (dir, kept) = (state.path().join("sb"), state.path().join("journals/sb"));
        std::fs::create_dir(&dir).unwrap();
        put_aside(&dir, &kept).unwrap();
        assert_eq!(std::fs::read_dir(&kept).unwrap().count(), 0);
        std::fs::write(dir.join(JOURNAL_FILE), "lines").unwrap();
        std::fs::write(dir.join(HEAD_FILE), "head").unwrap();
        for _ in 0..2 {
            put_aside(&dir, &kept).unwrap();
            assert_eq!(std::fs::read_to_string(kept.join(JOURNAL_FILE)).unwrap(), "lines");
            assert_eq!(std::fs::read_to_string(kept.join(HEAD_FILE)).unwrap(), "head");
            assert!(dir.join(JOURNAL_FILE).exists(), "it is still where it was");
        }
        assert_eq!(std::fs::read_dir(state.path().join("journals")).unwrap().count(), 1);
    }
}
