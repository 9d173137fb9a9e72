//! Those whose time has come: an end that was set, or a lease that nobody renewed.

use std::time::Duration;

use super::Sandboxes;
use crate::problem::Result;
use crate::store::now_ms;

const LOOK: Duration = Duration::from_secs(1);
/// How often what was kept for a while is looked through.
const SWEEP: Duration = Duration::from_secs(10 * 60);

impl Sandboxes {
    /// Keeps a leased sandbox for another while. Returns until when.
    pub fn renew_lease(&self, account: &str, id: &str) -> Result<i64> {
        self.get(account, id)?;
        let until = now_ms() + self.inner.settings.lease.as_millis() as i64;
        self.change(id, |record| record.lease_until_ms = Some(until))?;
        Ok(until)
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
                tracing::info!(sandbox = record.id, "its time has come");
                let expired = record.expires_ms.is_some_and(|time| time <= now_ms());
                let reason = if expired { "its time was over" } else { "its lease has lapsed" };
                let ended = self.destroy_because(&record.account, &record.id, reason).await;
                if let Err(problem) = ended {
                    tracing::warn!(sandbox = record.id, %problem, "cannot be destroyed");
                }
            }
        }
    }
}
