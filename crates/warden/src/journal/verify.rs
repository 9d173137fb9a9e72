//! Whether a journal is what was written, and where it first is not.

use std::io;
use std::path::{Path, PathBuf};

use blake3::Hash;

use super::event::Event;
use super::head::{self, Head, Record};
use super::line::{Sealed, origin};
use super::read::{Lines, ReadError, StoredLine};
use super::{FORMAT, HEAD_FILE};

const TRIES: u32 = 4;

/// A journal whose chain is whole and which goes at least as far as its head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// The last complete entry.
    pub head: Head,
    pub ending: Ending,
    /// The size of the complete entries in bytes.
    pub(super) size: u64,
}

/// How a journal ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It was closed, and nothing is missing.
    InOrder,
    /// Somebody is writing it now.
    BeingWritten,
    /// Whoever wrote it was ended before it could be closed. Entries after the last flush are
    /// missing, and the bytes of an incomplete one may be left.
    NotClosed { torn_bytes: u64 },
}

/// The first thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entry {line}: {reason}")]
pub struct Broken {
    /// The line, which is the number its entry should have.
    pub line: u64,
    pub reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    #[error("it is not an entry")]
    NotAnEntry,
    #[error("it says it is number {found}: an entry was removed, inserted or moved")]
    WrongNumber { found: u64 },
    #[error("its hash does not fit: it or the one before was changed, or it was not written here")]
    WrongHash,
    #[error("the journal is that of sandbox {found}")]
    OtherSandbox { found: String },
    #[error("the journal has format {found}, this version reads {FORMAT}")]
    OtherFormat { found: u32 },
    #[error("the journal is truncated: its head names entry {head}")]
    Truncated { head: u64 },
    #[error("the head names another hash: the journal was rewritten")]
    Rewritten,
    #[error("something follows after the journal was closed")]
    AfterTheEnd,
    #[error("there is no head to compare with: {HEAD_FILE} is missing")]
    NoHead,
    #[error("there is no head to compare with: {HEAD_FILE} is damaged")]
    DamagedHead,
}

/// Why a journal is not verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Checks the journal in `dir` of this sandbox against the head beside it.
pub fn verify(dir: &Path, sandbox: &str) -> Result<Verified, VerifyError> {
    let mut tries = 1;
    loop {
        // The head first: the journal is written before it, so it holds at least what this names.
        let record = read_head(dir)?;
        let result = check(dir, sandbox, record, Lines::is_written);
        // A writer may come or go meanwhile, and then the two do not belong together.
        let settled = matches!(result, Ok(Verified { ending: Ending::BeingWritten, .. }));
        if settled || tries == TRIES || read_head(dir)? == record {
            return result;
        }
        tries += 1;
    }
}

/// Checks it for the one who holds the lock for writing.
pub(super) fn verify_own(dir: &Path, sandbox: &str) -> Result<Verified, VerifyError> {
    check(dir, sandbox, read_head(dir)?, |_| false)
}

/// Checks it against a head that was kept elsewhere, which is worth more.
pub fn verify_against(dir: &Path, sandbox: &str, head: Head) -> Result<Verified, VerifyError> {
    check(dir, sandbox, Record { head, closed: false }, Lines::is_written)?;
    verify(dir, sandbox)
}

fn read_head(dir: &Path) -> Result<Record, VerifyError> {
    match head::read(dir) {
        Ok(Some(record)) => Ok(record),
        Ok(None) => Err(broken(1, Reason::DamagedHead)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(broken(1, Reason::NoHead)),
        Err(source) => Err(VerifyError::Io { path: dir.join(HEAD_FILE), source }),
    }
}

fn broken(line: u64, reason: Reason) -> VerifyError {
    VerifyError::Broken(Broken { line, reason })
}

fn check(
    dir: &Path,
    sandbox: &str,
    record: Record,
    is_written: impl Fn(&Lines) -> bool,
) -> Result<Verified, VerifyError> {
    let mut chain = Chain::new(sandbox, record);
    let mut lines = match Lines::open(dir) {
        Ok(lines) => lines,
        Err(ReadError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return chain.end(0, 0, Ending::NotClosed { torn_bytes: 0 });
        }
        Err(e) => return Err(unreadable(e)),
    };
    let was_written = is_written(&lines);
    for line in &mut lines {
        chain.add(&line.map_err(unreadable)?)?;
    }
    let ending = ending(&lines, record, was_written || is_written(&lines));
    chain.end(lines.offset(), lines.torn(), ending)
}

fn ending(lines: &Lines, record: Record, being_written: bool) -> Ending {
    match record.closed {
        _ if being_written => Ending::BeingWritten,
        true => Ending::InOrder,
        false => Ending::NotClosed { torn_bytes: lines.torn() },
    }
}

fn unreadable(e: ReadError) -> VerifyError {
    match e {
        ReadError::Io { path, source } => VerifyError::Io { path, source },
        ReadError::TooLong { line } | ReadError::NotAnEntry { line, .. } => {
            broken(line, Reason::NotAnEntry)
        }
    }
}

/// The chain as far as it was followed.
struct Chain<'a> {
    sandbox: &'a str,
    record: Record,
    at: Head,
}

impl<'a> Chain<'a> {
    fn new(sandbox: &'a str, record: Record) -> Self {
        Self { sandbox, record, at: Head { seq: 0, hash: origin(sandbox) } }
    }

    fn add(&mut self, line: &StoredLine) -> Result<(), VerifyError> {
        let wrong = |reason| broken(line.number, reason);
        let sealed = Sealed::parse(&line.bytes).ok_or_else(|| wrong(Reason::NotAnEntry))?;
        if line.number == 1 {
            self.check_first(line).map_err(wrong)?;
        }
        if sealed.seq != line.number {
            return Err(wrong(Reason::WrongNumber { found: sealed.seq }));
        }
        let hash = sealed.follows(self.at.hash).ok_or_else(|| wrong(Reason::WrongHash))?;
        self.step(hash).map_err(wrong)
    }

    fn step(&mut self, hash: Hash) -> Result<(), Reason> {
        let head = self.record.head;
        self.at = Head { seq: self.at.seq + 1, hash };
        match self.at.seq == head.seq && hash != head.hash {
            true => Err(Reason::Rewritten),
            false => Ok(()),
        }
    }

    /// Names the mistake where a plain "wrong hash" would leave the reader guessing.
    fn check_first(&self, line: &StoredLine) -> Result<(), Reason> {
        let entry = line.entry().map_err(|_| Reason::NotAnEntry)?;
        match entry.event {
            Event::JournalCreated(first) if first.sandbox != self.sandbox => {
                Err(Reason::OtherSandbox { found: first.sandbox })
            }
            Event::JournalCreated(first) if first.format != FORMAT => {
                Err(Reason::OtherFormat { found: first.format })
            }
            Event::JournalCreated(_) => Ok(()),
            _ if entry.seq != 1 => Err(Reason::WrongNumber { found: entry.seq }),
            _ => Err(Reason::NotAnEntry),
        }
    }

    fn end(self, size: u64, torn: u64, ending: Ending) -> Result<Verified, VerifyError> {
        let Record { head, closed } = self.record;
        let next = self.at.seq + 1;
        if head.seq > self.at.seq {
            return Err(broken(next, Reason::Truncated { head: head.seq }));
        }
        if head.seq == 0 && head.hash != origin(self.sandbox) {
            return Err(broken(1, Reason::Rewritten));
        }
        if closed && ending == Ending::InOrder && (self.at.seq > head.seq || torn > 0) {
            return Err(broken(head.seq + 1, Reason::AfterTheEnd));
        }
        Ok(Verified { head: self.at, ending, size })
    }
}
