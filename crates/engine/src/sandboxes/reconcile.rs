//! Making records and reality agree again, at the start of a server.
//!
//! A warden that answers is taken over as it is. One that does not is ended and cleaned up after.
//! What nobody has on record goes.

use std::collections::BTreeSet;

use ringfence_link::warden::{Reply, Request};

use super::{Sandboxes, life, private};
use crate::problem::{Problem, Result};
use crate::store::Status;
use crate::wardens::call::Call;
use crate::wardens::end::clean_up;

impl Sandboxes {
    /// Returns what was done, in sentences for the log.
    pub async fn reconcile(&self) -> Result<Vec<String>> {
        let mut done = Vec::new();
        let records = self.inner.store.all_sandboxes()?;
        if self.is_private() {
            private::sweep(&self.all_dirs(), self.users());
            return Ok(done);
        }
        for record in &records {
            if self.adopt(&record.id).await {
                done.push(format!("{} runs on", record.id));
                if record.status != Status::Running {
                    self.change(&record.id, |record| record.status = Status::Running)?;
                }
            } else if record.status == Status::Running {
                let dir = self.dir(&record.id);
                clean_up(&dir, &record.id, self.users());
                self.lost(&record.id, &dir);
                done.push(format!("{} had ended", record.id));
            }
        }
        let known: BTreeSet<&str> = records.iter().map(|record| record.id.as_str()).collect();
        let entries = match std::fs::read_dir(self.all_dirs()) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(done),
            Err(e) => return Err(Problem::internal("look at the sandboxes", e)),
        };
        for entry in entries.flatten() {
            let id = entry.file_name().to_string_lossy().into_owned();
            if known.contains(id.as_str()) {
                continue;
            }
            let socket = entry.path().join("warden.sock");
            let _ = Call::ask(&socket, Request::Stop).await;
            clean_up(&entry.path(), &id, self.users());
            life::remove_dir(&entry.path());
            done.push(format!("{id} was on no record and is gone"));
        }
        Ok(done)
    }

    /// Takes over a warden that answers.
    async fn adopt(&self, id: &str) -> bool {
        let socket = self.dir(id).join("warden.sock");
        let Ok(Reply::Info(info)) = Call::ask(&socket, Request::Info).await else { return false };
        let (live, pid) = (self.live(id), info.warden_pid);
        info.id == id && self.watch(id, &live, *info, pid, None).is_ok()
    }
}
