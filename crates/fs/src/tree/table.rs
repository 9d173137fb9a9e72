//! The table of nodes the kernel knows, and the names that lead to them.
//!
//! A node id is derived from the identity (device, inode) of what it stands for, so it survives
//! being forgotten and looked up again: programs such as git compare inode numbers. Identities are
//! those of the *origin*, so that copying a file up does not change its number. Where two things
//! would get the same number at the same time, the later one gets a number of its own.

use std::collections::HashMap;
use std::sync::Arc;

use ringfence_policy::WorkspacePath;

use super::node::{Body, Node, NodeId};
use crate::layers::stack::length_of;

/// What distinguishes nodes: an object, and a class for objects with several names. Names of one
/// inode that are treated differently (by the guard) must not share a node, because most requests
/// carry only the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) identity: (u64, u64),
    pub(super) class: u8,
}

/// What a lookup found at a name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sighting {
    pub(super) key: Key,
    /// Device and inode where its content is now.
    pub(super) current: (u64, u64),
    /// It is a directory, or a file of the base without other links.
    pub(super) has_one_name: bool,
}

/// A name, and the directory it is in.
pub type Name = (NodeId, Box<[u8]>);

#[derive(Debug)]
struct Slot {
    node: Arc<Node>,
    lookups: u64,
    names: Vec<Name>,
    /// The last name of a node that has none any more.
    former: Option<Name>,
    children: HashMap<Box<[u8]>, NodeId>,
}

#[derive(Debug)]
pub(super) struct Table {
    slots: HashMap<NodeId, Slot>,
    /// Devices in the order they were met; the position is part of a node id.
    devices: Vec<u64>,
    /// Numbers given where the derived one was taken.
    exceptions: HashMap<Key, NodeId>,
    next_exception: u64,
}

const INODE_BITS: u32 = 48;
const DEVICE_BITS: u32 = 11;

impl Table {
    pub(super) fn new(root: Arc<Node>) -> Self {
        let mut table = Self {
            slots: HashMap::new(),
            devices: Vec::new(),
            exceptions: HashMap::new(),
            next_exception: 2,
        };
        table.add_slot(root);
        table
    }

    pub(super) fn get(&self, id: NodeId) -> Option<Arc<Node>> {
        self.slots.get(&id).map(|slot| slot.node.clone())
    }

    pub(super) fn child(&self, parent: NodeId, name: &[u8]) -> Option<Arc<Node>> {
        let id = self.slots.get(&parent)?.children.get(name)?;
        self.get(*id)
    }

    /// Finds the node for what was found at a name or makes it, gives it the name and counts one
    /// lookup.
    pub(super) fn adopt(
        &mut self,
        parent: NodeId,
        name: &[u8],
        found: &Sighting,
        make: impl FnOnce(NodeId) -> Node,
    ) -> Arc<Node> {
        let id = self.id_for(found, (parent, name));
        let node = match self.slots.get(&id) {
            Some(slot) => slot.node.clone(),
            None => {
                let node = Arc::new(make(id));
                self.add_slot(node.clone());
                node
            }
        };
        self.bind(parent, name, id);
        self.count(id);
        node
    }

    pub(super) fn count(&mut self, id: NodeId) {
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.lookups += 1;
        }
    }

    fn add_slot(&mut self, node: Arc<Node>) {
        let slot = Slot {
            node: node.clone(),
            lookups: 0,
            names: Vec::new(),
            former: None,
            children: HashMap::new(),
        };
        self.slots.insert(node.id, slot);
    }

    /// The number for what was found: the derived one unless a node of that number stands for
    /// something else.
    fn id_for(&mut self, found: &Sighting, at: (NodeId, &[u8])) -> NodeId {
        if let Some(id) = self.exceptions.get(&found.key)
            && self.stands_for(*id, found, at)
        {
            return *id;
        }
        match self.derive(found.key) {
            Some(id) if self.stands_for(id, found, at) => id,
            _ => {
                let id = NodeId(self.next_exception);
                self.next_exception += 1;
                self.exceptions.insert(found.key, id);
                id
            }
        }
    }

    /// A thing that can have one name only and is found at another was moved there by the host:
    /// the node that is known under the old name leads to the old place, and must not be reused.
    fn stands_for(&self, id: NodeId, found: &Sighting, at: (NodeId, &[u8])) -> bool {
        self.slots.get(&id).is_none_or(|slot| {
            let is_at = |(parent, name): &Name| (*parent, &**name) == at;
            let may_be_at = match slot.names.is_empty() {
                true => slot.former.is_none(),
                false => !found.has_one_name || slot.names.iter().any(is_at),
            };
            slot.node.identity() == found.current && may_be_at
        })
    }

    /// Layout: class (3 bits), device (11 bits), inode (48 bits). Device 0 holds the exceptions.
    fn derive(&mut self, key: Key) -> Option<NodeId> {
        let (device, inode) = key.identity;
        let known = self.devices.iter().position(|d| *d == device);
        let position = known.unwrap_or_else(|| {
            self.devices.push(device);
            self.devices.len() - 1
        }) as u64
            + 1;
        if inode >> INODE_BITS != 0 || position >> DEVICE_BITS != 0 {
            return None;
        }
        let class = u64::from(key.class) << (INODE_BITS + DEVICE_BITS);
        Some(NodeId(class | position << INODE_BITS | inode))
    }

    /// Makes `name` in `parent` lead to `id`; whatever it led to before loses that name.
    pub(super) fn bind(&mut self, parent: NodeId, name: &[u8], id: NodeId) {
        let Some(slot) = self.slots.get_mut(&parent) else { return };
        match slot.children.insert(name.into(), id) {
            Some(before) if before == id => return,
            Some(before) => self.drop_name(before, parent, name),
            None => {}
        }
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.names.push((parent, name.into()));
            slot.former = None;
        }
    }

    /// Takes the name away and returns the node that had it.
    pub(super) fn unbind(&mut self, parent: NodeId, name: &[u8]) -> Option<Arc<Node>> {
        let id = self.slots.get_mut(&parent)?.children.remove(name)?;
        self.drop_name(id, parent, name);
        self.get(id)
    }

    fn drop_name(&mut self, id: NodeId, parent: NodeId, name: &[u8]) {
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.names.retain(|(p, n)| !(*p == parent && **n == *name));
            if slot.names.is_empty() {
                slot.former = Some((parent, name.into()));
            }
        }
    }

    /// Takes all names from a node, so that the next lookup of any of them makes a new one.
    pub(super) fn detach(&mut self, id: NodeId) {
        for (parent, name) in self.names(id) {
            self.unbind(parent, &name);
        }
    }

    pub(super) fn names(&self, id: NodeId) -> Vec<Name> {
        self.slots.get(&id).map(|slot| slot.names.clone()).unwrap_or_default()
    }

    /// Counts lookups down. Nodes that are no longer known are returned, to be dropped when the
    /// table is unlocked: closing the last descriptor of a deleted file can take a while.
    pub(super) fn forget(&mut self, id: NodeId, count: u64) -> Vec<Arc<Node>> {
        let mut gone = Vec::new();
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.lookups = slot.lookups.saturating_sub(count);
            self.remove_if_unused(id, &mut gone);
        }
        gone
    }

    fn remove_if_unused(&mut self, id: NodeId, gone: &mut Vec<Arc<Node>>) {
        let unused = |slot: &Slot| slot.lookups == 0 && slot.children.is_empty();
        if id == NodeId::ROOT || !self.slots.get(&id).is_some_and(unused) {
            return;
        }
        let Some(slot) = self.slots.remove(&id) else { return };
        if id.0 >> INODE_BITS == 0 {
            self.exceptions.retain(|_, number| *number != id);
        }
        for (parent, name) in slot.names {
            if let Some(above) = self.slots.get_mut(&parent) {
                above.children.remove(&name);
            }
            self.remove_if_unused(parent, gone);
        }
        gone.push(slot.node);
    }

    /// Every path by which `id` is known: for each of its names the current path first, then those
    /// its renamed ancestors had in lower layers.
    pub(super) fn paths(&self, id: NodeId) -> Vec<WorkspacePath> {
        let Some(slot) = self.slots.get(&id) else { return vec![] };
        if id == NodeId::ROOT {
            return vec![WorkspacePath::root()];
        }
        let names = if slot.names.is_empty() { slot.former.as_slice() } else { &slot.names };
        let mut paths = Vec::with_capacity(1);
        for (parent, name) in names {
            paths.extend(self.paths_below(*parent, name));
        }
        if let Body::Dir(dir) = &slot.node.body {
            paths.extend(dir.merge.read().origins.iter().cloned());
        }
        paths
    }

    pub(super) fn paths_below(&self, parent: NodeId, name: &[u8]) -> Vec<WorkspacePath> {
        self.paths(parent).iter().map(|path| path.join(name)).collect()
    }

    /// The length of the longest path that leads from a directory to another below it.
    pub(super) fn longest_below(&self, id: NodeId) -> usize {
        let mut longest = 0;
        let mut pending = vec![(id, 0)];
        while let Some((dir, length)) = pending.pop() {
            longest = longest.max(length);
            let Some(slot) = self.slots.get(&dir) else { continue };
            let below = slot
                .children
                .iter()
                .filter(|(_, child)| self.slots.get(child).is_some_and(|slot| slot.node.is_dir()));
            pending.extend(below.map(|(name, child)| (*child, length + length_of(name))));
        }
        longest
    }

    /// The path at which the layers below the live one show this directory.
    pub(super) fn path_below_live(&self, id: NodeId) -> Option<WorkspacePath> {
        if id == NodeId::ROOT {
            return Some(WorkspacePath::root());
        }
        let slot = self.slots.get(&id)?;
        if let Body::Dir(dir) = &slot.node.body
            && let Some(path) = &dir.merge.read().redirect
        {
            return Some(path.clone());
        }
        let (parent, name) = slot.names.first()?;
        Some(self.path_below_live(*parent)?.join(name))
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.slots.values().map(|slot| &slot.node)
    }

    pub(super) fn linked(&self) -> Vec<(NodeId, Vec<Name>)> {
        let linked = self.slots.iter().filter(|(_, slot)| slot.names.len() > 1);
        linked.map(|(id, slot)| (*id, slot.names.clone())).collect()
    }

    pub(super) fn directories(&self) -> Vec<NodeId> {
        let dirs = self.slots.iter().filter(|(_, slot)| slot.node.is_dir());
        dirs.map(|(id, _)| *id).collect()
    }

    pub(super) fn names_in(&self, dir: NodeId) -> Vec<Box<[u8]>> {
        self.slots.get(&dir).map(|slot| slot.children.keys().cloned().collect()).unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}
