//! The server of one command: `ringfence run` and the like have one to themselves, in their own
//! process. Its sandboxes end with it, and their directories are kept where others of the same kind
//! are, which are none of its business unless nobody has them any more.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use ringfence_warden::life::{is_owned, remove_scratch};

use crate::problem::{Problem, Result};
use crate::wardens::end;

/// Is there while a warden is expected to run: what is found with it and without an owner was left
/// behind by a crash.
const RUNNING: &str = "running";

/// How many records of ended sandboxes without changes are kept.
const RECORDS: usize = 100;

/// Says that its warden is about to run.
pub(super) fn mark(dir: &Path) -> Result<()> {
    fs::write(dir.join(RUNNING), "").map_err(|e| Problem::internal("mark the sandbox", e))
}

/// Removes what a warden would have removed at an orderly end. Doing it again is fine.
pub(super) fn clean_up(dir: &Path, id: &str, users: &Path) {
    end::clean_up(dir, id, users);
    remove_scratch(dir);
    for name in [RUNNING, "lock"] {
        let _ = fs::remove_file(dir.join(name));
    }
    let log = dir.join("warden.log");
    if fs::metadata(&log).is_ok_and(|log| log.len() == 0) {
        let _ = fs::remove_file(log);
    }
}

/// What crashed wardens left, and records of long ago.
pub(super) fn sweep(all: &Path, users: &Path) {
    let Ok(entries) = fs::read_dir(all) else { return };
    let mut records = Vec::new();
    for dir in entries.flatten().map(|entry| entry.path()) {
        let id = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if dir.join(RUNNING).exists() && is_abandoned(&dir) {
            clean_up(&dir, &id, users);
        }
        if !dir.join("layer").exists() && !dir.join(RUNNING).exists() {
            records.push((fs::metadata(&dir).and_then(|data| data.modified()).ok(), dir));
        }
    }
    records.sort();
    let too_many = records.len().saturating_sub(RECORDS);
    for (_, dir) in records.into_iter().take(too_many) {
        let _ = fs::remove_dir_all(dir);
    }
}

/// A warden takes its lock a moment after the directory was made; that moment is not a crash.
fn is_abandoned(dir: &Path) -> bool {
    let age = fs::metadata(dir.join(RUNNING)).and_then(|data| data.modified());
    let age = age.ok().and_then(|time| time.elapsed().ok()).unwrap_or_default();
    match fs::metadata(dir.join("lock")) {
        Ok(_) => !is_owned(dir),
        Err(e) if e.kind() == ErrorKind::NotFound => age > Duration::from_secs(60),
        Err(_) => false,
    }
}
