//! The deltas and the base side by side.
//!
//! A list of directories still to visit takes the place of recursion: depth costs memory, not
//! stack. Directories are opened one component at a time from their parents and never through
//! symlinks.

use std::collections::{BTreeSet, HashSet};
use std::os::fd::AsFd;
use std::sync::Arc;

use ringfence_policy::{Level, WorkspacePath};
use rustix::fs::{FileType, Stat, fstat};
use rustix::io::{Errno, Result};

use super::compare::{attributes, bits, same_as_origin, same_content};
use super::cover::{first_covered, whiteout_of};
use super::{Change, ChangeKind, EntryKind, LayerView, Origin};
use crate::layers::marks::Stamp;
use crate::layers::stack::{BASE, Found, Leaf, Merged, Part, read_names};

/// A directory of the workspace and the one of the base it is compared with.
struct Dir {
    path: WorkspacePath,
    also: Vec<WorkspacePath>,
    parts: Vec<Arc<Part>>,
    base: Option<Arc<Part>>,
    /// The path of `base`; where there is none, the one it would have.
    place: WorkspacePath,
    /// Whether the directory shows the entries of `base`. If not, it was made anew in its place,
    /// and every entry of `base` it does not have itself is deleted.
    merges: bool,
}

/// What programs see at a name, and the key of the copy in `links/` if that is it.
struct Shown {
    leaf: Leaf,
    link: Option<Vec<u8>>,
}

/// Device and inode.
pub(super) type Identity = (u64, u64);

/// An entry that the base has and the workspace does not, at least not under this name.
pub(super) struct Gone {
    pub(super) change: Change,
    pub(super) was: Found,
}

/// An added entry and what it was copied from.
pub(super) struct New {
    pub(super) change: Change,
    pub(super) stamp: Option<Stamp>,
    pub(super) leaf: Option<Leaf>,
}

#[derive(Default)]
pub(super) struct Seen {
    pub(super) gone: Vec<Gone>,
    pub(super) new: Vec<New>,
    /// Everything that needs no second look.
    pub(super) other: Vec<Change>,
    /// Directories of the base in whose place there is one that does not show them.
    anew: HashSet<WorkspacePath>,
    /// Base files that are still where they were.
    pub(super) kept: HashSet<Identity>,
    /// Base files the layer deleted or renamed and the host took away since.
    pub(super) moved_away: HashSet<Identity>,
}

impl Seen {
    /// Base paths of directories that have another path in the workspace.
    pub(super) fn moved_directories(&self) -> HashSet<WorkspacePath> {
        let from = |change: &Change| match &change.kind {
            ChangeKind::Renamed { from } => Some(from.clone()),
            _ => None,
        };
        self.other.iter().filter_map(from).collect()
    }
}

pub(super) struct Walk<'v> {
    view: &'v LayerView,
    /// Directories of the base that are known to be elsewhere.
    moved: HashSet<WorkspacePath>,
    pending: Vec<(Arc<Dir>, Box<[u8]>)>,
    seen: Seen,
}

impl<'v> Walk<'v> {
    fn new(view: &'v LayerView, moved: HashSet<WorkspacePath>) -> Self {
        Self { view, moved, pending: Vec::new(), seen: Seen::default() }
    }

    /// Where a directory stands in the place of another, that one is deleted or was renamed, and
    /// which it is may be known only at the end. Then everything is looked at once more.
    pub(super) fn see(view: &'v LayerView) -> Result<Seen> {
        let mut first = Self::new(view, HashSet::new());
        first.run()?;
        let moved = first.seen.moved_directories();
        if moved.is_disjoint(&first.seen.anew) {
            return Ok(first.seen);
        }
        let mut second = Self::new(view, moved);
        second.run()?;
        Ok(second.seen)
    }

    fn run(&mut self) -> Result<()> {
        let root = self.view.stack.root()?;
        let base = self.view.base.root()?;
        let dir = Dir {
            path: WorkspacePath::root(),
            also: vec![],
            parts: root.parts,
            base: base.parts.first().cloned(),
            place: WorkspacePath::root(),
            merges: true,
        };
        self.compare_modes(&dir, &root.stat, &base.stat, None);
        self.enter(Arc::new(dir))?;
        while let Some((dir, name)) = self.pending.pop() {
            match self.visit(&dir, &name) {
                // Under a mounted workspace things come and go.
                Err(Errno::NOENT | Errno::STALE) => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Plans a visit to every entry that can differ from the base.
    fn enter(&mut self, dir: Arc<Dir>) -> Result<()> {
        let mut names = BTreeSet::new();
        let everything = !dir.merges || self.view.has_links;
        for part in dir.parts.iter().filter(|part| part.layer != BASE || everything) {
            names.extend(names_in(part)?);
        }
        if let (false, Some(base)) = (dir.merges, &dir.base) {
            names.extend(names_in(base)?);
        }
        self.pending.extend(names.into_iter().map(|name| (dir.clone(), name)));
        Ok(())
    }

    fn visit(&mut self, dir: &Dir, name: &[u8]) -> Result<()> {
        let now = self.view.stack.find(&dir.parts, name)?;
        let was = match &dir.base {
            Some(base) => self.view.base.find(std::slice::from_ref(base), name)?,
            None => Found::Absent,
        };
        match now {
            Found::Absent => self.gone(dir, name, was),
            Found::Leaf(now) => self.leaf(dir, name, now, was),
            Found::Dir(now) => self.dir(dir, name, now, was),
        }
    }

    fn gone(&mut self, dir: &Dir, name: &[u8], was: Found) -> Result<()> {
        let whiteout = match whiteout_of(&dir.parts, name)? {
            Some(whiteout) => self.view.origins.of(&whiteout)?,
            None => None,
        };
        let entry = match &was {
            Found::Absent => {
                self.seen.moved_away.extend(whiteout.map(|stamp| (stamp.dev, stamp.ino)));
                return Ok(());
            }
            Found::Leaf(leaf) => EntryKind::of(leaf.stat.st_mode),
            Found::Dir(_) => EntryKind::Directory,
        };
        let mut change = dir.change(name, entry, ChangeKind::Deleted);
        change.origin.since = first_covered(&dir.parts, name)?;
        change.origin.stamp = match &was {
            Found::Leaf(was) => whiteout.filter(|stamp| is_of(stamp, was)),
            _ => None,
        };
        self.seen.gone.push(Gone { change, was });
        Ok(())
    }

    /// A file with several names can have a copy in a layer above that another of its names was
    /// written to. The names that may be written themselves show it.
    fn follow_links(&self, dir: &Dir, name: &[u8], mut now: Leaf) -> Result<Shown> {
        let mut link = None;
        let level = crate::levels::lowest(self.view.recorded_policy(), &dir.paths_of(name));
        while self.view.has_links && level == Level::Write && now.stat.st_nlink > 1 {
            let key = format!("{:x}-{:x}", now.stat.st_dev, now.stat.st_ino).into_bytes();
            match self.view.link_copy(&key)? {
                Some(copy) if copy.part.layer > now.part.layer => now = copy,
                _ => break,
            }
            link = Some(key);
        }
        Ok(Shown { leaf: now, link })
    }

    fn leaf(&mut self, dir: &Dir, name: &[u8], now: Leaf, was: Found) -> Result<()> {
        let now = self.follow_links(dir, name, now)?;
        match was {
            Found::Leaf(was) if now.leaf.part.layer == BASE => {
                self.seen.kept.insert(identity(&was.stat));
                Ok(())
            }
            Found::Leaf(was) if kind(&was.stat) == kind(&now.leaf.stat) => {
                self.compare_leaves(dir, name, now, &was)
            }
            was => {
                self.gone(dir, name, was)?;
                self.added_leaf(dir, name, now)
            }
        }
    }

    fn added_leaf(&mut self, dir: &Dir, name: &[u8], now: Shown) -> Result<()> {
        let Shown { leaf: now, link } = now;
        let stamp = match kind(&now.stat) {
            FileType::RegularFile => self.view.origins.of(&now)?,
            _ => None,
        };
        let entry = EntryKind::of(now.stat.st_mode);
        let mut change = dir.change(name, entry, ChangeKind::Added);
        change.origin.link = link;
        self.seen.new.push(New { change, stamp, leaf: Some(now) });
        Ok(())
    }

    /// A change is what differs from the origin and from the base as it is now: a copy nobody wrote
    /// to is none, although the host may have changed the base since, and neither is what was
    /// already applied.
    fn compare_leaves(&mut self, dir: &Dir, name: &[u8], now: Shown, was: &Leaf) -> Result<()> {
        let Shown { leaf: now, link } = &now;
        self.seen.kept.insert(identity(&was.stat));
        let entry = EntryKind::of(now.stat.st_mode);
        let stamp = match entry {
            EntryKind::File => self.view.origins.of(now)?.filter(|stamp| is_of(stamp, was)),
            _ => None,
        };
        let base_mode = stamp.as_ref().map(|stamp| stamp.mode);
        let mut change = dir.change(name, entry, ChangeKind::Modified);
        change.origin.since = first_covered(&dir.parts, name)?;
        change.origin.link = link.clone();
        let same = match &stamp {
            Some(stamp) => same_as_origin(now, stamp, was)? || same_content(now, was)?,
            None => same_content(now, was)?,
        };
        change.origin.stamp = stamp;
        if entry != EntryKind::Symlink {
            self.mode_changed(change.clone(), &now.stat, &was.stat, base_mode);
        }
        let settable = entry == EntryKind::File;
        let attributes = |leaf: &Leaf| attributes(&leaf.part, &leaf.name);
        if !same || (settable && attributes(now)? != attributes(was)?) {
            self.seen.other.push(change);
        }
        Ok(())
    }

    fn mode_changed(&mut self, change: Change, now: &Stat, was: &Stat, origin: Option<u32>) {
        let (from, to) = (bits(was), bits(now));
        let origin = origin.map_or(from, |mode| mode & crate::layers::copy::MODE_BITS);
        if to != from && to != origin {
            self.seen.other.push(Change { kind: ChangeKind::Mode { from, to }, ..change });
        }
    }

    fn compare_modes(&mut self, dir: &Dir, now: &Stat, was: &Stat, origin: Option<u32>) {
        self.mode_changed(dir.own_change(ChangeKind::Modified), now, was, origin);
    }

    fn dir(&mut self, dir: &Dir, name: &[u8], now: Merged, was: Found) -> Result<()> {
        let below = now.parts.last().filter(|part| part.layer == BASE).cloned();
        let touched = now.parts.iter().any(|part| part.layer != BASE);
        let mut here = dir.inner(name, &now);
        match below {
            Some(base) => {
                let from = base.path();
                if from != here.place {
                    self.gone(dir, name, was)?;
                    let kind = ChangeKind::Renamed { from: from.clone() };
                    self.seen.other.push(dir.change(name, EntryKind::Directory, kind));
                    here.place = from;
                }
                here.base = Some(base);
            }
            None => match was {
                Found::Dir(was) if !self.moved.contains(&here.place) => {
                    self.seen.anew.insert(here.place.clone());
                    here.base = was.parts.first().cloned();
                    here.merges = false;
                }
                was => {
                    self.gone(dir, name, was)?;
                    let change = dir.change(name, EntryKind::Directory, ChangeKind::Added);
                    self.seen.new.push(New { change, stamp: None, leaf: None });
                }
            },
        }
        if touched {
            self.compare_directories(&here, &now)?;
        }
        if touched || self.view.has_links { self.enter(Arc::new(here)) } else { Ok(()) }
    }

    fn compare_directories(&mut self, here: &Dir, now: &Merged) -> Result<()> {
        let Some(base) = &here.base else { return Ok(()) };
        self.compare_modes(here, &now.stat, &fstat(base.fd()?)?, None);
        let Some(top) = now.parts.first() else { return Ok(()) };
        if attributes(top, b".")? != attributes(base, b".")? {
            self.seen.other.push(here.own_change(ChangeKind::Modified));
        }
        Ok(())
    }
}

impl Dir {
    /// The directory `name` of this one, so far without a counterpart in the base.
    fn inner(&self, name: &[u8], now: &Merged) -> Dir {
        let mut also: Vec<_> = self.also.iter().map(|path| path.join(name)).collect();
        also.extend(now.origins.iter().cloned());
        Dir {
            path: self.path.join(name),
            also,
            parts: now.parts.clone(),
            base: None,
            place: self.place.join(name),
            merges: true,
        }
    }

    fn paths_of(&self, name: &[u8]) -> Vec<WorkspacePath> {
        std::iter::once(&self.path).chain(&self.also).map(|path| path.join(name)).collect()
    }

    fn change(&self, name: &[u8], entry: EntryKind, kind: ChangeKind) -> Change {
        let also = self.also.iter().map(|path| path.join(name)).collect();
        let mut origin = Origin::at(self.place.join(name), also);
        origin.in_new_directory = self.base.is_none();
        Change { path: self.path.join(name), entry, kind, origin }
    }

    fn own_change(&self, kind: ChangeKind) -> Change {
        let origin = Origin::at(self.place.clone(), self.also.clone());
        Change { path: self.path.clone(), entry: EntryKind::Directory, kind, origin }
    }
}

impl Origin {
    fn at(place: WorkspacePath, also: Vec<WorkspacePath>) -> Self {
        let (stamp, since, link, renamed_from, vacated) = (None, None, None, None, None);
        let in_new_directory = false;
        Self { place, in_new_directory, also, stamp, since, link, renamed_from, vacated }
    }
}

/// Whether the stamp is one of this file. It is not where another file was moved over the name, or
/// where the host put a new file in its place; then only the content tells.
fn is_of(stamp: &Stamp, was: &Leaf) -> bool {
    (stamp.dev, stamp.ino) == identity(&was.stat)
}

fn identity(stat: &Stat) -> Identity {
    (stat.st_dev, stat.st_ino)
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// The names a directory of one layer holds, marks and all.
pub(super) fn names_in(part: &Arc<Part>) -> Result<Vec<Box<[u8]>>> {
    let mut names = Vec::new();
    read_names(part.fd()?.as_fd(), |name, _, _| {
        names.push(name.into());
        Ok(())
    })?;
    Ok(names)
}
