//! Which changes the policy lets the agent make.
//!
//! The rules of the mounted workspace hold here too: both names of a rename must be `write`, and
//! an operation on a directory needs `write` on everything in it, in the target as it is now.

use std::collections::HashMap;

use ringfence_policy::{Level, Policy, WorkspacePath};
use rustix::io::Result;

use super::Refusal;
use super::target::{Place, Target};
use crate::changes::{Change, ChangeKind, EntryKind};

/// The changes that may be made, and the others.
pub(super) fn split(
    policy: &Policy,
    target: &Target,
    changes: Vec<Change>,
) -> Result<(Vec<Change>, Vec<Refusal>)> {
    let mut forbidden: HashMap<WorkspacePath, WorkspacePath> = HashMap::new();
    for change in &changes {
        if let Some(because) = obstacle(policy, target, change)? {
            forbidden.insert(change.path.clone(), because);
        }
    }
    spread_to_outer_renames(&changes, &mut forbidden);
    let (mut allowed, mut refused) = (Vec::new(), Vec::new());
    for change in changes {
        match covering(&forbidden, &change.path) {
            Some(because) => refused.push(Refusal { because: because.clone(), change }),
            None => allowed.push(change),
        }
    }
    Ok((allowed, refused))
}

/// The refusal of a path is one of everything below it: a directory that may not be made or moved
/// has no place for its entries. All changes of one path stand or fall together.
fn covering<'f>(
    forbidden: &'f HashMap<WorkspacePath, WorkspacePath>,
    path: &WorkspacePath,
) -> Option<&'f WorkspacePath> {
    let above = std::iter::successors(Some(path.clone()), WorkspacePath::parent);
    above.filter(|path| !path.is_root()).find_map(|path| forbidden.get(&path))
}

/// If a directory may not be moved out of another, that one has to stay too.
fn spread_to_outer_renames(
    changes: &[Change],
    forbidden: &mut HashMap<WorkspacePath, WorkspacePath>,
) {
    let source = |change: &Change| match &change.kind {
        ChangeKind::Renamed { from } => Some(from.clone()),
        _ => None,
    };
    let stay: Vec<_> = changes
        .iter()
        .filter(|change| covering(forbidden, &change.path).is_some())
        .filter_map(source)
        .collect();
    for outer in changes {
        let Some(from) = source(outer) else { continue };
        if let Some(inner) = stay.iter().find(|inner| inner.starts_with(&from)) {
            forbidden.entry(outer.path.clone()).or_insert_with(|| inner.clone());
        }
    }
}

/// A path that would have to be `write` for this change and is not.
fn obstacle(policy: &Policy, target: &Target, change: &Change) -> Result<Option<WorkspacePath>> {
    let mut paths = vec![change.path.clone()];
    paths.extend(change.origin.also.iter().cloned());
    if let ChangeKind::Renamed { from } = &change.kind {
        paths.push(from.clone());
    }
    if let Some(path) = paths.iter().find(|path| policy.level(path) < Level::Write) {
        return Ok(Some(path.clone()));
    }
    let source = match &change.kind {
        ChangeKind::Deleted => &change.origin.place,
        ChangeKind::Renamed { from } if change.entry == EntryKind::Directory => from,
        _ => return Ok(None),
    };
    obstacle_inside(policy, target, source, &paths)
}

fn obstacle_inside(
    policy: &Policy,
    target: &Target,
    source: &WorkspacePath,
    paths: &[WorkspacePath],
) -> Result<Option<WorkspacePath>> {
    if paths.iter().all(|path| policy.subtree(path).min == Level::Write) {
        return Ok(None);
    }
    let Place::Dir(dir) = target.at(source)? else { return Ok(None) };
    let inside = target.scan(&dir)?;
    let mut all = inside.iter().flat_map(|inner| paths.iter().map(|path| inner.below(path)));
    Ok(all.find(|path| policy.level(path) < Level::Write))
}
