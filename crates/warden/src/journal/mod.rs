//! The audit journal of one sandbox: an ordered, tamper-evident record of accesses and commands.
//!
//! `journal.jsonl` holds one JSON object per line, each sealed with a hash that covers the line and
//! the hash of the line before it. `journal.head` holds the number and hash of the last entry
//! written, so that a journal cut short does not verify. Who can write both files can forge both:
//! the head is worth most where it is kept elsewhere too ([`Journal::head`], [`verify_against`]).
//!
//! Start with [`event`] for what is recorded, then `write` and `state` for how; `docs/audit.md` is for people.

mod access;
pub mod event;
mod file_call;
mod fold;
mod head;
mod line;
mod read;
mod state;
mod text;
mod time;
mod verify;
mod write;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

pub use access::Caller;
pub use event::Event;
pub use head::{Head, NotAHead, last as last_head};
pub use line::Entry;
pub use read::{Follow, Lines, ReadError, StoredLine, follow, read};
pub use text::{List, Text};
pub use time::rfc3339;
pub use verify::{Broken, Ending, Reason, Verified, VerifyError, verify, verify_against};
pub use write::{Journal, Options};

/// The version written into the first entry.
pub const FORMAT: u32 = 1;
/// The entries, in a sandbox's state directory.
pub const JOURNAL_FILE: &str = "journal.jsonl";
/// The number and hash of the last entry written, beside it.
pub const HEAD_FILE: &str = "journal.head";

/// Why something could not be put on record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    #[error("there is a journal in {} already", dir.display())]
    Exists { dir: PathBuf },
    #[error("the journal {} is being written by another process", path.display())]
    InUse { path: PathBuf },
    #[error("the journal is closed")]
    Closed,
    #[error("the journal in {} cannot be continued: {source}", dir.display())]
    Unverified { dir: PathBuf, source: VerifyError },
    #[error("cannot {step} {}: {source}", path.display())]
    Io { step: &'static str, path: PathBuf, source: io::Error },
}

impl JournalError {
    fn io(step: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io { step, path: path.into(), source: source.into() }
    }
}
