//! Getting things into the live layer: directories on the way, files before they change.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ringfence_policy::WorkspacePath;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::{Errno, Result};

use super::node::{Merge, Node, NodeId, Place};
use super::{State, Tree};
use crate::layers::copy::Prepared;
use crate::layers::marks::{self, Lower, Stamp};
use crate::layers::stack::{BASE, Found, LayerIndex, Leaf, Part};

impl Tree {
    /// The live part of a directory, made (with its parents) if it does not exist yet.
    pub(super) fn upper(&self, state: &State, id: NodeId) -> Result<Arc<Part>> {
        if let Some(part) = self.node(id)?.as_dir()?.merge.read().live(state.live.layer) {
            return Ok(part.clone());
        }
        let _one_at_a_time = self.copying.lock();
        self.make_upper(state, id)
    }

    fn make_upper(&self, state: &State, id: NodeId) -> Result<Arc<Part>> {
        let node = self.node(id)?;
        let dir = node.as_dir()?;
        if let Some(part) = dir.merge.read().live(state.live.layer) {
            return Ok(part.clone());
        }
        let (parent, name) = self.name_of(id)?;
        let above = self.make_upper(state, parent)?;
        let source = dir.merge.read().parts[0].clone();
        let mut stat = source.own_stat()?;
        self.show_times(id, &source, &mut stat);
        let part = Part::below(&above, &name)?;
        let prepared = state.live.work.directory_over(&source, &stat, &Lower::SameName)?;
        prepared.publish(above.fd()?, &name, RenameFlags::NOREPLACE)?;
        prepend(&mut dir.merge.write(), part.clone());
        Ok(part)
    }

    /// One name of a node; the only one for directories.
    pub(super) fn name_of(&self, id: NodeId) -> Result<(NodeId, Box<[u8]>)> {
        self.table.read().names(id).into_iter().next().ok_or(Errno::NOENT)
    }

    /// Makes sure that a leaf's content is in the live layer, under each of its known names.
    /// `limit` leaves out content that is about to be cut off.
    pub(super) fn copy_up(&self, state: &State, node: &Node, limit: Option<u64>) -> Result<()> {
        let leaf = node.as_leaf()?;
        let (part, name) = match &*leaf.place.read() {
            place if place.layer() == state.live.layer => return Ok(()),
            Place::Orphan { .. } => return Err(Errno::STALE),
            Place::At { part, name, .. } => (part.clone(), name.clone()),
        };
        let stat = part.stat(&name)?.ok_or(Errno::STALE)?;
        let source = Leaf { part, name, stat };
        let names = self.table.read().names(node.id);
        let (parent, name) = names.first().ok_or(Errno::NOENT)?;
        let above = self.upper(state, *parent)?;
        let prepared = state.live.work.copy(&source, limit)?;
        match prepared.publish(above.fd()?, name, RenameFlags::NOREPLACE) {
            // Replaced by somebody meanwhile: the name leads to another node.
            Err(Errno::EXIST) => return Err(Errno::STALE),
            other => other?,
        }
        self.remember_link(state, &source, &above, name)?;
        let identity = above.stat(name)?.map(|s| (s.st_dev, s.st_ino)).ok_or(Errno::IO)?;
        *leaf.place.write() = Place::At { part: above, name: name.clone(), identity };
        for (parent, name) in &names[1..] {
            self.settle(state, node, *parent, name)?;
        }
        Ok(())
    }

    /// Makes sure that a live leaf has an entry of this name in the live layer's tree.
    pub(super) fn settle(
        &self,
        state: &State,
        node: &Node,
        parent: NodeId,
        name: &[u8],
    ) -> Result<Arc<Part>> {
        let above = self.upper(state, parent)?;
        if above.stat(name)?.is_none()
            && let Place::At { part, name: at, .. } = &*node.as_leaf()?.place.read()
        {
            rustix::fs::linkat(part.fd()?, &at[..], above.fd()?, name, AtFlags::empty())?;
        }
        Ok(above)
    }

    /// A lower file with several names was copied: its other names must find the copy.
    fn remember_link(
        &self,
        state: &State,
        source: &Leaf,
        above: &Arc<Part>,
        name: &[u8],
    ) -> Result<()> {
        let Some(key) = link_name(source, state.live.layer) else { return Ok(()) };
        let links = state.live.links.first().ok_or(Errno::IO)?;
        self.has_links.store(true, Ordering::Release);
        match rustix::fs::linkat(above.fd()?, name, links.fd()?, &key[..], AtFlags::empty()) {
            Err(Errno::EXIST) => Ok(()),
            other => other,
        }
    }

    /// The copy of a lower file with several names, if another of its names was written to. Only
    /// names that may be written themselves follow: for the others the file stays what it is.
    pub(super) fn follow_link(&self, state: &State, mut leaf: Leaf, class: u8) -> Result<Leaf> {
        if class != 0 || !self.has_links.load(Ordering::Acquire) {
            return Ok(leaf);
        }
        // A copy in a frozen layer may itself have been copied in a layer above.
        while let Some(copy) = linked_copy(state, &leaf)? {
            leaf = copy;
        }
        Ok(leaf)
    }

    /// Whether a file of a delta has an entry in its layer's `links/` beside its own names.
    pub(super) fn is_linked_copy(&self, state: &State, leaf: &Leaf) -> bool {
        let several = leaf.part.layer != BASE && leaf.stat.st_nlink > 1;
        if !several || !self.has_links.load(Ordering::Acquire) {
            return false;
        }
        let links = state.live.links.iter().find(|links| links.layer == leaf.part.layer);
        let stamp = leaf.part.fd().ok().and_then(|dir| marks::read_stamp(dir, &leaf.name));
        let (Some(links), Some(stamp)) = (links, stamp) else { return false };
        let entry = links.stat(&link_key(stamp.dev, stamp.ino)).ok().flatten();
        entry.is_some_and(|entry| entry.st_ino == leaf.stat.st_ino)
    }

    /// Whether layers below the live one show `name` in this directory, and what it is.
    pub(super) fn lower_entry(&self, state: &State, merge: &Merge, name: &[u8]) -> Result<Found> {
        state.stack.find(merge.lower(state.live.layer), name)
    }

    /// A whiteout for what is at `name` below, or nothing if there is nothing to hide.
    pub(super) fn whiteout_for<'s>(
        &self,
        state: &'s State,
        merge: &Merge,
        name: &[u8],
    ) -> Result<Option<Prepared<'s>>> {
        let stamp = match self.lower_entry(state, merge, name)? {
            Found::Absent => return Ok(None),
            Found::Leaf(leaf) => Stamp::of(&leaf.stat),
            Found::Dir(dir) => Stamp::of(&dir.stat),
        };
        state.live.work.whiteout(Some(&stamp)).map(Some)
    }

    /// The path by which the layers below the live one know this directory, if they do.
    pub(super) fn path_below_live(&self, id: NodeId) -> Result<WorkspacePath> {
        self.table.read().path_below_live(id).ok_or(Errno::STALE)
    }
}

pub(super) fn prepend(merge: &mut Merge, part: Arc<Part>) {
    let parts = std::iter::once(part).chain(merge.parts.iter().cloned());
    merge.parts = parts.collect();
}

fn linked_copy(state: &State, leaf: &Leaf) -> Result<Option<Leaf>> {
    let Some(key) = link_name(leaf, state.live.layer) else { return Ok(None) };
    for part in state.live.links.iter().filter(|part| part.layer > leaf.part.layer) {
        if let Some(stat) = part.stat(&key)? {
            return Ok(Some(Leaf { part: part.clone(), name: key.into(), stat }));
        }
    }
    Ok(None)
}

/// The name under which a layer keeps its copy of a lower file that has several names.
fn link_name(leaf: &Leaf, live: LayerIndex) -> Option<Vec<u8>> {
    let regular = FileType::from_raw_mode(leaf.stat.st_mode) == FileType::RegularFile;
    let several = leaf.part.layer != live && regular && leaf.stat.st_nlink > 1;
    several.then(|| link_key(leaf.stat.st_dev, leaf.stat.st_ino))
}

fn link_key(device: u64, inode: u64) -> Vec<u8> {
    format!("{device:x}-{inode:x}").into_bytes()
}

/// Whether a directory has any entry; unreadable counts as yes.
pub(super) fn holds_entries(part: &Arc<Part>) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let names = part
        .fd()
        .and_then(|dir| rustix::fs::openat(dir, c".", flags, Mode::empty()))
        .and_then(rustix::fs::Dir::new);
    match names {
        Ok(names) => names.flatten().any(|e| !matches!(e.file_name().to_bytes(), b"." | b"..")),
        Err(_) => true,
    }
}
