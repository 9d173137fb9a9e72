//! A whole tree in words: every path, what is there, and by its digest what it holds.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use ringfence_policy::WorkspacePath;

use crate::problem::{Problem, Result};
use crate::store::Digest;

use super::trouble::bad_path;
use super::upload::given_mode;
use super::{Codebases, Inner, path};

/// One path of a tree, as a caller says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestEntry {
    pub path: String,
    pub content: Content,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    File {
        /// Permission bits; 0644 if not given.
        mode: Option<u32>,
        size: u64,
        /// BLAKE3, in hexadecimal digits.
        digest: String,
    },
    Directory {
        /// Permission bits; 0755 if not given.
        mode: Option<u32>,
    },
    /// Kept as it is, wherever it points.
    Symlink { target: OsString },
}

/// A tree that makes sense: legal paths, each once, and nothing below what is not a directory.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    /// Sorted by path, so a directory comes before what is in it.
    pub(super) entries: BTreeMap<WorkspacePath, Wanted>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    File { mode: u32, size: u64, digest: Digest },
    Directory { mode: u32 },
    Symlink { target: OsString },
}

impl Codebases {
    /// Which contents of this tree the server lacks: only these have to be sent, as staged uploads,
    /// before the commit.
    pub fn negotiate(
        &self,
        account: &str,
        id: &str,
        entries: &[ManifestEntry],
    ) -> Result<Vec<String>> {
        let codebase = self.inner.stored_record(account, id)?;
        let manifest = Manifest::read(entries)?;
        self.inner.check_manifest(&codebase, &manifest)?;
        let missing = self.inner.missing(account, id, &manifest)?;
        Ok(missing.iter().map(|digest| digest.to_hex().to_string()).collect())
    }
}

impl Inner {
    /// Contents that are neither staged nor in any file of the account, each once.
    pub(super) fn missing(
        &self,
        account: &str,
        id: &str,
        manifest: &Manifest,
    ) -> Result<Vec<Digest>> {
        let stage = self.place(id).stage();
        let mut asked = HashSet::new();
        let mut missing = Vec::new();
        for (_, digest, _) in manifest.files() {
            if asked.insert(digest)
                && self.store.contents(account, &digest, 1)?.is_empty()
                && !stage.join(digest.to_hex().as_str()).exists()
            {
                missing.push(digest);
            }
        }
        Ok(missing)
    }
}

impl Manifest {
    pub(super) fn read(entries: &[ManifestEntry]) -> Result<Self> {
        let mut manifest = Self::default();
        for entry in entries {
            let path = path::parse_file(&entry.path)?;
            let wanted = Wanted::read(&path, &entry.content)?;
            if manifest.entries.insert(path.clone(), wanted).is_some() {
                return Err(bad_path(&path, "is there twice"));
            }
        }
        manifest.check_nesting()?;
        Ok(manifest)
    }

    fn check_nesting(&self) -> Result<()> {
        for path in self.entries.keys() {
            let mut above = path.parent();
            while let Some(directory) = above.filter(|directory| !directory.is_root()) {
                if !matches!(self.entries.get(&directory), None | Some(Wanted::Directory { .. })) {
                    return Err(bad_path(&directory, "is not a directory, but something is in it"));
                }
                above = directory.parent();
            }
        }
        Ok(())
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&WorkspacePath, Digest, u64)> {
        self.entries.iter().filter_map(|(path, wanted)| match wanted {
            Wanted::File { size, digest, .. } => Some((path, *digest, *size)),
            _ => None,
        })
    }

    /// Says whether two trees are the same.
    pub(super) fn digest(&self) -> Digest {
        let mut hasher = blake3::Hasher::new();
        for (path, wanted) in &self.entries {
            let (kind, mode, content): (u8, u32, &[u8]) = match wanted {
                Wanted::File { mode, digest, .. } => (b'f', *mode, digest.as_bytes()),
                Wanted::Directory { mode } => (b'd', *mode, b""),
                Wanted::Symlink { target } => (b'l', 0, target.as_bytes()),
            };
            for part in [path.as_bytes(), &[kind], &mode.to_le_bytes(), content] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        hasher.finalize()
    }
}

impl Wanted {
    fn read(path: &WorkspacePath, content: &Content) -> Result<Self> {
        Ok(match content {
            Content::File { mode, size, digest } => Self::File {
                mode: mode.map_or(0o644, given_mode),
                size: *size,
                digest: parse_digest(digest)?,
            },
            Content::Directory { mode } => {
                Self::Directory { mode: mode.map_or(0o755, |mode| mode & 0o777 | 0o700) }
            }
            Content::Symlink { target } => {
                let bytes = target.as_bytes();
                if bytes.is_empty() || bytes.len() >= 4096 || bytes.contains(&0) {
                    return Err(bad_path(path, "cannot point there"));
                }
                Self::Symlink { target: target.clone() }
            }
        })
    }
}

pub(super) fn parse_digest(digits: &str) -> Result<Digest> {
    Digest::from_hex(digits)
        .map_err(|_| Problem::invalid(format!("{digits:?} is not a BLAKE3 digest")))
}
