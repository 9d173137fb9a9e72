//! Those whose time has come: an end that was set, or a lease that nobody renewed.

use std::time::Duration;

use super::Sandboxes;
use crate::problem::Result;
use crate::store::now_ms;

const LOOK: Duration = Duration::from_secs(1);

impl Sandboxes {
    /// Keeps a leased sandbox for another while. Returns until when.
    pub fn renew_lease(&self, account: &str, id: &str) -> Result<i64> {
        self.get(account, id)?;
        let until = now_ms() + self.inner.settings.lease.as_millis() as i64;
        self.change(id, |record| record.lease_until_ms = Some(until))?;
        Ok(until)
    }

    /// Destroys what has expired, for ever.
    pub async fn expire(self) {
        loop {
            tokio::time::sleep(LOOK).await;
            self.close_journals();
            let due = self.inner.store.sandboxes_due(now_ms());
            for record in due.unwrap_or_default() {
                tracing::info!(sandbox = record.id, "its time has come");
                if let Err(problem) = self.destroy(&record.account, &record.id).await {
                    tracing::warn!(sandbox = record.id, %problem, "cannot be destroyed");
                }
            }
        }
    }
}
