//! Reading the record of a sandbox, and verifying it; by its owner, also after its end.

use std::io::ErrorKind;
use std::path::PathBuf;

use ringfence_warden::journal::{
    Head, JOURNAL_FILE, Lines, ReadError, StoredLine, VerifyError, verify, verify_against,
};
use serde::Deserialize;

use super::{Sandboxes, not_found};
use crate::problem::{Code, Problem, Result};

/// So many entries at a time.
const MOST: usize = 256;
/// So much text at a time: some entries are long.
const MOST_BYTES: usize = 1 << 20;

/// One entry as it is on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub sequence: u64,
    /// RFC 3339.
    pub time: String,
    pub kind: String,
    /// The whole entry.
    pub json: String,
}

/// Which entries are wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct AuditFilter {
    pub after: u64,
    /// Only what was refused.
    pub denied: bool,
}

/// Reads the record of one sandbox, entry by entry.
#[derive(Debug)]
pub struct AuditReader {
    sandboxes: Sandboxes,
    account: String,
    id: String,
    filter: AuditFilter,
    lines: Option<Lines>,
}

/// Whether a record is what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// How many entries are good.
    pub events: u64,
    /// The first thing that is wrong.
    pub problem: Option<String>,
}

/// Where a journal is and what is known of it.
#[derive(Debug)]
struct Place {
    dir: PathBuf,
    head: Option<Head>,
    /// Something has run, so there must be one.
    begun: bool,
    /// Its sandbox is gone: nothing will be added.
    over: bool,
}

/// What every entry has.
#[derive(Deserialize)]
struct Common {
    seq: u64,
    time: String,
    kind: String,
}

impl Sandboxes {
    /// Begins to read; whoever is not the owner finds no such sandbox.
    pub fn read_audit(&self, account: &str, id: &str, filter: AuditFilter) -> Result<AuditReader> {
        self.journal_of(account, id)?;
        let (account, id) = (account.to_owned(), id.to_owned());
        Ok(AuditReader { sandboxes: self.clone(), account, id, filter, lines: None })
    }

    /// Checks every entry, against the head beside the journal and against the last one that this
    /// server remembers.
    pub fn verify_audit(&self, account: &str, id: &str) -> Result<Verdict> {
        let place = self.journal_of(account, id)?;
        if !place.begun && !place.dir.join(JOURNAL_FILE).exists() {
            return Ok(Verdict { events: 0, problem: None });
        }
        let verified = match place.head {
            Some(head) => verify_against(&place.dir, id, head),
            None => verify(&place.dir, id),
        };
        match verified {
            Ok(verified) => Ok(Verdict { events: verified.head.seq, problem: None }),
            Err(VerifyError::Broken(broken)) => Ok(Verdict {
                events: broken.line.saturating_sub(1),
                problem: Some(broken.to_string()),
            }),
            Err(error) => Err(Problem::internal("read the record", error)),
        }
    }

    fn journal_of(&self, account: &str, id: &str) -> Result<Place> {
        if let Some(record) = self.inner.store.sandbox(account, id)? {
            let begun = record.started_ms.is_some();
            let (dir, head) = (self.dir(id), self.known_head(id));
            return Ok(Place { dir, head, begun: begun || head.is_some(), over: false });
        }
        let kept = self.inner.store.kept_journal(account, id)?.ok_or_else(not_found)?;
        let head = kept.head.and_then(|head| head.parse().ok());
        Ok(Place { dir: self.kept_dir(id), head, begun: head.is_some(), over: true })
    }
}

impl AuditReader {
    /// The next entries that are there already; none if there are no more now.
    pub fn next_batch(&mut self) -> Result<Vec<AuditEntry>> {
        if self.lines.is_none() {
            self.lines = self.open()?;
        }
        let Some(lines) = &mut self.lines else { return Ok(Vec::new()) };
        let (mut found, mut size) = (Vec::new(), 0);
        for line in lines.by_ref() {
            let line = line.map_err(unreadable)?;
            if line.number <= self.filter.after {
                continue;
            }
            if let Some(entry) = wanted(&line, self.filter.denied)? {
                size += entry.json.len();
                found.push(entry);
            }
            if found.len() == MOST || size >= MOST_BYTES {
                break;
            }
        }
        Ok(found)
    }

    /// Whether more may come: the sandbox still exists.
    pub fn goes_on(&self) -> Result<bool> {
        match self.sandboxes.journal_of(&self.account, &self.id) {
            Ok(place) => Ok(!place.over),
            // It was swept meanwhile.
            Err(problem) if problem.code == Code::SandboxNotFound => Ok(false),
            Err(problem) => Err(problem),
        }
    }

    /// Nothing if there is no journal yet. It may move while it is looked for, once.
    fn open(&self) -> Result<Option<Lines>> {
        for _ in 0..2 {
            let place = self.sandboxes.journal_of(&self.account, &self.id)?;
            match Lines::open(&place.dir) {
                Ok(lines) => return Ok(Some(lines)),
                Err(ReadError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(unreadable(error)),
            }
        }
        Ok(None)
    }
}

fn wanted(line: &StoredLine, only_denied: bool) -> Result<Option<AuditEntry>> {
    if only_denied && !line.entry().map_err(unreadable)?.event.is_denial() {
        return Ok(None);
    }
    let read = |source| unreadable(ReadError::NotAnEntry { line: line.number, source });
    let Common { seq, time, kind } = serde_json::from_slice(&line.bytes).map_err(read)?;
    let json = String::from_utf8_lossy(&line.bytes).into_owned();
    Ok(Some(AuditEntry { sequence: seq, time, kind, json }))
}

fn unreadable(error: ReadError) -> Problem {
    match error {
        ReadError::Io { .. } => Problem::internal("read the record", error),
        broken => {
            let problem = Problem::new(Code::Internal, format!("the record is damaged: {broken}"));
            problem.with("hint", "VerifyAudit says what happened to it")
        }
    }
}
