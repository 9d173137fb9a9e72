//! What a listing shows: each name is decided by its own level.

use ringfence_policy::{Level, WorkspacePath};
use rustix::fs::FileType;
use rustix::io::Result;

use super::{Guard, Keep, class};
use crate::layers::stack::{Found, Listed};
use crate::levels::may_show;
use crate::tree::{Attr, NodeId};

/// One entry of a listing as programs may see it.
#[derive(Debug)]
pub struct Seen<'a> {
    pub name: &'a [u8],
    pub kind: FileType,
    pub position: u64,
    pub id: NodeId,
    /// Attributes, where they were asked for.
    pub attr: Option<(Attr, Keep)>,
}

impl Guard {
    /// Gives the visible entries behind `offset` to `each` until it has no room, with attributes
    /// if `plus`.
    pub fn readdir(
        &self,
        id: NodeId,
        offset: u64,
        plus: bool,
        mut each: impl FnMut(Seen<'_>) -> bool,
    ) -> Result<()> {
        self.entered(id)?;
        let policy = self.levels.policy();
        let paths = self.tree.paths(id);
        let parents: Vec<_> = paths.iter().map(|path| policy.verdict(path)).collect();
        for (position, listed) in self.tree.list(id)?.after(offset) {
            let below: Vec<_> = paths.iter().map(|path| path.join(&listed.name)).collect();
            let levels = below.iter().zip(&parents);
            let level = levels.map(|(path, parent)| policy.child_verdict(parent, path).level).min();
            let Some(seen) = self.see(id, listed, position, level, &below, plus)? else { continue };
            let known = seen.attr.map(|(attr, _)| attr.id);
            if !each(seen) {
                known.into_iter().for_each(|known| self.tree.forget(known, 1));
                return Ok(());
            }
        }
        self.tree.read_to_end(id);
        Ok(())
    }

    fn see<'l>(
        &self,
        parent: NodeId,
        listed: &'l Listed,
        position: u64,
        level: Option<Level>,
        paths: &[WorkspacePath],
        plus: bool,
    ) -> Result<Option<Seen<'l>>> {
        let level = level.unwrap_or(Level::None);
        let hidden = level == Level::None;
        if hidden && !self.listed_passage(parent, listed, paths)? {
            return Ok(None);
        }
        // The listing alone does not tell of paths from before a rename.
        let may_be_renamed = listed.kind == FileType::Directory && listed.part == 0;
        if !plus && !may_be_renamed {
            let known = self.tree.known_child(parent, &listed.name);
            let id = known.map_or(NodeId(listed.ino.max(2)), |node| node.id);
            return Ok(Some(Seen {
                name: &listed.name,
                kind: listed.kind,
                position,
                id,
                attr: None,
            }));
        }
        let Some(attr) = self.tree.lookup_listed(parent, listed, class(level))? else {
            return Ok(None);
        };
        let keep = match hidden {
            true => {
                self.watch(&attr);
                Some(Keep::No)
            }
            false => self.keep_found(parent, &attr, level)?,
        };
        if keep.is_none() || !plus {
            self.tree.forget(attr.id, 1);
        }
        Ok(keep.map(|keep| Seen {
            name: &listed.name,
            kind: listed.kind,
            position,
            id: attr.id,
            attr: plus.then_some((attr, keep)),
        }))
    }

    fn listed_passage(
        &self,
        parent: NodeId,
        listed: &Listed,
        paths: &[WorkspacePath],
    ) -> Result<bool> {
        if listed.kind != FileType::Directory || !may_show(&self.levels.policy(), paths) {
            return Ok(false);
        }
        match self.tree.peek(parent, &listed.name)? {
            Found::Dir(dir) => self.levels.is_passage(&self.tree, paths, &dir),
            _ => Ok(false),
        }
    }
}
