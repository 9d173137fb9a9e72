//! Making records and reality agree again, at the start of a server.
//!
//! A warden that answers is taken over as it is. One that does not is ended and cleaned up after.
//! What nobody has on record goes.
//!
//! A snapshot may have been interrupted: then the record of the sandbox follows its layer
//! (`layers.rs`). So may a change of rules: then those on record are put in force.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use ringfence_link::warden::{Reply, Request};

use super::reach::blocking;
use super::{Sandboxes, life, private};
use crate::containers;
use crate::problem::{Problem, Result};
use crate::store::{SandboxRecord, Status};
use crate::wardens::call::Call;
use crate::wardens::end::{clean_up, is_alive};

/// How long a warden may take from its first instruction to its first answer.
const STARTING: Duration = Duration::from_secs(20);

impl Sandboxes {
    /// Returns what was done, in sentences for the log.
    pub async fn reconcile(&self) -> Result<Vec<String>> {
        let mut done = self.reconcile_journals()?;
        let records = self.inner.store.all_sandboxes()?;
        if self.is_of_command() {
            private::sweep(&self.all_dirs(), self.users());
            return Ok(done);
        }
        for record in &records {
            if self.adopt(&record.id).await {
                done.push(format!("{} runs on", record.id));
                if record.status != Status::Running {
                    self.change(&record.id, |record| record.status = Status::Running)?;
                }
                self.settle_running(record.clone(), &mut done).await?;
            } else if record.status == Status::Running {
                let dir = self.dir(&record.id);
                clean_up(&dir, &record.id, self.users());
                self.lost(&record.id, &dir);
                done.push(format!("{} had ended", record.id));
            }
        }
        self.extend_leases(&records)?;
        self.remove_strangers(&records, &mut done).await?;
        let all = self.all_dirs();
        for id in blocking(move || Ok(containers::sweep(&all))).await? {
            done.push(format!("a container of {id} was left; it is removed"));
        }
        for record in self.inner.store.all_sandboxes()? {
            if let Err(problem) = self.settle_layer(record.clone()) {
                done.push(format!("the layer of {} cannot be opened: {problem}", record.id));
            }
        }
        match self.sweep_layers()? {
            0 => {}
            count => done.push(format!("nobody needed {count} layers; they are removed")),
        }
        Ok(done)
    }

    /// While there was no server, nobody could show that they still hold one.
    pub(super) fn extend_leases(&self, records: &[SandboxRecord]) -> Result<()> {
        for record in records.iter().filter(|record| record.leased) {
            self.renew_lease(&record.account, &record.id)?;
        }
        Ok(())
    }

    /// What an interrupted call left undone for one that runs.
    async fn settle_running(&self, record: SandboxRecord, done: &mut Vec<String>) -> Result<()> {
        let record = self.settle_layer(record)?;
        if self.rules_in_force(&record)? != Some(true) {
            let said = self.put_in_force(&record.id, &record.rules).await;
            done.push(format!("the rules of {} were put in force: {}", record.id, said.is_ok()));
        }
        Ok(())
    }

    /// Directories of sandboxes that nobody has on record.
    async fn remove_strangers(
        &self,
        records: &[SandboxRecord],
        done: &mut Vec<String>,
    ) -> Result<()> {
        let known: BTreeSet<&str> = records.iter().map(|record| record.id.as_str()).collect();
        let entries = match std::fs::read_dir(self.all_dirs()) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
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
        Ok(())
    }

    /// Takes over a warden that answers. One that was just being started when the last server ended
    /// is waited for.
    async fn adopt(&self, id: &str) -> bool {
        let dir = self.dir(id);
        let socket = dir.join("warden.sock");
        let deadline = Instant::now() + STARTING;
        loop {
            // Asked first: one that ends in between is not there afterwards either.
            let alive = is_alive(&dir);
            match Call::ask(&socket, Request::Info).await {
                Ok(Reply::Info(info)) => {
                    let (live, pid) = (self.live(id), info.warden_pid);
                    return info.id == id && self.watch(id, &live, *info, pid, None).is_ok();
                }
                _ if !alive || Instant::now() > deadline => return false,
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }
}
