//! What the guard must see to when its owner works in the workspace: nothing is decided, but names
//! of one file that have different levels for programs must go on to be different nodes, and levels
//! that were worked out must be forgotten where paths change.

use ringfence_policy::Level;
use rustix::fs::FileType;
use rustix::io::Result;

use super::{Guard, class};
use crate::levels::{lowest, may_show};
use crate::tree::{Attr, NodeId, RenameMode};

impl Guard {
    /// Finds a name and counts it as known, whatever its level is.
    pub(crate) fn owners_lookup(&self, parent: NodeId, name: &[u8]) -> Result<Option<Attr>> {
        let level = self.levels.of_name(&self.tree, parent, name);
        self.tree.lookup(parent, name, class(level))
    }

    /// Gives every entry behind `offset` to `each` until it has enough, counted as known.
    pub(crate) fn owners_readdir(
        &self,
        id: NodeId,
        offset: u64,
        each: &mut dyn FnMut(u64, &[u8], Attr) -> bool,
    ) -> Result<()> {
        for (position, listed) in self.tree.list(id)?.after(offset) {
            let level = self.levels.of_name(&self.tree, id, &listed.name);
            let Some(attr) = self.tree.lookup_listed(id, listed, class(level))? else { continue };
            if !each(position, &listed.name, attr) {
                self.tree.forget(attr.id, 1);
                return Ok(());
            }
        }
        self.tree.read_to_end(id);
        Ok(())
    }

    /// Whether programs may know that a name is or is not in this directory.
    pub(crate) fn concerns_programs(&self, dir: NodeId, name: &[u8]) -> bool {
        let (policy, paths) = (self.levels.policy(), self.tree.paths_below(dir, name));
        lowest(&policy, &paths) > Level::None || may_show(&policy, &paths)
    }

    /// Directories whose listing depends on what is below `dir`, because a hidden directory in them
    /// is shown only as a passage to something visible.
    pub(crate) fn listings_above(&self, mut dir: NodeId) -> Vec<NodeId> {
        let mut above = Vec::new();
        while let Some((parent, name)) = self.tree.one_name(dir) {
            if self.levels.of_name(&self.tree, parent, &name) == Level::None {
                above.push(parent);
            }
            dir = parent;
        }
        above
    }

    /// Says whether levels of things the kernel knows may have changed with their paths.
    pub(crate) fn owners_rename(&self, from: (NodeId, &[u8]), to: (NodeId, &[u8])) -> Result<bool> {
        let moved = self.tree.known_child(from.0, from.1);
        self.tree.rename(from, to, RenameMode::Replace)?;
        self.levels.forget();
        let is_dir = moved.is_some_and(|node| node.kind == FileType::Directory);
        Ok(is_dir && !self.is_uniform())
    }
}
