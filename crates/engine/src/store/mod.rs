//! Records, in SQLite: what exists, whose it is, and what was promised about it.
//!
//! Everything here is synchronous and short; an async caller goes through `spawn_blocking`. Files
//! are not kept here, only what is known about them.
//!
//! | file | what is in it |
//! |---|---|
//! | [`open`] | the state directory, its lock, and the two connections |
//! | [`schema`] | the tables, and how they became what they are |
//! | [`record`] | what all records have in common: insert, get, update, list by pages |
//! | [`accounts`], [`tokens`] | who may ask |
//! | [`codebases`], [`sandboxes`], [`snapshots`] | one file per kind of record |
//! | [`seen`] | records of sandboxes that need not be read again |
//! | [`contents`] | the files of codebases, by path and by content |
//! | [`journals`] | journals that outlive their sandboxes |
//! | [`requests`] | answers kept for callers who ask again |
//!
//! # What survives what
//!
//! Every change is one transaction in a write-ahead log, so after `kill -9` it is there as a whole
//! or not at all, whatever the setting of `synchronous`. The settings differ in what the loss of
//! power does. `NORMAL` may lose the last changes (never an older one without all newer ones), which
//! is what it does to files nobody has synced, too: records and trees go back together, and
//! reconciliation settles the rest. That is right for nearly everything, and a sync of the log takes
//! longer than the start of a sandbox. `FULL` ([`Survives::PowerLoss`]) is for the two cases where
//! going back does harm: tokens (a revoked one must not come back to life) and the change of a
//! codebase to another version (the files of the old one are removed after it).

mod accounts;
mod codebases;
mod contents;
mod journals;
mod open;
mod record;
mod requests;
mod sandboxes;
mod schema;
mod seen;
mod snapshots;
mod tokens;
mod values;

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::problem::{Problem, Result};

pub use accounts::{Account, LOCAL};
pub use codebases::{Codebase, CodebaseFilter};
pub(crate) use contents::{Content, Digest, FileRow, Stamp, TreeState};
pub use journals::KeptJournal;
pub use open::OpenError;
pub use record::{Listed, Page};
pub use requests::Begin;
pub use sandboxes::{SandboxFilter, SandboxRecord, Status};
pub use snapshots::{Snapshot, SnapshotFilter};
pub use tokens::Token;

/// All records of one state directory. Clones are the same store.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<open::Inner>,
}

/// The connection that writes. There is one, so writers queue here and never at SQLite's door.
#[derive(Debug)]
struct Writer {
    connection: Connection,
    survives: Survives,
}

/// What a change must outlast; see the top of this file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Survives {
    Kill,
    PowerLoss,
}

impl Store {
    /// Where everything of this server is kept.
    pub fn state_dir(&self) -> &Path {
        &self.inner.state_dir
    }

    /// Looks, without waiting for whoever writes.
    fn read<T>(&self, look: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        look(&self.inner.reader.lock())
    }

    /// One transaction: all of it, or nothing if `act` fails.
    fn write<T>(
        &self,
        survives: Survives,
        act: impl FnOnce(&Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut writer = self.inner.writer.lock();
        writer.set(survives)?;
        let behavior = TransactionBehavior::Immediate;
        let transaction = writer.connection.transaction_with_behavior(behavior)?;
        let value = act(&transaction)?;
        let committed = transaction.commit();
        // Also after a failure: nobody knows what is there now.
        self.inner.seen.forget();
        committed?;
        Ok(value)
    }
}

impl Writer {
    fn set(&mut self, survives: Survives) -> rusqlite::Result<()> {
        if self.survives != survives {
            self.connection.pragma_update(None, "synchronous", survives.pragma())?;
            self.survives = survives;
        }
        Ok(())
    }
}

impl Survives {
    fn pragma(self) -> &'static str {
        match self {
            Self::Kill => "NORMAL",
            Self::PowerLoss => "FULL",
        }
    }
}

/// Callers cannot do anything about a broken store; the log says what broke.
impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Self {
        Problem::internal("use the records", error)
    }
}

/// A connection nobody else uses at the moment.
type Shared = Mutex<Connection>;

/// Milliseconds since 1970, the unit of all times on record.
pub fn now_ms() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}
