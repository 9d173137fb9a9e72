//! Which deleted and added entries are one that was renamed.
//!
//! A directory that continues in the base says so itself. A file is recognised by the stamp its
//! copy carries: the device and inode of a base file that is no longer there under its old name.

use std::collections::{HashMap, HashSet};

use ringfence_policy::WorkspacePath;
use rustix::fs::FileType;
use rustix::io::Result;

use super::compare::{bits, hash_of, same_as_origin};
use super::walk::{Gone, Identity, New, Seen};
use super::{Change, ChangeKind, LayerView};
use crate::layers::copy::MODE_BITS;
use crate::layers::marks::Stamp;
use crate::layers::stack::{Found, Leaf, Merged};

/// A base file that is gone, and the change that says so unless its directory went with it.
struct Lost {
    place: WorkspacePath,
    leaf: Leaf,
    gone: Option<usize>,
}

/// Turns what the walk saw into the final list, in no particular order.
pub(super) fn settle(view: &LayerView, seen: Seen) -> Result<Vec<Change>> {
    let moved = seen.moved_directories();
    let Seen { gone, new, other: mut changes, kept, moved_away, .. } = seen;
    let gone: Vec<Gone> =
        gone.into_iter().filter(|gone| !moved.contains(&gone.change.origin.place)).collect();
    let mut lost = lost_files(view, &gone, &new, &moved)?;
    let mut taken = HashSet::new();
    for new in new {
        match find_lost(&mut lost, &new) {
            Some(old) => {
                taken.extend(old.gone);
                renamed(&new, &old, &gone, &mut changes)?;
            }
            None => {
                let orphan = identity(&new.stamp).filter(|id| !kept.contains(id));
                let stayed = orphan.is_some_and(|id| !moved_away.contains(&id));
                if !(stayed && is_as_copied(&new)?) {
                    changes.push(new.into_change(orphan.is_some()));
                }
            }
        }
    }
    let left = gone.into_iter().enumerate().filter(|(index, _)| !taken.contains(index));
    changes.extend(left.map(|(_, gone)| gone.change));
    Ok(changes)
}

/// Whether the layer only copied the file: then that the host has deleted it since is no change of
/// the layer's.
fn is_as_copied(new: &New) -> Result<bool> {
    let (Some(leaf), Some(stamp)) = (&new.leaf, &new.stamp) else { return Ok(false) };
    let same_mode = bits(&leaf.stat) == stamp.mode & MODE_BITS;
    match stamp.hash {
        Some(hash) if same_mode && leaf.stat.st_size as u64 == stamp.size => {
            Ok(hash_of(leaf)? == hash)
        }
        _ => Ok(false),
    }
}

impl New {
    /// `orphan`: what it was copied from is no longer in the base.
    fn into_change(mut self, orphan: bool) -> Change {
        if orphan {
            self.change.origin.stamp = self.stamp;
        }
        self.change
    }
}

/// Base files that are gone and could be what a new file was copied from.
fn lost_files(
    view: &LayerView,
    gone: &[Gone],
    new: &[New],
    moved: &HashSet<WorkspacePath>,
) -> Result<HashMap<Identity, Vec<Lost>>> {
    let mut wanted: HashSet<Identity> = new.iter().filter_map(|new| identity(&new.stamp)).collect();
    let mut lost: HashMap<Identity, Vec<Lost>> = HashMap::new();
    for (index, entry) in gone.iter().enumerate() {
        if let Found::Leaf(leaf) = &entry.was {
            let id = (leaf.stat.st_dev, leaf.stat.st_ino);
            let place = entry.change.origin.place.clone();
            wanted.remove(&id);
            lost.entry(id).or_default().push(Lost { place, leaf: leaf.clone(), gone: Some(index) });
        }
    }
    for entry in gone {
        if let (Found::Dir(dir), false) = (&entry.was, wanted.is_empty()) {
            search(view, dir, &wanted, moved, &mut lost)?;
        }
    }
    Ok(lost)
}

/// Looks through a deleted directory of the base, by attributes only.
fn search(
    view: &LayerView,
    dir: &Merged,
    wanted: &HashSet<Identity>,
    moved: &HashSet<WorkspacePath>,
    lost: &mut HashMap<Identity, Vec<Lost>>,
) -> Result<()> {
    let mut pending = vec![dir.clone()];
    while let Some(dir) = pending.pop() {
        let Some(part) = dir.parts.first() else { continue };
        if moved.contains(&part.path()) {
            continue;
        }
        for entry in view.base.list(&dir.parts)? {
            if entry.kind == FileType::Directory {
                if let Found::Dir(inner) = view.base.find(&dir.parts, &entry.name)? {
                    pending.push(inner);
                }
                continue;
            }
            let Found::Leaf(leaf) = view.base.find(&dir.parts, &entry.name)? else { continue };
            let id = (leaf.stat.st_dev, leaf.stat.st_ino);
            if wanted.contains(&id) {
                let place = part.path().join(&entry.name);
                lost.entry(id).or_default().push(Lost { place, leaf, gone: None });
            }
        }
    }
    Ok(())
}

fn identity(stamp: &Option<Stamp>) -> Option<Identity> {
    stamp.as_ref().map(|stamp| (stamp.dev, stamp.ino))
}

fn find_lost(lost: &mut HashMap<Identity, Vec<Lost>>, new: &New) -> Option<Lost> {
    lost.get_mut(&identity(&new.stamp)?)?.pop()
}

/// One rename, and whatever else happened to the file.
fn renamed(new: &New, old: &Lost, gone: &[Gone], changes: &mut Vec<Change>) -> Result<()> {
    let mut change = new.change.clone();
    change.kind = ChangeKind::Renamed { from: old.place.clone() };
    change.origin.stamp = new.stamp.clone();
    change.origin.renamed_from = Some(old.place.clone());
    change.origin.vacated = old.gone.map(|index| gone[index].change.path.clone());
    if let (Some(now), Some(stamp)) = (&new.leaf, &new.stamp) {
        if !same_as_origin(now, stamp, &old.leaf)? {
            changes.push(Change { kind: ChangeKind::Modified, ..change.clone() });
        }
        let (from, to) = (stamp.mode & MODE_BITS, bits(&now.stat));
        if from != to {
            changes.push(Change { kind: ChangeKind::Mode { from, to }, ..change.clone() });
        }
    }
    changes.push(change);
    Ok(())
}
