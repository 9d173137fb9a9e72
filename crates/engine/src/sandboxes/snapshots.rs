//! Snapshots: layers that were frozen, and going back to them. Nothing is copied.

use std::os::unix::ffi::OsStrExt;

use ringfence_link::warden::Request;
use ringfence_warden::journal::event::FileCall;

use super::Sandboxes;
use super::ask::problem_of;
use super::layers::{name_of, relative};
use super::reach::{Held, Opened, blocking, to_the_end};
use crate::id::Kind;
use crate::problem::{Code, Problem, Result};
use crate::store::{Listed, Page, SandboxRecord, Snapshot, SnapshotFilter, Status, now_ms};
use crate::wardens::call::Call;

const LONGEST_NAME: usize = 1024;

/// A layer that was frozen, and the one its sandbox goes on in. The record does not say so yet.
#[derive(Debug)]
pub(super) struct Frozen {
    /// As it is on record.
    pub(super) record: SandboxRecord,
    pub(super) layer: String,
    pub(super) next: String,
}

impl Sandboxes {
    pub async fn create_snapshot(&self, account: &str, id: &str, name: &str) -> Result<Snapshot> {
        if name.len() > LONGEST_NAME {
            return Err(Problem::invalid("the name is too long"));
        }
        let (sandboxes, name) = (self.clone(), name.to_owned());
        let (account, id) = (account.to_owned(), id.to_owned());
        to_the_end(async move {
            let held = sandboxes.enter(&account, &id).await?;
            let (frozen, _held) = sandboxes.freeze(held).await?;
            let snapshot = Snapshot {
                id: Kind::Snapshot.random(),
                account: account.clone(),
                sandbox_id: id.clone(),
                codebase_id: frozen.record.codebase_id.clone(),
                codebase_version: frozen.record.codebase_version.unwrap_or_default(),
                name,
                layer_path: relative(&frozen.layer),
                created_ms: now_ms(),
            };
            sandboxes.inner.store.insert_snapshot_of(&snapshot, &frozen.next)?;
            Ok(snapshot)
        })
        .await
    }

    /// Freezes the layer of a sandbox, which goes on in another; running or not. The caller puts that
    /// on record.
    pub(super) async fn freeze(&self, held: Held) -> Result<(Frozen, Held)> {
        match held.record.status {
            Status::Running => self.freeze_running(held).await,
            _ => {
                let sandboxes = self.clone();
                blocking(move || sandboxes.freeze_on_disk(&held).map(|frozen| (frozen, held))).await
            }
        }
    }

    async fn freeze_running(&self, held: Held) -> Result<(Frozen, Held)> {
        let record = held.record.clone();
        let next = Kind::Layer.random();
        let path = self.layer_path(&next).as_os_str().as_bytes().to_vec();
        let socket = self.dir(&record.id).join("warden.sock");
        let asked = Call::ask(&socket, Request::Freeze { path }).await;
        if let Err(error) = asked {
            // It may have come that far all the same.
            let sandboxes = self.clone();
            blocking(move || sandboxes.settle_layer(record).map(drop)).await?;
            return Err(problem_of(error));
        }
        Ok((Frozen { layer: record.layer.clone(), next, record }, held))
    }

    fn freeze_on_disk(&self, held: &Held) -> Result<Frozen> {
        let failed = |e: ringfence_fs::LayerError| Problem::internal("freeze the layer", e);
        let opened: Opened = self.open(held)?;
        let record = opened.record.clone();
        let (mut layer, _base) = opened.into_layer();
        layer.freeze().map_err(failed)?;
        let next = self.fork_layer(layer.path())?;
        self.note(held, FileCall::new("freeze", b"/"));
        Ok(Frozen { layer: record.layer.clone(), next, record })
    }

    pub fn list_snapshots(
        &self,
        account: &str,
        filter: &SnapshotFilter,
        page: &Page,
    ) -> Result<Listed<Snapshot>> {
        self.inner.store.snapshots(account, filter, page)
    }

    /// Refused while sandboxes were made from it or went back to it. Its layer stays for as long as
    /// others stand on that.
    pub async fn delete_snapshot(&self, account: &str, id: &str) -> Result<()> {
        let (sandboxes, account, id) = (self.clone(), account.to_owned(), id.to_owned());
        let delete = move || {
            let inner = &sandboxes.inner;
            let snapshot = inner.store.snapshot(&account, &id)?.ok_or_else(no_snapshot)?;
            if !inner.store.delete_snapshot(&account, &id)? {
                return Err(no_snapshot());
            }
            sandboxes.release_layer(&name_of(&snapshot.layer_path));
            inner.codebases.release(&snapshot.codebase_id, Some(snapshot.codebase_version))
        };
        blocking(delete).await
    }

    /// Back to the files of a snapshot; what was changed since is gone. Programs cannot follow their
    /// files back, so the sandbox must not run.
    pub async fn restore_snapshot(
        &self,
        account: &str,
        id: &str,
        snapshot: &str,
    ) -> Result<SandboxRecord> {
        let (sandboxes, account) = (self.clone(), account.to_owned());
        let (id, snapshot) = (id.to_owned(), snapshot.to_owned());
        to_the_end(async move {
            let what = "a snapshot cannot be restored";
            let held = sandboxes.enter_stopped(&account, &id, what).await?;
            blocking(move || sandboxes.go_back(&held, &snapshot)).await
        })
        .await
    }

    fn go_back(&self, held: &Held, snapshot: &str) -> Result<SandboxRecord> {
        let before = &held.record;
        let snapshot = self.snapshot_of(&before.account, snapshot, &before.codebase_id)?;
        self.note(held, FileCall::new("restore", b"/"));
        // The layer is made when it is needed: the record says on what.
        let record = self.inner.store.stand_on(&before.id, &snapshot, &Kind::Layer.random())?;
        self.release_layer(&before.layer);
        if let Some(version) = before.codebase_version.filter(|v| *v != snapshot.codebase_version) {
            self.inner.codebases.unpin(&before.codebase_id, version)?;
        }
        Ok(record)
    }

    pub(super) fn snapshot_of(&self, account: &str, id: &str, codebase: &str) -> Result<Snapshot> {
        match self.inner.store.snapshot(account, id)? {
            Some(snapshot) if snapshot.codebase_id == codebase => Ok(snapshot),
            Some(_) => Err(Problem::invalid("the snapshot is one of another codebase")),
            None => Err(no_snapshot()),
        }
    }
}

pub(super) fn no_snapshot() -> Problem {
    Problem::new(Code::SnapshotNotFound, "snapshot not found")
}
