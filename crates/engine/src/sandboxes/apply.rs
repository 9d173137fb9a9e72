//! Writing what was changed in a workspace back to its codebase.
//!
//! A stored codebase gets a new version: the newest one, with the changes; nobody who stands on a
//! version sees it change, and so the sandbox may run meanwhile (it is held still for a moment). A
//! directory used in place is the very one that a running sandbox looks at, so for that it must be
//! stopped. To end somebody's programs is not ours to decide.

use std::path::{Path, PathBuf};

use ringfence_fs::apply::{self, ApplyOptions};
use ringfence_fs::changes::{Change, ChangeKind, EntryKind};
use ringfence_link::files::{Applied, Apply, Conflict, LayerChange};
use ringfence_link::warden::{Reply, Request};
use ringfence_warden::files::convert::{change_to_link, changes_to_link};
use ringfence_warden::journal::event::FileCall;

use super::Sandboxes;
use super::applied::OwnWork;
use super::ask::problem_of;
use super::changes::{collect_changes, not_compared};
use super::reach::{Held, Reach, blocking, policy_of, running, to_the_end};
use crate::problem::{Code, Problem, Result};
use crate::store::SandboxRecord;
use crate::wardens::call::Call;

/// Paths named in one refusal: details of errors travel in headers.
const MOST_NAMED: usize = 20;

/// What was done, or would be.
#[derive(Debug)]
pub struct Outcome {
    pub changes: Vec<LayerChange>,
    /// Not there unless this was only tried: conflicts are a problem otherwise.
    pub conflicts: Vec<Conflict>,
    pub refused: Vec<LayerChange>,
    pub written: bool,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct ApplyHow {
    /// Let the workspace win where both sides changed.
    pub force: bool,
    /// Find out what would happen and write nothing.
    pub dry_run: bool,
}

impl Sandboxes {
    /// Nothing is written if there are conflicts.
    pub async fn apply(&self, account: &str, id: &str, how: ApplyHow) -> Result<Outcome> {
        let record = self.get(account, id)?;
        let codebase = self.inner.codebases.get(account, &record.codebase_id)?;
        let (sandboxes, account, id) = (self.clone(), account.to_owned(), id.to_owned());
        let in_place = codebase.local_path.is_some();
        let outcome = to_the_end(async move {
            match sandboxes.reach(&account, &id).await? {
                Reach::Warden(_) if in_place && !how.dry_run => {
                    Err(running("changes cannot be written to a directory used in place"))
                }
                Reach::Warden(socket) if in_place => ask(&socket, None, how).await,
                Reach::Warden(socket) => sandboxes.apply_running(record, socket, how).await,
                Reach::Disk(held) => {
                    blocking(move || sandboxes.apply_on_disk(&held, in_place, how)).await
                }
            }
        })
        .await?;
        refuse_conflicts(&outcome, how)?;
        Ok(outcome)
    }

    /// To a stored codebase.
    async fn apply_running(
        &self,
        record: SandboxRecord,
        socket: PathBuf,
        how: ApplyHow,
    ) -> Result<Outcome> {
        let (sandboxes, handle) = (self.clone(), tokio::runtime::Handle::current());
        let write = move || {
            let ask = |tree: &Path, how| handle.block_on(ask(&socket, Some(tree), how));
            sandboxes.apply_to_newest(&record, how, ask)
        };
        blocking(write).await
    }

    fn apply_on_disk(&self, held: &Held, in_place: bool, how: ApplyHow) -> Result<Outcome> {
        let opened = self.open(held)?;
        let record = opened.record.clone();
        let (mut layer, _base) = opened.into_layer();
        let on_snapshots = !layer.meta().parents.is_empty();
        let mut apply = |to: Option<&Path>, how: ApplyHow| {
            let (to, policy) = (to.map(Path::to_path_buf), Some(policy_of(&record)?));
            let options = ApplyOptions { to, force: how.force, dry_run: how.dry_run, policy };
            apply::apply(&mut layer, &options).map_err(not_compared)
        };
        if in_place && !how.dry_run {
            refuse_if_stranded(&apply(None, ApplyHow { dry_run: true, ..how })?, on_snapshots)?;
        }
        let outcome = match in_place {
            true => apply(None, how).map(Outcome::of)?,
            false => self.apply_to_newest(&record, how, |tree, how| {
                apply(Some(tree), how).map(Outcome::of)
            })?,
        };
        self.note(held, FileCall::new("apply", b"/"));
        Ok(outcome)
    }

    /// Lets `write` write to the next version of the codebase, or try that. What this sandbox wrote
    /// before is taken back first, so that it is neither in the way nor left over.
    fn apply_to_newest(
        &self,
        record: &SandboxRecord,
        how: ApplyHow,
        mut write: impl FnMut(&Path, ApplyHow) -> Result<Outcome>,
    ) -> Result<Outcome> {
        let (codebases, id) = (&self.inner.codebases, &record.codebase_id);
        let own = OwnWork::load(&self.dir(&record.id));
        if how.dry_run && own.is_empty() {
            return codebases.with_newest(&record.account, id, |tree| write(tree, how));
        }
        let (written, outcome) = codebases.revise(&record.account, id, |tree| {
            let taken_back = own.take_back(codebases, record, tree)?;
            let outcome = write(tree, how)?;
            let changed = outcome.written && (taken_back || !outcome.changes.is_empty());
            Ok((changed, (changed, outcome)))
        })?;
        if written {
            own.remember(codebases, record, &outcome.changes);
        }
        Ok(outcome)
    }
}

/// A layer on snapshots cannot follow a base in which directories were renamed, unless all it shows
/// is in the base afterwards. What the policy forbids would be lost.
fn refuse_if_stranded(tried: &apply::Applied, on_snapshots: bool) -> Result<()> {
    let moved = |change: &Change| {
        change.entry == EntryKind::Directory && matches!(change.kind, ChangeKind::Renamed { .. })
    };
    if !on_snapshots || tried.refused.is_empty() || !tried.changes.iter().any(moved) {
        return Ok(());
    }
    Err(Problem::new(
        Code::Unsupported,
        "the workspace stands on snapshots, renames directories and has changes its policy forbids: \
         they would be lost",
    )
    .with("hint", "undo the forbidden changes, or allow them, and apply again"))
}

/// Asks a warden to write; to the base itself if no other directory is given.
async fn ask(socket: &Path, to: Option<&Path>, how: ApplyHow) -> Result<Outcome> {
    let to = to.map(|path| path.as_os_str().as_encoded_bytes().to_vec());
    let apply = Apply { force: how.force, dry_run: how.dry_run, to };
    let call = Call::begin(socket, Request::Apply(apply)).await.map_err(problem_of)?;
    match collect_changes(call).await? {
        (changes, Reply::Applied(Applied { refused, conflicts, written })) => Ok(Outcome {
            changes,
            conflicts,
            refused: refused.into_iter().map(|(change, _)| change).collect(),
            written,
        }),
        (_, other) => Err(Problem::internal("understand the sandbox", format!("{other:?}"))),
    }
}

impl Outcome {
    fn of(applied: apply::Applied) -> Self {
        let conflict = |conflict: &apply::Conflict| Conflict {
            path: conflict.path.as_bytes().to_vec(),
            reason: conflict.reason.to_string(),
            yields_to_force: conflict.reason.yields_to_force(),
        };
        Self {
            changes: changes_to_link(&applied.changes),
            conflicts: applied.conflicts.iter().map(conflict).collect(),
            refused: applied.refused.iter().map(|r| change_to_link(&r.change)).collect(),
            written: applied.written,
        }
    }
}

fn refuse_conflicts(outcome: &Outcome, how: ApplyHow) -> Result<()> {
    if outcome.conflicts.is_empty() || how.dry_run {
        return Ok(());
    }
    let shown = |conflict: &Conflict| {
        format!("{}: {}", String::from_utf8_lossy(&conflict.path), conflict.reason)
    };
    let path = |conflict: &Conflict| String::from_utf8_lossy(&conflict.path).into_owned();
    let named = &outcome.conflicts[..outcome.conflicts.len().min(MOST_NAMED)];
    let paths: Vec<String> = named.iter().map(path).collect();
    let reasons: Vec<String> = named.iter().map(shown).collect();
    let message = "the codebase was changed in the same places; nothing was written";
    let forceable = outcome.conflicts.iter().all(|conflict| conflict.yields_to_force);
    Err(Problem::new(Code::ApplyConflict, message)
        .with("paths", paths.join("\n"))
        .with("reasons", reasons.join("\n"))
        .with("conflict_count", outcome.conflicts.len().to_string())
        .with("yields_to_force", forceable.to_string()))
}
