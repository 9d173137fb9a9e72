//! Making the tree that a manifest describes, in a place of its own.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ringfence_policy::WorkspacePath;

use crate::problem::Result;
use crate::store::{Digest, FileRow, Stamp};

use super::manifest::{Manifest, Wanted};
use super::path::relative;
use super::sources::{Needed, Sources};
use super::tree::{NO_FOLLOW, Tree, enter_or_make};
use super::trouble::{bad_path, cannot_write};

#[derive(Debug)]
pub(super) struct Builder<'a> {
    tree: Tree,
    sources: Sources<'a>,
    /// The directory of the entry before; the next is often in the same.
    parent: Option<(WorkspacePath, Arc<OwnedFd>)>,
    built: Built,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Built {
    pub(super) files: Vec<FileRow>,
    /// Contents that turned out to be nowhere. The tree is of no use then.
    pub(super) missing: Vec<Digest>,
}

/// A file as it should be.
#[derive(Debug, Clone, Copy)]
struct Goal<'m> {
    path: &'m WorkspacePath,
    mode: u32,
    size: u64,
    digest: Digest,
}

impl<'a> Builder<'a> {
    pub(super) fn new(tree: Tree, sources: Sources<'a>) -> Self {
        Self { tree, sources, parent: None, built: Built::default() }
    }

    /// Files that keep their content come first, so that no other path can take theirs.
    pub(super) fn build(mut self, manifest: &Manifest, before: &[FileRow]) -> Result<Built> {
        let before: HashMap<&[u8], &FileRow> =
            before.iter().map(|file| (&file.path[..], file)).collect();
        let mut rest = Vec::new();
        for (path, wanted) in &manifest.entries {
            match wanted {
                Wanted::Directory { mode } => self.make_directory(path, *mode)?,
                Wanted::Symlink { target } => self.make_symlink(path, target)?,
                Wanted::File { mode, size, digest } => {
                    let goal = Goal { path, mode: *mode, size: *size, digest: *digest };
                    if !self.keep(&goal, before.get(relative(path)).copied())? {
                        rest.push(goal);
                    }
                }
            }
        }
        rest.iter().try_for_each(|goal| self.fetch(goal))?;
        Ok(self.built)
    }

    fn make_directory(&mut self, path: &WorkspacePath, mode: u32) -> Result<()> {
        let parent = self.parent(path)?;
        enter_or_make(&parent, name(path), mode).map_err(cannot_write)?;
        Ok(())
    }

    fn make_symlink(&mut self, path: &WorkspacePath, target: &OsStr) -> Result<()> {
        let parent = self.parent(path)?;
        rustix::fs::symlinkat(target, &*parent, name(path)).map_err(cannot_write)?;
        let stat = rustix::fs::statat(&*parent, name(path), NO_FOLLOW).map_err(cannot_write)?;
        // Its length is not that of a file.
        let stamp = Stamp { size: 0, ..Stamp::of(&stat) };
        let path = relative(path).to_vec();
        self.built.files.push(FileRow { path, digest: None, stamp, mode: 0o777 });
        Ok(())
    }

    /// Says whether the path had this content before.
    fn keep(&mut self, goal: &Goal<'_>, before: Option<&FileRow>) -> Result<bool> {
        let Some(before) = before else { return Ok(false) };
        let directory = self.parent(goal.path)?;
        match self.sources.keep(before, &goal.needed(&directory))? {
            Some(stamp) => self.add(goal, stamp).map(|()| true),
            None => Ok(false),
        }
    }

    fn fetch(&mut self, goal: &Goal<'_>) -> Result<()> {
        let directory = self.parent(goal.path)?;
        match self.sources.fetch(&goal.needed(&directory))? {
            Some(stamp) => self.add(goal, stamp),
            None => {
                self.built.missing.push(goal.digest);
                Ok(())
            }
        }
    }

    fn add(&mut self, goal: &Goal<'_>, stamp: Stamp) -> Result<()> {
        if stamp.size != goal.size {
            return Err(bad_path(goal.path, "the content of this digest has another size"));
        }
        self.built.files.push(FileRow {
            path: relative(goal.path).to_vec(),
            digest: Some(goal.digest),
            stamp,
            mode: goal.mode,
        });
        Ok(())
    }

    /// The directory that holds `path`.
    fn parent(&mut self, path: &WorkspacePath) -> Result<Arc<OwnedFd>> {
        let above = path.parent().unwrap_or_else(WorkspacePath::root);
        match &self.parent {
            Some((known, directory)) if *known == above => Ok(directory.clone()),
            _ => {
                let directory = Arc::new(self.tree.make_parent(path)?);
                self.parent = Some((above, directory.clone()));
                Ok(directory)
            }
        }
    }
}

impl<'m> Goal<'m> {
    fn needed<'d>(&self, directory: &'d OwnedFd) -> Needed<'d>
    where
        'm: 'd,
    {
        Needed { directory, name: name(self.path), digest: self.digest, mode: self.mode }
    }
}

fn name(path: &WorkspacePath) -> &[u8] {
    path.file_name().unwrap_or_default()
}
