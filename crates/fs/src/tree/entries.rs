//! Making and removing names.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, fstat};
use rustix::io::{Errno, Result};

use super::files::{Backer, Opened};
use super::node::{Body, Merge, Node, NodeId, Place};
use super::{Attr, State, Tree};
use crate::layers::copy::{MODE_BITS, Prepared, make_special};
use crate::layers::marks;
use crate::layers::stack::{Leaf, Merged, Part};

impl Tree {
    /// Makes a regular file and opens it.
    pub fn create(
        &self,
        parent: NodeId,
        name: &[u8],
        mode: u32,
        backer: &dyn Backer,
    ) -> Result<(Attr, Opened)> {
        let state = self.state.read();
        let above = self.upper(&state, parent)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let bits = Mode::from(mode & MODE_BITS);
        let file = match rustix::fs::openat(above.fd()?, name, flags, bits) {
            Ok(fd) => File::from(fd),
            Err(Errno::EXIST) => self.replace_whiteout_with_file(&state, &above, name, mode)?,
            Err(e) => return Err(e),
        };
        let stat = fstat(&file)?;
        let node = self.adopt_new_leaf(parent, name, above, &stat);
        self.entry_changed(parent);
        let opened = self.open_created(&node, file, backer)?;
        Ok((Attr::of_leaf(node.id, &stat), opened))
    }

    fn replace_whiteout_with_file(
        &self,
        state: &State,
        above: &Arc<Part>,
        name: &[u8],
        mode: u32,
    ) -> Result<File> {
        expect_whiteout(above, name)?;
        let (prepared, file) = state.live.work.file(mode)?;
        prepared.publish(above.fd()?, name, RenameFlags::empty())?;
        Ok(file)
    }

    pub fn mkdir(&self, parent: NodeId, name: &[u8], mode: u32) -> Result<Attr> {
        let state = self.state.read();
        let above = self.upper(&state, parent)?;
        let part = Part::below(&above, name)?;
        self.make_dir(&state, &above, name, mode)?;
        let stat = above.stat(name)?.ok_or(Errno::IO)?;
        self.entry_changed(parent);
        Ok(self.adopt_dir(
            parent,
            name,
            Merged {
                parts: vec![part],
                stat,
                identity: (stat.st_dev, stat.st_ino),
                redirect: None,
                origins: vec![],
            },
        ))
    }

    fn make_dir(&self, state: &State, above: &Arc<Part>, name: &[u8], mode: u32) -> Result<()> {
        let made = match marks::is_plain_dir_mode(mode) {
            true => rustix::fs::mkdirat(above.fd()?, name, Mode::from(mode & MODE_BITS)),
            false => {
                let prepared = state.live.work.directory(mode)?;
                prepared.publish(above.fd()?, name, RenameFlags::NOREPLACE)
            }
        };
        match made {
            Err(Errno::EXIST) => {
                expect_whiteout(above, name)?;
                state.live.work.directory(mode)?.exchange(above.fd()?, name)
            }
            other => other,
        }
    }

    pub fn symlink(&self, parent: NodeId, name: &[u8], target: &[u8]) -> Result<Attr> {
        self.make_leaf(
            parent,
            name,
            |dir| rustix::fs::symlinkat(target, dir, name),
            |state| state.live.work.symlink(target),
        )
    }

    /// Makes a fifo, a socket or an empty regular file.
    pub fn mknod(&self, parent: NodeId, name: &[u8], kind: FileType, mode: u32) -> Result<Attr> {
        if kind == FileType::RegularFile {
            let (attr, opened) = self.create(parent, name, mode, &super::NoBacking)?;
            self.release(opened.handle);
            return Ok(attr);
        }
        self.make_leaf(
            parent,
            name,
            |dir| make_special(dir, name, kind, mode),
            |state| state.live.work.special(kind, mode),
        )
    }

    /// Makes another name for a file.
    pub fn link(&self, id: NodeId, parent: NodeId, name: &[u8]) -> Result<Attr> {
        let state = self.state.read();
        let node = self.node(id)?;
        self.copy_up_or_move_on(&state, &node, None)?;
        let above = self.upper(&state, parent)?;
        let (part, at) = match &*node.as_leaf()?.place.read() {
            Place::At { part, name, .. } => (part.clone(), name.clone()),
            Place::Orphan { .. } => return Err(Errno::NOENT),
        };
        match rustix::fs::linkat(part.fd()?, &at[..], above.fd()?, name, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                expect_whiteout(&above, name)?;
                let prepared = state.live.work.link(part.fd()?, &at)?;
                prepared.publish(above.fd()?, name, RenameFlags::empty())?;
            }
            Err(e) => return Err(e),
        }
        let stat = above.stat(name)?.ok_or(Errno::IO)?;
        let mut table = self.table.write();
        table.bind(parent, name, id);
        table.count(id);
        drop(table);
        self.entry_changed(parent);
        Ok(self.leaf_attr(&state, id, &Leaf { part: above, name: name.into(), stat }))
    }

    pub fn unlink(&self, parent: NodeId, name: &[u8]) -> Result<()> {
        let state = self.state.read();
        let dir = self.node(parent)?;
        let merge = dir.as_dir()?.merge.read().clone();
        let kept = self.place_without(&state, parent, name)?;
        let whiteout = self.whiteout_for(&state, &merge, name)?;
        match whiteout {
            Some(whiteout) => {
                let above = self.upper(&state, parent)?;
                whiteout.publish(above.fd()?, name, RenameFlags::empty())?;
            }
            None => {
                let above = merge.live(state.live.layer).ok_or(Errno::NOENT)?;
                rustix::fs::unlinkat(above.fd()?, name, AtFlags::empty())?;
            }
        }
        self.name_is_gone(parent, name, kept);
        Ok(())
    }

    pub fn rmdir(&self, parent: NodeId, name: &[u8]) -> Result<()> {
        let state = self.state.read();
        let dir = self.node(parent)?;
        let merge = dir.as_dir()?.merge.read().clone();
        let _held = self.hold_dir((parent, name))?;
        self.remove_empty_dir(&state, parent, &merge, name)?;
        self.name_is_gone(parent, name, None);
        Ok(())
    }

    /// Keeps the inode of a known directory in use while it is removed: its number must not go to
    /// a new file before the directory's node has lost its name.
    pub(super) fn hold_dir(&self, at: (NodeId, &[u8])) -> Result<Option<Arc<OwnedFd>>> {
        match self.known_child(at.0, at.1).as_ref().map(|node| &node.body) {
            Some(Body::Dir(dir)) => dir.merge.read().parts[0].fd().map(Some),
            _ => Ok(None),
        }
    }

    /// Removes a directory that shows no entry at all, leaving a whiteout where one is needed.
    fn remove_empty_dir(
        &self,
        state: &State,
        parent: NodeId,
        merge: &Merge,
        name: &[u8],
    ) -> Result<()> {
        let found = state.stack.find(&merge.parts, name)?;
        let crate::layers::stack::Found::Dir(target) = found else { return Err(Errno::NOTDIR) };
        if !state.stack.list(&target.parts)?.is_empty() {
            return Err(Errno::NOTEMPTY);
        }
        let live = target.parts.first().is_some_and(|p| p.layer == state.live.layer);
        let whiteout = self.whiteout_for(state, merge, name)?;
        match (whiteout, live) {
            (Some(whiteout), true) => {
                let above = self.upper(state, parent)?;
                whiteout.exchange(above.fd()?, name)
            }
            (Some(whiteout), false) => {
                let above = self.upper(state, parent)?;
                whiteout.publish(above.fd()?, name, RenameFlags::NOREPLACE)
            }
            (None, _) => {
                let above = merge.live(state.live.layer).ok_or(Errno::NOENT)?;
                self.remove_live_dir(state, above, name)
            }
        }
    }

    /// A directory that shows nothing may hold whiteouts all the same. An empty one takes its
    /// place first, so that a crash shows it not yet removed.
    fn remove_live_dir(&self, state: &State, above: &Arc<Part>, name: &[u8]) -> Result<()> {
        match rustix::fs::unlinkat(above.fd()?, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY) => {
                let mode = above.stat(name)?.ok_or(Errno::NOENT)?.st_mode;
                state.live.work.directory(mode)?.exchange(above.fd()?, name)?;
                rustix::fs::unlinkat(above.fd()?, name, AtFlags::REMOVEDIR)
            }
            other => other,
        }
    }

    fn make_leaf(
        &self,
        parent: NodeId,
        name: &[u8],
        direct: impl FnOnce(std::os::fd::BorrowedFd<'_>) -> Result<()>,
        aside: impl for<'s> FnOnce(&'s State) -> Result<Prepared<'s>>,
    ) -> Result<Attr> {
        let state = self.state.read();
        let above = self.upper(&state, parent)?;
        match direct(above.fd()?.as_fd()) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                expect_whiteout(&above, name)?;
                aside(&state)?.publish(above.fd()?, name, RenameFlags::empty())?;
            }
            Err(e) => return Err(e),
        }
        let stat = above.stat(name)?.ok_or(Errno::IO)?;
        self.entry_changed(parent);
        let leaf = Leaf { part: above, name: name.into(), stat };
        Ok(self.adopt_leaf(&state, parent, name, leaf, 0))
    }

    fn adopt_new_leaf(
        &self,
        parent: NodeId,
        name: &[u8],
        part: Arc<Part>,
        stat: &rustix::fs::Stat,
    ) -> Arc<Node> {
        let current = (stat.st_dev, stat.st_ino);
        let key = super::Key { identity: current, class: 0 };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let found = super::Sighting { key, current, has_one_name: true };
        self.table.write().adopt(parent, name, &found, |id| {
            Node::leaf(id, kind, Place::At { part, name: name.into(), identity: current }, 0)
        })
    }

    pub(super) fn entry_changed(&self, parent: NodeId) {
        self.changed();
        self.drop_listing(parent);
    }

    /// Where a known leaf will be found once this name of it is gone: under another name, or by a
    /// descriptor that keeps open files usable and the inode number from being given away.
    pub(super) fn place_without(
        &self,
        state: &State,
        parent: NodeId,
        name: &[u8],
    ) -> Result<Option<(Arc<Node>, Place)>> {
        let Some(node) = self.known_child(parent, name) else { return Ok(None) };
        let Ok(leaf) = node.as_leaf() else { return Ok(None) };
        let place = leaf.place.read().clone();
        let Place::At { part, name: at, identity } = place else { return Ok(None) };
        let names = self.table.read().names(node.id);
        let other = names.into_iter().find(|(p, n)| !(*p == parent && **n == *name));
        let place = match other {
            Some(_) if part.layer != state.live.layer => return Ok(None),
            Some((other, name)) => {
                Place::At { part: self.settle(state, &node, other, &name)?, name, identity }
            }
            None => {
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let fd = rustix::fs::openat(part.fd()?, &at[..], flags, Mode::empty())?;
                Place::Orphan { fd: Arc::new(fd), layer: part.layer, identity }
            }
        };
        Ok(Some((node, place)))
    }

    /// The name is gone; `kept` is what [`Tree::place_without`] prepared.
    pub(super) fn name_is_gone(
        &self,
        parent: NodeId,
        name: &[u8],
        kept: Option<(Arc<Node>, Place)>,
    ) {
        if let Some((node, place)) = kept
            && let Ok(leaf) = node.as_leaf()
        {
            *leaf.place.write() = place;
        }
        let gone = self.table.write().unbind(parent, name);
        if let Some(Body::Dir(gone)) = gone.as_ref().map(|node| &node.body) {
            gone.merge.read().parts.iter().for_each(|part| part.removed());
        }
        self.entry_changed(parent);
    }
}

/// The kernel believes that nothing is at `name`; the only thing that may be there is a whiteout.
fn expect_whiteout(above: &Arc<Part>, name: &[u8]) -> Result<()> {
    let stat = above.stat(name)?.ok_or(Errno::IO)?;
    if marks::is_whiteout(above.fd()?, name, &stat) { Ok(()) } else { Err(Errno::EXIST) }
}
