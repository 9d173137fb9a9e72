//! The layered tree as the kernel sees it: nodes, lookups and every file operation, without policy.
//!
//! | file | what is in it |
//! |---|---|
//! | `node`, `table` | what a FUSE inode stands for; numbers and names |
//! | `listing` | reading directories |
//! | `upper` | copying to the live layer |
//! | `entries`, `rename` | making, removing and moving names |
//! | `files` | open, read, write and the rest of a file's life |
//! | `turns`, `beside` | how calls of the API get on with the kernel, and what they need beside |
//! | `attributes` | stat, chmod, times, extended attributes |
//! | `snapshot` | freezing the live layer under a running mount |
//!
//! Locks, in the order they are taken: `turns` (see below), `state` (shared by every operation,
//! exclusive for a snapshot), `copying` (one directory copied up at a time), a node's own locks,
//! `table`.
//!
//! The kernel already serialises its changes and lookups within one directory; `turns` does it
//! between those and calls of the API.

mod attributes;
mod beside;
mod entries;
mod files;
mod listing;
mod node;
mod rename;
mod snapshot;
mod table;
mod turns;
mod upper;

use std::collections::VecDeque;
use std::hash::RandomState;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use ringfence_policy::WorkspacePath;
use rustix::fs::{FileType, Stat};
use rustix::io::{Errno, Result};

use crate::layers::copy::Work;
use crate::layers::marks;
use crate::layers::stack::{BASE, Found, LayerIndex, Leaf, Merged, Part, Stack};
use crate::watch::Watch;

pub use attributes::{Attr, SetAttr, Time};
pub use files::{Backer, Handle, NoBacking, OpenFor, Opened};
pub use listing::Listing;
pub use node::{Backing, Node, NodeId};
pub use rename::RenameMode;

pub use table::Name;

use node::{Merge, Place};
use table::{Key, Sighting, Table};
use turns::{Turn, Turns};

/// The turn of a request, beside others.
pub type SharedTurn<'t> = Turn<parking_lot::RwLockReadGuard<'t, ()>>;
/// The turn of a call.
pub type SoleTurn<'t> = Turn<parking_lot::RwLockWriteGuard<'t, ()>>;

/// The top of the stack, where changes go.
#[derive(Debug)]
pub struct Live {
    pub layer: LayerIndex,
    /// Shared with files that somebody is still filling when the layer is frozen.
    pub work: Arc<Work>,
    /// Copies of base files with several names, by their origin; the live layer's, then the frozen
    /// ones'.
    pub links: Vec<Arc<Part>>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) stack: Stack,
    pub(crate) live: Live,
}

#[derive(Debug)]
pub struct Tree {
    turns: Turns,
    state: RwLock<State>,
    table: RwLock<Table>,
    copying: Mutex<()>,
    handles: files::Handles,
    parked: Mutex<VecDeque<Weak<Node>>>,
    hasher: RandomState,
    /// Cleared at the first refusal: without the privilege every open would ask in vain.
    passthrough: AtomicBool,
    /// Counts changes of the tree's shape, for caches of what a subtree contains.
    changes: AtomicU64,
    watch: Option<Arc<Watch>>,
    /// Whether `links/` may hold anything: looked at only then.
    has_links: AtomicBool,
}

impl Tree {
    /// A tree over `stack`, whose uppermost layer is `live`.
    pub fn new(
        stack: Stack,
        live: Live,
        passthrough: bool,
        watch: Option<Arc<Watch>>,
    ) -> Result<Self> {
        let root = stack.root()?;
        let identity = root.identity;
        let merge = Merge { parts: root.parts.into(), redirect: None, origins: vec![] };
        if let (Some(watch), Some(base)) = (&watch, stack.roots().last()) {
            watch.add(NodeId::ROOT, base);
        }
        let node = Arc::new(Node::dir(NodeId::ROOT, merge, identity));
        let has_links = live.links.iter().any(upper::holds_entries);
        Ok(Self {
            turns: Turns::default(),
            state: RwLock::new(State { stack, live }),
            table: RwLock::new(Table::new(node)),
            copying: Mutex::new(()),
            handles: files::Handles::default(),
            parked: Mutex::default(),
            hasher: RandomState::new(),
            passthrough: AtomicBool::new(passthrough),
            changes: AtomicU64::new(1),
            watch,
            has_links: AtomicBool::new(has_links),
        })
    }

    pub fn node(&self, id: NodeId) -> Result<Arc<Node>> {
        self.table.read().get(id).ok_or(Errno::STALE)
    }

    /// A node the kernel was told of under this name, if it is known.
    pub fn known_child(&self, parent: NodeId, name: &[u8]) -> Option<Arc<Node>> {
        self.table.read().child(parent, name)
    }

    /// All paths by which a node is known, the current ones and those from before renames.
    pub fn paths(&self, id: NodeId) -> Vec<WorkspacePath> {
        self.table.read().paths(id)
    }

    /// All paths of an entry, whether or not it exists.
    pub fn paths_below(&self, parent: NodeId, name: &[u8]) -> Vec<WorkspacePath> {
        self.table.read().paths_below(parent, name)
    }

    /// How many nodes the kernel remembers.
    pub fn len(&self) -> usize {
        self.table.read().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Increases with every change of names, here or (where it is watched) in the base.
    pub fn generation(&self) -> u64 {
        let base = self.watch.as_ref().map_or(0, |watch| watch.generation());
        self.changes.load(Ordering::Acquire) + base
    }

    pub(crate) fn changed(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Finds `name` and makes it known to the kernel. `class` keeps names of one inode apart that
    /// the caller treats differently; 0 is for names that may be written to.
    pub fn lookup(&self, parent: NodeId, name: &[u8], class: u8) -> Result<Option<Attr>> {
        let state = self.state.read();
        let node = self.node(parent)?;
        let parts = node.as_dir()?.merge.read().parts.clone();
        let found = state.stack.find(&parts, name)?;
        self.adopt(&state, parent, name, found, class)
    }

    /// Finds `name` without making it known.
    pub fn peek(&self, parent: NodeId, name: &[u8]) -> Result<Found> {
        let state = self.state.read();
        let node = self.node(parent)?;
        let parts = node.as_dir()?.merge.read().parts.clone();
        state.stack.find(&parts, name)
    }

    /// Whether a directory was renamed, so that paths from before count for it.
    pub fn has_origins(&self, id: NodeId) -> bool {
        let node = self.table.read().get(id);
        node.is_some_and(|node| node.as_dir().is_ok_and(|dir| !dir.merge.read().origins.is_empty()))
    }

    /// Nodes with several names, and those names.
    pub(crate) fn linked(&self) -> Vec<(NodeId, Vec<table::Name>)> {
        self.table.read().linked()
    }

    /// Takes all names from a node: the next lookup of any of them decides anew which node it is.
    pub fn detach(&self, id: NodeId) {
        self.table.write().detach(id);
    }

    pub fn forget(&self, id: NodeId, count: u64) {
        let gone = self.table.write().forget(id, count);
        drop(gone);
    }

    /// The layers a directory node is made of, for walks that make no nodes.
    pub fn merged(&self, id: NodeId) -> Result<Merged> {
        let node = self.node(id)?;
        let dir = node.as_dir()?;
        let merge = dir.merge.read().clone();
        let stat = merge.parts[0].own_stat()?;
        Ok(Merged {
            parts: merge.parts.to_vec(),
            stat,
            identity: dir.identity,
            redirect: merge.redirect,
            origins: merge.origins,
        })
    }

    pub fn with_stack<R>(&self, walk: impl FnOnce(&Stack) -> R) -> R {
        walk(&self.state.read().stack)
    }

    /// Whether changes made outside to what is behind `id` are noticed: for a directory those in
    /// it, for anything else those to itself.
    pub fn is_watched(&self, id: NodeId) -> bool {
        let Some(watch) = &self.watch else { return true };
        let Ok(node) = self.node(id) else { return false };
        match node.as_dir() {
            Ok(dir) => {
                let in_base = dir.merge.read().parts.last().is_some_and(|part| part.layer == BASE);
                !in_base || watch.covers(id)
            }
            Err(_) => {
                let parents = self.table.read().names(id);
                parents.iter().all(|(parent, _)| watch.covers(*parent))
            }
        }
    }

    /// Changes made outside in a directory of the base are noticed from now on, if possible.
    pub fn watch(&self, id: NodeId) {
        let Some(watch) = &self.watch else { return };
        let Ok(node) = self.node(id) else { return };
        let Ok(dir) = node.as_dir() else { return };
        let parts = dir.merge.read().parts.clone();
        let Some(lowest) = parts.last().filter(|part| part.layer == BASE) else { return };
        // The times it is shown with are those of now, until something visible moves them.
        if watch.add(id, lowest)
            && let Ok(mut stat) = parts[0].own_stat()
        {
            self.show_times(id, &parts[0], &mut stat);
        }
    }

    /// Whether any program has the file open.
    pub fn is_open(&self, id: NodeId) -> bool {
        let node = self.table.read().get(id);
        node.is_some_and(|node| node.as_leaf().is_ok_and(|leaf| leaf.io.lock().opens > 0))
    }

    fn adopt(
        &self,
        state: &State,
        parent: NodeId,
        name: &[u8],
        found: Found,
        class: u8,
    ) -> Result<Option<Attr>> {
        match found {
            Found::Absent => Ok(None),
            Found::Dir(merged) => Ok(Some(self.adopt_dir(parent, name, merged))),
            Found::Leaf(leaf) => {
                let leaf = self.follow_link(state, leaf, class)?;
                Ok(Some(self.adopt_leaf(state, parent, name, leaf, class)))
            }
        }
    }

    /// The host moved the times of a directory by something visible.
    pub(crate) fn times_moved(&self, id: NodeId) {
        if let Some(watch) = &self.watch {
            watch.times_moved(id);
        }
    }

    /// Attributes of a directory, given those of its uppermost part.
    fn dir_attr(&self, id: NodeId, part: &Part, mut stat: Stat) -> Attr {
        self.show_times(id, part, &mut stat);
        Attr::of_dir(id, &stat)
    }

    fn show_times(&self, id: NodeId, part: &Part, stat: &mut Stat) {
        if let Some(watch) = self.watch.as_ref().filter(|_| part.layer == BASE) {
            watch.show_times(id, stat);
        }
    }

    fn adopt_dir(&self, parent: NodeId, name: &[u8], merged: Merged) -> Attr {
        let key = Key { identity: merged.identity, class: 0 };
        let (stat, top) = (merged.stat, merged.parts[0].clone());
        let found = Sighting { key, current: merged.identity, has_one_name: true };
        let node = self.table.write().adopt(parent, name, &found, |id| {
            let Merged { parts, redirect, origins, .. } = merged;
            Node::dir(id, Merge { parts: parts.into(), redirect, origins }, key.identity)
        });
        self.dir_attr(node.id, &top, stat)
    }

    fn adopt_leaf(
        &self,
        state: &State,
        parent: NodeId,
        name: &[u8],
        leaf: Leaf,
        class: u8,
    ) -> Attr {
        let current = (leaf.stat.st_dev, leaf.stat.st_ino);
        if let Some(id) = self.recount(parent, name, current) {
            return self.leaf_attr(state, id, &leaf);
        }
        let key = key_of(&leaf, class);
        let kind = FileType::from_raw_mode(leaf.stat.st_mode);
        let has_one_name = leaf.part.layer == BASE && leaf.stat.st_nlink == 1;
        let found = Sighting { key, current, has_one_name };
        let node = self.table.write().adopt(parent, name, &found, |id| {
            let (part, name) = (leaf.part.clone(), leaf.name.clone());
            Node::leaf(id, kind, Place::At { part, name, identity: current }, key.class)
        });
        self.leaf_attr(state, node.id, &leaf)
    }

    /// The link count of a base file says that it has other names, maybe hidden ones; that of a
    /// copy counts the one in `links/` too. Neither is shown.
    fn leaf_attr(&self, state: &State, id: NodeId, leaf: &Leaf) -> Attr {
        let mut attr = Attr::of_leaf(id, &leaf.stat);
        if leaf.part.layer == BASE {
            attr.nlink = attr.nlink.min(1);
        } else if self.is_linked_copy(state, leaf) {
            attr.nlink -= 1;
        }
        attr
    }

    /// Counts another lookup of a name whose node still stands for the same thing.
    fn recount(&self, parent: NodeId, name: &[u8], current: (u64, u64)) -> Option<NodeId> {
        let mut table = self.table.write();
        let known = table.child(parent, name).filter(|node| node.identity() == current)?;
        table.count(known.id);
        Some(known.id)
    }
}

/// A file of a delta that was copied from below keeps the number of its origin. Names of one inode
/// are kept apart by class.
fn key_of(leaf: &Leaf, class: u8) -> Key {
    let current = (leaf.stat.st_dev, leaf.stat.st_ino);
    let regular = FileType::from_raw_mode(leaf.stat.st_mode) == FileType::RegularFile;
    let origin = (leaf.part.layer != BASE && regular)
        .then(|| leaf.part.fd().ok().and_then(|dir| marks::read_stamp(dir, &leaf.name)))
        .flatten();
    let identity = origin.map_or(current, |stamp| (stamp.dev, stamp.ino));
    Key { identity, class: if leaf.stat.st_nlink > 1 { class } else { 0 } }
}
