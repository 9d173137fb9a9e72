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
            let before = now_ms();
            tokio::time::sleep(LOOK).await;
            if was_away(before, now_ms(), self.inner.settings.lease) {
                self.give_time();
            }
            self.close_journals();
            let due = self.inner.store.sandboxes_due(now_ms());
            for record in due.unwrap_or_default() {
                self.end_due(&record).await;
            }
            self.give_up_codebases().await;
        }
    }

    /// While the server could not hear anybody, nobody could show that they still hold a lease.
    fn give_time(&self) {
        let given = self.inner.store.all_sandboxes().and_then(|all| self.extend_leases(&all));
        match given {
            Ok(()) => tracing::warn!("this host was asleep; leases last anew"),
            Err(problem) => tracing::warn!(%problem, "leases cannot be extended"),
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

/// Whether a look came so late that holders had no fair chance: the host slept, or its clock was set.
fn was_away(before_ms: i64, now_ms: i64, lease: Duration) -> bool {
    let late = now_ms - before_ms - LOOK.as_millis() as i64;
    late > lease.as_millis() as i64 / 2
}

fn why_due(record: &SandboxRecord, now: i64) -> Option<&'static str> {
    let is_over = |time: Option<i64>| time.is_some_and(|time| time <= now);
    match (is_over(record.expires_ms), record.leased && is_over(record.lease_until_ms)) {
        (true, _) => Some("its time was over"),
        (false, true) => Some("its lease has lapsed"),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_came_much_too_late_was_made_by_a_host_that_slept() {
        let lease = Duration::from_secs(60);
        assert!(!was_away(0, 1_000, lease) && !was_away(0, 31_000, lease));
        assert!(was_away(0, 31_001, lease) && was_away(0, 3_600_000, lease));
        assert!(!was_away(5_000, 0, lease), "a clock that was set back is no reason");
    }

    #[test]
    fn only_what_is_leased_can_lapse() {
        let record = |leased, until, expires_ms| SandboxRecord {
            leased,
            lease_until_ms: until,
            expires_ms,
            ..SandboxRecord::default()
        };
        assert_eq!(why_due(&record(false, Some(5), None), 9), None);
        assert_eq!(why_due(&record(true, Some(10), Some(10)), 9), None);
        assert_eq!(why_due(&record(true, Some(9), None), 9), Some("its lease has lapsed"));
        assert_eq!(why_due(&record(true, Some(5), Some(9)), 9), Some("its time was over"));
    }
}
