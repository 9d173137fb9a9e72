//! Wardens that end by themselves.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ringfence_link::warden::Info;
use tokio::process::Child;

use super::{Live, Running, Sandboxes, private};
use crate::problem::{Problem, Result};
use crate::store::{Status, now_ms};
use crate::wardens::end::{Watched, clean_up};

impl Sandboxes {
    /// Takes note of a warden, and of its end when that comes.
    pub(super) fn watch(
        &self,
        id: &str,
        live: &Arc<Live>,
        info: Info,
        pid: i32,
        child: Option<Child>,
    ) -> Result<()> {
        let watched = Watched::new(pid).map_err(|e| Problem::internal("watch the sandbox", e))?;
        let stopping = Arc::new(AtomicBool::new(false));
        let (tell, ended) = tokio::sync::watch::channel(false);
        let running = Running { info: Arc::new(info), stopping: stopping.clone(), ended };
        *live.warden.lock() = Some(running);
        let (sandboxes, live, id) = (self.clone(), live.clone(), id.to_owned());
        tokio::spawn(async move {
            watched.ended().await;
            if let Some(mut child) = child {
                let _ = child.wait().await;
            }
            let dir = sandboxes.dir(&id);
            let (place, name, users) = (dir.clone(), id.clone(), sandboxes.users().to_owned());
            let is_of_command = sandboxes.is_of_command();
            let cleaned = move || match is_of_command {
                true => private::clean_up(&place, &name, &users),
                false => clean_up(&place, &name, &users),
            };
            let _ = tokio::task::spawn_blocking(cleaned).await;
            *live.warden.lock() = None;
            sandboxes.inner.sessions.lock().retain(|_, sandbox| *sandbox != id);
            let wanted = stopping.load(Ordering::Acquire);
            if !wanted {
                sandboxes.lost(&id, &dir);
            }
            let _ = tell.send(true);
        });
        Ok(())
    }

    /// Puts on record that a warden has ended without being asked to.
    pub(super) fn lost(&self, id: &str, dir: &Path) {
        let reason = how_it_ended(dir).unwrap_or_else(|| "its warden was killed".into());
        tracing::warn!(sandbox = id, reason, "a sandbox was lost");
        self.remember_head(id, dir);
        let changed = self.change(id, |record| {
            if record.status == Status::Running {
                record.status = Status::Error;
                record.reason = Some(reason);
                record.stopped_ms = Some(now_ms());
            }
        });
        if let Err(problem) = changed {
            tracing::debug!(sandbox = id, %problem, "its end is on no record");
        }
    }
}

/// What the last line of the journal says, if it is about the end.
fn how_it_ended(dir: &Path) -> Option<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = std::fs::File::open(dir.join("journal.jsonl")).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(4096))).ok()?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail).ok()?;
    let tail = String::from_utf8_lossy(&tail);
    let event: serde_json::Value = serde_json::from_str(tail.lines().last()?).ok()?;
    let is_end = event["kind"] == "sandbox_ended";
    is_end.then(|| event["reason"].as_str().map(str::to_owned))?
}
