//! Freezing the live layer under a running mount and going on in a new one.
//!
//! Nothing is copied except files that are open at that moment: their inodes may still be written
//! to, by passthrough descriptors and shared mappings we do not see, so each moves to the new
//! layer and a copy stays in the frozen one. The caller stops the sandbox's tasks meanwhile, or
//! accepts that a write during the freeze lands on either side.

use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, fstat};
use rustix::io::{Errno, Result};

use super::node::{Body, LeafBody, Node, Place};
use super::upper::prepend;
use super::{Live, NodeId, State, Tree};
use crate::layers::copy::Work;
use crate::layers::stack::{Leaf, Part};

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
        for (parent, other) in &names[1..] {
            let at = self.upper(state, *parent)?;
            let flags = AtFlags::empty();
            rustix::fs::linkat(above.fd()?, &new_name[..], at.fd()?, &other[..], flags)?;
        }
        Ok((above, new_name.clone()))
    }
}
