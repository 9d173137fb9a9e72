//! Create, get, list, delete: the record and the directory together.
//!
//! The directory is made before the record and removed after it. So whenever the server is killed,
//! what is left over is a directory without a record, which nobody can have been promised.

use std::path::{Path, PathBuf};

use ringfence_fs::MountError;

use crate::id::Kind;
use crate::problem::{Problem, Result};
use crate::store::{Codebase, CodebaseFilter, Listed, Page, now_ms};

use super::scratch::Scratch;
use super::tree::Tree;
use super::{Codebases, Inner, trouble};

/// The first version of every codebase: an empty tree.
const FIRST_VERSION: i64 = 1;

const LONGEST_TEXT: usize = 1024;

/// A codebase as it is asked for.
#[derive(Debug, Clone, Default)]
pub struct NewCodebase {
    pub owner_id: String,
    pub name: String,
    /// A directory of the host to be used where it is. Whether the caller may name one was decided
    /// before.
    pub local_path: Option<PathBuf>,
    pub mask: Vec<String>,
    pub default_mask: Vec<String>,
    pub ignore_files: Vec<String>,
    /// It goes with the last of its sandboxes.
    pub fleeting: bool,
}

impl Codebases {
    pub fn create(&self, account: &str, wanted: NewCodebase) -> Result<Codebase> {
        check_text("name", &wanted.name)?;
        check_text("owner_id", &wanted.owner_id)?;
        check_ignore_files(&wanted.ignore_files)?;
        wanted.local_path.as_deref().map_or(Ok(()), check_local)?;
        let now = now_ms();
        let codebase = Codebase {
            id: Kind::Codebase.random(),
            account: account.to_owned(),
            owner_id: wanted.owner_id,
            name: wanted.name,
            local_path: wanted.local_path,
            mask: wanted.mask,
            default_mask: wanted.default_mask,
            ignore_files: wanted.ignore_files,
            version: FIRST_VERSION,
            fleeting: wanted.fleeting,
            created_ms: now,
            updated_ms: now,
            ..Codebase::default()
        };
        check_mask(&codebase)?;
        self.inner.make(&codebase)?;
        Ok(codebase)
    }

    pub fn get(&self, account: &str, id: &str) -> Result<Codebase> {
        self.inner.record(account, id)
    }

    pub fn list(
        &self,
        account: &str,
        filter: &CodebaseFilter,
        page: &Page,
    ) -> Result<Listed<Codebase>> {
        self.inner.store.codebases(account, filter, page)
    }

    /// Refused while sandboxes or snapshots stand on it. A directory used in place is not touched.
    pub fn delete(&self, account: &str, id: &str) -> Result<()> {
        self.inner.record(account, id)?;
        let life = self.inner.life(id);
        let turn = life.change.lock();
        if !self.inner.store.delete_codebase(account, id)? {
            return Err(trouble::no_codebase());
        }
        let gone = self.inner.take_away(id);
        self.inner.lives.lock().remove(id);
        drop(turn);
        drop(gone);
        Ok(())
    }
}

impl Inner {
    fn make(&self, codebase: &Codebase) -> Result<()> {
        if codebase.local_path.is_some() {
            return self.store.insert_codebase(codebase);
        }
        let place = self.place(&codebase.id);
        let made = place.make().and_then(|()| {
            Tree::make(&place.version(codebase.version))?;
            Ok(())
        });
        let inserted =
            made.map_err(trouble::cannot_write).and_then(|()| self.store.insert_codebase(codebase));
        if inserted.is_err() {
            drop(Scratch::at(place.dir().to_owned()));
        }
        inserted
    }

    /// The record is gone, so what cannot be taken away now goes at the next start.
    pub(super) fn take_away(&self, id: &str) -> Option<Scratch> {
        match self.root.discard(self.place(id).dir()) {
            Ok(gone) => Some(gone),
            // A directory of the host was used in place, or somebody was faster.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(codebase = id, %error, "the files of a deleted codebase are left");
                None
            }
        }
    }
}

fn check_text(field: &str, text: &str) -> Result<()> {
    match text.len() {
        0 => Err(Problem::invalid(format!("{field} is required"))),
        length if length > LONGEST_TEXT => Err(Problem::invalid(format!("{field} is too long"))),
        _ => Ok(()),
    }
}

fn check_ignore_files(names: &[String]) -> Result<()> {
    let is_name = |name: &&String| {
        !name.is_empty() && !name.contains(['/', '\0']) && !matches!(name.as_str(), "." | "..")
    };
    match names.iter().find(|name| !is_name(name)) {
        Some(name) => Err(Problem::invalid(format!("{name:?} is not the name of a file"))),
        None => Ok(()),
    }
}

fn check_local(path: &Path) -> Result<()> {
    match path.is_absolute() && Tree::open(path).is_ok() {
        true => Ok(()),
        false => Err(Problem::invalid(
            "local_path must be the absolute path of a directory on the server's host",
        )),
    }
}

fn check_mask(codebase: &Codebase) -> Result<()> {
    match codebase.mask_options().check() {
        Err(MountError::BadMask { pattern, reason }) => {
            Err(Problem::invalid(format!("the mask {pattern:?} matches nothing: {reason}")))
        }
        _ => Ok(()),
    }
}
