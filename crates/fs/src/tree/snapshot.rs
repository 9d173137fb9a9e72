//! Freezing the live layer under a running mount and going on in a new one.
//!
//! Nothing is copied except files that are open at that moment: their inodes may still be written
//! to, by passthrough descriptors and shared mappings we do not see, so each moves to the new
//! layer and a copy stays in the frozen one. The caller stops the sandbox's tasks meanwhile, or
//! accepts that a write during the freeze lands on either side.

use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, RenameFlags, fstat};
use rustix::io::{Errno, Result};

use super::node::{Body, LeafBody, Node, Place};
use super::upper::prepend;
use super::{Live, NodeId, State, Tree};
use crate::layers::copy::Work;
use crate::layers::stack::{Leaf, Named, Part, read_names};

impl Tree {
    /// Puts the empty layer `live`, whose tree is `root`, on top. The layer below is frozen from
    /// then on. Both must be on one filesystem.
    pub fn freeze(&self, mut live: Live, root: Arc<Part>) -> Result<()> {
        let mut state = self.state.write();
        let old = state.stack.roots().first().ok_or(Errno::IO)?.clone();
        if fstat(old.fd()?)?.st_dev != fstat(root.fd()?)?.st_dev {
            return Err(Errno::XDEV);
        }
        debug_assert_eq!(live.layer, state.live.layer + 1);
        live.links.extend(state.live.links.iter().cloned());
        let frozen = std::mem::replace(&mut state.live, live);
        state.stack.push(root.clone());
        let nodes: Vec<_> = self.table.read().nodes().cloned().collect();
        for node in &nodes {
            if let Body::Dir(dir) = &node.body {
                dir.merge.write().redirect = None;
            }
        }
        prepend(&mut self.node(NodeId::ROOT)?.as_dir()?.merge.write(), root);
        for node in &nodes {
            if let Body::Leaf(leaf) = &node.body {
                self.carry_over(&state, &frozen, node, leaf)?;
            }
        }
        Ok(())
    }

    /// Moves an open file of the frozen layer to the new one.
    fn carry_over(&self, state: &State, frozen: &Live, node: &Node, leaf: &LeafBody) -> Result<()> {
        let open = leaf.io.lock().opens > 0 && node.kind == FileType::RegularFile;
        let mut place = leaf.place.write();
        let moved = match &mut *place {
            Place::Orphan { layer, .. } if *layer == frozen.layer => {
                *layer = state.live.layer;
                return Ok(());
            }
            Place::At { part, name, identity } if open && part.layer == frozen.layer => {
                (part.clone(), name.clone(), *identity)
            }
            _ => return Ok(()),
        };
        drop(place);
        let (part, name, identity) = moved;
        let above = self.move_inode(state, &frozen.work, node, &part, &name)?;
        *leaf.place.write() = Place::At { part: above.0, name: above.1, identity };
        Ok(())
    }

    fn move_inode(
        &self,
        state: &State,
        frozen: &Work,
        node: &Node,
        part: &Arc<Part>,
        name: &[u8],
    ) -> Result<(Arc<Part>, Box<[u8]>)> {
        let stat = part.stat(name)?.ok_or(Errno::NOENT)?;
        let copy = frozen.duplicate(&Leaf { part: part.clone(), name: name.into(), stat })?;
        let names = self.table.read().names(node.id);
        let (parent, new_name) = names.first().ok_or(Errno::NOENT)?;
        let above = self.upper(state, *parent)?;
        copy.take_place_of((part.fd()?, name), (above.fd()?, new_name))?;
        if stat.st_nlink > 1 {
            self.replace_links(state, frozen, (part, name), (&above, new_name), stat.st_ino)?;
        }
        for (parent, other) in &names[1..] {
            let at = self.upper(state, *parent)?;
            let flags = AtFlags::empty();
            rustix::fs::linkat(above.fd()?, &new_name[..], at.fd()?, &other[..], flags)?;
        }
        Ok((above, new_name.clone()))
    }

    /// The other names of a moved inode in the frozen layer lead to its copy from now on. They may
    /// be anywhere, so this is the one case in which the layer is searched.
    fn replace_links(
        &self,
        state: &State,
        frozen: &Work,
        copy: (&Arc<Part>, &[u8]),
        moved: (&Arc<Part>, &[u8]),
        inode: u64,
    ) -> Result<()> {
        let layer = copy.0.layer;
        let of_layer = |part: &&Arc<Part>| part.layer == layer;
        let tree = state.stack.roots().iter().find(of_layer).ok_or(Errno::IO)?;
        for (part, name) in names_of_inode(tree, inode)? {
            let link = frozen.link(copy.0.fd()?, copy.1)?;
            link.publish(part.fd()?, &name, RenameFlags::empty())?;
        }
        let links = state.live.links.iter().find(of_layer).ok_or(Errno::IO)?;
        let live = state.live.links.first().ok_or(Errno::IO)?;
        for (part, name) in names_of_inode(links, inode)? {
            let link = frozen.link(copy.0.fd()?, copy.1)?;
            link.publish(part.fd()?, &name, RenameFlags::empty())?;
            let flags = AtFlags::empty();
            rustix::fs::linkat(moved.0.fd()?, moved.1, live.fd()?, &name[..], flags)?;
        }
        Ok(())
    }
}

/// Where an inode has names below a directory of one layer.
fn names_of_inode(dir: &Arc<Part>, inode: u64) -> Result<Vec<Named>> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.clone()];
    while let Some(dir) = dirs.pop() {
        read_names(dir.fd()?.as_fd(), |name, kind, ino| {
            if kind == FileType::Directory {
                dirs.push(Part::below(&dir, name)?);
            } else if ino == inode {
                found.push((dir.clone(), name.into()));
            }
            Ok(())
        })?;
    }
    Ok(found)
}
