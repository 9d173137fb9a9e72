//! Those whose time has come: an end that was set, a lease that nobody renewed, or codebases that were
//! made for sandboxes which nobody made.

use std::time::Duration;

use super::Sandboxes;
use super::reach::blocking;
use crate::problem::Result;
use crate::store::{SandboxRecord, now_ms};

const LOOK: Duration = Duration::from_secs(1);
/// How often what was kept for a while is looked through.
const SWEEP: Duration = Duration::from_secs(10 * 60);
/// How often a lease is renewed while its stream lasts, unless leases are shorter than usual.
const SIGN: Duration = Duration::from_secs(10);

impl Sandboxes {
    /// Keeps a leased sandbox for another while. Returns until when.
    pub fn renew_lease(&self, account: &str, id: &str) -> Result<i64> {
        self.get(account, id)?;
        let until = now_ms() + self.inner.settings.lease.as_millis() as i64;
        self.change(id, |record| record.lease_until_ms = Some(until))?;
        Ok(until)
    }

    /// The same, and from now on it is leased, if it was not made so.
    pub fn bind_lease(&self, account: &str, id: &str) -> Result<i64> {
        self.get(account, id)?;
        let until = now_ms() + self.inner.settings.lease.as_millis() as i64;
        self.change(id, |record| {
            (record.leased, record.lease_until_ms) = (true, Some(until));
        })?;
        Ok(until)
    }

    /// How often who holds a lease by a stream renews it.
    pub fn lease_sign(&self) -> Duration {
        SIGN.min(self.inner.settings.lease / 4)
    }

    /// Forgets answers and journals that were kept long enough, for ever.
    pub async fn keep_house(self) {
        let mut ticks = tokio::time::interval(SWEEP);
        loop {
            ticks.tick().await;
            match self.inner.store.sweep_requests().and_then(|_| self.sweep_journals()) {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "journals were kept long enough"),
                Err(problem) => tracing::warn!(%problem, "old records cannot be swept"),
            }
        }
    }

    /// Destroys what has expired, for ever.
    pub async fn expire(self) {
        loop {
            tokio::time::sleep(LOOK).await;
            self.close_journals();
            let due = self.inner.store.sandboxes_due(now_ms());
            for record in due.unwrap_or_default() {
                self.end_due(&record).await;
            }
            self.give_up_codebases().await;
        }
    }

    async fn end_due(&self, record: &SandboxRecord) {
        // Ending the others may have taken a while, in which its holder came back.
        let Ok(record) = self.get(&record.account, &record.id) else { return };
        let Some(reason) = why_due(&record, now_ms()) else { return };
        tracing::info!(sandbox = record.id, reason, "its time has come");
        if let Err(problem) = self.destroy_because(&record.account, &record.id, reason).await {
            tracing::warn!(sandbox = record.id, %problem, "cannot be destroyed");
        }
    }

    async fn give_up_codebases(&self) {
        let (codebases, idle) = (self.inner.codebases.clone(), self.inner.settings.abandoned);
        match blocking(move || codebases.sweep_abandoned(idle)).await {
            Ok(gone) => gone.iter().for_each(|codebase| {
                tracing::info!(codebase, "no sandbox was made of it; it is deleted");
            }),
            Err(problem) => tracing::warn!(%problem, "abandoned codebases cannot be deleted"),
        }
    }
}

fn why_due(record: &SandboxRecord, now: i64) -> Option<&'static str> {
    let is_over = |time: Option<i64>| time.is_some_and(|time| time <= now);
    match (is_over(record.expires_ms), record.leased && is_over(record.lease_until_ms)) {
        (true, _) => Some("its time was over"),
        (false, true) => Some("its lease has lapsed"),
        (false, false) => None,
    }
}
