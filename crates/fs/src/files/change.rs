//! Making, removing and moving names.

use ringfence_policy::WorkspacePath;
use rustix::fs::FileType;
use rustix::io::{Errno, Result};

use super::Entry;
use super::call::{Call, Held};
use super::resolve::{Absent, Found, Last, Spot};
use crate::tree::{Attr, NodeId, SoleTurn};

/// Mode of a new directory for which none is given.
pub(super) const DIRECTORY_MODE: u32 = 0o755;

/// A directory that is being removed with everything in it.
struct Doomed {
    dir: NodeId,
    name: Box<[u8]>,
    node: Held,
    /// Not looked at yet.
    inner: Vec<Inner>,
}

/// An entry of a directory.
type Inner = (Box<[u8]>, Held, Attr);

impl Call {
    pub(super) fn mkdir(
        &self,
        path: &WorkspacePath,
        mode: Option<u32>,
        parents: bool,
    ) -> Result<Entry> {
        let Absent { mut dir, name, rest } = match self.resolve(path, Last::Keep)? {
            Spot::Absent(absent) if parents || absent.rest.is_empty() => absent,
            Spot::Absent(_) => return Err(Errno::NOENT),
            Spot::Above(_) | Spot::Found(_) if parents => return self.existing_dir(path),
            Spot::Above(_) | Spot::Found(_) => return Err(Errno::EXIST),
        };
        let mode = mode.unwrap_or(DIRECTORY_MODE);
        for name in std::iter::once(name).chain(rest) {
            dir = match parents {
                true => self.enter_or_make(&dir, &name, mode)?,
                false => self.make(&dir, &name, mode)?,
            };
        }
        self.entry(path.clone(), dir.id, &self.nodes.getattr(dir.id)?)
    }

    fn existing_dir(&self, path: &WorkspacePath) -> Result<Entry> {
        let (node, attr) = self.resolve(path, Last::Follow)?.existing(self)?;
        match attr.kind {
            FileType::Directory => self.entry(path.clone(), node.id, &attr),
            _ => Err(Errno::EXIST),
        }
    }

    /// A directory that somebody may have made meanwhile.
    pub(super) fn enter_or_make(&self, dir: &Held, name: &[u8], mode: u32) -> Result<Held> {
        match self.find(dir.id, name)? {
            Some((node, attr)) if attr.kind == FileType::Directory => Ok(node),
            Some(_) => Err(Errno::NOTDIR),
            None => self.make(dir, name, mode),
        }
    }

    fn make(&self, dir: &Held, name: &[u8], mode: u32) -> Result<Held> {
        let turn = self.tree.alone(&[dir.id]);
        let made = self.hold(self.nodes.mkdir((dir.id, name), mode)?.id);
        drop(turn);
        self.tell(dir.id, name, None);
        Ok(made)
    }

    pub(super) fn symlink(
        &self,
        path: &WorkspacePath,
        target: &[u8],
        parents: bool,
    ) -> Result<Entry> {
        let Absent { mut dir, name, rest } = match self.resolve(path, Last::Keep)? {
            Spot::Absent(absent) if parents || absent.rest.is_empty() => absent,
            Spot::Absent(_) => return Err(Errno::NOENT),
            Spot::Above(_) | Spot::Found(_) => return Err(Errno::EXIST),
        };
        let mut names: Vec<_> = std::iter::once(name).chain(rest).collect();
        let name = names.pop().ok_or(Errno::EXIST)?;
        for above in &names {
            dir = self.enter_or_make(&dir, above, DIRECTORY_MODE)?;
        }
        let link = self.make_link(&dir, &name, target)?;
        self.entry(path.clone(), link.id, &self.nodes.getattr(link.id)?)
    }

    fn make_link(&self, dir: &Held, name: &[u8], target: &[u8]) -> Result<Held> {
        let turn = self.tree.alone(&[dir.id]);
        let made = self.hold(self.nodes.symlink((dir.id, name), target)?.id);
        drop(turn);
        self.tell(dir.id, name, None);
        Ok(made)
    }

    pub(super) fn remove(&self, path: &WorkspacePath, recursive: bool) -> Result<()> {
        let found = match self.resolve(path, Last::Keep)? {
            Spot::Found(found) => found,
            Spot::Above(_) => return Err(Errno::BUSY),
            Spot::Absent(_) => return Err(Errno::NOENT),
        };
        let Found { dir, name, node, attr } = found;
        match recursive && attr.kind == FileType::Directory {
            true => self.remove_all(Doomed { dir: dir.id, name, inner: self.inner(&node)?, node }),
            false => self.remove_one(dir.id, &name, node.id, attr.kind),
        }
    }

    /// One entry at a time, so that files programs have open stay usable as with any removal. What
    /// cannot be removed ends it.
    fn remove_all(&self, top: Doomed) -> Result<()> {
        let mut pending = vec![top];
        while let Some(doomed) = pending.last_mut() {
            match doomed.inner.pop() {
                Some((name, node, attr)) if attr.kind == FileType::Directory => {
                    let (dir, inner) = (doomed.node.id, self.inner(&node)?);
                    pending.push(Doomed { dir, name, node, inner });
                }
                Some((name, node, attr)) => {
                    self.remove_one(doomed.node.id, &name, node.id, attr.kind)?;
                }
                None => {
                    let (dir, node) = (doomed.dir, doomed.node.id);
                    self.remove_one(dir, &doomed.name, node, FileType::Directory)?;
                    pending.pop();
                }
            }
        }
        Ok(())
    }

    fn inner(&self, dir: &Held) -> Result<Vec<Inner>> {
        let mut inner = Vec::new();
        self.each_entry(dir.id, &mut |name, node, attr| inner.push((name.into(), node, attr)))?;
        Ok(inner)
    }

    fn remove_one(&self, dir: NodeId, name: &[u8], was: NodeId, kind: FileType) -> Result<()> {
        let turn = self.tree.alone_with(&[(dir, name)]);
        match kind {
            FileType::Directory => self.nodes.rmdir((dir, name))?,
            _ => self.nodes.unlink((dir, name))?,
        }
        drop(turn);
        self.tell(dir, name, Some(was));
        Ok(())
    }

    pub(super) fn rename(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<()> {
        let Spot::Found(old) = self.resolve(from, Last::Keep)? else {
            return Err(if from.is_root() { Errno::BUSY } else { Errno::NOENT });
        };
        let (dir, name, target) = match self.resolve(to, Last::Keep)? {
            Spot::Above(_) => return Err(Errno::BUSY),
            Spot::Found(Found { dir, name, node, attr }) => (dir, name, Some((node, attr))),
            Spot::Absent(Absent { dir, name, rest }) if rest.is_empty() => (dir, name, None),
            Spot::Absent(_) => return Err(Errno::NOENT),
        };
        // Two names of one file stay as they are, by POSIX; so does what is moved to where it is.
        if target.as_ref().is_some_and(|(node, _)| node.id == old.node.id) {
            return Ok(());
        }
        let turn = self.turn_to_move(&old, (dir.id, &name));
        self.check_move(&old, dir.id, target.as_ref())?;
        let levels_moved =
            self.nodes.rename((old.dir.id, &old.name), &old.attr, (dir.id, &name))?;
        drop(turn);
        if levels_moved {
            self.tell_levels_moved();
        }
        self.tell(old.dir.id, &old.name, Some(old.node.id));
        self.tell(dir.id, &name, target.map(|(node, _)| node.id));
        Ok(())
    }

    fn turn_to_move(&self, old: &Found, to: (NodeId, &[u8])) -> SoleTurn<'_> {
        match old.attr.kind {
            FileType::Directory => self.tree.alone_everywhere(),
            _ => self.tree.alone_with(&[(old.dir.id, &old.name), to]),
        }
    }

    /// The kernel sees to these for its requests, before the guard is asked.
    fn check_move(&self, old: &Found, dir: NodeId, target: Option<&(Held, Attr)>) -> Result<()> {
        let is_dir = |attr: &Attr| attr.kind == FileType::Directory;
        if is_dir(&old.attr) && self.tree.is_above(old.node.id, dir) {
            return Err(Errno::INVAL);
        }
        let Some((target, attr)) = target else { return Ok(()) };
        match (is_dir(&old.attr), is_dir(attr)) {
            (_, true) if self.tree.is_above(target.id, old.dir.id) => Err(Errno::NOTEMPTY),
            (false, true) => Err(Errno::ISDIR),
            (true, false) => Err(Errno::NOTDIR),
            _ => Ok(()),
        }
    }
}
