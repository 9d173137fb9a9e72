//! The server of one process: all of its sandboxes end with it, and nothing stays of them.
//!
//! Wardens end with their server however that ends. In order, it destroys them first. After
//! `kill -9` the next server of the same kind finds their directories and finishes it.

use std::path::Path;
use std::time::Duration;

use super::Sandboxes;
use super::life::wait_for_the_last_one;
use crate::problem::{Code, Problem, Result};
use crate::store::SandboxRecord;
use crate::wardens::end::clean_up;

/// How long all of them together may take to end. What takes longer ends without a server, and the
/// next one finds it.
const LONGEST: Duration = Duration::from_secs(30);

impl Sandboxes {
    /// Puts a sandbox on record, unless all are being destroyed.
    pub(super) fn put_on_record(&self, record: &SandboxRecord) -> Result<()> {
        let closed = self.inner.closed.read();
        if *closed {
            return Err(Problem::new(Code::Unsupported, "the server is ending"));
        }
        self.inner.store.insert_sandbox(record, self.inner.settings.most_per_account)
    }

    /// Destroys all, of all accounts, at once. There are none from then on: a call that is still
    /// going on cannot make another.
    pub async fn destroy_all(&self) {
        *self.inner.closed.write() = true;
        let records = self.inner.store.all_sandboxes().unwrap_or_default();
        let mut ends = tokio::task::JoinSet::new();
        for record in records {
            let sandboxes = self.clone();
            ends.spawn(async move { sandboxes.destroy_with_server(&record).await });
        }
        let all = async { while ends.join_next().await.is_some() {} };
        if tokio::time::timeout(LONGEST, all).await.is_err() {
            tracing::warn!("some sandboxes are still ending");
        }
    }

    async fn destroy_with_server(&self, record: &SandboxRecord) {
        let ended = self.destroy_because(&record.account, &record.id, "its server ended").await;
        if let Err(problem) = ended {
            tracing::warn!(sandbox = record.id, %problem, "cannot be destroyed");
        }
    }
}

/// Ends what is left of the sandboxes of a server that was killed, whose state this is. False if one
/// of them still lives: then its files are not to be touched.
pub async fn clean_up_after(state: &Path, users: &Path) -> bool {
    let entries = std::fs::read_dir(state.join("sandboxes")).into_iter().flatten().flatten();
    let mut all_ended = true;
    for dir in entries.map(|entry| entry.path()) {
        // Its warden has noticed that nobody is there any more, and may need a moment.
        if wait_for_the_last_one(&dir).await.is_err() {
            tracing::warn!(dir = %dir.display(), "a warden does not end");
            all_ended = false;
            continue;
        }
        let id = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let users = users.to_owned();
        let cleaned = tokio::task::spawn_blocking(move || clean_up(&dir, &id, &users)).await;
        all_ended &= cleaned.is_ok();
    }
    all_ended
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Caller;
    use crate::codebases::NewCodebase;
    use crate::sandboxes::create::CreateSandbox;
    use crate::store::LOCAL;

    #[tokio::test]
    async fn a_call_that_is_late_makes_no_sandbox_that_would_be_left() {
        let state = tempfile::tempdir().unwrap();
        let sandboxes = crate::sandboxes::audit::tests::sandboxes(state.path(), LONGEST);
        let wanted =
            NewCodebase { name: "n".into(), owner_id: "o".into(), ..NewCodebase::default() };
        let codebase_id = sandboxes.inner.codebases.create(LOCAL, wanted).unwrap().id;
        let wanted = CreateSandbox { codebase_id, ..CreateSandbox::default() };
        let caller = Caller { account: LOCAL.into(), local: true };
        sandboxes.create(&caller, wanted.clone()).unwrap();
        sandboxes.destroy_all().await;
        assert!(sandboxes.create(&caller, wanted).is_err());
        assert_eq!(sandboxes.inner.store.all_sandboxes().unwrap().len(), 0);
    }
}
