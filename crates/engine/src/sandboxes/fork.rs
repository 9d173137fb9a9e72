//! Another sandbox with the same files. Neither sees what the other does from then on.

use std::collections::BTreeMap;

use super::Sandboxes;
use super::reach::{Held, blocking, to_the_end};
use super::snapshots::Frozen;
use crate::id::Kind;
use crate::problem::Result;
use crate::store::{SandboxRecord, Status, now_ms};

impl Sandboxes {
    /// It has the rules, environment, limits, network and labels of the other, with `labels` over
    /// them; the time it expires at is the same. It is not started. Home and temporary files are not
    /// copied.
    pub async fn fork(
        &self,
        account: &str,
        id: &str,
        labels: BTreeMap<String, String>,
    ) -> Result<SandboxRecord> {
        let (sandboxes, account, id) = (self.clone(), account.to_owned(), id.to_owned());
        to_the_end(async move {
            let held = sandboxes.enter(&account, &id).await?;
            let (frozen, held) = sandboxes.freeze(held).await?;
            blocking(move || sandboxes.stand_beside(frozen, held, labels)).await
        })
        .await
    }

    fn stand_beside(
        &self,
        frozen: Frozen,
        _held: Held,
        labels: BTreeMap<String, String>,
    ) -> Result<SandboxRecord> {
        let Frozen { record, layer, next } = frozen;
        // The record must follow before there is a second layer on the frozen one: after a crash
        // nobody could tell which is whose.
        let original = self.change(&record.id, |record| record.layer = next)?;
        let layer = self.fork_layer(&self.layer_path(&layer))?;
        let forked = forked(original, layer, labels, self.inner.settings.lease.as_millis() as i64);
        if let Err(problem) = self.put_on_record(&forked) {
            self.release_layer(&forked.layer);
            return Err(problem);
        }
        Ok(forked)
    }
}

fn forked(
    original: SandboxRecord,
    layer: String,
    labels: BTreeMap<String, String>,
    lease_ms: i64,
) -> SandboxRecord {
    let now = now_ms();
    SandboxRecord {
        id: Kind::Sandbox.random(),
        labels: original.labels.into_iter().chain(labels).collect(),
        status: Status::Pending,
        reason: None,
        created_ms: now,
        started_ms: None,
        stopped_ms: None,
        lease_until_ms: original.leased.then(|| now + lease_ms),
        layer,
        // Its layer is there, so it needs no snapshot to be made from.
        snapshot_id: None,
        ..original
    }
}
