//! Writing changes, each entry complete before it gets its name.
//!
//! Directories that were renamed leave their old places first, innermost first, so that all paths
//! still mean what they meant in the base. Everything else follows in the order of paths: what has
//! to go at a path, then what comes. Permissions of directories are last, since they may forbid to
//! write into them.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use ringfence_policy::WorkspacePath;
use rustix::fs::{AtFlags, Mode, Stat, fstat};
use rustix::io::{Errno, Result};

use super::put::{change_mode, give_to, replace_with_mode, temporary_name};
use super::target::{Place, Target};
use crate::changes::compare::bits;
use crate::changes::{Change, ChangeKind, EntryKind, LayerView};
use crate::error::LayerError;
use crate::layers::copy;
use crate::layers::stack::{Found, Part};

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
    writer.finish().map_err(|e| failed(&WorkspacePath::root(), e))
}

pub(super) struct Writer<'w> {
    pub(super) view: &'w LayerView,
    target: &'w Target,
    changes: &'w [Change],
    pub(super) by_path: HashMap<&'w WorkspacePath, &'w Change>,
    /// Owners of files that are renamed: they keep them.
    pub(super) owners: HashMap<WorkspacePath, Stat>,
    /// Where directories wait for their new place, and which ones do, as indices of `changes`.
    aside: Option<(Arc<Part>, Vec<u8>)>,
    waiting: Vec<usize>,
    /// Files of the layer with several names that were written, and the first such name.
    pub(super) linked: HashMap<(u64, u64), WorkspacePath>,
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
            if let (ChangeKind::Renamed { from }, EntryKind::Directory) =
                (&change.kind, change.entry)
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
            return Part::below(dir, name);
        }
        let root = self.existing_parent(&WorkspacePath::root().join(b"x"))?;
        let name = temporary_name();
        rustix::fs::mkdirat(root.fd()?, &name, Mode::from(0o700))?;
        let part = Part::below(&root, &name)?;
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
        let made = Part::below(dir, name)?;
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
        match self.target.is_base {
            true => change_mode(&dir, &name, mode),
            false => replace_with_mode(&dir, &name, mode),
        }
    }

    fn finish(&self) -> Result<()> {
        if let Some((root, name)) = &self.aside {
            rustix::fs::unlinkat(root.fd()?, &name[..], AtFlags::REMOVEDIR)?;
        }
        self.target.sync()
    }

    /// The directory for an entry, made if the target lacks it, and the entry's name.
    pub(super) fn parent(&self, path: &WorkspacePath) -> Result<(Arc<Part>, Vec<u8>)> {
        let name = path.file_name().ok_or(Errno::BUSY)?;
        let make = |dir: &Arc<Part>, name: &[u8], path: &WorkspacePath| self.make(dir, name, path);
        Ok((self.target.parent(path, make)?, name.to_vec()))
    }

    pub(super) fn existing_parent(&self, path: &WorkspacePath) -> Result<Arc<Part>> {
        self.target.parent(path, |_, _, _| Err(Errno::NOENT))
    }
}

fn owners_of_renamed(target: &Target, changes: &[Change]) -> HashMap<WorkspacePath, Stat> {
    let mut owners = HashMap::new();
    for change in changes {
        let Some(from) = &change.origin.renamed_from else { continue };
        if let Ok(Place::Leaf(leaf)) = target.at(from) {
            owners.insert(change.path.clone(), leaf.stat);
        }
    }
    owners
}
