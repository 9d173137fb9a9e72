//! What changed in the target since the layer covered it.
//!
//! In the base itself a stamp says whether an entry is still the very one that was copied or
//! deleted; where there is no stamp, its change time says whether it was touched since. Another
//! directory has other inodes and times: there it must hold what the base holds.

use std::collections::HashSet;

use ringfence_policy::WorkspacePath;
use rustix::fs::Stat;
use rustix::io::Result;

use super::target::{Place, Target};
use super::{Conflict, Reason};
use crate::changes::compare::{bits, hash_of, same_content};
use crate::changes::{Change, ChangeKind, EntryKind, LayerView, Time, made_at};
use crate::layers::copy::MODE_BITS;
use crate::layers::stack::{Found, Leaf, Merged};

pub(super) fn find(view: &LayerView, target: &Target, changes: &[Change]) -> Result<Vec<Conflict>> {
    let check = Check { view, target, sources: sources(changes), made: made(changes) };
    let mut conflicts = Vec::new();
    for change in changes {
        if let Some(reason) = check.reason(change)? {
            conflicts.push(Conflict { path: change.path.clone(), reason });
        }
    }
    conflicts.dedup();
    Ok(conflicts)
}

/// Paths that things are moved away from.
fn sources(changes: &[Change]) -> HashSet<WorkspacePath> {
    let from = |change: &Change| match &change.kind {
        ChangeKind::Renamed { from } => Some(from.clone()),
        _ => None,
    };
    changes.iter().filter_map(from).collect()
}

/// Places that the same apply makes free for something new.
fn made(changes: &[Change]) -> HashSet<WorkspacePath> {
    let deleted = changes.iter().filter(|change| change.kind == ChangeKind::Deleted);
    deleted.map(|change| change.origin.place.clone()).collect()
}

struct Check<'c> {
    view: &'c LayerView,
    target: &'c Target,
    sources: HashSet<WorkspacePath>,
    made: HashSet<WorkspacePath>,
}

impl Check<'_> {
    fn reason(&self, change: &Change) -> Result<Option<Reason>> {
        let there = match self.target.at(&change.origin.place)? {
            _ if change.origin.in_new_directory && self.is_below_freed(&change.origin.place) => {
                Place::Absent
            }
            Place::Blocked(path) if self.is_freed(&path) => Place::Absent,
            Place::Blocked(path) => return Ok(Some(Reason::NotADirectory { path })),
            other => other,
        };
        match &change.kind {
            ChangeKind::Deleted => self.deleted(change, &there),
            ChangeKind::Added => self.added(change, &there),
            ChangeKind::Renamed { from } => self.renamed(change, from, &there),
            ChangeKind::Modified => self.modified(change, &there),
            ChangeKind::Mode { from, to } => Ok(self.mode(change, (*from, *to), &there)),
        }
    }

    fn is_freed(&self, path: &WorkspacePath) -> bool {
        self.made.contains(path) || self.sources.contains(path)
    }

    fn is_below_freed(&self, path: &WorkspacePath) -> bool {
        std::iter::successors(Some(path.clone()), WorkspacePath::parent)
            .any(|path| self.is_freed(&path))
    }

    fn deleted(&self, change: &Change, there: &Place) -> Result<Option<Reason>> {
        match there {
            Place::Leaf(leaf) if !self.is_unchanged(change, leaf)? => Ok(Some(Reason::Changed)),
            Place::Dir(_) if change.entry != EntryKind::Directory => {
                Ok(Some(Reason::DirectoryInTheWay))
            }
            Place::Dir(dir) if self.is_newer(change, dir)? => Ok(Some(Reason::DirectoryInTheWay)),
            Place::Dir(dir) => self.changed_inside(change, dir),
            _ => Ok(None),
        }
    }

    fn added(&self, change: &Change, there: &Place) -> Result<Option<Reason>> {
        match there {
            Place::Dir(_) if change.entry == EntryKind::Directory => Ok(None),
            Place::Absent if change.origin.stamp.is_some() && self.target.is_base => {
                Ok(Some(Reason::Missing))
            }
            _ => self.in_the_way(change, there),
        }
    }

    fn renamed(
        &self,
        change: &Change,
        from: &WorkspacePath,
        there: &Place,
    ) -> Result<Option<Reason>> {
        if let Some(reason) = self.in_the_way(change, there)? {
            return Ok(Some(reason));
        }
        match (self.target.at(from)?, change.entry) {
            (Place::Dir(_), EntryKind::Directory) => Ok(None),
            (_, EntryKind::Directory) => Ok(Some(Reason::SourceMissing { from: from.clone() })),
            (Place::Leaf(leaf), _) if self.matches_stamp(change, from, &leaf)? => Ok(None),
            (Place::Absent, _) if matches!(there, Place::Leaf(_)) => Ok(None),
            (Place::Absent, _) => Ok(Some(Reason::Missing)),
            _ => Ok(Some(Reason::Changed)),
        }
    }

    fn in_the_way(&self, change: &Change, there: &Place) -> Result<Option<Reason>> {
        match there {
            _ if self.is_freed(&change.origin.place) => Ok(None),
            Place::Leaf(leaf) if self.is_done(change, leaf)? => Ok(None),
            Place::Leaf(_) => Ok(Some(Reason::Exists)),
            Place::Dir(_) => Ok(Some(Reason::DirectoryInTheWay)),
            _ => Ok(None),
        }
    }

    fn modified(&self, change: &Change, there: &Place) -> Result<Option<Reason>> {
        if change.origin.renamed_from.is_some() {
            return Ok(None); // the rename of the same file answers for it
        }
        match there {
            Place::Dir(_) if change.entry == EntryKind::Directory => Ok(None),
            Place::Dir(_) => Ok(Some(Reason::DirectoryInTheWay)),
            Place::Leaf(_) if change.entry == EntryKind::Directory => Ok(Some(Reason::Changed)),
            Place::Leaf(leaf) if self.is_done(change, leaf)? => Ok(None),
            Place::Leaf(leaf) if self.is_unchanged(change, leaf)? => Ok(None),
            Place::Leaf(_) => Ok(Some(Reason::Changed)),
            _ => Ok(Some(Reason::Missing)),
        }
    }

    fn mode(&self, change: &Change, (from, to): (u32, u32), there: &Place) -> Option<Reason> {
        let stat = match there {
            Place::Leaf(leaf) => &leaf.stat,
            Place::Dir(dir) => &dir.stat,
            _ => return None,
        };
        let origin = change.origin.stamp.as_ref().map_or(from, |stamp| stamp.mode & MODE_BITS);
        let now = bits(stat);
        let known = now == to || now == origin || (!self.target.is_base && now == from);
        (!known).then_some(Reason::ModeChanged)
    }

    /// Whether the target has what the layer has.
    fn is_done(&self, change: &Change, there: &Leaf) -> Result<bool> {
        match self.view.content_of(change)? {
            Some(content) => same_content(&content, there),
            None => Ok(false),
        }
    }

    fn is_unchanged(&self, change: &Change, there: &Leaf) -> Result<bool> {
        self.matches_stamp(change, &change.origin.place, there)
    }

    /// Whether an entry of the target is what the base had when the layer covered it.
    fn matches_stamp(&self, change: &Change, place: &WorkspacePath, there: &Leaf) -> Result<bool> {
        let origin = &change.origin;
        let regular = EntryKind::of(there.stat.st_mode) == EntryKind::File;
        let hash = origin.stamp.as_ref().and_then(|stamp| stamp.hash).filter(|_| regular);
        if hash.is_some() && hash == Some(hash_of(there)?) {
            return Ok(true);
        }
        if !self.target.is_base {
            return self.is_as_in_base(place, there);
        }
        Ok(match (&origin.stamp, origin.since) {
            (Some(stamp), _) => stamp.is_unchanged(&there.stat),
            (None, Some(since)) => ctime(&there.stat) <= since,
            (None, None) => false,
        })
    }

    fn is_as_in_base(&self, place: &WorkspacePath, there: &Leaf) -> Result<bool> {
        match self.view.base.resolve(place)? {
            Found::Leaf(base) => same_content(&base, there),
            _ => Ok(false),
        }
    }

    /// Whether a directory was made after the layer covered its name: the layer never saw it.
    fn is_newer(&self, change: &Change, dir: &Merged) -> Result<bool> {
        match (dir.parts.first(), change.origin.since) {
            (Some(part), Some(since)) if self.target.is_base => Ok(made_at(part, b".")? > since),
            _ => Ok(false),
        }
    }

    /// Whether somebody worked in a directory of the target that the layer deletes.
    fn changed_inside(&self, change: &Change, dir: &Merged) -> Result<Option<Reason>> {
        let place = &change.origin.place;
        for inner in self.target.scan(dir)? {
            let path = inner.below(place);
            if !self.moves_away(&path) && !self.is_old(change, &path, &inner.stat)? {
                return Ok(Some(Reason::ChangedInside { path }));
            }
        }
        Ok(None)
    }

    fn moves_away(&self, path: &WorkspacePath) -> bool {
        std::iter::successors(Some(path.clone()), WorkspacePath::parent)
            .any(|path| self.sources.contains(&path))
    }

    fn is_old(&self, change: &Change, path: &WorkspacePath, stat: &Stat) -> Result<bool> {
        if self.target.is_base {
            return Ok(change.origin.since.is_some_and(|since| ctime(stat) <= since));
        }
        match (self.target.at(path)?, self.view.base.resolve(path)?) {
            (Place::Leaf(there), Found::Leaf(base)) => same_content(&there, &base),
            (Place::Dir(_), Found::Dir(_)) => Ok(true),
            _ => Ok(false),
        }
    }
}

fn ctime(stat: &Stat) -> Time {
    (stat.st_ctime, stat.st_ctime_nsec as u32)
}
