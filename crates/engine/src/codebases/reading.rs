//! Files as callers read them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use ringfence_policy::WorkspacePath;
use rustix::fs::FileType;

use crate::problem::Result;
use crate::store::Codebase;

use super::life::Hold;
use super::listing::Entry;
use super::path;
use super::tree::{self, Tree};
use super::trouble::{bad_path, cannot_find};
use super::{Codebases, Inner};

/// A file of a codebase, open for reading. It stays what it was when it was opened, whatever is
/// uploaded meanwhile (unless it is one of a directory used in place).
#[derive(Debug)]
pub struct OpenFile {
    pub entry: Entry,
    file: File,
}

impl OpenFile {
    pub fn size(&self) -> u64 {
        self.entry.size
    }
}

impl Read for OpenFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Seek for OpenFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

/// The files as they are now. A stored version does not go away while it is looked at.
#[derive(Debug)]
pub(super) struct View {
    pub(super) tree: Tree,
    _hold: Option<Hold>,
}

impl Codebases {
    /// A symlink is not followed: it is no file, so nothing is found.
    pub fn open_file(&self, account: &str, id: &str, path: impl AsRef<OsStr>) -> Result<OpenFile> {
        let path = path::parse_file(path)?;
        let view = self.inner.view(&self.inner.record(account, id)?)?;
        let file = view.tree.file(&path).map_err(|errno| cannot_find(&path, errno))?;
        let stat = rustix::fs::fstat(&file).map_err(|errno| cannot_find(&path, errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(bad_path(&path, "is not a file"));
        }
        Ok(OpenFile { entry: Entry::new(&path, &stat, None), file: file.into() })
    }

    /// What is at a path; a symlink itself and not what it points to.
    pub fn stat(&self, account: &str, id: &str, path: impl AsRef<OsStr>) -> Result<Entry> {
        let path = path::parse(path)?;
        let view = self.inner.view(&self.inner.record(account, id)?)?;
        Entry::look(&view.tree, &path).map_err(|errno| cannot_find(&path, errno))
    }
}

impl Inner {
    pub(super) fn view(&self, codebase: &Codebase) -> Result<View> {
        if let Some(path) = &codebase.local_path {
            let root = WorkspacePath::root();
            let tree = Tree::open(path).map_err(|errno| cannot_find(&root, errno))?;
            return Ok(View { tree, _hold: None });
        }
        let hold = self.hold_newest(&codebase.id)?;
        let tree = tree::open_own(&self.place(&codebase.id).version(hold.version))?;
        Ok(View { tree, _hold: Some(hold) })
    }
}
