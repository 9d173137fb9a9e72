//! The journal of a sandbox that does not run: what callers do with its files is on record too.
//!
//! To continue a journal means to verify it, so it is kept open for a while. Whoever starts the
//! sandbox closes it first: from then on it is the warden's.

use std::path::Path;
use std::time::{Duration, Instant};

use ringfence_warden::journal::event::FileCall;
use ringfence_warden::journal::{Event, Journal, JournalError, Options};

use super::Sandboxes;
use super::reach::Held;

/// How long a journal stays open after it was used.
const KEPT: Duration = Duration::from_secs(5);

/// A journal that is open between two calls.
#[derive(Debug)]
pub(super) struct Kept {
    journal: Journal,
    used: Instant,
}

impl Sandboxes {
    /// Puts a call on record. Should that fail the owner still gets at the files; the log says so.
    pub(super) fn note(&self, held: &Held, call: FileCall) {
        self.note_event(held, Event::FileCall(call));
    }

    pub(super) fn note_event(&self, held: &Held, event: Event) {
        let (id, dir) = (&held.record.id, self.dir(&held.record.id));
        let mut kept = held.live.journal.lock();
        let noted = match kept.take() {
            Some(kept) => Ok(kept.journal),
            None => open(&dir, id),
        };
        let noted = noted.and_then(|journal| {
            let appended = journal.append(event);
            *kept = Some(Kept { journal, used: Instant::now() });
            appended
        });
        if let Err(error) = noted {
            tracing::error!(sandbox = id, %error, "a call is not on record");
        }
    }

    /// Closes journals that nobody has used for a while.
    pub(super) fn close_journals(&self) {
        let all: Vec<_> = self.inner.live.lock().values().cloned().collect();
        for live in all {
            let mut kept = live.journal.lock();
            if kept.as_ref().is_some_and(|kept| kept.used.elapsed() >= KEPT) {
                close(kept.take());
            }
        }
    }
}

impl super::Live {
    /// For whoever is about to start or to destroy the sandbox.
    pub(super) fn close_journal(&self) {
        close(self.journal.lock().take());
    }
}

fn close(kept: Option<Kept>) {
    if let Some(Err(error)) = kept.map(|kept| kept.journal.close()) {
        tracing::error!(%error, "a journal was not closed in order");
    }
}

fn open(dir: &Path, id: &str) -> Result<Journal, JournalError> {
    if let Err(error) = super::life::make_private_dir(dir) {
        tracing::warn!(sandbox = id, %error, "it has no directory");
    }
    match Journal::create(dir, id, Options::default()) {
        Err(JournalError::Exists { .. }) => Journal::reopen(dir, id, Options::default()),
        other => other,
    }
}
