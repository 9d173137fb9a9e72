//! Making records and directories agree again, at the start of a server.
//!
//! A server may have been killed between any two steps. What it leaves is always of this kind:
//! directories nobody has on record, versions that never became the newest, temporary files, and
//! single paths of which it is not known whether they were changed (intents).

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use ringfence_policy::WorkspacePath;
use rustix::fs::FileType;

use crate::problem::{Code, Problem, Result};
use crate::store::{Codebase, FileRow, Stamp};

use super::scratch;
use super::tree::Tree;
use super::{Codebases, Inner};

/// What was staged before this and never committed is given up.
const STAGED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

impl Codebases {
    /// Returns what was done, in sentences for the log. Nobody may use the codebases meanwhile.
    pub fn reconcile(&self) -> Result<Vec<String>> {
        let inner = &self.inner;
        let mut done = Vec::new();
        let failed = |error: io::Error| Problem::internal("reconcile the codebases", error);
        let records = inner.store.all_codebases()?;
        inner.remove_strangers(&records, &mut done).map_err(failed)?;
        for codebase in records.iter().filter(|codebase| codebase.local_path.is_none()) {
            let place = inner.place(&codebase.id);
            match place.present().ok().and_then(|present| newest(&present, codebase.version)) {
                None => inner.lost(codebase, &mut done)?,
                Some(version) => {
                    place.make().map_err(failed)?;
                    inner.agree_on(codebase, version, &mut done)?;
                    inner.tidy(codebase, &mut done).map_err(failed)?;
                }
            }
        }
        inner.settle_intents(&mut done)?;
        for (id, version) in self.sweep(&[])? {
            done.push(format!("nobody stood on version {version} of {id}; it is removed"));
        }
        Ok(done)
    }
}

/// The version on record, if it is there. A version that nobody stood on becomes the next one by
/// being renamed, and the record may not have followed.
fn newest(present: &[i64], recorded: i64) -> Option<i64> {
    match present.contains(&recorded) {
        true => Some(recorded),
        false => present.iter().copied().max(),
    }
}

impl Inner {
    /// Directories nobody has on record.
    fn remove_strangers(&self, records: &[Codebase], done: &mut Vec<String>) -> io::Result<()> {
        let stored = records.iter().filter(|codebase| codebase.local_path.is_none());
        let known: HashSet<&str> = stored.map(|codebase| codebase.id.as_str()).collect();
        for entry in std::fs::read_dir(self.root.dir())? {
            let entry = entry?;
            let name = entry.file_name();
            let is_known = name.to_str().is_some_and(|name| known.contains(name));
            if !is_known && entry.path() != self.root.trash() {
                scratch::remove(&entry.path())?;
                done.push(format!("{} was on no record and is removed", name.display()));
            }
        }
        empty(&self.root.trash()).map(|_| ())
    }

    /// The files of a codebase are gone, which no end of the server explains. The record goes too,
    /// unless others rely on it.
    fn lost(&self, codebase: &Codebase, done: &mut Vec<String>) -> Result<()> {
        let id = &codebase.id;
        match self.store.delete_codebase(&codebase.account, id) {
            Ok(_) => done.push(format!("the files of {id} were gone; its record is removed")),
            Err(problem) if problem.code == Code::CodebaseInUse => {
                done.push(format!("the files of {id} are gone, and {problem}"));
            }
            Err(problem) => return Err(problem),
        }
        Ok(())
    }

    fn agree_on(&self, codebase: &Codebase, version: i64, done: &mut Vec<String>) -> Result<()> {
        if version != codebase.version {
            self.store.open_version(&codebase.id, version)?;
            done.push(format!("the newest version of {} is {version}", codebase.id));
        }
        Ok(())
    }

    /// Removes what was not finished. Old versions are left to the sweep.
    fn tidy(&self, codebase: &Codebase, done: &mut Vec<String>) -> io::Result<()> {
        let (id, place) = (&codebase.id, self.place(&codebase.id));
        let recorded = self.store.tree_state(id).ok().flatten().map(|state| state.version);
        for entry in std::fs::read_dir(place.versions())? {
            let entry = entry?;
            let number = entry.file_name().to_str().and_then(|name| name.parse::<i64>().ok());
            if number.is_none() || number > recorded {
                scratch::remove(&entry.path())?;
                let name = entry.file_name();
                done.push(format!(
                    "version {} of {id} was not finished; it is removed",
                    name.display()
                ));
            }
        }
        match empty(&place.temporary())? {
            0 => {}
            count => done.push(format!("{count} temporary files of {id} are removed")),
        }
        match empty_of_old(&place.stage())? {
            0 => {}
            count => done.push(format!("{count} contents staged for {id} are given up")),
        }
        Ok(())
    }

    /// Looks at the paths that were about to change.
    fn settle_intents(&self, done: &mut Vec<String>) -> Result<()> {
        for (id, path) in self.store.intents()? {
            let version = self.tree_state(&id)?.version;
            let Ok(tree) = Tree::open(&self.place(&id).version(version)) else { continue };
            let known = self.store.file(&id, &path)?;
            let now = look_again(&tree, &path, known.as_ref())
                .map_err(|error| Problem::internal("look at a changed file", error))?;
            self.store.settle(&id, &path, now.as_ref())?;
            done.push(format!("a change of a file of {id} was interrupted; it is on record now"));
        }
        Ok(())
    }
}

/// What is at a path of which nobody knows whether it was changed.
fn look_again(tree: &Tree, path: &[u8], known: Option<&FileRow>) -> io::Result<Option<FileRow>> {
    let Ok(at) = WorkspacePath::parse(path) else { return Ok(None) };
    let Ok(stat) = tree.stat(&at) else { return Ok(None) };
    let stamp = Stamp::of(&stat);
    if let Some(known) = known.filter(|known| known.stamp == stamp) {
        return Ok(Some(known.clone()));
    }
    let row = |digest, stamp, mode| FileRow { path: path.to_vec(), digest, stamp, mode };
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(File::from(tree.file(&at)?))?;
            Some(row(Some(hasher.finalize()), stamp, stat.st_mode & 0o777))
        }
        FileType::Symlink => Some(row(None, Stamp { size: 0, ..stamp }, 0o777)),
        _ => None,
    })
}

/// Removes everything in a directory. Says how much that was.
fn empty(directory: &Path) -> io::Result<usize> {
    let mut count = 0;
    for entry in std::fs::read_dir(directory)? {
        scratch::remove(&entry?.path())?;
        count += 1;
    }
    Ok(count)
}

fn empty_of_old(directory: &Path) -> io::Result<usize> {
    let mut count = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let age = SystemTime::now().duration_since(entry.metadata()?.modified()?);
        if age.is_ok_and(|age| age > STAGED_FOR) {
            scratch::remove(&entry.path())?;
            count += 1;
        }
    }
    Ok(count)
}
