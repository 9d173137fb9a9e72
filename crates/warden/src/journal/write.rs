//! The open journal: one lock around its state, and a thread of its own that writes out soon after
//! something was appended, and sleeps otherwise.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Condvar, Mutex};

use super::event::{Event, JournalCreated, JournalResumed};
use super::head::{self, Head, Record};
use super::line::origin;
use super::read::lock_for_writing;
use super::state::State;
use super::verify::{Ending, Verified, verify_own};
use super::{FORMAT, HEAD_FILE, JOURNAL_FILE, JournalError};

/// How a journal is kept.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// From this size on granted accesses are only counted, and from twice this size on denied ones
    /// too: a program that asks for a new hidden name each time must not fill the disk. Commands
    /// and everything else still go in.
    pub size_cap: u64,
    /// How long an entry may wait in memory.
    pub flush_after: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { size_cap: 256 << 20, flush_after: Duration::from_millis(100) }
    }
}

/// The open journal of one sandbox. Share it in an `Arc`; every method may be called by any thread.
/// Dropping it writes out what it holds but does not close it: see [`Journal::close`].
#[derive(Debug)]
pub struct Journal {
    shared: Arc<Shared>,
    flusher: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Something is waiting to be written, or it is time to go.
    wake: Condvar,
    flush_after: Duration,
}

impl Journal {
    /// Starts the journal of a new sandbox in its state directory.
    pub fn create(dir: &Path, sandbox: &str, options: Options) -> Result<Self, JournalError> {
        let path = dir.join(JOURNAL_FILE);
        if path.exists() || dir.join(HEAD_FILE).exists() {
            return Err(JournalError::Exists { dir: dir.into() });
        }
        let record = Record { head: Head { seq: 0, hash: origin(sandbox) }, closed: false };
        head::create(dir, record).map_err(|e| JournalError::io("create the head of", &path, e))?;
        // From here on it is a journal without entries, which can be continued after a crash.
        Self::reopen(dir, sandbox, options)
    }

    /// Continues a journal, after an orderly end or a crash. It is verified first: one that was
    /// tampered with cannot be continued, since that would hide it.
    pub fn reopen(dir: &Path, sandbox: &str, options: Options) -> Result<Self, JournalError> {
        let file = open_locked(&dir.join(JOURNAL_FILE))?;
        let verified = verify_own(dir, sandbox)
            .map_err(|source| JournalError::Unverified { dir: dir.into(), source })?;
        let state = State::open(dir, file, options, &verified)?;
        let event = match verified.head.seq {
            0 => first(sandbox),
            _ => resumed(&verified),
        };
        Self::begin(state, options, event)
    }

    fn begin(state: State, options: Options, event: Event) -> Result<Self, JournalError> {
        let (path, flush_after) = (state.path.clone(), options.flush_after);
        let (state, wake) = (Mutex::new(state), Condvar::new());
        let shared = Arc::new(Shared { state, wake, flush_after });
        let thread = shared.clone();
        let flusher = std::thread::Builder::new()
            .name("journal".into())
            .stack_size(128 << 10)
            .spawn(move || thread.flush_in_time())
            .map_err(|e| JournalError::io("start the thread of", &path, e))?;
        let journal = Self { shared, flusher: Mutex::new(Some(flusher)) };
        journal.append(event)?;
        journal.flush()?;
        Ok(journal)
    }

    /// Puts an event on record. An error of the disk does not lose it: it is held and tried again.
    pub fn append(&self, event: Event) -> Result<(), JournalError> {
        let mut state = self.shared.state.lock();
        let was_idle = state.is_idle();
        let result = state.append(event, SystemTime::now());
        if was_idle && !state.is_idle() {
            self.shared.wake.notify_one();
        }
        result
    }

    /// Writes out everything appended so far, and the head with it.
    pub fn flush(&self) -> Result<(), JournalError> {
        self.shared.state.lock().flush()
    }

    /// The last entry that was written out. Keep it where whoever can write the journal cannot, and
    /// check with [`super::verify_against`].
    pub fn head(&self) -> Head {
        self.shared.state.lock().written
    }

    /// Ends the journal in order: all is on disk, and nothing can be appended. Doing it again is
    /// fine.
    pub fn close(&self) -> Result<(), JournalError> {
        self.stop_flusher();
        self.shared.state.lock().close()
    }

    fn stop_flusher(&self) {
        self.shared.state.lock().stopping = true;
        self.shared.wake.notify_one();
        if let Some(flusher) = self.flusher.lock().take() {
            // It has nothing to report; a panic in it was printed.
            let _ = flusher.join();
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.stop_flusher();
        // Nobody is left to tell.
        let _ = self.flush();
    }
}

impl Shared {
    fn flush_in_time(&self) {
        let mut state = self.state.lock();
        while !state.stopping {
            if state.is_idle() {
                self.wake.wait(&mut state);
                continue;
            }
            // To be woken means that there is something to write, not that it is due.
            let due = Instant::now() + self.flush_after;
            while !state.stopping && !self.wake.wait_until(&mut state, due).timed_out() {}
            // What cannot be written stays and is tried again; `append` and `flush` report it.
            let _ = state.flush();
        }
    }
}

fn first(sandbox: &str) -> Event {
    Event::JournalCreated(JournalCreated { sandbox: sandbox.to_owned(), format: FORMAT })
}

fn resumed(verified: &Verified) -> Event {
    let (closed, torn_bytes) = match verified.ending {
        Ending::NotClosed { torn_bytes } => (false, torn_bytes),
        Ending::InOrder | Ending::BeingWritten => (true, 0),
    };
    Event::JournalResumed(JournalResumed { closed, torn_bytes })
}

/// Opens the file for us alone.
fn open_locked(path: &Path) -> Result<File, JournalError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path).map_err(|e| JournalError::io("open", path, e))?;
    lock_for_writing(&file, path)?;
    Ok(file)
}
