//! A node: what one FUSE inode stands for, and where its content is now.

use std::any::Any;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::{Mutex, RwLock};
use ringfence_policy::WorkspacePath;
use rustix::fs::FileType;
use rustix::io::{Errno, Result};

use super::listing::Listing;
use crate::layers::stack::{LayerIndex, Part};

/// Number of a node, which is also the inode number that programs see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u64);

impl NodeId {
    pub const ROOT: Self = Self(1);
}

#[derive(Debug)]
pub struct Node {
    pub id: NodeId,
    pub kind: FileType,
    /// A word for the use of whatever wraps the tree (the guard caches a decision in it).
    pub tag: AtomicU64,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    Dir(DirBody),
    Leaf(LeafBody),
}

#[derive(Debug)]
pub(super) struct DirBody {
    pub(super) merge: RwLock<Merge>,
    pub(super) listing: Mutex<Option<Arc<Listing>>>,
    /// Device and inode of the lowest part: never changes while the node lives.
    pub(super) identity: (u64, u64),
}

/// Which layers a directory is made of.
#[derive(Debug, Clone)]
pub(super) struct Merge {
    /// Uppermost first, never empty.
    pub(super) parts: Arc<[Arc<Part>]>,
    /// The path below at which the live part continues, if it is not its own name.
    pub(super) redirect: Option<WorkspacePath>,
    /// Paths this directory had in lower layers before it was renamed.
    pub(super) origins: Vec<WorkspacePath>,
}

impl Merge {
    pub(super) fn live(&self, layer: LayerIndex) -> Option<&Arc<Part>> {
        self.parts.first().filter(|part| part.layer == layer)
    }

    /// The parts below the live layer.
    pub(super) fn lower(&self, layer: LayerIndex) -> &[Arc<Part>] {
        let skip = usize::from(self.live(layer).is_some());
        &self.parts[skip..]
    }
}

#[derive(Debug)]
pub(super) struct LeafBody {
    /// Keeps names of one lower inode apart (see `table::Key`); 0 where there is only one name.
    pub(super) class: u8,
    pub(super) place: RwLock<Place>,
    pub(super) io: Mutex<Io>,
}

/// Where a leaf's content is.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// Under this name in this part; for the live layer, one of its names.
    At { part: Arc<Part>, name: Box<[u8]>, identity: (u64, u64) },
    /// It has no name left; the descriptor keeps it (and its inode number) alive.
    /// `layer` is where it was: what was below the live layer stays read-only.
    Orphan { fd: Arc<OwnedFd>, layer: LayerIndex, identity: (u64, u64) },
}

impl Place {
    pub(super) fn identity(&self) -> (u64, u64) {
        match self {
            Self::At { identity, .. } | Self::Orphan { identity, .. } => *identity,
        }
    }

    pub(super) fn layer(&self) -> LayerIndex {
        match self {
            Self::At { part, .. } => part.layer,
            Self::Orphan { layer, .. } => *layer,
        }
    }
}

/// How the opens of a file are served. The kernel requires all simultaneous opens of one inode to
/// agree, so the mode is chosen at the first and kept until the last is released.
#[derive(Debug, Default)]
pub(super) struct Io {
    pub(super) opens: u32,
    pub(super) mode: IoMode,
    /// Shared by all opens: the file of the place the leaf is at now.
    pub(super) file: Option<Arc<File>>,
    pub(super) writable: bool,
    /// What the kernel gave for the backing file; it must be the same for all opens.
    pub(super) backing: Option<Backing>,
    /// The kernel's cached pages are still those of the file.
    pub(super) cache_is_fresh: bool,
}

impl Io {
    /// Nothing is held for this file any more.
    pub(super) fn close(&mut self) {
        self.file = None;
        self.writable = false;
        self.backing = None;
    }
}

/// A registered backing file, opaque to the tree.
pub type Backing = Arc<dyn Any + Send + Sync>;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum IoMode {
    /// Reads and writes come to us; the kernel caches pages.
    #[default]
    Cached,
    /// The kernel reads the lower file directly.
    PassthroughLower,
    /// The kernel reads and writes the live file directly.
    PassthroughLive,
}

impl Node {
    pub(super) fn dir(id: NodeId, merge: Merge, identity: (u64, u64)) -> Self {
        let body = Body::Dir(DirBody { merge: merge.into(), listing: Mutex::default(), identity });
        Self { id, kind: FileType::Directory, tag: AtomicU64::new(0), body }
    }

    pub(super) fn leaf(id: NodeId, kind: FileType, place: Place, class: u8) -> Self {
        let body = Body::Leaf(LeafBody { class, place: place.into(), io: Mutex::default() });
        Self { id, kind, tag: AtomicU64::new(0), body }
    }

    pub(super) fn as_dir(&self) -> Result<&DirBody> {
        match &self.body {
            Body::Dir(dir) => Ok(dir),
            Body::Leaf(_) => Err(Errno::NOTDIR),
        }
    }

    pub(super) fn as_leaf(&self) -> Result<&LeafBody> {
        match &self.body {
            Body::Leaf(leaf) => Ok(leaf),
            Body::Dir(_) => Err(Errno::ISDIR),
        }
    }

    pub fn is_dir(&self) -> bool {
        matches!(self.body, Body::Dir(_))
    }

    /// Device and inode of what the node stands for now.
    pub(super) fn identity(&self) -> (u64, u64) {
        match &self.body {
            Body::Dir(dir) => dir.identity,
            Body::Leaf(leaf) => leaf.place.read().identity(),
        }
    }
}
