//! The stack of layers as one tree: how a name is found and a directory listed.
//!
//! A merged directory is a list of [`Part`]s, one per layer that contributes to it, uppermost
//! first. Everything is reached from a part's descriptor by one component, without following
//! symlinks; no path string of the host is ever walked again after the stack was opened.

use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use ringfence_policy::WorkspacePath;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat, fstat, openat, statat};
use rustix::io::{Errno, Result};

use ringfence_sys::files::getxattr_at;

use super::marks::{self, Lower};
use super::mask::MaskDir;
use super::pool::DirPool;

/// Position of a layer counted from the bottom, so that it stays the same when layers are added
/// on top. The base is 0.
pub type LayerIndex = u16;
pub const BASE: LayerIndex = 0;

/// How long the path of a directory may be: some times what a system call takes, but not so long that
/// what follows parents runs out of stack, or a list of paths out of memory.
pub(crate) const MOST_PATH: usize = 16 * 1024;

/// What a name adds to the length of a path. Depth is bounded with it.
pub(crate) fn length_of(name: &[u8]) -> usize {
    (1 + name.len()).max(8)
}

/// A name in a directory of one layer.
pub type Named = (Arc<Part>, Box<[u8]>);

/// One layer's contribution to a directory. Opened at first use: listing a tree with attributes
/// meets many directories that nobody enters. And closed again when too many are open, since it
/// can be opened anew from its parent (see [`DirPool`]).
#[derive(Debug)]
pub struct Part {
    pub layer: LayerIndex,
    fd: RwLock<Option<Arc<OwnedFd>>>,
    used: AtomicBool,
    is_root: bool,
    /// Where it is opened from; a root has no such place and stays open.
    place: RwLock<Option<Named>>,
    /// How long its path was when it was last given its place; a directory above may have moved.
    length: AtomicUsize,
    pool: Arc<DirPool>,
    mask: OnceLock<Option<Arc<MaskDir>>>,
}

impl Part {
    pub fn root(
        layer: LayerIndex,
        fd: OwnedFd,
        mask: Option<Arc<MaskDir>>,
        pool: &Arc<DirPool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            layer,
            fd: RwLock::new(Some(Arc::new(fd))),
            used: AtomicBool::new(true),
            is_root: true,
            place: RwLock::new(None),
            length: 0.into(),
            pool: pool.clone(),
            mask: OnceLock::from(mask),
        })
    }

    /// The directory `name` of `parent`, to be opened when needed. Programs can make trees that are
    /// deeper than any path is long; what lies deeper than that is out of reach.
    pub fn below(parent: &Arc<Part>, name: &[u8]) -> Result<Arc<Self>> {
        let mut length = parent.length.load(Ordering::Relaxed) + length_of(name);
        if length > MOST_PATH {
            // It may be less by now.
            length = parent.path_length() + length_of(name);
        }
        if length > MOST_PATH {
            return Err(Errno::NAMETOOLONG);
        }
        Ok(Arc::new(Self {
            layer: parent.layer,
            fd: RwLock::new(None),
            used: AtomicBool::new(false),
            is_root: false,
            place: RwLock::new(Some((parent.clone(), name.into()))),
            length: length.into(),
            pool: parent.pool.clone(),
            mask: if parent.layer == BASE { OnceLock::new() } else { OnceLock::from(None) },
        }))
    }

    /// The directory was renamed: from now on it is opened from here.
    pub fn moved(&self, parent: &Arc<Part>, name: &[u8]) {
        *self.place.write() = Some((parent.clone(), name.into()));
        self.length.store(self.path_length(), Ordering::Relaxed);
    }

    /// The directory was removed: another one of its name is not it.
    pub fn removed(&self) {
        *self.place.write() = None;
    }

    pub fn fd(self: &Arc<Self>) -> Result<Arc<OwnedFd>> {
        self.used.store(true, Ordering::Relaxed);
        if let Some(fd) = &*self.fd.read() {
            return Ok(fd.clone());
        }
        let place = self.place.read().clone();
        let (parent, name) = place.ok_or(Errno::BADF)?;
        let opened = Arc::new(open_dir(parent.fd()?.as_fd(), &name)?);
        let fd = self.fd.write().get_or_insert(opened).clone();
        self.pool.opened(self);
        Ok(fd)
    }

    /// Calls with a path by which the kernel finds this directory without walking the host's paths,
    /// and whether its last component may be a symlink that must not be followed.
    pub fn with_proc_path<R>(
        self: &Arc<Self>,
        call: impl FnOnce(&[u8], bool) -> Result<R>,
    ) -> Result<R> {
        let place = self.place.read().clone();
        let (dir, name) = match (self.fd.read().clone(), place) {
            (Some(fd), _) => (fd, None),
            (None, Some((parent, name))) => (parent.fd()?, Some(name)),
            (None, None) => return Err(Errno::BADF),
        };
        let mut path = format!("/proc/self/fd/{}", dir.as_raw_fd()).into_bytes();
        if let Some(name) = &name {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        call(&path, name.is_some())
    }

    /// Closes the descriptor unless it was used since this was last asked. Says if it was closed.
    pub(super) fn close_if_idle(&self) -> bool {
        let idle = !self.used.swap(false, Ordering::Relaxed);
        if idle {
            *self.fd.write() = None;
        }
        idle
    }

    /// The mask that applies to entries of this part; only the base has one.
    fn mask(self: &Arc<Self>) -> Option<&Arc<MaskDir>> {
        let made = self.mask.get_or_init(|| {
            let (parent, name) = self.place.read().clone()?;
            let above = parent.mask()?;
            Some(above.enter(&name, self.fd().ok()?))
        });
        made.as_ref()
    }

    fn is_masked(self: &Arc<Self>, name: &[u8], kind: FileType) -> bool {
        self.layer == BASE
            && self.mask().is_some_and(|mask| mask.hides(name, kind == FileType::Directory))
    }

    /// Only a delta's directory that continues below can hold whiteouts; the others are spared a
    /// look at each of their files. (It may be the last part all the same: in a base used in place
    /// the directory below can disappear.)
    fn holds_whiteouts(self: &Arc<Self>) -> Result<bool> {
        Ok(self.layer != BASE && (self.is_root || marks::continues_below(self.fd()?)))
    }

    /// Where this directory is in its own layer. In the base that is its path before any rename.
    pub(crate) fn path(&self) -> WorkspacePath {
        let names: Vec<_> = self.places().map(|(_, name)| name).collect();
        names.iter().rev().fold(WorkspacePath::root(), |path, name| path.join(name))
    }

    fn path_length(&self) -> usize {
        self.places().map(|(_, name)| length_of(&name)).sum()
    }

    /// Its place, that of its parent, and so on up to the root.
    fn places(&self) -> impl Iterator<Item = Named> {
        let place = |part: &Part| part.place.read().clone();
        std::iter::successors(place(self), move |(parent, _)| place(parent))
    }

    /// Attributes of the directory itself.
    pub fn own_stat(self: &Arc<Self>) -> Result<Stat> {
        let dir = self.fd()?;
        let mut stat = fstat(&dir)?;
        if self.layer != BASE {
            marks::show_dir_mode(&mut stat, |attr, value| rustix::fs::fgetxattr(&dir, attr, value));
        }
        Ok(stat)
    }

    /// Attributes of the entry `name`, or nothing if this part does not have it.
    pub fn stat(self: &Arc<Self>, name: &[u8]) -> Result<Option<Stat>> {
        let dir = self.fd()?;
        match statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(mut stat) => {
                if self.layer != BASE {
                    marks::show_dir_mode(&mut stat, |attr, value| {
                        getxattr_at(&dir, name, attr, value)
                    });
                }
                Ok(Some(stat))
            }
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// Opens a directory without following a symlink. Where it may only be searched and not read
/// (an unprivileged server), a search-only descriptor still serves lookups.
fn open_dir(parent: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(parent, name, flags | OFlags::RDONLY, Mode::empty()) {
        Err(Errno::ACCESS) => openat(parent, name, flags | OFlags::PATH, Mode::empty()),
        other => other,
    }
}

/// Where a name that is not a directory was found.
#[derive(Debug, Clone)]
pub struct Leaf {
    pub part: Arc<Part>,
    pub name: Box<[u8]>,
    pub stat: Stat,
}

/// A directory found by name, with every layer that contributes to it.
#[derive(Debug, Clone)]
pub struct Merged {
    pub parts: Vec<Arc<Part>>,
    /// Attributes of the uppermost part: the ones to show.
    pub stat: Stat,
    /// Device and inode of the lowest part. It stays the same when the directory is copied up, so
    /// it is the directory's identity.
    pub identity: (u64, u64),
    /// Set if the live part says that it continues at another path below.
    pub redirect: Option<WorkspacePath>,
    /// Every path by which this directory was known in some layer below, because it was renamed.
    pub origins: Vec<WorkspacePath>,
}

#[derive(Debug, Clone)]
pub enum Found {
    Absent,
    Leaf(Leaf),
    Dir(Merged),
}

/// One entry of a merged listing.
#[derive(Debug, Clone)]
pub struct Listed {
    pub name: Box<[u8]>,
    pub kind: FileType,
    pub ino: u64,
    /// Index into the parts of the directory: the uppermost one that has the name.
    pub part: usize,
}

/// Roots of all layers, uppermost first.
#[derive(Debug, Clone)]
pub struct Stack {
    roots: Vec<Arc<Part>>,
}

impl Stack {
    pub fn new(roots: Vec<Arc<Part>>) -> Self {
        Self { roots }
    }

    pub fn roots(&self) -> &[Arc<Part>] {
        &self.roots
    }

    /// The layers below `layer`.
    fn roots_below(&self, layer: LayerIndex) -> &[Arc<Part>] {
        let first = self.roots.iter().position(|r| r.layer < layer).unwrap_or(self.roots.len());
        &self.roots[first..]
    }

    /// Puts a new layer on top.
    pub fn push(&mut self, root: Arc<Part>) {
        self.roots.insert(0, root);
    }

    pub fn root(&self) -> Result<Merged> {
        let top = self.roots.first().ok_or(Errno::NOENT)?;
        let stat = top.own_stat()?;
        let identity = identity_of(&self.roots)?;
        Ok(Merged { parts: self.roots.clone(), stat, identity, redirect: None, origins: vec![] })
    }

    /// Finds `name` in the directory made of `parts`.
    pub fn find(&self, parts: &[Arc<Part>], name: &[u8]) -> Result<Found> {
        for (index, part) in parts.iter().enumerate() {
            let Some(stat) = part.stat(name)? else { continue };
            let kind = FileType::from_raw_mode(stat.st_mode);
            if self.hides_below(part, name, &stat, kind)? {
                return Ok(Found::Absent);
            }
            if kind == FileType::Directory {
                return self.merge(parts, index, name, stat).map(Found::Dir);
            }
            return Ok(Found::Leaf(Leaf { part: part.clone(), name: name.into(), stat }));
        }
        Ok(Found::Absent)
    }

    /// Whether an entry says that its name does not exist here or below.
    fn hides_below(
        &self,
        part: &Arc<Part>,
        name: &[u8],
        stat: &Stat,
        kind: FileType,
    ) -> Result<bool> {
        if part.layer == BASE {
            return Ok(part.is_masked(name, kind));
        }
        Ok(marks::is_whiteout(part.fd()?, name, stat))
    }

    /// Collects the parts of the directory `name`, first seen in `parts[first]`.
    fn merge(&self, parts: &[Arc<Part>], first: usize, name: &[u8], stat: Stat) -> Result<Merged> {
        let mut merged = Merged {
            parts: Vec::with_capacity(2),
            stat,
            identity: (stat.st_dev, stat.st_ino),
            redirect: None,
            origins: vec![],
        };
        for (index, part) in parts.iter().enumerate().skip(first) {
            if index > first {
                let Some(stat) = part.stat(name)? else { continue };
                let kind = FileType::from_raw_mode(stat.st_mode);
                if kind != FileType::Directory || self.hides_below(part, name, &stat, kind)? {
                    break;
                }
                merged.identity = (stat.st_dev, stat.st_ino);
            }
            merged.parts.push(Part::below(part, name)?);
            match self.lower_of(part, name)? {
                Lower::SameName => continue,
                Lower::Nothing => break,
                Lower::At(path) => {
                    let live = self.roots.first().is_some_and(|top| top.layer == part.layer);
                    self.continue_at(&mut merged, part.layer, path, live)?;
                    break;
                }
            }
        }
        Ok(merged)
    }

    /// The base is plain files: its attributes are data, never marks.
    fn lower_of(&self, part: &Arc<Part>, name: &[u8]) -> Result<Lower> {
        if part.layer == BASE {
            return Ok(Lower::Nothing);
        }
        Ok(marks::read_lower(part.fd()?, name))
    }

    fn continue_at(
        &self,
        merged: &mut Merged,
        layer: LayerIndex,
        path: WorkspacePath,
        live: bool,
    ) -> Result<()> {
        if let Found::Dir(lower) = self.resolve_below(layer, &path)? {
            merged.parts.extend(lower.parts);
            merged.identity = lower.identity;
            merged.origins.extend(lower.origins);
        }
        merged.origins.push(path.clone());
        if live {
            merged.redirect = Some(path);
        }
        Ok(())
    }

    /// The origins of a directory that continues at `path` below `layer`.
    pub fn origins_below(
        &self,
        layer: LayerIndex,
        path: &WorkspacePath,
    ) -> Result<Vec<WorkspacePath>> {
        let mut origins = match self.resolve_below(layer, path)? {
            Found::Dir(lower) => lower.origins,
            _ => vec![],
        };
        origins.push(path.clone());
        Ok(origins)
    }

    /// What the layers below `layer` show at `path`.
    fn resolve_below(&self, layer: LayerIndex, path: &WorkspacePath) -> Result<Found> {
        let below = self.roots_below(layer);
        let Some(top) = below.first() else { return Ok(Found::Absent) };
        let stat = top.own_stat()?;
        let mut here = Merged {
            parts: below.to_vec(),
            stat,
            identity: identity_of(below)?,
            redirect: None,
            origins: vec![],
        };
        for name in path.components() {
            let above = std::mem::take(&mut here.origins);
            match self.find(&here.parts, name)? {
                Found::Dir(mut next) => {
                    next.origins.extend(above.iter().map(|o| o.join(name)));
                    here = next;
                }
                _ => return Ok(Found::Absent),
            }
        }
        Ok(Found::Dir(here))
    }

    /// What the whole stack shows at `path`. For the owner's calls; the mounted tree walks nodes.
    pub fn resolve(&self, path: &WorkspacePath) -> Result<Found> {
        let mut here = self.root()?;
        let mut names = path.components().peekable();
        while let Some(name) = names.next() {
            match self.find(&here.parts, name)? {
                Found::Dir(next) => here = next,
                leaf if names.peek().is_none() => return Ok(leaf),
                _ => return Ok(Found::Absent),
            }
        }
        Ok(Found::Dir(here))
    }

    /// Lists the directory made of `parts`, in no particular order, without `.` and `..`.
    pub fn list(&self, parts: &[Arc<Part>]) -> Result<Vec<Listed>> {
        let mut seen: HashSet<Box<[u8]>> = HashSet::new();
        let mut listed = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            let last = index + 1 == parts.len();
            let holds_whiteouts = part.holds_whiteouts()?;
            read_names(part.fd()?.as_fd(), |name, kind, ino| {
                if seen.contains(name) {
                    return Ok(());
                }
                let Some(kind) = known_kind(part, name, kind)? else { return Ok(()) };
                let whiteout = holds_whiteouts && is_whiteout_entry(part, name, kind)?;
                if !last {
                    seen.insert(name.into());
                }
                if !whiteout && !part.is_masked(name, kind) {
                    listed.push(Listed { name: name.into(), kind, ino, part: index });
                }
                Ok(())
            })?;
        }
        Ok(listed)
    }
}

fn is_whiteout_entry(part: &Arc<Part>, name: &[u8], kind: FileType) -> Result<bool> {
    if kind != FileType::RegularFile {
        return Ok(false);
    }
    let fd = part.fd()?;
    Ok(part.stat(name)?.is_some_and(|stat| marks::is_whiteout(fd, name, &stat)))
}

fn known_kind(part: &Arc<Part>, name: &[u8], kind: FileType) -> Result<Option<FileType>> {
    if kind != FileType::Unknown {
        return Ok(Some(kind));
    }
    Ok(part.stat(name)?.map(|stat| FileType::from_raw_mode(stat.st_mode)))
}

fn identity_of(parts: &[Arc<Part>]) -> Result<(u64, u64)> {
    let lowest = parts.last().ok_or(Errno::NOENT)?;
    let stat = fstat(lowest.fd()?)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// Calls `each` for the entries of a directory, on a descriptor of its own so that concurrent
/// listings do not share a position.
pub(crate) fn read_names(
    dir: BorrowedFd<'_>,
    mut each: impl FnMut(&[u8], FileType, u64) -> Result<()>,
) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let own = openat(dir, c".", flags, Mode::empty())?;
    let mut buffer = vec![MaybeUninit::uninit(); 32 * 1024];
    let mut entries = RawDir::new(own, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            each(name, entry.file_type(), entry.ino())?;
        }
    }
    Ok(())
}

/// Listings by name, for walks that compare two trees.
pub fn by_name(listed: Vec<Listed>) -> HashMap<Box<[u8]>, Listed> {
    listed.into_iter().map(|entry| (entry.name.clone(), entry)).collect()
}
