//! Moving names. No tree is ever copied: a directory with lower parts is moved as a live directory
//! that says where it continues below.

use ringfence_policy::WorkspacePath;
use rustix::fs::{AtFlags, FileType, RenameFlags};
use rustix::io::{Errno, Result};
use std::sync::Arc;

use super::node::{Body, Merge, Node, NodeId, Place};
use super::{State, Tree};
use crate::layers::marks::{self, Lower};
use crate::layers::stack::{Found, MOST_PATH, Merged, Part, length_of};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenameMode {
    /// Replaces what is at the new name.
    Replace,
    /// Fails if something is at the new name.
    KeepExisting,
    /// Swaps the two names.
    Exchange,
}

/// One side of a rename, looked up.
struct Side<'n> {
    parent: NodeId,
    name: &'n [u8],
    merge: Merge,
    above: Arc<Part>,
}

impl Tree {
    pub fn rename(
        &self,
        from: (NodeId, &[u8]),
        to: (NodeId, &[u8]),
        mode: RenameMode,
    ) -> Result<()> {
        let state = self.state.read();
        let node = self.known_or_found(&state, from)?;
        let target = state.stack.find(&self.merge_of(to.0)?.parts, to.1)?;
        match (mode, &target) {
            (RenameMode::Exchange, Found::Absent) => return Err(Errno::NOENT),
            (RenameMode::KeepExisting, Found::Leaf(_) | Found::Dir(_)) => return Err(Errno::EXIST),
            _ => {}
        }
        self.expect_room(&node, to)?;
        self.make_movable(&state, from, &node)?;
        if mode == RenameMode::Exchange {
            return self.exchange(&state, from, &node, to);
        }
        check_kinds(&node, &target)?;
        if is_same_leaf(&node, &target) {
            return Ok(());
        }
        self.replace(&state, from, &node, to, &target)
    }

    fn merge_of(&self, id: NodeId) -> Result<Merge> {
        Ok(self.node(id)?.as_dir()?.merge.read().clone())
    }

    /// The node of a name; the kernel looked it up before it asked for a rename.
    fn known_or_found(&self, state: &State, at: (NodeId, &[u8])) -> Result<Arc<Node>> {
        if let Some(node) = self.known_child(at.0, at.1) {
            return Ok(node);
        }
        let found = state.stack.find(&self.merge_of(at.0)?.parts, at.1)?;
        let attr = self.adopt(state, at.0, at.1, found, 0)?.ok_or(Errno::NOENT)?;
        self.node(attr.id)
    }

    /// What the kernel knows below a directory that is moved must stay within reach.
    fn expect_room(&self, node: &Node, to: (NodeId, &[u8])) -> Result<()> {
        let table = self.table.read();
        let length = |path: &WorkspacePath| path.components().map(length_of).sum();
        let above: usize = table.paths_below(to.0, to.1).first().map_or(0, length);
        match node.is_dir() && above + table.longest_below(node.id) > MOST_PATH {
            true => Err(Errno::NAMETOOLONG),
            false => Ok(()),
        }
    }

    fn side<'n>(&self, state: &State, at: (NodeId, &'n [u8])) -> Result<Side<'n>> {
        let above = self.upper(state, at.0)?;
        Ok(Side { parent: at.0, name: at.1, merge: self.merge_of(at.0)?, above })
    }

    /// Brings what is moved into the live layer, under the name it has now. A directory that
    /// continues below is told its path there while it still has its old name, where the explicit
    /// path and its name mean the same.
    fn make_movable(&self, state: &State, at: (NodeId, &[u8]), node: &Node) -> Result<()> {
        match &node.body {
            Body::Leaf(_) => {
                self.copy_up_or_move_on(state, node, None)?;
                self.settle(state, node, at.0, at.1).map(drop)
            }
            Body::Dir(dir) => {
                let part = self.upper(state, node.id)?;
                let merge = dir.merge.read().clone();
                if merge.lower(state.live.layer).is_empty() || merge.redirect.is_some() {
                    return Ok(());
                }
                let path = self.path_below_live(node.id)?;
                match marks::set_lower(part.fd()?, &Lower::At(path.clone())) {
                    // A path too long for an attribute: the caller copies instead.
                    Err(Errno::NOSPC | Errno::RANGE | Errno::TOOBIG) => return Err(Errno::XDEV),
                    other => other?,
                }
                let mut merge = dir.merge.write();
                merge.origins = state.stack.origins_below(state.live.layer, &path)?;
                merge.redirect = Some(path);
                Ok(())
            }
        }
    }

    fn replace(
        &self,
        state: &State,
        from: (NodeId, &[u8]),
        node: &Arc<Node>,
        to: (NodeId, &[u8]),
        target: &Found,
    ) -> Result<()> {
        let old = self.side(state, from)?;
        let new = self.side(state, to)?;
        let kept = self.place_without(state, to.0, to.1)?;
        let _held = self.hold_dir(to)?;
        if let Found::Dir(target) = target {
            self.make_replaceable(state, &new, target)?;
        }
        self.move_live(state, &old, &new, !matches!(target, Found::Absent))?;
        self.name_is_gone(to.0, to.1, kept);
        self.rebind(from, node, &new);
        Ok(())
    }

    /// Makes sure that an empty directory is one that rename(2) can replace: live, merging with
    /// nothing, and without whiteouts in it. Programs notice nothing.
    fn make_replaceable(&self, state: &State, new: &Side<'_>, target: &Merged) -> Result<()> {
        if !state.stack.list(&target.parts)?.is_empty() {
            return Err(Errno::NOTEMPTY);
        }
        let top = target.parts.first().ok_or(Errno::IO)?;
        let live = top.layer == state.live.layer;
        if live && !marks::continues_below(top.fd()?) {
            return Ok(());
        }
        let plain = state.live.work.directory_over(top, &target.stat, &Lower::Nothing)?;
        match live {
            true => plain.exchange(new.above.fd()?, new.name),
            false => plain.publish(new.above.fd()?, new.name, RenameFlags::NOREPLACE),
        }
    }

    /// Moves the live entry and leaves a whiteout where lower layers have the old name.
    ///
    /// One rename cannot do both. The whiteout follows the move, and a crash in between is mended
    /// by the intent that was written down. A directory cannot replace the whiteout that may be at
    /// the new name: those two are exchanged.
    fn move_live(
        &self,
        state: &State,
        old: &Side<'_>,
        new: &Side<'_>,
        replaces: bool,
    ) -> Result<()> {
        let whiteout = self.whiteout_for(state, &old.merge, old.name)?;
        let moved = old.above.stat(old.name)?.ok_or(Errno::NOENT)?;
        let is_dir = FileType::from_raw_mode(moved.st_mode) == FileType::Directory;
        let over_whiteout = is_dir && !replaces && new.above.stat(new.name)?.is_some();
        let (from, to) = (old.above.fd()?, new.above.fd()?);
        let rename = |flags| rustix::fs::renameat_with(&from, old.name, &to, new.name, flags);
        let intend = |whiteout| {
            let (at, goal) = (self.live_path(old)?, self.live_path(new)?);
            state.live.work.intend(whiteout, at, goal, moved.st_ino)
        };
        match whiteout {
            Some(whiteout) if over_whiteout => {
                rename(RenameFlags::EXCHANGE)?;
                whiteout.publish(&from, old.name, RenameFlags::empty())
            }
            Some(whiteout) => {
                let _intent = intend(Some(&whiteout))?;
                rename(RenameFlags::empty())?;
                whiteout.publish(&from, old.name, RenameFlags::NOREPLACE)
            }
            None if over_whiteout => {
                let _intent = intend(None)?;
                rename(RenameFlags::EXCHANGE)?;
                rustix::fs::unlinkat(&from, old.name, AtFlags::empty())
            }
            None => rename(RenameFlags::empty()),
        }
    }

    /// Where an entry is in the live layer's own tree, which mirrors the workspace.
    fn live_path(&self, side: &Side<'_>) -> Result<WorkspacePath> {
        let paths = self.paths_below(side.parent, side.name);
        paths.into_iter().next().ok_or(Errno::STALE)
    }

    fn exchange(
        &self,
        state: &State,
        from: (NodeId, &[u8]),
        node: &Arc<Node>,
        to: (NodeId, &[u8]),
    ) -> Result<()> {
        let other = self.known_or_found(state, to)?;
        self.expect_room(&other, from)?;
        self.make_movable(state, to, &other)?;
        let old = self.side(state, from)?;
        let new = self.side(state, to)?;
        let flags = RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(old.above.fd()?, from.1, new.above.fd()?, to.1, flags)?;
        let mut table = self.table.write();
        table.unbind(from.0, from.1);
        table.unbind(to.0, to.1);
        drop(table);
        self.bind_moved(node, &new);
        self.bind_moved(&other, &old);
        self.entry_changed(from.0);
        self.entry_changed(to.0);
        Ok(())
    }

    fn rebind(&self, from: (NodeId, &[u8]), node: &Arc<Node>, new: &Side<'_>) {
        self.table.write().unbind(from.0, from.1);
        self.bind_moved(node, new);
        self.entry_changed(from.0);
        self.entry_changed(new.parent);
    }

    fn bind_moved(&self, node: &Arc<Node>, new: &Side<'_>) {
        self.table.write().bind(new.parent, new.name, node.id);
        match &node.body {
            Body::Leaf(leaf) => {
                let mut place = leaf.place.write();
                let identity = place.identity();
                *place = Place::At { part: new.above.clone(), name: new.name.into(), identity };
            }
            // What moves is live, so the uppermost part is the one that moved.
            Body::Dir(dir) => dir.merge.read().parts[0].moved(&new.above, new.name),
        }
    }
}

/// Renaming one name of a file onto another of the same file does nothing, by POSIX.
fn is_same_leaf(node: &Node, target: &Found) -> bool {
    matches!(target, Found::Leaf(leaf)
        if node.identity() == (leaf.stat.st_dev, leaf.stat.st_ino))
}

fn check_kinds(node: &Node, target: &Found) -> Result<()> {
    match (node.is_dir(), target) {
        (true, Found::Leaf(_)) => Err(Errno::NOTDIR),
        (false, Found::Dir(_)) => Err(Errno::ISDIR),
        _ => Ok(()),
    }
}
