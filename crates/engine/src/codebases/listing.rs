//! Directories as callers list them.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use ringfence_policy::WorkspacePath;
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::problem::{Problem, Result};

use super::tree::{self, Tree};
use super::trouble::{bad_path, cannot_find};
use super::{Codebases, path};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    File,
    Directory,
    Symlink,
    /// Pipes, sockets and devices, in directories used in place.
    Other,
}

/// Something in a codebase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the directory that was asked for.
    pub path: PathBuf,
    /// From the root: `/a/b`.
    pub full_path: PathBuf,
    pub name: OsString,
    pub is_dir: bool,
    pub kind: FileKind,
    /// Of a file; 0 otherwise.
    pub size: u64,
    pub mode: u32,
    pub modified_ms: i64,
    /// What a symlink says, which may be anything.
    pub target: Option<OsString>,
}

impl Codebases {
    /// What is in a directory, sorted by name; with `recursive` all that is below it and not a
    /// directory, sorted by path.
    pub fn list_files(
        &self,
        account: &str,
        id: &str,
        path: impl AsRef<OsStr>,
        recursive: bool,
    ) -> Result<Vec<Entry>> {
        let path = path::parse(path)?;
        let view = self.inner.view(&self.inner.record(account, id)?)?;
        let found = match recursive {
            false => list(&view.tree, &path),
            true => list_below(&view.tree, &path),
        };
        let mut found = found.map_err(|errno| not_listed(&view.tree, &path, errno))?;
        for entry in &mut found {
            entry.path = relative_to(&path, &entry.path);
        }
        found.sort_by(|a, b| a.path.as_os_str().cmp(b.path.as_os_str()));
        Ok(found)
    }
}

impl Entry {
    /// `path` is from the root until a listing makes it relative.
    pub(super) fn new(path: &WorkspacePath, stat: &Stat, target: Option<OsString>) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Directory,
            FileType::Symlink => FileKind::Symlink,
            _ => FileKind::Other,
        };
        let milliseconds = stat.st_mtime_nsec as i64 / 1_000_000;
        Self {
            path: OsStr::from_bytes(&path.as_bytes()[1..]).into(),
            full_path: path::full_path(path),
            name: OsStr::from_bytes(path.file_name().unwrap_or_default()).into(),
            is_dir: kind == FileKind::Directory,
            kind,
            size: if kind == FileKind::File { stat.st_size as u64 } else { 0 },
            mode: stat.st_mode & 0o7777,
            modified_ms: stat.st_mtime.saturating_mul(1000).saturating_add(milliseconds),
            target,
        }
    }

    pub(super) fn look(tree: &Tree, path: &WorkspacePath) -> rustix::io::Result<Self> {
        let (fd, stat) = tree.look(path)?;
        let target = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => Some(target_of(&fd)?),
            _ => None,
        };
        Ok(Self::new(path, &stat, target))
    }
}

/// What an opened symlink says.
fn target_of(symlink: impl AsFd) -> rustix::io::Result<OsString> {
    let target = rustix::fs::readlinkat(symlink, c"", Vec::new())?;
    Ok(OsString::from_vec(target.into_bytes()))
}

fn list(tree: &Tree, path: &WorkspacePath) -> rustix::io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    for (name, _) in tree::names(tree.directory(path)?)? {
        found.extend(unless_gone(Entry::look(tree, &path.join(&name)))?);
    }
    Ok(found)
}

fn list_below(tree: &Tree, path: &WorkspacePath) -> rustix::io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    let mut pending = Vec::new();
    let mut here = Some((path.clone(), tree.directory(path)?));
    while let Some((path, directory)) = here {
        for (name, kind) in tree::names(directory)? {
            match kind {
                FileType::Directory => pending.push(path.join(&name)),
                _ => found.extend(unless_gone(Entry::look(tree, &path.join(&name)))?),
            }
        }
        here = next_directory(tree, &mut pending)?;
    }
    Ok(found)
}

fn next_directory(
    tree: &Tree,
    pending: &mut Vec<WorkspacePath>,
) -> rustix::io::Result<Option<(WorkspacePath, OwnedFd)>> {
    while let Some(path) = pending.pop() {
        if let Some(directory) = unless_gone(tree.directory(&path))? {
            return Ok(Some((path, directory)));
        }
    }
    Ok(None)
}

/// In a directory used in place, others come and go, forbid us to look, or nest deeper than any
/// path can say. That is no reason to list nothing.
fn unless_gone<T>(found: rustix::io::Result<T>) -> rustix::io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::NAMETOOLONG) => {
            Ok(None)
        }
        Err(errno) => Err(errno),
    }
}

fn not_listed(tree: &Tree, path: &WorkspacePath, errno: Errno) -> Problem {
    let kind = tree.stat(path).map(|stat| FileType::from_raw_mode(stat.st_mode));
    match (errno, kind) {
        (Errno::NOTDIR, Ok(kind)) if kind != FileType::Symlink => {
            bad_path(path, "is not a directory")
        }
        _ => cannot_find(path, errno),
    }
}

fn relative_to(directory: &WorkspacePath, path: &Path) -> PathBuf {
    let directory = OsStr::from_bytes(&directory.as_bytes()[1..]);
    path.strip_prefix(directory).unwrap_or(path).to_owned()
}
