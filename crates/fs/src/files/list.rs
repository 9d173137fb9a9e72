//! Listings and walks.

use std::ops::ControlFlow;

use ringfence_policy::WorkspacePath;
use rustix::fs::FileType;
use rustix::io::{Errno, Result};

use super::call::{Call, Held};
use super::resolve::Last;
use super::{Entry, View};
use crate::changes::EntryKind;
use crate::tree::{Attr, NodeId};

/// Entries read in one turn: programs in the directory do not wait for long.
const PIECE: usize = 256;

struct Child {
    entry: Entry,
    /// Of a directory.
    node: Option<Held>,
}

impl Call {
    pub(super) fn stat(&self, path: &WorkspacePath, follow: bool) -> Result<Entry> {
        let last = if follow { Last::Follow } else { Last::Keep };
        let (node, attr) = self.resolve(path, last)?.existing(self)?;
        self.entry(path.clone(), node.id, &attr)
    }

    pub(super) fn list(&self, path: &WorkspacePath) -> Result<Vec<Entry>> {
        let dir = self.directory(path)?;
        Ok(self.children(dir.id, path)?.into_iter().map(|child| child.entry).collect())
    }

    /// Depth costs memory, not stack.
    pub(super) fn walk(
        &self,
        path: &WorkspacePath,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<()> {
        let dir = self.directory(path)?;
        let mut pending = vec![(dir.id, self.children(dir.id, path)?.into_iter(), dir)];
        while let Some((_, children, _)) = pending.last_mut() {
            let Some(Child { entry, node }) = children.next() else {
                pending.pop();
                continue;
            };
            let path = entry.path.clone();
            if each(entry).is_break() {
                return Ok(());
            }
            let Some(node) = node else { continue };
            match self.children(node.id, &path) {
                Ok(below) => pending.push((node.id, below.into_iter(), node)),
                // Things come and go, and some may not be listed.
                Err(Errno::NOENT | Errno::STALE) => {}
                Err(Errno::ACCESS) if self.view == View::Agent => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn directory(&self, path: &WorkspacePath) -> Result<Held> {
        match self.resolve(path, Last::Follow)?.existing(self)? {
            (node, attr) if attr.kind == FileType::Directory => Ok(node),
            _ => Err(Errno::NOTDIR),
        }
    }

    fn children(&self, dir: NodeId, path: &WorkspacePath) -> Result<Vec<Child>> {
        let mut children = Vec::new();
        self.each_entry(dir, &mut |name, node, attr| {
            // One that was removed meanwhile is not there.
            if let Ok(entry) = self.entry(path.join(name), node.id, &attr) {
                let node = (attr.kind == FileType::Directory).then_some(node);
                children.push(Child { entry, node });
            }
        })?;
        children.sort_unstable_by(|a, b| a.entry.path.cmp(&b.entry.path));
        Ok(children)
    }

    /// Gives every entry of a directory to `take`, in no particular order.
    pub(super) fn each_entry(
        &self,
        dir: NodeId,
        take: &mut dyn FnMut(&[u8], Held, Attr),
    ) -> Result<()> {
        let mut offset = 0;
        loop {
            let (before, mut taken) = (offset, 0);
            let _turn = self.tree.alone(&[dir]);
            self.nodes.readdir(dir, offset, &mut |position, name, attr| {
                if taken == PIECE {
                    return false;
                }
                (offset, taken) = (position, taken + 1);
                take(name, self.hold(attr.id), attr);
                true
            })?;
            if taken < PIECE || offset == before {
                return Ok(());
            }
        }
    }

    pub(super) fn entry(&self, path: WorkspacePath, id: NodeId, attr: &Attr) -> Result<Entry> {
        let target = match attr.kind {
            FileType::Symlink => Some(self.nodes.readlink(id)?),
            _ => None,
        };
        let kind = EntryKind::of_type(attr.kind);
        let (size, mode, modified) = (attr.size, attr.mode, attr.mtime);
        Ok(Entry { path, kind, size, mode, modified, target })
    }
}
