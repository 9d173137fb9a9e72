//! What calls of the API need beside the requests of the kernel.
//!
//! A call reads through a descriptor of its own, which does not count among the opens of programs:
//! those must all be served the same way, and a download is no reason to serve them slower. It
//! writes beside, and replaces the file in one step, as a program would that writes a new file and
//! renames it.

use std::fs::File;
use std::sync::Arc;

use rustix::fs::{FileType, OFlags};
use rustix::io::{Errno, Result};

use super::files::{is_live, open_with};
use super::node::{IoMode, Node, NodeId};
use super::{Name, SharedTurn, SoleTurn, Tree};
use crate::layers::stack::Found;
use crate::layers::temporary::Temporary;

impl Tree {
    /// Held while a request of the kernel is served that finds or changes names in `dirs`.
    pub fn turn(&self, dirs: &[NodeId]) -> SharedTurn<'_> {
        self.turns.shared(dirs)
    }

    /// The same for names of directories, which the kernel locks with those they are in.
    pub fn turn_of(&self, names: &[(NodeId, &[u8])]) -> SharedTurn<'_> {
        loop {
            let dirs = self.dirs_of(names);
            let turn = self.turns.shared(&dirs);
            if dirs == self.dirs_of(names) {
                return turn;
            }
        }
    }

    /// Held for one step of a call. Whoever holds it must not wait for the kernel, which may be
    /// waiting for a turn of its own.
    pub fn alone(&self, dirs: &[NodeId]) -> SoleTurn<'_> {
        self.turns.alone(dirs)
    }

    /// As [`Tree::turn_of`].
    pub fn alone_with(&self, names: &[(NodeId, &[u8])]) -> SoleTurn<'_> {
        loop {
            let dirs = self.dirs_of(names);
            let turn = self.turns.alone(&dirs);
            if dirs == self.dirs_of(names) {
                return turn;
            }
        }
    }

    /// For moving a directory: no other may move meanwhile, or the two could end up in each other.
    pub fn alone_everywhere(&self) -> SoleTurn<'_> {
        self.turns.everywhere()
    }

    /// The directories of some names, and those that are behind the names.
    fn dirs_of(&self, names: &[(NodeId, &[u8])]) -> Vec<NodeId> {
        let table = self.table.read();
        let behind = names.iter().filter_map(|(dir, name)| table.child(*dir, name));
        let behind = behind.filter(|node| node.is_dir()).map(|node| node.id);
        names.iter().map(|(dir, _)| *dir).chain(behind).collect()
    }

    /// A descriptor of a regular file, for reading.
    pub fn open_beside(&self, id: NodeId) -> Result<File> {
        let _state = self.state.read();
        let node = self.node(id)?;
        match node.kind {
            FileType::RegularFile => open_with(&node.as_leaf()?.place.read(), OFlags::RDONLY),
            FileType::Directory => Err(Errno::ISDIR),
            // A fifo would make the caller wait for a program, and a socket is nothing to read.
            _ => Err(Errno::INVAL),
        }
    }

    /// Whether a program may have written to the file through a mapping that the kernel keeps to
    /// itself so far: where it does not pass the file through.
    pub fn may_be_mapped(&self, id: NodeId) -> bool {
        self.node(id).is_ok_and(|node| self.may_hold_pages(&node))
    }

    /// Files of which that is so.
    pub fn maybe_mapped(&self) -> Vec<NodeId> {
        let nodes: Vec<Arc<Node>> = self.table.read().nodes().cloned().collect();
        nodes.iter().filter(|node| self.may_hold_pages(node)).map(|node| node.id).collect()
    }

    fn may_hold_pages(&self, node: &Node) -> bool {
        let Ok(leaf) = node.as_leaf() else { return false };
        let state = self.state.read();
        let io = leaf.io.lock();
        io.opens > 0 && io.mode == IoMode::Cached && is_live(&state, leaf)
    }

    /// An empty file to be filled and put in its place by [`Tree::put`].
    pub fn stage(&self) -> Result<Temporary> {
        Temporary::new(&self.state.read().live.work)
    }

    /// Puts `staged` at a name, where there is nothing or a regular file. Programs that have that one
    /// open keep it.
    pub fn put(&self, at: (NodeId, &[u8]), staged: Temporary, mode: u32) -> Result<()> {
        let (parent, name) = at;
        let state = self.state.read();
        let parts = self.node(parent)?.as_dir()?.merge.read().parts.clone();
        match state.stack.find(&parts, name)? {
            Found::Dir(_) => return Err(Errno::ISDIR),
            Found::Leaf(leaf) if !is_regular(leaf.stat.st_mode) => return Err(Errno::INVAL),
            _ => {}
        }
        let above = self.upper(&state, parent)?;
        let kept = self.place_without(&state, parent, name)?;
        staged.publish(above.fd()?, name, mode)?;
        self.name_is_gone(parent, name, kept);
        Ok(())
    }

    /// Whether a directory is another one or above it.
    pub fn is_above(&self, above: NodeId, mut dir: NodeId) -> bool {
        while dir != above {
            let Some((parent, _)) = self.one_name(dir) else { return false };
            dir = parent;
        }
        true
    }

    /// One name of a node and the directory it is in; none of the root and of what was removed.
    pub fn one_name(&self, id: NodeId) -> Option<Name> {
        self.table.read().names(id).into_iter().next()
    }
}

fn is_regular(mode: u32) -> bool {
    FileType::from_raw_mode(mode) == FileType::RegularFile
}
