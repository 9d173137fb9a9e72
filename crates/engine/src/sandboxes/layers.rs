//! The layers of sandboxes: where they are, which of them are needed, and letting go of the others.
//!
//! ```text
//! layers/ly_…     a live or frozen layer, of whichever sandbox or snapshot
//!       /trash/…  those nobody needs any more, on their way out
//! ```
//!
//! A layer outlives the sandbox it was made for as long as others stand on it, so layers are not kept
//! in the directories of sandboxes. Whether one is needed is never counted, only looked up: records
//! of sandboxes and snapshots name theirs, and a layer knows which others stand on it.
//!
//! A sandbox goes on in another layer when its own is frozen. The layer is frozen and its successor
//! made before the record follows, so a record may name a layer that is frozen already. Then the
//! sandbox goes on in the one layer that stands on it and that nobody has on record.

use std::collections::BTreeSet;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ringfence_fs::LayerError;
use ringfence_fs::layers::format::{LayerDir, LayerState};
use ringfence_sys::removal::remove_tree;

use super::Sandboxes;
use crate::codebases::Pinned;
use crate::id::{Kind, random_digits};
use crate::problem::{Code, Problem, Result};
use crate::store::SandboxRecord;

const TRASH: &str = "trash";

/// What a sandbox stands on. The base is held for as long as this lives.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) record: SandboxRecord,
    pub(super) base: Pinned,
    pub(super) layer: PathBuf,
}

impl Sandboxes {
    /// Pins the version of the codebase that a sandbox stands on, and finds its live layer. Whoever
    /// asks has the sandbox's gate.
    pub(super) fn ground(&self, mut record: SandboxRecord) -> Result<Ground> {
        let version = record.codebase_version;
        let base = self.inner.codebases.pin(&record.account, &record.codebase_id, version)?;
        if version.is_none() {
            record =
                self.change(&record.id, |record| record.codebase_version = Some(base.version))?;
        }
        let record = self.settle_layer(record)?;
        let layer = self.layer_path(&record.layer);
        Ok(Ground { record, base, layer })
    }

    /// The live layer of a sandbox of one command is kept with it: it outlives the server.
    pub(super) fn layer_path(&self, name: &str) -> PathBuf {
        match self.is_of_command() && Kind::Sandbox.check(name) {
            true => self.dir(name).join("layer"),
            false => self.inner.settings.state.join(relative(name)),
        }
    }

    /// What the first layer of a sandbox is called.
    pub(super) fn first_layer(&self, sandbox: &str) -> String {
        match self.is_of_command() {
            true => sandbox.to_owned(),
            false => Kind::Layer.random(),
        }
    }

    /// Makes the record name the live layer, and the layer exist if it stands on a snapshot. One that
    /// stands on the codebase alone is made by whoever opens it.
    pub(super) fn settle_layer(&self, record: SandboxRecord) -> Result<SandboxRecord> {
        make_private(&self.layer_path(TRASH))?;
        let path = self.layer_path(&record.layer);
        match LayerDir::inspect(&path) {
            Ok(layer) if layer.meta().state == LayerState::Live => Ok(record),
            Ok(frozen) => self.go_on_above(&frozen, record),
            Err(LayerError::Missing { .. } | LayerError::NotALayer { .. }) => {
                remove_unfinished(&path)?;
                self.make_on_snapshot(&path, &record)?;
                Ok(record)
            }
            Err(error) => Err(Problem::internal("open the layer of the sandbox", error)),
        }
    }

    fn go_on_above(&self, frozen: &LayerDir, record: SandboxRecord) -> Result<SandboxRecord> {
        let next = match self.unnamed_child(frozen)? {
            Some(name) => name,
            None => self.fork_layer(frozen.path())?,
        };
        tracing::info!(sandbox = record.id, layer = next, "its layer was frozen; it goes on");
        self.change(&record.id, |record| record.layer = next)
    }

    fn unnamed_child(&self, frozen: &LayerDir) -> Result<Option<String>> {
        let children =
            frozen.children().map_err(|e| Problem::internal("look for the next layer", e))?;
        for child in children {
            let name = name_of(&child);
            if !self.inner.store.is_layer_named(&name, &relative(&name))? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    fn make_on_snapshot(&self, path: &Path, record: &SandboxRecord) -> Result<()> {
        let Some(id) = &record.snapshot_id else { return Ok(()) };
        let snapshot = self.inner.store.snapshot(&record.account, id)?;
        let snapshot =
            snapshot.ok_or_else(|| Problem::new(Code::SnapshotNotFound, "snapshot not found"))?;
        self.fork_at(&self.inner.settings.state.join(snapshot.layer_path), path)
    }

    /// A new live layer on a frozen one.
    pub(super) fn fork_layer(&self, frozen: &Path) -> Result<String> {
        let name = Kind::Layer.random();
        self.fork_at(frozen, &self.layer_path(&name))?;
        Ok(name)
    }

    fn fork_at(&self, frozen: &Path, path: &Path) -> Result<()> {
        let _turn = self.inner.layers.lock();
        let made = LayerDir::inspect(frozen).and_then(|frozen| frozen.fork(path));
        made.map(|_| ()).map_err(|e| Problem::internal("make a layer", e))
    }

    /// Removes a layer that its sandbox or snapshot no longer needs, unless others do; and then those
    /// below it that were there for it alone. What cannot be removed now goes at the next start.
    pub(super) fn release_layer(&self, name: &str) {
        let mut next = Some(self.layer_path(name));
        while let Some(path) = next {
            next = self.take_away(&path).unwrap_or_else(|error| {
                tracing::warn!(layer = %path.display(), %error, "a layer is left");
                None
            });
        }
    }

    /// Returns the layer below, if this one is gone.
    fn take_away(&self, path: &Path) -> std::result::Result<Option<PathBuf>, LayerError> {
        let failed = |e: std::io::Error| LayerError::io("remove", path, e);
        let turn = self.inner.layers.lock();
        let name = name_of(path);
        let named = self.inner.store.is_layer_named(&name, &relative(&name));
        if named.map_err(|e| failed(std::io::Error::other(e)))? {
            return Ok(None);
        }
        let layer = match LayerDir::inspect(path) {
            Err(LayerError::Missing { .. }) => return Ok(None),
            layer => layer?,
        };
        if !layer.children()?.is_empty() {
            return Ok(None);
        }
        let below = layer.meta().parents.first().cloned();
        let gone = self.layer_path(TRASH).join(random_digits::<8>());
        std::fs::rename(path, &gone).map_err(failed)?;
        if let Some(below) = &below {
            // A note about a layer that is gone means nothing.
            let _ = std::fs::remove_file(below.join("children").join(&layer.meta().id));
        }
        drop(turn);
        remove_tree(&gone).map_err(failed)?;
        Ok(below)
    }

    /// Removes layers that nobody needs. Nobody may use any meanwhile. Says how many there were.
    pub(super) fn sweep_layers(&self) -> Result<usize> {
        let failed = |e: std::io::Error| Problem::internal("look at the layers", e);
        let needed = self.needed_layers()?;
        make_private(&self.layer_path(TRASH))?;
        let all = self.layer_path("");
        let mut removed = 0;
        for entry in std::fs::read_dir(all).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name() == TRASH || needed.contains(&name_of(&entry.path())) {
                continue;
            }
            remove_tree(&entry.path()).map_err(failed)?;
            removed += 1;
        }
        for entry in std::fs::read_dir(self.layer_path(TRASH)).map_err(failed)? {
            remove_tree(&entry.map_err(failed)?.path()).map_err(failed)?;
        }
        Ok(removed)
    }

    /// Those on record with all below them. A layer that cannot be read may need any other.
    fn needed_layers(&self) -> Result<BTreeSet<String>> {
        let store = &self.inner.store;
        let of_sandboxes = store.all_sandboxes()?.into_iter().map(|record| record.layer);
        let of_snapshots = store.all_snapshots()?.into_iter().map(|s| name_of(&s.layer_path));
        let mut needed = BTreeSet::new();
        for name in of_sandboxes.chain(of_snapshots) {
            match LayerDir::inspect(&self.layer_path(&name)) {
                Ok(layer) => needed.extend(layer.meta().parents.iter().map(|path| name_of(path))),
                Err(LayerError::Missing { .. } | LayerError::NotALayer { .. }) => {}
                Err(error) => return Err(Problem::internal("read a layer", error)),
            }
            needed.insert(name);
        }
        Ok(needed)
    }
}

/// A layer's path below the state directory.
pub(super) fn relative(name: &str) -> PathBuf {
    Path::new("layers").join(name)
}

pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A layer without its description was never finished, and so nothing was ever written to it.
fn remove_unfinished(path: &Path) -> Result<()> {
    let failed = |e: std::io::Error| Problem::internal("make a layer", e);
    let entries = std::fs::read_dir(path.join("tree")).into_iter().flatten();
    if entries.count() > 0 {
        return Err(failed(std::io::Error::other("a layer has lost its description")));
    }
    remove_tree(path).map_err(failed)
}

fn make_private(path: &Path) -> Result<()> {
    std::fs::DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(path)
        .map_err(|e| Problem::internal("make a directory", e))
}
