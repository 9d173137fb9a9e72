//! Writing changes, each entry complete before it gets its name.
//!
//! Directories that were renamed leave their old places first, innermost first, so that all paths
//! still mean what they meant in the base. Everything else follows in the order of paths: what has
//! to go at a path, then what comes. Permissions of directories are last, since they may forbid to
//! write into them.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use ringfence_policy::WorkspacePath;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Stat, Uid, fstat};
use rustix::io::{Errno, Result};

use super::settle::Settle;
use super::target::{Place, Target};
use crate::changes::compare::{bits, link_target};
use crate::changes::{Change, ChangeKind, EntryKind, LayerView};
use crate::error::LayerError;
use crate::layers::copy;
use crate::layers::stack::{Found, Leaf, Part};

/// What is done at one path. The order is the one in which it happens there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Remove,
    /// A directory that was put aside comes to its new place.
    Place(usize),
    MakeDirectory,
    Put,
    /// Extended attributes of a directory.
    Attributes,
}

pub(super) fn write(
    view: &LayerView,
    target: &Target,
    changes: &[Change],
    settle: Settle<'_>,
) -> std::result::Result<(), LayerError> {
    let mut writer = Writer::new(view, target, changes);
    let failed = |path: &WorkspacePath, e: Errno| {
        let below = std::ffi::OsStr::from_bytes(&path.as_bytes()[1..]);
        LayerError::io("write", &target.path.join(below), e.into())
    };
    writer.move_directories_away().map_err(|(path, e)| failed(&path, e))?;
    for (path, step) in writer.steps() {
        writer.take(&path, step).map_err(|e| failed(&path, e))?;
    }
    for change in changes.iter().rev() {
        writer.set_mode(change).map_err(|e| failed(&change.path, e))?;
    }
    writer.finish().map_err(|e| failed(&WorkspacePath::root(), e))?;
    settle.run(target, changes);
    Ok(())
}

struct Writer<'w> {
    view: &'w LayerView,
    target: &'w Target,
    changes: &'w [Change],
    by_path: HashMap<&'w WorkspacePath, &'w Change>,
    /// Owners of files that are renamed: they keep them.
    owners: HashMap<WorkspacePath, Stat>,
    /// Where directories wait for their new place, and which ones do, as indices of `changes`.
    aside: Option<(Arc<Part>, Vec<u8>)>,
    waiting: Vec<usize>,
    /// Files of the layer with several names that were written, and the first such name.
    linked: HashMap<(u64, u64), WorkspacePath>,
}

impl<'w> Writer<'w> {
    fn new(view: &'w LayerView, target: &'w Target, changes: &'w [Change]) -> Self {
        let holds_content = |change: &&Change| !matches!(change.kind, ChangeKind::Deleted);
        Self {
            view,
            target,
            changes,
            by_path: changes.iter().filter(holds_content).map(|c| (&c.path, c)).collect(),
            owners: owners_of_renamed(target, changes),
            aside: None,
            waiting: vec![],
            linked: HashMap::new(),
        }
    }

    fn move_directories_away(&mut self) -> std::result::Result<(), (WorkspacePath, Errno)> {
        let mut moves: Vec<(usize, &Change, &WorkspacePath)> = Vec::new();
        for (index, change) in self.changes.iter().enumerate() {
            if let (ChangeKind::Renamed { from }, EntryKind::Directory) = (&change.kind, change.entry)
            {
                moves.push((index, change, from));
            }
        }
        moves.sort_by_key(|(_, _, from)| std::cmp::Reverse(from.components().count()));
        for (index, change, from) in moves {
            self.move_away(index, change, from).map_err(|e| (from.clone(), e))?;
        }
        Ok(())
    }

    /// At once to its new place if nothing there is still to change, otherwise aside.
    fn move_away(&mut self, index: usize, change: &Change, from: &WorkspacePath) -> Result<()> {
        let source = self.existing_parent(from)?;
        let name = from.file_name().ok_or(Errno::INVAL)?;
        if self.goes_directly(change)? {
            let (dir, new) = self.parent(&change.path)?;
            return rustix::fs::renameat(source.fd()?, name, dir.fd()?, &new[..]);
        }
        let aside = self.aside()?;
        let number = index.to_string();
        self.waiting.push(index);
        rustix::fs::renameat(source.fd()?, name, aside.fd()?, &number)
    }

    fn goes_directly(&self, change: &Change) -> Result<bool> {
        let Some(parent) = change.path.parent() else { return Ok(false) };
        let moves = |other: &Change| match &other.kind {
            ChangeKind::Renamed { from } => {
                parent.starts_with(from) || parent.starts_with(&other.path)
            }
            ChangeKind::Added => parent.starts_with(&other.path),
            ChangeKind::Deleted => change.path.starts_with(&other.path),
            _ => false,
        };
        let absent = matches!(self.target.at(&change.path)?, Place::Absent);
        let settled = matches!(self.target.at(&parent)?, Place::Dir(_));
        Ok(absent && settled && !self.changes.iter().any(moves))
    }

    fn aside(&mut self) -> Result<Arc<Part>> {
        if let Some((dir, name)) = &self.aside {
            return Ok(Part::below(dir, name));
        }
        let root = self.existing_parent(&WorkspacePath::root().join(b"x"))?;
        let name = temporary_name();
        rustix::fs::mkdirat(root.fd()?, &name, Mode::from(0o700))?;
        let part = Part::below(&root, &name);
        self.aside = Some((root, name));
        Ok(part)
    }

    fn steps(&self) -> Vec<(WorkspacePath, Step)> {
        let mut steps = Vec::new();
        for (index, change) in self.changes.iter().enumerate() {
            let directory = change.entry == EntryKind::Directory;
            let step = match (&change.kind, directory) {
                (ChangeKind::Deleted, _) => Step::Remove,
                (ChangeKind::Renamed { .. }, true) if self.waiting.contains(&index) => {
                    Step::Place(index)
                }
                (ChangeKind::Added, true) => Step::MakeDirectory,
                (ChangeKind::Modified, true) => Step::Attributes,
                (ChangeKind::Mode { .. }, _) | (ChangeKind::Renamed { .. }, true) => continue,
                (_, false) => Step::Put,
            };
            steps.push((change.path.clone(), step));
            steps.extend(change.origin.vacated.clone().map(|path| (path, Step::Remove)));
        }
        steps.sort();
        steps.dedup();
        steps
    }

    fn take(&mut self, path: &WorkspacePath, step: Step) -> Result<()> {
        match step {
            Step::Remove => self.remove(path),
            Step::Place(index) => {
                let aside = self.aside()?;
                let (dir, name) = self.parent(path)?;
                rustix::fs::renameat(aside.fd()?, index.to_string(), dir.fd()?, &name[..])
            }
            Step::MakeDirectory => self.make_directory(path),
            Step::Put => self.put(path),
            Step::Attributes => self.copy_directory_attributes(path),
        }
    }

    fn remove(&self, path: &WorkspacePath) -> Result<()> {
        let name = path.file_name().ok_or(Errno::BUSY)?;
        match self.existing_parent(path) {
            Err(Errno::NOENT) => Ok(()),
            dir => self.target.remove(&dir?, name),
        }
    }

    fn make_directory(&self, path: &WorkspacePath) -> Result<()> {
        let (dir, name) = self.parent(path)?;
        match dir.stat(&name)? {
            Some(stat) if EntryKind::of(stat.st_mode) == EntryKind::Directory => return Ok(()),
            Some(_) => self.target.remove(&dir, &name)?,
            None => {}
        }
        self.make(&dir, &name, path)?;
        self.copy_directory_attributes(path)
    }

    /// A directory as the workspace shows it, for the time being open to us.
    fn make(&self, dir: &Arc<Part>, name: &[u8], path: &WorkspacePath) -> Result<()> {
        let shown = match self.view.stack.resolve(path)? {
            Found::Dir(shown) => bits(&shown.stat),
            _ => 0o755,
        };
        rustix::fs::mkdirat(dir.fd()?, name, Mode::from(0o700))?;
        give_to(dir, name, &fstat(dir.fd()?)?)?;
        let made = Part::below(dir, name);
        rustix::fs::fchmod(made.fd()?, Mode::from(shown | 0o700))
    }

    fn copy_directory_attributes(&self, path: &WorkspacePath) -> Result<()> {
        let Found::Dir(shown) = self.view.stack.resolve(path)? else { return Ok(()) };
        let Place::Dir(there) = self.target.at(path)? else { return Ok(()) };
        let (Some(from), Some(to)) = (shown.parts.first(), there.parts.first()) else {
            return Ok(());
        };
        copy::copy_attributes(from.fd()?, to.fd()?)
    }

    fn put(&mut self, path: &WorkspacePath) -> Result<()> {
        let change = self.by_path.get(path).copied().ok_or(Errno::NOENT)?;
        let Some(content) = self.view.content_of(change)? else { return Err(Errno::NOENT) };
        let (dir, name) = self.parent(path)?;
        let temporary = temporary_name();
        let result = self
            .prepare(change, &content, &dir, &temporary)
            .and_then(|()| rustix::fs::renameat(dir.fd()?, &temporary, dir.fd()?, &name[..]));
        if result.is_err() {
            let _ = rustix::fs::unlinkat(dir.fd()?, &temporary, AtFlags::empty());
        }
        result
    }

    fn prepare(
        &mut self,
        change: &Change,
        content: &Leaf,
        dir: &Arc<Part>,
        temporary: &[u8],
    ) -> Result<()> {
        if self.link_instead(change, content, dir, temporary)? {
            return Ok(());
        }
        let name = change.path.file_name().ok_or(Errno::INVAL)?;
        let replaced = dir.stat(name)?;
        let owner = match (replaced, self.owners.get(&change.path)) {
            (Some(stat), _) => stat,
            (None, Some(stat)) => *stat,
            (None, None) => fstat(dir.fd()?)?,
        };
        match EntryKind::of(content.stat.st_mode) {
            EntryKind::File => self.write_file(change, content, (dir, temporary), &owner, replaced),
            EntryKind::Symlink => {
                rustix::fs::symlinkat(link_target(content)?, dir.fd()?, temporary)?;
                give_to(dir, temporary, &owner)
            }
            EntryKind::Fifo | EntryKind::Socket => {
                let mode = content.stat.st_mode;
                let kind = rustix::fs::FileType::from_raw_mode(mode);
                copy::make_special(dir.fd()?, temporary, kind, mode)?;
                give_to(dir, temporary, &owner)
            }
            EntryKind::Directory | EntryKind::Device => Err(Errno::PERM),
        }
    }

    /// Another name of a file that was just written.
    fn link_instead(
        &mut self,
        change: &Change,
        content: &Leaf,
        dir: &Arc<Part>,
        temporary: &[u8],
    ) -> Result<bool> {
        if content.stat.st_nlink < 2 {
            return Ok(false);
        }
        let id = (content.stat.st_dev, content.stat.st_ino);
        let Some(first) = self.linked.get(&id) else {
            self.linked.insert(id, change.path.clone());
            return Ok(false);
        };
        let source = self.existing_parent(first)?;
        let name = first.file_name().ok_or(Errno::INVAL)?;
        let flags = AtFlags::empty();
        rustix::fs::linkat(source.fd()?, name, dir.fd()?, temporary, flags).map(|()| true)
    }

    fn write_file(
        &self,
        change: &Change,
        content: &Leaf,
        (dir, temporary): (&Arc<Part>, &[u8]),
        owner: &Stat,
        replaced: Option<Stat>,
    ) -> Result<()> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags = flags | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(dir.fd()?, temporary, flags, Mode::from(0o600))?;
        let mut file = File::from(fd);
        let source = copy::open_source(content)?;
        let size = content.stat.st_size as u64;
        copy::copy_content(&source, &mut file, size, size)?;
        copy::copy_attributes(&source, &file)?;
        give_to(dir, temporary, owner)?;
        let kept = replaced.filter(|stat| {
            change.kind == ChangeKind::Modified && EntryKind::of(stat.st_mode) == EntryKind::File
        });
        let mode = bits(&kept.unwrap_or(content.stat));
        rustix::fs::fchmod(&file, Mode::from(mode))?;
        rustix::fs::futimens(&file, &copy::times_of(&content.stat))?;
        ringfence_sys::files::start_writeback(&file);
        Ok(())
    }

    /// Sets the mode the workspace shows, where that is part of the change.
    fn set_mode(&self, change: &Change) -> Result<()> {
        let mode = match (&change.kind, change.entry) {
            (ChangeKind::Mode { to, .. }, _) => *to,
            (ChangeKind::Added, EntryKind::Directory) => {
                match self.view.stack.resolve(&change.path)? {
                    Found::Dir(shown) => bits(&shown.stat),
                    _ => return Ok(()),
                }
            }
            _ => return Ok(()),
        };
        let (dir, name) = match change.path.is_root() {
            true => (self.existing_parent(&WorkspacePath::root().join(b"x"))?, b".".to_vec()),
            false => self.parent(&change.path)?,
        };
        change_mode(&dir, &name, mode)
    }

    fn finish(&self) -> Result<()> {
        if let Some((root, name)) = &self.aside {
            rustix::fs::unlinkat(root.fd()?, &name[..], AtFlags::REMOVEDIR)?;
        }
        self.target.sync()
    }

    /// The directory for an entry, made if the target lacks it, and the entry's name.
    fn parent(&self, path: &WorkspacePath) -> Result<(Arc<Part>, Vec<u8>)> {
        let name = path.file_name().ok_or(Errno::BUSY)?;
        let make = |dir: &Arc<Part>, name: &[u8], path: &WorkspacePath| self.make(dir, name, path);
        Ok((self.target.parent(path, make)?, name.to_vec()))
    }

    fn existing_parent(&self, path: &WorkspacePath) -> Result<Arc<Part>> {
        self.target.parent(path, |_, _, _| Err(Errno::NOENT))
    }
}

fn owners_of_renamed(target: &Target, changes: &[Change]) -> HashMap<WorkspacePath, Stat> {
    let mut owners = HashMap::new();
    for change in changes {
        if let Some(from) = &change.origin.renamed_from {
            if let Ok(Place::Leaf(leaf)) = target.at(from) {
                owners.insert(change.path.clone(), leaf.stat);
            }
        }
    }
    owners
}

/// Only root can give files away; for everybody else they are already whose they must be.
fn give_to(dir: &Arc<Part>, name: &[u8], owner: &Stat) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
    rustix::fs::chownat(dir.fd()?, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
}

/// Through a descriptor that cannot be a symlink: `fchmodat` would follow one.
fn change_mode(dir: &Arc<Part>, name: &[u8], mode: u32) -> Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir.fd()?, name, flags, Mode::empty())?;
    if EntryKind::of(fstat(&fd)?.st_mode) == EntryKind::Symlink {
        return Err(Errno::LOOP);
    }
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd.as_fd()));
    rustix::fs::chmod(path, Mode::from(mode))
}

fn temporary_name() -> Vec<u8> {
    let mut bytes = [0u8; 8];
    // A name that is taken is refused by the call that makes the entry.
    let _ = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    format!(".ringfence-{:016x}", u64::from_ne_bytes(bytes)).into_bytes()
}
