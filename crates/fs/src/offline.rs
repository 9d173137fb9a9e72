//! A workspace that is not mounted: its files are there, and no program is.

use std::path::PathBuf;
use std::sync::Arc;

use ringfence_policy::Policy;

use crate::error::MountError;
use crate::events::EventSink;
use crate::files::{Files, View};
use crate::guard::{Guard, Owner};
use crate::kernel::Kernel;
use crate::layers::format::LayerDir;
use crate::layers::mask::{MaskDir, MaskOptions};
use crate::layers::pool::DirPool;
use crate::workspace;

/// Directories held open: a server may have many workspaces at hand.
const DIRECTORIES: usize = 64;

/// What to open.
#[derive(Debug, Clone)]
pub struct OfflineOptions {
    pub base: PathBuf,
    /// Where changes go; made if it does not exist.
    pub layer: PathBuf,
    pub mask: MaskOptions,
}

/// The workspace and the lock on its layer: as long as this lives nobody can mount it, and
/// whoever wants to work in it at the same time has to share this one.
#[derive(Debug)]
pub struct Offline {
    guard: Arc<Guard>,
    layer: LayerDir,
}

/// Opens a workspace that is not mounted. `policy` decides in the agent's view, and what is changed
/// counts as changed under it.
pub fn open_offline(options: &OfflineOptions, policy: Arc<Policy>) -> Result<Offline, MountError> {
    let base = workspace::check_base(&options.base)?;
    let future = workspace::resolve_future(&options.layer);
    if future.starts_with(&base) || base.starts_with(&future) {
        return Err(MountError::LayerInsideBase { layer: future, base });
    }
    let base_fd = workspace::open_base(&base)?;
    let mask = MaskDir::root(&options.mask, &base_fd);
    let layer = workspace::open_layer(&options.layer, &base, &policy, &options.mask)?;
    let layers = workspace::open_stack(base_fd, mask, &layer, &DirPool::new(DIRECTORIES))?;
    let tree = workspace::build_tree(layers, &layer, false, None)?;
    // Nobody sees an owner here.
    let owner = Owner { uid: 0, gid: 0 };
    let guard = Arc::new(Guard::new(tree, policy, EventSink::default(), owner));
    Ok(Offline { guard, layer })
}

impl Offline {
    pub fn files(&self, view: View) -> Files {
        Files::new(self.guard.clone(), Arc::new(Kernel::default()), view)
    }

    pub fn layer(&self) -> &LayerDir {
        &self.layer
    }

    /// The layer, still locked, for [`apply`](crate::apply::apply) and the like. Files that somebody
    /// still has must not be used any more.
    pub fn into_layer(self) -> LayerDir {
        self.layer
    }
}
