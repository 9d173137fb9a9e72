//! Where the files of a sandbox are reached: through its warden while it runs, and on disk otherwise.
//!
//! On disk everything happens in the sandbox's gate, so that it cannot start meanwhile and so that
//! only one at a time has the layer open. Nobody holds the gate while waiting for a caller.

use std::path::PathBuf;
use std::sync::Arc;

use ringfence_fs::files::{Files, View};
use ringfence_fs::layers::format::LayerDir;
use ringfence_fs::offline::{Offline, OfflineOptions, open_offline};
use ringfence_fs::{LayerError, MountError};
use ringfence_policy::Policy;
use tokio::sync::OwnedMutexGuard;

use super::layers::Ground;
use super::{Live, Sandboxes};
use crate::problem::{Code, Problem, Result};
use crate::store::{SandboxRecord, Status};

/// How the files of a sandbox can be reached now.
#[derive(Debug)]
pub(super) enum Reach {
    /// Through the warden that listens here.
    Warden(PathBuf),
    Disk(Box<Held>),
}

/// A sandbox whose gate is taken: it is neither started nor stopped as long as this lives.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) record: SandboxRecord,
    pub(super) live: Arc<Live>,
    _gate: OwnedMutexGuard<()>,
}

/// Its workspace, opened.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) record: SandboxRecord,
    offline: Offline,
    _base: crate::codebases::Pinned,
}

impl Sandboxes {
    pub(super) async fn reach(&self, account: &str, id: &str) -> Result<Reach> {
        if let Ok(socket) = self.socket(account, id) {
            return Ok(Reach::Warden(socket));
        }
        self.reach_in_turn(account, id).await
    }

    /// The same for who found that the warden has gone: whoever ends or starts the sandbox at this
    /// moment gets to the end first.
    pub(super) async fn reach_in_turn(&self, account: &str, id: &str) -> Result<Reach> {
        let held = self.enter(account, id).await?;
        match held.record.status {
            Status::Running => Ok(Reach::Warden(self.dir(id).join("warden.sock"))),
            _ => Ok(Reach::Disk(held.into())),
        }
    }

    /// Takes the gate of a sandbox.
    pub(super) async fn enter(&self, account: &str, id: &str) -> Result<Held> {
        self.get(account, id)?;
        let live = self.live(id);
        let gate = live.gate.clone().lock_owned().await;
        // It may have been destroyed while we waited.
        let record = self.get(account, id)?;
        Ok(Held { record, live, _gate: gate })
    }

    /// For what must not go on while it runs.
    pub(super) async fn enter_stopped(&self, account: &str, id: &str, what: &str) -> Result<Held> {
        let held = self.enter(account, id).await?;
        match held.record.status {
            Status::Running => Err(running(what)),
            _ => Ok(held),
        }
    }

    /// Opens the workspace of one that does not run. Blocks.
    pub(super) fn open(&self, held: &Held) -> Result<Opened> {
        let Ground { record, base, layer } = self.ground(held.record.clone())?;
        let options = OfflineOptions { base: base.path.clone(), layer, mask: base.mask.clone() };
        let offline = open_offline(&options, Arc::new(policy_of(&record)?)).map_err(not_opened)?;
        Ok(Opened { record, offline, _base: base })
    }
}

impl Opened {
    pub(super) fn files(&self, view: View) -> Files {
        self.offline.files(view)
    }

    pub(super) fn layer(&self) -> &LayerDir {
        self.offline.layer()
    }

    pub(super) fn into_layer(self) -> (LayerDir, crate::codebases::Pinned) {
        (self.offline.into_layer(), self._base)
    }
}

/// Rules on record have been checked.
pub(super) fn policy_of(record: &SandboxRecord) -> Result<Policy> {
    Policy::compile(record.rules.clone()).map_err(|e| Problem::internal("read the rules", e))
}

pub(super) fn running(what: &str) -> Problem {
    Problem::new(Code::SandboxRunning, format!("{what} while the sandbox runs: stop it first"))
        .with("status", Status::Running.name())
}

/// Does something with files away from the threads that serve.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|e| Problem::internal("finish", e))?
}

/// Goes on to the end even if whoever asked has gone: what is half done would have to be settled.
pub(super) async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let done = tokio::spawn(work).await;
    done.map_err(|e| Problem::internal("finish", e))?
}

fn not_opened(error: MountError) -> Problem {
    match error {
        MountError::BaseMissing { .. } | MountError::BaseNotADirectory { .. } => {
            Problem::new(Code::Unsupported, "the directory of the codebase is gone")
        }
        MountError::Layer(LayerError::Busy { .. }) => {
            Problem::internal("open the workspace", "its layer is in use by another process")
        }
        other => Problem::internal("open the workspace", other),
    }
}
