//! Sandboxes: what is wanted of them, and making it so.
//!
//! The record says what a sandbox should be; its warden is what it is. Everything that changes both
//! goes through one gate per sandbox, so that no two starts, stops or ends of the same one meet.
//!
//! | file | what is in it |
//! |---|---|
//! | [`create`] | what can be asked for, and what is refused |
//! | [`life`] | start, stop, destroy |
//! | [`private`] | the server of one command |
//! | [`owned`] | the server of one process |
//! | [`watch`] | wardens that end by themselves |
//! | [`expiry`] | those whose time has come, and leases |
//! | [`reconcile`] | making records and reality agree again, at the start of a server |
//! | [`ask`] | what runs inside |
//! | [`recordings`] | what terminals showed |
//! | [`journals`], [`audit`] | the record of what happened, also after the end; reading and verifying it |
//! | [`reach`] | its files: through the warden while it runs, on disk otherwise |
//! | [`files`], [`contents`] | calls about files, in every state |
//! | [`changes`], [`apply`], [`applied`] | what was changed, writing it back, and doing so again |
//! | [`layers`] | where layers are, and which of them are needed |
//! | [`snapshots`], [`fork`] | layers that stay, and what stands on them |
//! | [`rules`] | the policy: changing and explaining it |
//! | [`record`] | the journal of one that does not run |

mod applied;
pub mod apply;
pub mod ask;
pub mod audit;
pub mod changes;
pub mod contents;
pub mod create;
pub mod expiry;
pub mod files;
pub mod fork;
mod journals;
mod layers;
pub mod life;
pub mod owned;
mod private;
mod reach;
pub mod reconcile;
mod record;
mod recordings;
pub mod rules;
pub mod snapshots;
mod watch;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use ringfence_link::warden::Info;
use tokio::sync::Mutex as Gate;

use crate::codebases::Codebases;
use crate::problem::{Code, Problem, Result};
use crate::store::{Listed, Page, SandboxFilter, SandboxRecord, Status, Store};

/// What a server is told about sandboxes.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where everything is kept.
    pub state: PathBuf,
    pub belongs: Belongs,
    /// Whether sandboxes may have the network of the host. Not while this server answers anybody
    /// on that network.
    pub host_network: bool,
    /// Whether images are fetched that the container engine does not have.
    pub fetch_images: bool,
    /// The one binary, which is started as the warden.
    pub program: PathBuf,
    /// Where users are allotted from, if the server runs as root.
    pub users: PathBuf,
    /// How many an account may have.
    pub most_per_account: usize,
    /// Without a sign of life for so long, a leased sandbox is destroyed.
    pub lease: std::time::Duration,
    /// Without a sandbox or a call to send something for so long, a fleeting codebase is deleted.
    pub abandoned: std::time::Duration,
    /// How long the journal of a sandbox is kept after its end.
    pub journals_kept: std::time::Duration,
}

/// Whose a server is, and so what outlives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Belongs {
    /// The host's: sandboxes run on, and the next server takes them over.
    Host,
    /// One command's: its sandboxes are in this directory, among others that it has no record of.
    /// They end with it, and what they changed stays.
    Command(PathBuf),
    /// One process's: sandboxes end with it, and nothing stays.
    Process,
}

/// All sandboxes of this server. Clones are the same.
#[derive(Debug, Clone)]
pub struct Sandboxes {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: Settings,
    store: Store,
    codebases: Codebases,
    live: Mutex<HashMap<String, Arc<Live>>>,
    /// Where sessions were found; a sandbox that ends takes its own out.
    sessions: Mutex<HashMap<String, String>>,
    /// Held by whoever puts a layer on another one or takes one away, for moments.
    layers: Mutex<()>,
    /// All are about to be destroyed: nobody may put another one on record.
    closed: RwLock<bool>,
}

/// What is known of a sandbox beside its record.
#[derive(Debug, Default)]
struct Live {
    gate: Arc<Gate<()>>,
    warden: Mutex<Option<Running>>,
    /// Open while callers use the files of one that does not run.
    journal: Mutex<Option<record::Kept>>,
}

/// A warden that answers.
#[derive(Debug, Clone)]
struct Running {
    info: Arc<Info>,
    /// Says that its end is wanted.
    stopping: Arc<std::sync::atomic::AtomicBool>,
    /// Signals when its end has been dealt with.
    ended: tokio::sync::watch::Receiver<bool>,
}

impl Sandboxes {
    pub fn new(settings: Settings, store: Store, codebases: Codebases) -> Self {
        let (live, sessions, layers) = (Mutex::default(), Mutex::default(), Mutex::default());
        let closed = RwLock::new(false);
        let inner = Inner { settings, store, codebases, live, sessions, layers, closed };
        Self { inner: Arc::new(inner) }
    }

    pub fn get(&self, account: &str, id: &str) -> Result<SandboxRecord> {
        self.inner.store.sandbox(account, id)?.ok_or_else(not_found)
    }

    pub fn list(
        &self,
        account: &str,
        filter: &SandboxFilter,
        page: &Page,
    ) -> Result<Listed<SandboxRecord>> {
        self.inner.store.sandboxes(account, filter, page)
    }

    /// How many there are, of all accounts.
    pub fn count_by_status(&self) -> Result<Vec<(&'static str, usize)>> {
        let records = self.inner.store.all_sandboxes()?;
        let count = |status| records.iter().filter(|record| record.status == status).count();
        Ok(Status::ALL.into_iter().map(|status| (status.name(), count(status))).collect())
    }

    /// What is in force, of one that runs.
    pub fn info(&self, id: &str) -> Option<Arc<Info>> {
        let live = self.inner.live.lock().get(id).cloned()?;
        let running = live.warden.lock().clone()?;
        Some(running.info)
    }

    /// The directory of a sandbox on this host.
    pub fn dir(&self, id: &str) -> PathBuf {
        self.all_dirs().join(id)
    }

    fn all_dirs(&self) -> PathBuf {
        match &self.inner.settings.belongs {
            Belongs::Command(all) => all.clone(),
            Belongs::Host | Belongs::Process => self.inner.settings.state.join("sandboxes"),
        }
    }

    fn is_of_command(&self) -> bool {
        matches!(self.inner.settings.belongs, Belongs::Command(_))
    }

    /// Where the warden of one that runs listens.
    pub fn socket(&self, account: &str, id: &str) -> Result<PathBuf> {
        let record = self.get(account, id)?;
        match record.status {
            Status::Running => Ok(self.dir(id).join("warden.sock")),
            status => Err(not_running(status, record.reason.as_deref())),
        }
    }

    fn live(&self, id: &str) -> Arc<Live> {
        self.inner.live.lock().entry(id.into()).or_default().clone()
    }

    fn users(&self) -> &Path {
        &self.inner.settings.users
    }
}

fn not_found() -> Problem {
    Problem::new(Code::SandboxNotFound, "sandbox not found")
}

fn not_running(status: Status, reason: Option<&str>) -> Problem {
    let message = match (status, reason) {
        (Status::Error, Some(reason)) => format!("the sandbox is not running: {reason}"),
        _ => format!("the sandbox is not running: it is {}", status.name()),
    };
    Problem::new(Code::SandboxNotRunning, message).with("status", status.name())
}
