//! Listings with positions that stay valid while the directory changes.
//!
//! The kernel reads a directory in pieces and without a handle of ours (see `fuse`), and programs
//! delete while they read. So a position is not a count but a keyed hash of the name: what comes
//! after it is well defined whatever was added or removed, and it tells nothing about other
//! entries.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use rustix::io::Result;

use super::node::NodeId;
use super::{Attr, State, Tree};
use crate::layers::stack::{Found, LayerIndex, Leaf, Listed, Merged, Part};

/// A directory's entries in the order of their positions.
#[derive(Debug)]
pub struct Listing {
    entries: Vec<(u64, Listed)>,
}

/// Positions 1 and 2 are for `.` and `..`.
const FIRST_POSITION: u64 = 3;

impl Listing {
    pub(super) fn new(listed: Vec<Listed>, hasher: &RandomState) -> Self {
        let mut entries: Vec<_> = listed
            .into_iter()
            .map(|entry| ((hasher.hash_one(&entry.name) >> 2) + FIRST_POSITION, entry))
            .collect();
        entries.sort_unstable_by(|a, b| (a.0, &a.1.name).cmp(&(b.0, &b.1.name)));
        Self { entries }
    }

    /// Entries behind `position`, with their own positions.
    pub fn after(&self, position: u64) -> impl Iterator<Item = (u64, &Listed)> {
        let first = self.entries.partition_point(|(at, _)| *at <= position);
        self.entries[first..].iter().map(|(at, entry)| (*at, entry))
    }
}

impl Tree {
    /// The entries of a directory. Kept between the pieces of one read, dropped by [`Tree::read_to_end`].
    pub fn list(&self, id: NodeId) -> Result<Arc<Listing>> {
        let state = self.state.read();
        let node = self.node(id)?;
        let dir = node.as_dir()?;
        if let Some(listing) = &*dir.listing.lock() {
            return Ok(listing.clone());
        }
        let parts = dir.merge.read().parts.clone();
        let listing = Arc::new(Listing::new(state.stack.list(&parts)?, &self.hasher));
        *dir.listing.lock() = Some(listing.clone());
        Ok(listing)
    }

    /// A reader has seen the whole directory: its listing is no longer kept in memory.
    pub fn read_to_end(&self, id: NodeId) {
        self.drop_listing(id);
    }

    /// The directory changed outside.
    pub fn forget_listing(&self, id: NodeId) {
        self.drop_listing(id);
    }

    /// Directories the kernel knows.
    pub fn known_directories(&self) -> Vec<NodeId> {
        self.table.read().directories()
    }

    /// Names the kernel knows in a directory.
    pub fn known_names(&self, dir: NodeId) -> Vec<Box<[u8]>> {
        self.table.read().names_in(dir)
    }

    pub(super) fn drop_listing(&self, id: NodeId) {
        if let Ok(node) = self.node(id)
            && let Ok(dir) = node.as_dir()
        {
            *dir.listing.lock() = None;
        }
    }

    /// Looks up an entry of a listing: one system call where the general lookup may need several.
    pub fn lookup_listed(
        &self,
        parent: NodeId,
        listed: &Listed,
        class: u8,
    ) -> Result<Option<Attr>> {
        let state = self.state.read();
        let node = self.node(parent)?;
        let parts = node.as_dir()?.merge.read().parts.clone();
        let found = find_listed(&state, &parts, listed)?;
        self.adopt(&state, parent, &listed.name, found, class)
    }
}

fn find_listed(state: &State, parts: &[Arc<Part>], listed: &Listed) -> Result<Found> {
    let part = parts.get(listed.part);
    let Some(part) = part.filter(|part| is_plain(part, parts, state.live.layer)) else {
        return state.stack.find(parts, &listed.name);
    };
    let Some(stat) = part.stat(&listed.name)? else { return Ok(Found::Absent) };
    if !rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir() {
        return Ok(Found::Leaf(Leaf { part: part.clone(), name: listed.name.clone(), stat }));
    }
    Ok(Found::Dir(Merged {
        parts: vec![Part::below(part, &listed.name)?],
        stat,
        identity: (stat.st_dev, stat.st_ino),
        redirect: None,
        origins: vec![],
    }))
}

/// Whether entries of this part need no look at other layers: it is the base, and as the listing
/// found the name here, no part above has it.
fn is_plain(part: &Part, parts: &[Arc<Part>], live: LayerIndex) -> bool {
    part.layer == crate::layers::stack::BASE
        && live != part.layer
        && parts.last().is_some_and(|last| last.layer == part.layer)
}
