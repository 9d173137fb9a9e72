//! Stored files: codebases, their versions, uploads and listings.
//!
//! A codebase is a record in the store and a directory of the same id, or a record that names a
//! directory of the host that is used where it is and never written to.
//!
//! ```text
//! codebases/cb_…/versions/3/…   a plain tree; the highest number is the newest
//!               /tmp/…          what is being written, or being removed
//!               /stage/<digest> contents that wait for a commit
//! codebases/trash/…             deleted codebases, on their way out
//! ```
//!
//! A version is open for changes until somebody is given it (`pin`). The next change then makes
//! another: the same files under new directories, by hard links. This works because no file is ever
//! changed in place, not even its mode: a new one is written aside and renamed over the old one, so
//! every version keeps its own. Within one version no two paths share a file, because a sandbox that
//! wrote to one of them would change both.
//!
//! Whether a version is still needed is never counted, only looked up: the newest is, and those that
//! records of sandboxes or snapshots name, and those that somebody holds at this moment ([`life`]).
//!
//! | file | what is in it |
//! |---|---|
//! | [`records`] | create, get, list, delete |
//! | [`path`] | which paths are legal, and what they mean |
//! | [`tree`] | reaching files beneath a directory descriptor |
//! | [`reading`], [`listing`] | files and directories as callers see them |
//! | [`upload`], [`publish`] | writing files: first aside, then into place |
//! | [`manifest`], [`commit`], [`build`], [`sources`] | whole trees, of which only the missing contents are sent |
//! | [`staging`] | those contents, many in a stream |
//! | [`quota`] | how much can be stored |
//! | [`undo`] | taking back what was written before |
//! | [`revise`] | the next version, out of a copy of the newest |
//! | [`versions`], [`life`] | which version is whose |
//! | [`place`], [`scratch`] | the layout above; what is removed again |
//! | [`fleeting`] | those that go with their sandboxes |
//! | [`reconcile`] | making records and directories agree again |

mod build;
mod commit;
mod fleeting;
mod life;
mod listing;
mod manifest;
mod path;
mod place;
mod publish;
mod quota;
mod reading;
mod reconcile;
mod records;
mod revise;
mod scratch;
mod sources;
mod staging;
#[cfg(test)]
mod tests;
mod tree;
mod trouble;
pub mod undo;
mod upload;
mod versions;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::id::Kind;
use crate::problem::{Problem, Result};
use crate::store::{Codebase, Store};

use life::Life;
use place::{Place, Root};
use quota::Quotas;

pub use listing::{Entry, FileKind};
pub use manifest::{Content, ManifestEntry};
pub use reading::OpenFile;
pub use records::NewCodebase;
pub use staging::{Piece, Staging, StagingDone};
pub use upload::{Upload, UploadDone, UploadTarget};
pub use versions::Pinned;

/// How much can be stored.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub max_file_size: u64,
    pub max_codebase_size: u64,
    /// Of all codebases of an account together.
    pub max_account_size: u64,
    /// Files and directories of a codebase.
    pub max_files: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_file_size: 16 << 30,
            max_codebase_size: 64 << 30,
            max_account_size: 256 << 30,
            max_files: 2_000_000,
        }
    }
}

/// All codebases of this server. Clones are the same.
#[derive(Debug, Clone)]
pub struct Codebases {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    root: Root,
    limits: Limits,
    lives: Mutex<HashMap<String, Arc<Life>>>,
    quotas: Quotas,
}

impl Codebases {
    /// The codebases in the state directory of `store`. Call [`Codebases::reconcile`] before
    /// anything else.
    pub fn new(store: Store, limits: Limits) -> Result<Self> {
        let root = Root::make(store.state_dir())?;
        let (lives, quotas) = (Mutex::default(), Quotas::default());
        let inner = Inner { store, root, limits, lives, quotas };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub fn limits(&self) -> Limits {
        self.inner.limits
    }
}

impl Inner {
    /// The codebase, if the account has it.
    fn record(&self, account: &str, id: &str) -> Result<Codebase> {
        if id.is_empty() {
            return Err(Problem::invalid("codebase_id is required"));
        }
        let found = match Kind::Codebase.check(id) {
            true => self.store.codebase(account, id)?,
            false => None,
        };
        found.ok_or_else(trouble::no_codebase)
    }

    /// The codebase, if its files are ours to change. Whoever asks is about to.
    fn stored_record(&self, account: &str, id: &str) -> Result<Codebase> {
        let codebase = self.record(account, id)?;
        match codebase.local_path {
            None => {
                self.touch(id);
                Ok(codebase)
            }
            Some(_) => Err(trouble::used_in_place()),
        }
    }

    /// Ids come from records, so they are safe as names.
    fn place(&self, id: &str) -> Place {
        self.root.place(id)
    }

    /// Of a codebase that is on record, or was a moment ago.
    fn life(&self, id: &str) -> Arc<Life> {
        self.lives.lock().entry(id.to_owned()).or_default().clone()
    }
}
