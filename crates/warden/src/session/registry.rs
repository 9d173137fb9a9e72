//! Which sessions there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ringfence_link::warden::{Code, Failure, OpenSession};

use super::DEFAULT;
use super::session::{Phase, Plan, Session};
use super::start::Recipe;
use crate::sandbox::{failure, internal};

/// How many sessions of a sandbox can be open at once. As many that have ended are remembered.
const MOST: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    /// The oldest first.
    pub(super) all: Mutex<Vec<Arc<Session>>>,
    numbers: AtomicU64,
}

impl Sessions {
    /// Calls `hook` when the session's shell ends or the session is closed; at once if it has.
    pub(crate) fn on_close(&self, id: &str, hook: Box<dyn FnOnce() + Send>) {
        match self.find(id) {
            Some(session) => session.on_close(hook),
            None => hook(),
        }
    }

    /// Signals a running command of a session. Whether there is one of that name.
    pub(crate) fn signal(&self, command: &str, signal: i32) -> bool {
        let all = self.all.lock().clone();
        all.iter().any(|session| session.signal(command, signal))
    }

    /// The sandbox ends: has all of them closed, without waiting.
    pub(crate) fn close_all(&self, reason: &str) {
        let all = self.all.lock().clone();
        all.iter().for_each(|session| session.ask_to_close(reason));
    }

    /// Waits until all of them are closed, but not for ever.
    pub(crate) fn wait_closed(&self, longest: Duration) {
        let (all, deadline) = (self.all.lock().clone(), Instant::now() + longest);
        all.iter().for_each(|session| session.wait_closed(Some(deadline)));
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Another shell can be started.
    pub(super) fn check_room(&self) -> Result<(), Failure> {
        has_room(&self.all.lock())
    }

    pub(super) fn find(&self, which: &str) -> Option<Arc<Session>> {
        self.all.lock().iter().find(|session| session.answers_to(which)).cloned()
    }

    pub(super) fn forget(&self, session: &Arc<Session>) {
        self.all.lock().retain(|known| !Arc::ptr_eq(known, session));
    }

    /// Takes a place and a name for a session that is being opened.
    pub(super) fn reserve(
        &self,
        options: &OpenSession,
        shell: String,
        recipe: Recipe,
    ) -> Result<Arc<Session>, Failure> {
        let id = new_id()?;
        let mut all = self.all.lock();
        let replaced = match &options.name {
            Some(name) => free_name(&mut all, name)?,
            None => None,
        };
        has_room(&all)?;
        let name = options.name.clone().unwrap_or_else(|| new_name(&all));
        let number = self.next_number();
        let timeout_ms = options.timeout_ms;
        let plan = Plan { id, name, shell, number, timeout_ms, recipe };
        let session = Arc::new(Session::new(plan)?);
        all.push(session.clone());
        let surplus = drop_surplus(&mut all);
        drop(all);
        for old in replaced.into_iter().chain(surplus) {
            old.ask_to_close("replaced");
        }
        Ok(session)
    }
}

fn has_room(all: &[Arc<Session>]) -> Result<(), Failure> {
    match all.iter().filter(|session| is_open(session)).count() {
        ..MOST => Ok(()),
        _ => {
            let text = format!("there are {MOST} sessions already: close one of them");
            Err(failure(Code::LimitReached, text).with("limit", "sessions").with("most", MOST))
        }
    }
}

/// Makes room for a name: one that has ended gives up its own.
fn free_name(all: &mut Vec<Arc<Session>>, name: &str) -> Result<Option<Arc<Session>>, Failure> {
    let Some(at) = all.iter().position(|session| session.name == name) else { return Ok(None) };
    match all[at].phase() {
        Phase::Ended(_) => Ok(Some(all.remove(at))),
        _ => Err(failure(Code::SessionExists, format!("there is a session {name:?} already"))),
    }
}

/// The oldest of those that have ended, if they are too many.
fn drop_surplus(all: &mut Vec<Arc<Session>>) -> Option<Arc<Session>> {
    let ended = |session: &Arc<Session>| !is_open(session) && session.name != DEFAULT;
    let too_many = all.iter().filter(|session| ended(session)).count() > MOST;
    let at = all.iter().position(ended).filter(|_| too_many)?;
    Some(all.remove(at))
}

fn is_open(session: &Arc<Session>) -> bool {
    matches!(session.phase(), Phase::Opening | Phase::Live)
}

fn new_name(all: &[Arc<Session>]) -> String {
    let taken = |name: &String| all.iter().any(|session| session.name == *name);
    let mut names = (1u64..).map(|n| format!("session-{n}"));
    names.find(|name| !taken(name)).unwrap_or_default()
}

pub(super) fn new_id() -> Result<String, Failure> {
    use std::io::Read;
    let mut bytes = [0; 8];
    let mut source = std::fs::File::open("/dev/urandom").map_err(internal)?;
    source.read_exact(&mut bytes).map_err(internal)?;
    Ok(format!("sess_{:016x}", u64::from_ne_bytes(bytes)))
}
