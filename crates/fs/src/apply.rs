//! Writing a layer's changes back to a directory: all of them, or none.
//!
//! Read top to bottom it is what happens. Changes the policy does not let the agent make are left
//! out (`permit`); the target as it is now is compared with what it was when the layer covered it
//! (`conflicts`); only if nothing is in the way is anything written (`write`), and afterwards the
//! layer is told that the base now has what it has (`settle`).

mod conflicts;
mod permit;
mod put;
mod settle;
mod target;
mod write;

use std::path::{Path, PathBuf};

use ringfence_policy::{Policy, WorkspacePath};

use crate::changes::{Change, LayerView};
use crate::error::LayerError;
use crate::layers::format::LayerDir;
use target::Target;

#[derive(Debug, Default)]
pub struct ApplyOptions {
    /// Where to write; the layer's base if not given.
    pub to: Option<PathBuf>,
    /// Let the layer win where both sides changed.
    pub force: bool,
    /// Find out what would happen and write nothing.
    pub dry_run: bool,
    /// Who may change what; the rules the layer was written under if not given.
    pub policy: Option<Policy>,
}

/// What was done, or would be.
#[derive(Debug)]
pub struct Applied {
    pub target: PathBuf,
    /// Changes that were written, or would have been.
    pub changes: Vec<Change>,
    /// Changes the policy does not allow; never written.
    pub refused: Vec<Refusal>,
    /// If there are any (which `force` does not overrule), nothing was written.
    pub conflicts: Vec<Conflict>,
    pub written: bool,
    /// The base has changed in a way the layer cannot follow: it no longer shows what it showed,
    /// and must not be used any more. Only layers that stand on frozen ones can get there.
    pub stale: bool,
}

#[derive(Debug, Clone)]
pub struct Refusal {
    pub change: Change,
    /// The path that may not be written; not always that of the change.
    pub because: WorkspacePath,
}

/// Why a change cannot be written without losing somebody's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub path: WorkspacePath,
    pub reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("changed in the target too")]
    Changed,
    #[error("its mode was changed in the target too")]
    ModeChanged,
    #[error("was added in the target too")]
    Exists,
    #[error("is a directory in the target")]
    DirectoryInTheWay,
    #[error("was deleted in the target")]
    Missing,
    #[error("deleted here, but {path} in it changed in the target")]
    ChangedInside { path: WorkspacePath },
    #[error("renamed here, but {from} is gone from the target")]
    SourceMissing { from: WorkspacePath },
    #[error("{path} is not a directory in the target, and is not followed")]
    NotADirectory { path: WorkspacePath },
}

impl Reason {
    /// Whether the layer can win by overwriting. It cannot where there is nothing to rename, where
    /// writing would mean to go through a symlink, or to delete a directory it knows nothing of.
    pub fn yields_to_force(&self) -> bool {
        !matches!(
            self,
            Self::SourceMissing { .. } | Self::NotADirectory { .. } | Self::DirectoryInTheWay
        )
    }
}

/// Writes the changes of `layer` and its parents. A live layer must have been opened, not
/// inspected, so that nobody writes to it meanwhile.
pub fn apply(layer: &mut LayerDir, options: &ApplyOptions) -> Result<Applied, LayerError> {
    let plan = Plan::make(layer, options)?;
    let written = plan.conflicts.is_empty() && !options.dry_run;
    let mut stale = false;
    if written {
        write::write(&plan.view, &plan.target, &plan.changes)?;
        if plan.target.is_base {
            settle::settle(&plan.view, layer, &plan.target, &plan.changes);
            stale = !settle::is_settled(layer, &plan.changes, &plan.refused)?;
        }
    }
    Ok(plan.carried_out(written, stale))
}

/// The same for a layer that is mounted, with its programs held still. The base itself cannot be
/// written: what the layer says relative to it would have to change under the nodes that the kernel
/// knows.
pub fn apply_mounted(layer: &LayerDir, options: &ApplyOptions) -> Result<Applied, LayerError> {
    let plan = Plan::make(layer, options)?;
    if plan.target.is_base && !options.dry_run {
        return Err(LayerError::Mounted { path: layer.path().into() });
    }
    let written = plan.conflicts.is_empty() && !options.dry_run;
    if written {
        write::write(&plan.view, &plan.target, &plan.changes)?;
    }
    Ok(plan.carried_out(written, false))
}

/// What there is to do and what is in the way.
struct Plan {
    view: LayerView,
    target: Target,
    changes: Vec<Change>,
    refused: Vec<Refusal>,
    conflicts: Vec<Conflict>,
}

impl Plan {
    fn make(layer: &LayerDir, options: &ApplyOptions) -> Result<Self, LayerError> {
        let view = LayerView::open(layer)?;
        let base = &layer.meta().base;
        let target = Target::open(options.to.as_deref().unwrap_or(base), base)?;
        check_apart(&target.path, layer)?;
        let policy = options.policy.as_ref().unwrap_or(view.recorded_policy());
        let failed = |e: rustix::io::Errno| LayerError::io("compare with", &target.path, e.into());
        let (changes, refused) = permit::split(policy, &target, view.changes()?).map_err(failed)?;
        let mut conflicts = conflicts::find(&view, &target, &changes).map_err(failed)?;
        if options.force {
            conflicts.retain(|conflict| !conflict.reason.yields_to_force());
        }
        Ok(Self { view, target, changes, refused, conflicts })
    }

    fn carried_out(self, written: bool, stale: bool) -> Applied {
        let Self { target, changes, refused, conflicts, .. } = self;
        Applied { target: target.path, changes, refused, conflicts, written, stale }
    }
}

/// A layer written into itself would never end.
fn check_apart(target: &Path, layer: &LayerDir) -> Result<(), LayerError> {
    let mut layers = layer.meta().parents.iter().map(PathBuf::as_path).chain([layer.path()]);
    match layers.find(|layer| target.starts_with(layer)) {
        Some(inside) => Err(LayerError::io(
            "write to",
            target,
            std::io::Error::new(
                std::io::ErrorKind::InvalidInput,
                format!("it is inside the layer {}", inside.display()),
            ),
        )),
        None => Ok(()),
    }
}
