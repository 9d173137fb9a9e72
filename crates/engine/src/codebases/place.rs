//! Where things are on disk.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::id::random_digits;
use crate::problem::{Problem, Result};

use super::scratch::Scratch;

/// The directory of all codebases.
#[derive(Debug)]
pub(super) struct Root {
    dir: PathBuf,
}

/// The directory of one codebase.
#[derive(Debug, Clone)]
pub(super) struct Place {
    dir: PathBuf,
}

impl Root {
    /// Nobody else can enter it: the files in it have the modes sandboxes see, which others could
    /// read.
    pub(super) fn make(state_dir: &Path) -> Result<Self> {
        let dir = state_dir.join("codebases");
        make_private(&dir.join("trash")).map_err(|e| Problem::internal("make a directory", e))?;
        Ok(Self { dir })
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn trash(&self) -> PathBuf {
        self.dir.join("trash")
    }

    pub(super) fn place(&self, id: &str) -> Place {
        Place { dir: self.dir.join(id) }
    }

    /// Takes a directory away in one step; it is removed when the answer is dropped.
    pub(super) fn discard(&self, dir: &Path) -> io::Result<Scratch> {
        let gone = self.trash().join(random_digits::<8>());
        std::fs::rename(dir, &gone)?;
        Ok(Scratch::at(gone))
    }
}

impl Place {
    /// Makes what is missing of the directories of a codebase.
    pub(super) fn make(&self) -> io::Result<()> {
        make_private(&self.versions())?;
        make_private(&self.temporary())?;
        make_private(&self.stage())
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn versions(&self) -> PathBuf {
        self.dir.join("versions")
    }

    pub(super) fn version(&self, version: i64) -> PathBuf {
        self.versions().join(version.to_string())
    }

    pub(super) fn temporary(&self) -> PathBuf {
        self.dir.join("tmp")
    }

    pub(super) fn stage(&self) -> PathBuf {
        self.dir.join("stage")
    }

    /// A name for something that is not in its place yet.
    pub(super) fn scratch(&self) -> Scratch {
        Scratch::at(self.temporary().join(random_digits::<8>()))
    }

    /// The versions that are there, in no order.
    pub(super) fn present(&self) -> io::Result<Vec<i64>> {
        let names = std::fs::read_dir(self.versions())?
            .map(|entry| Ok(entry?.file_name()))
            .collect::<io::Result<Vec<_>>>()?;
        Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
    }
}

fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).recursive(true).create(path)
}
