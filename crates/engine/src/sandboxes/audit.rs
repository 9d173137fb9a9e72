//! Reading the record of a sandbox, and verifying it; by its owner, also after its end.

use std::io::ErrorKind;
use std::path::PathBuf;

use ringfence_link::warden::Request;
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
    /// Makes what has happened so far readable: a warden writes down what comes close together at
    /// once. Who asks after a command must find it.
    pub async fn settle_audit(&self, account: &str, id: &str) -> Result<()> {
        self.journal_of(account, id)?;
        match self.ask(account, id, Request::FlushRecord).await {
            Ok(_) => Ok(()),
            // Its warden wrote everything down before it ended.
            Err(Problem { code: Code::SandboxNotRunning | Code::SandboxNotFound, .. }) => Ok(()),
            Err(problem) => Err(problem),
        }
    }

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

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;
    use std::time::Duration;

    use ringfence_warden::journal::event::SandboxEnded;
    use ringfence_warden::journal::{Event, Journal, Options};

    use super::*;
    use crate::codebases::{Codebases, Limits, NewCodebase};
    use crate::sandboxes::create::CreateSandbox;
    use crate::sandboxes::{Belongs, Settings};
    use crate::store::{LOCAL, Store};

    pub(crate) fn sandboxes(state: &Path, kept: Duration) -> Sandboxes {
        let store = Store::open(state).unwrap();
        store.ensure_account("other").unwrap();
        let codebases = Codebases::new(store.clone(), Limits::default()).unwrap();
        let settings = Settings {
            state: state.into(),
            program: "/nowhere".into(),
            users: state.join("users"),
            most_per_account: 10,
            lease: Duration::from_secs(60),
            abandoned: Duration::from_secs(60),
            journals_kept: kept,
            belongs: Belongs::Host,
            host_network: false,
            fetch_images: false,
        };
        Sandboxes::new(settings, store, codebases)
    }

    /// A sandbox with a journal, as a warden would have left it.
    fn with_journal(sandboxes: &Sandboxes) -> String {
        let caller = crate::Caller { account: LOCAL.into(), local: true };
        let wanted =
            NewCodebase { name: "n".into(), owner_id: "o".into(), ..NewCodebase::default() };
        let codebase_id = sandboxes.inner.codebases.create(LOCAL, wanted).unwrap().id;
        let wanted = CreateSandbox { codebase_id, ..CreateSandbox::default() };
        let id = sandboxes.create(&caller, wanted).unwrap().id;
        std::fs::create_dir_all(sandboxes.dir(&id)).unwrap();
        let journal = Journal::create(&sandboxes.dir(&id), &id, Options::default()).unwrap();
        let event = SandboxEnded { reason: "asked to".into(), clean: true };
        journal.append(Event::SandboxEnded(event)).unwrap();
        journal.close().unwrap();
        id
    }

    #[tokio::test]
    async fn the_record_is_the_owners_before_and_after_the_end_and_nobody_elses() {
        let state = tempfile::tempdir().unwrap();
        let sandboxes = sandboxes(state.path(), Duration::from_secs(60));
        let id = with_journal(&sandboxes);
        for _ in 0..2 {
            let filter = AuditFilter::default();
            let mut reader = sandboxes.read_audit(LOCAL, &id, filter).unwrap();
            assert_eq!(reader.next_batch().unwrap().len(), 2);
            assert_eq!(sandboxes.verify_audit(LOCAL, &id).unwrap().problem, None);
            let other = sandboxes.read_audit("other", &id, filter).unwrap_err();
            assert_eq!(other.code, Code::SandboxNotFound);
            let other = sandboxes.verify_audit("other", &id).unwrap_err();
            assert_eq!(other.code, Code::SandboxNotFound);
            let other = sandboxes.destroy("other", &id).await.unwrap_err();
            assert_eq!(other.code, Code::SandboxNotFound);
            sandboxes.destroy(LOCAL, &id).await.unwrap();
        }
        assert_eq!(sandboxes.sweep_journals().unwrap(), 0, "it is kept for a while");
    }

    #[tokio::test]
    async fn a_record_that_was_kept_long_enough_goes_with_its_files() {
        let state = tempfile::tempdir().unwrap();
        let sandboxes = sandboxes(state.path(), Duration::ZERO);
        let id = with_journal(&sandboxes);
        sandboxes.destroy(LOCAL, &id).await.unwrap();
        assert!(sandboxes.kept_dir(&id).exists());
        // The clock has to move on for it to be over.
        while sandboxes.sweep_journals().unwrap() == 0 {
            std::thread::yield_now();
        }
        assert!(!sandboxes.kept_dir(&id).exists());
        let gone = sandboxes.verify_audit(LOCAL, &id).unwrap_err();
        assert_eq!(gone.code, Code::SandboxNotFound);
    }

    #[tokio::test]
    async fn what_never_ran_has_an_empty_record_and_what_was_removed_is_missed() {
        let state = tempfile::tempdir().unwrap();
        let sandboxes = sandboxes(state.path(), Duration::from_secs(60));
        let id = with_journal(&sandboxes);
        sandboxes.destroy(LOCAL, &id).await.unwrap();
        std::fs::remove_dir_all(sandboxes.kept_dir(&id)).unwrap();
        assert!(sandboxes.verify_audit(LOCAL, &id).unwrap().problem.is_some());
        let id = with_journal(&sandboxes);
        std::fs::remove_dir_all(sandboxes.dir(&id)).unwrap();
        let empty = Verdict { events: 0, problem: None };
        assert_eq!(sandboxes.verify_audit(LOCAL, &id).unwrap(), empty, "nothing ever ran");
    }
}
