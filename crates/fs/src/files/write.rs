//! Writing a file: beside, and then in one step to its place.

use std::io::{self, Write};

use ringfence_policy::WorkspacePath;
use rustix::fs::FileType;
use rustix::io::{Errno, Result};

use super::call::{Call, Held};
use super::change::DIRECTORY_MODE;
use super::resolve::{Absent, Found, Last, Spot};
use super::{Entry, FileError, Files};
use crate::layers::temporary::Temporary;
use crate::tree::Attr;

/// Mode of a new file for which none is given.
const FILE_MODE: u32 = 0o644;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Permission bits; those of the file that is replaced, or 0644, if not given.
    pub mode: Option<u32>,
    /// Make the directories on the way.
    pub parents: bool,
}

/// A file that is being written. Dropped without [`Writing::finish`], nothing has happened.
///
/// What takes its place afterwards is a new file, as with editors that write beside and rename:
/// programs that have the old one open keep it.
#[derive(Debug)]
pub struct Writing {
    files: Files,
    path: WorkspacePath,
    started: Started,
}

/// Where a file is going to be.
#[derive(Debug)]
pub(super) struct Started {
    dir: Held,
    /// Directories to be made.
    missing: Vec<Box<[u8]>>,
    name: Box<[u8]>,
    staged: Temporary,
    mode: Option<u32>,
}

impl Call {
    pub(super) fn begin_write(
        &self,
        path: &WorkspacePath,
        options: WriteOptions,
    ) -> Result<Started> {
        let (dir, mut names, there) = match self.resolve(path, Last::Follow)? {
            Spot::Above(_) => return Err(Errno::ISDIR),
            Spot::Found(Found { dir, name, attr, .. }) => (dir, vec![name], Some(attr)),
            Spot::Absent(Absent { rest, .. }) if !rest.is_empty() && !options.parents => {
                return Err(Errno::NOENT);
            }
            Spot::Absent(Absent { dir, name, rest }) => {
                (dir, std::iter::once(name).chain(rest).collect(), None)
            }
        };
        let first = names.first().ok_or(Errno::ISDIR)?;
        self.check_put(&dir, first, there.as_ref())?;
        let name = names.pop().ok_or(Errno::ISDIR)?;
        Ok(Started { dir, missing: names, name, staged: self.tree.stage()?, mode: options.mode })
    }

    fn check_put(&self, dir: &Held, name: &[u8], there: Option<&Attr>) -> Result<()> {
        match there.map(|attr| attr.kind) {
            Some(FileType::Directory) => return Err(Errno::ISDIR),
            Some(FileType::RegularFile) | None => {}
            Some(_) => return Err(Errno::INVAL),
        }
        self.nodes.may_put((dir.id, name), there)
    }

    fn finish_write(&self, path: &WorkspacePath, started: Started) -> Result<Entry> {
        let Started { mut dir, missing, name, staged, mode } = started;
        for name in &missing {
            dir = self.enter_or_make(&dir, name, DIRECTORY_MODE)?;
        }
        let was = self.put(&dir, &name, staged, mode)?;
        self.tell(dir.id, &name, was);
        let (node, attr) = self.find(dir.id, &name)?.ok_or(Errno::NOENT)?;
        self.entry(path.clone(), node.id, &attr)
    }

    /// Decided anew: the policy, or what is there, may have changed since the beginning.
    fn put(
        &self,
        dir: &Held,
        name: &[u8],
        staged: Temporary,
        mode: Option<u32>,
    ) -> Result<Option<crate::tree::NodeId>> {
        let _turn = self.tree.alone(&[dir.id]);
        let there = self.find_in_turn(dir.id, name)?;
        let attr = there.as_ref().map(|(_, attr)| attr);
        self.check_put(dir, name, attr)?;
        let mode = mode.or(attr.map(|attr| attr.mode)).unwrap_or(FILE_MODE);
        self.nodes.put((dir.id, name), staged, mode)?;
        Ok(there.map(|(node, _)| node.id))
    }
}

impl Writing {
    pub(super) fn new(files: Files, path: WorkspacePath, started: Started) -> Self {
        Self { files, path, started }
    }

    /// Puts the file in its place.
    pub fn finish(self) -> std::result::Result<Entry, FileError> {
        let Self { files, path, started } = self;
        files.once(&path, |call| call.finish_write(&path, started))
    }
}

impl Write for Writing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.started.staged.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
