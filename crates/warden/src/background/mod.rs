//! What runs without a caller: the common part of processes and terminals.
//!
//! | file | what is in it |
//! |---|---|
//! | `beginning` | the directory and the variables it starts with |
//! | `launch` | from a request to something that runs, or to a record that says why not |
//! | `reactor` | the one thread that reads what all of them print, and notices when they end |
//! | `job` | how one of them gets from running to over |
//! | `registry` | which there are, by id |
//! | `log` | telling a caller what was printed |

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ringfence_link::warden::{Failure, ProcessStatus};

use crate::environment::invalid;
use crate::ring::Ring;
use crate::sandbox::now_ms;
use crate::terminals::Screen;
use crate::tree::{SIGKILL, SIGTERM, Tree};

mod beginning;
mod job;
mod launch;
mod log;
mod reactor;
mod registry;

pub(crate) use beginning::Beginning;
pub(crate) use launch::Launch;
pub(crate) use log::{Listener, STEP, Woke, send_log};
pub(crate) use reactor::Reactor;
pub(crate) use registry::{Kind, Registry};

/// Between asking something in the background to end and ending it.
const GRACE: Duration = Duration::from_secs(5);
/// The same for what has lost its terminal or its session: nobody waits for it.
const SHORT_GRACE: Duration = Duration::from_secs(1);

const SIGHUP: i32 = 1;
const SIGCONT: i32 = 18;

/// One process or terminal, running or over.
#[derive(Debug)]
pub(crate) struct Background {
    pub(crate) id: String,
    pub(crate) command: String,
    pub(crate) session: Option<String>,
    pub(crate) created_ms: u64,
    /// As it is called inside; 0 if it never ran.
    pub(crate) pid: i32,
    /// What it prints. Closed when the status is final and nothing of it is left.
    pub(crate) ring: Ring,
    /// A terminal has one.
    pub(crate) screen: Option<Screen>,
    life: Mutex<Life>,
}

#[derive(Debug)]
struct Life {
    status: ProcessStatus,
    ended_ms: Option<u64>,
    tree: Option<Arc<Tree>>,
    kill_at: Option<Instant>,
}

impl Life {
    fn of(tree: Arc<Tree>) -> Self {
        Self { status: ProcessStatus::Running, ended_ms: None, tree: Some(tree), kill_at: None }
    }

    fn never_began(reason: String) -> Self {
        let status = ProcessStatus::Failed(reason);
        Self { status, ended_ms: Some(now_ms()), tree: None, kill_at: None }
    }
}

impl Background {
    pub(crate) fn status(&self) -> ProcessStatus {
        self.life.lock().status.clone()
    }

    pub(crate) fn ended_ms(&self) -> Option<u64> {
        self.life.lock().ended_ms
    }

    pub(crate) fn is_live(&self) -> bool {
        self.life.lock().status == ProcessStatus::Running
    }

    fn tree(&self) -> Option<Arc<Tree>> {
        self.life.lock().tree.clone()
    }

    /// Signals everything that came from it. One that is asked to end has [`GRACE`]; who asks must
    /// wake the reactor, which keeps the time.
    pub(crate) fn signal(&self, signal: i32) {
        let Some(tree) = self.tree() else { return };
        match signal {
            SIGKILL => tree.kill(),
            SIGTERM => {
                tree.signal(SIGTERM);
                self.kill_within(GRACE);
            }
            other => tree.signal(other),
        }
    }

    /// Ends it because what it belongs to has ended. Who asks must wake the reactor.
    pub(crate) fn hang_up(&self) {
        let Some(tree) = self.tree() else { return };
        tree.signal(if self.screen.is_some() { SIGHUP } else { SIGTERM });
        // One that is stopped notices only when it goes on.
        tree.signal(SIGCONT);
        self.kill_within(SHORT_GRACE);
    }

    /// Lets it be ended for certain when this time is over, or at the time set before.
    fn kill_within(&self, time: Duration) {
        let at = Instant::now() + time;
        let mut life = self.life.lock();
        life.kill_at = Some(life.kill_at.map_or(at, |before| before.min(at)));
    }

    fn kill_at(&self) -> Option<Instant> {
        self.life.lock().kill_at
    }

    /// Ends what is left if the time has come.
    fn kill_if_due(&self, now: Instant) {
        let mut life = self.life.lock();
        if life.kill_at.is_some_and(|at| at <= now) {
            life.kill_at = None;
            if let Some(tree) = life.tree.clone() {
                drop(life);
                tree.kill();
            }
        }
    }

    /// It has ended; nothing can be done to it any more.
    fn end(&self, status: ProcessStatus) {
        let mut life = self.life.lock();
        life.status = status;
        life.ended_ms = Some(now_ms());
        life.kill_at = None;
        drop(life);
        self.ring.close();
    }

    fn take_tree(&self) -> Option<Arc<Tree>> {
        self.life.lock().tree.take()
    }
}

/// A signal's number, if it is one that can be sent.
pub(crate) fn check_signal(signal: i32) -> Result<(), Failure> {
    match rustix::process::Signal::from_named_raw(signal) {
        Some(_) => Ok(()),
        None => Err(invalid(format!("{signal} is not the number of a signal"))),
    }
}

/// How an end is told to people and in the journal.
pub(crate) fn told(status: &ProcessStatus) -> String {
    match status {
        ProcessStatus::Running => "running".into(),
        ProcessStatus::Exited(code) => format!("exited with {code}"),
        ProcessStatus::Killed(signal) => format!("killed by signal {signal}"),
        ProcessStatus::Failed(reason) => reason.clone(),
    }
}
