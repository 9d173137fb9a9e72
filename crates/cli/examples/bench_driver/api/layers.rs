//! Forks and snapshots.

use std::time::Instant;

use ringfence_wire::v1;

use super::ask::Copying;
use super::sandboxes::{Shape, destroy, exec, exec_request};
use super::served::Callers;
use crate::order::{Answer, Trouble};
use crate::work::{micros_since, times_of};

/// Each of a new sandbox, since the first one takes the changes out of the live layer.
pub(super) async fn copies(
    callers: &Callers,
    codebase: String,
    copying: Copying,
    files: usize,
    count: usize,
) -> Result<Answer, Trouble> {
    let shape = Shape { codebase, preset: "full-access", start: true };
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let id = shape.create(callers).await?;
        exec(callers, exec_request(&id, &changing(files))).await?;
        let start = Instant::now();
        let copy = copying.make(callers, &id).await?;
        times.push(micros_since(start));
        copying.remove(callers, &copy).await?;
        destroy(callers, &id).await?;
    }
    Ok(times_of("copy", times))
}

/// A command that makes so many files.
fn changing(files: usize) -> [String; 3] {
    let text = format!(
        "mkdir changed && cd changed && i=0; while [ $i -lt {files} ]; do echo $i >$i; i=$((i+1)); done"
    );
    ["/bin/sh".into(), "-c".into(), text]
}

impl Copying {
    /// Its id.
    async fn make(self, callers: &Callers, of: &str) -> Result<String, Trouble> {
        let mut workspace = callers.workspace.clone();
        let sandbox_id = of.to_owned();
        Ok(match self {
            Self::Fork => {
                let request = v1::ForkSandboxRequest { sandbox_id, ..Default::default() };
                workspace.fork_sandbox(request).await?.into_inner().id
            }
            Self::Snapshot => {
                let request = v1::CreateSnapshotRequest { sandbox_id, name: "bench".into() };
                workspace.create_snapshot(request).await?.into_inner().id
            }
        })
    }

    async fn remove(self, callers: &Callers, id: &str) -> Result<(), Trouble> {
        match self {
            Self::Fork => destroy(callers, id).await,
            Self::Snapshot => {
                let request = v1::DeleteSnapshotRequest { snapshot_id: id.into() };
                callers.workspace.clone().delete_snapshot(request).await?;
                Ok(())
            }
        }
    }
}
