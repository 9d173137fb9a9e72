//! One call: a view of the nodes, and the kernel that is told what changed.

use std::sync::Arc;

use rustix::io::Result;

use super::view::{Agent, Nodes, Owner};
use super::{Files, View};
use crate::events::{self, AccessEvent, Events};
use crate::guard::Guard;
use crate::kernel::Kernel;
use crate::tree::{Attr, NodeId, Tree};

/// Decisions of one call that are remembered: the last one is the one that ended it.
const HEARD: u64 = 1024;

pub(super) struct Call {
    pub(super) nodes: Box<dyn Nodes>,
    pub(super) tree: Arc<Tree>,
    pub(super) view: View,
    guard: Arc<Guard>,
    kernel: Arc<Kernel>,
    heard: Events,
}

/// A node that stays known for as long as this lives.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) id: NodeId,
    tree: Arc<Tree>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.id != NodeId::ROOT {
            self.tree.forget(self.id, 1);
        }
    }
}

impl Call {
    pub(super) fn new(files: &Files) -> Self {
        let (guard, kernel, view) = (files.guard.clone(), files.kernel.clone(), files.view);
        let (sink, heard) = events::channel(HEARD);
        let nodes: Box<dyn Nodes> = match view {
            View::Owner => Box::new(Owner { guard: guard.clone() }),
            View::Agent => Box::new(Agent { guard: guard.heard_by(sink) }),
        };
        Self { nodes, tree: guard.tree().clone(), view, guard, kernel, heard }
    }

    /// The decision that refused something last.
    pub(super) fn denial(&self) -> Option<AccessEvent> {
        let heard = std::iter::from_fn(|| self.heard.try_next());
        heard.filter(|event| !event.granted).last()
    }

    /// Takes over a node that a lookup counted.
    pub(super) fn hold(&self, id: NodeId) -> Held {
        Held { id, tree: self.tree.clone() }
    }

    pub(super) fn root(&self) -> Held {
        self.hold(NodeId::ROOT)
    }

    /// Finds a name.
    pub(super) fn find(&self, dir: NodeId, name: &[u8]) -> Result<Option<(Held, Attr)>> {
        let _turn = self.tree.alone(&[dir]);
        self.find_in_turn(dir, name)
    }

    /// The same for who has the turn already.
    pub(super) fn find_in_turn(&self, dir: NodeId, name: &[u8]) -> Result<Option<(Held, Attr)>> {
        Ok(self.nodes.lookup(dir, name)?.map(|attr| (self.hold(attr.id), attr)))
    }

    /// Lets programs see what was changed at a name, of which the kernel may remember what or that
    /// nothing was there; `was` is the node it led to. To be called without a turn: the kernel may
    /// hold the directory for a request that waits for one.
    pub(super) fn tell(&self, dir: NodeId, name: &[u8], was: Option<NodeId>) {
        // Of what is hidden nothing is remembered, and what happens there must not show.
        if !self.guard.concerns_programs(dir, name) {
            return;
        }
        for listing in self.guard.listings_above(dir) {
            self.tree.forget_listing(listing);
            self.kernel.forget_content(listing);
        }
        // The listing first: who finds the name must find it listed too.
        self.kernel.forget_content(dir);
        self.kernel.forget_name(dir, name);
        if let Some(was) = was {
            self.kernel.forget_content(was);
        }
    }

    /// Things the kernel knows may have other levels now.
    pub(super) fn tell_levels_moved(&self) {
        self.kernel.forget_all_names(&self.tree);
    }

    /// Makes the kernel write out what programs wrote through mappings of a file.
    pub(super) fn collect_mapped(&self, id: NodeId) {
        if self.tree.may_be_mapped(id) {
            self.kernel.forget_content(id);
        }
    }
}
