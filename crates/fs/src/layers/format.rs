//! A layer as a directory on disk: creating, opening, freezing, forking, removing.
//!
//! ```text
//! LAYER/
//!   layer.json   format version, id, state, base, parents, rules
//!   tree/        plain files, mirroring the workspace; marks in extended attributes
//!   work/        entries being prepared; emptied at every open
//!   links/       copies of base files with several names, by origin (see `stack`)
//!   children/    one file per layer that stands on this one, holding its path
//! ```

use std::fs::{self, File, FileTimes};
use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ringfence_sys::files::Locked;
use ringfence_sys::removal;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::copy::remove_tree;
use super::intent;
use super::marks;
use super::mask::MaskOptions;
use crate::error::LayerError;

/// The newest layout this build reads and the one it writes.
const FORMAT: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LayerState {
    Live,
    Frozen,
}

/// One rule as it was in force at the last mount; `apply` checks against these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleRecord {
    pub pattern: String,
    #[serde(rename = "type")]
    pub pattern_type: String,
    pub level: String,
    pub priority: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerMeta {
    pub format: u32,
    pub id: String,
    pub state: LayerState,
    /// The directory this layer's changes are relative to.
    pub base: PathBuf,
    /// Frozen layers below this one, nearest first.
    #[serde(default)]
    pub parents: Vec<PathBuf>,
    #[serde(default)]
    pub rules: Vec<RuleRecord>,
    /// What was left out of the base: without it every masked path would look deleted.
    #[serde(default, skip_serializing_if = "MaskOptions::is_empty")]
    pub mask: MaskOptions,
}

/// Reads just enough to tell a newer format from a broken file.
#[derive(Deserialize)]
struct FormatOnly {
    format: u32,
}

/// An opened layer directory. A live layer is locked for as long as this value exists.
#[derive(Debug)]
pub struct LayerDir {
    path: PathBuf,
    meta: LayerMeta,
    lock: Option<Locked>,
}

impl LayerDir {
    /// Makes an empty live layer over `base` at `path`, to be mounted with these rules. It is on the
    /// disk for good when something in it is, see [`Work::settle`](super::copy::Work::settle).
    pub fn create(
        path: &Path,
        base: &Path,
        rules: Vec<RuleRecord>,
        mask: MaskOptions,
    ) -> Result<Self, LayerError> {
        let base = base.canonicalize().map_err(|e| LayerError::io("find the base", base, e))?;
        let (id, state, parents) = (new_id(), LayerState::Live, Vec::new());
        let meta = LayerMeta { format: FORMAT, id, state, base, parents, rules, mask };
        Self::create_as(meta, path)
    }

    fn create_as(meta: LayerMeta, path: &Path) -> Result<Self, LayerError> {
        if path.symlink_metadata().is_ok() && !is_empty_dir(path)? {
            return Err(LayerError::Exists { path: path.into() });
        }
        for sub in ["", "tree", "work", "links", "children"] {
            make_private_dir(&path.join(sub))?;
        }
        // The root shows what the layer below shows there.
        let parent = meta.parents.first().map(|parent| parent.join("tree"));
        look_like(&path.join("tree"), parent.as_ref().unwrap_or(&meta.base))?;
        let path = path.canonicalize().map_err(|e| LayerError::io("find", path, e))?;
        let mut layer = Self { path, meta, lock: None };
        layer.write_meta(Wait::No)?;
        layer.lock = Some(layer.take_lock()?);
        Ok(layer)
    }

    /// Opens an existing layer; a live one is locked and its leftovers of a crash are removed.
    pub fn open(path: &Path) -> Result<Self, LayerError> {
        let mut layer = Self::inspect(path)?;
        if layer.meta.state == LayerState::Live {
            layer.lock = Some(layer.take_lock()?);
            layer.clear_work()?;
        }
        Ok(layer)
    }

    /// Reads a layer without locking it, for looking only.
    pub fn inspect(path: &Path) -> Result<Self, LayerError> {
        let path = path.canonicalize().map_err(|e| match e.kind() {
            ErrorKind::NotFound => LayerError::Missing { path: path.into() },
            _ => LayerError::io("find", path, e),
        })?;
        let file = path.join("layer.json");
        let text = fs::read(&file).map_err(|e| match e.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                LayerError::NotALayer { path: path.clone() }
            }
            _ => LayerError::io("read", &file, e),
        })?;
        let format: FormatOnly = serde_json::from_slice(&text)
            .map_err(|source| LayerError::Damaged { path: path.clone(), source })?;
        if format.format > FORMAT {
            return Err(LayerError::Newer { path, found: format.format, known: FORMAT });
        }
        let meta = serde_json::from_slice(&text)
            .map_err(|source| LayerError::Damaged { path: path.clone(), source })?;
        Ok(Self { path, meta, lock: None })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn meta(&self) -> &LayerMeta {
        &self.meta
    }

    /// A descriptor of one of the layer's own directories.
    pub fn open_dir(&self, name: &str) -> Result<OwnedFd, LayerError> {
        let path = self.path.join(name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::open(&path, flags, Mode::empty())
            .map_err(|e| LayerError::io("open", &path, e.into()))
    }

    /// Remembers the rules the layer is written under.
    pub fn record_rules(&mut self, rules: Vec<RuleRecord>) -> Result<(), LayerError> {
        if self.meta.rules == rules {
            return Ok(());
        }
        self.meta.rules = rules;
        // A policy change must not wait for the disk; the order on it is kept all the same.
        self.write_meta(Wait::No)
    }

    /// Remembers what is left out of the base.
    pub fn record_mask(&mut self, mask: &MaskOptions) -> Result<(), LayerError> {
        if self.meta.mask == *mask {
            return Ok(());
        }
        self.meta.mask = mask.clone();
        self.save()
    }

    /// Whether another process has the layer open for writing.
    pub fn is_in_use(&self) -> bool {
        self.lock.is_none() && matches!(self.take_lock(), Err(LayerError::Busy { .. }))
    }

    /// Makes the layer unchangeable. The caller guarantees that nobody writes to it any more.
    pub fn freeze(&mut self) -> Result<(), LayerError> {
        if self.meta.state == LayerState::Frozen {
            return Ok(());
        }
        self.meta.state = LayerState::Frozen;
        // On the disk for good with the layer that is made on it.
        self.write_meta(Wait::No)
    }

    /// Makes a new live layer at `path` that stands on this frozen one. Nothing is copied.
    pub fn fork(&self, path: &Path) -> Result<Self, LayerError> {
        if self.meta.state != LayerState::Frozen {
            return Err(LayerError::NotFrozen { path: self.path.clone() });
        }
        self.make_child(path)
    }

    /// Makes a layer that stands on this one, which the caller freezes. The note that keeps this
    /// one from being removed is there before the child is; without a child it means nothing.
    pub(crate) fn make_child(&self, path: &Path) -> Result<Self, LayerError> {
        let id = new_id();
        let future = std::path::absolute(path).map_err(|e| LayerError::io("find", path, e))?;
        let note = self.path.join("children").join(&id);
        replace_file(&note, future.as_os_str().as_encoded_bytes(), Wait::No)?;
        let mut parents = vec![self.path.clone()];
        parents.extend(self.meta.parents.iter().cloned());
        let meta = LayerMeta { id, parents, state: LayerState::Live, ..self.meta.clone() };
        let made = Self::create_as(meta, path);
        if made.is_err() {
            let _ = fs::remove_file(note);
        }
        made
    }

    /// Empties a live layer and lets it stand on the base alone, once the base has all it showed.
    pub(crate) fn restart(&mut self) -> Result<(), LayerError> {
        for sub in ["tree", "links"] {
            let (old, aside) = (self.path.join(sub), self.path.join("work").join(sub));
            fs::rename(&old, aside).map_err(|e| LayerError::io("empty", &old, e))?;
            make_private_dir(&old)?;
        }
        look_like(&self.path.join("tree"), &self.meta.base)?;
        let parents = std::mem::take(&mut self.meta.parents);
        self.save()?;
        for parent in parents {
            let _ = fs::remove_file(parent.join("children").join(&self.meta.id));
        }
        self.clear_work()
    }

    /// Layers that stand on this one and still exist.
    pub fn children(&self) -> Result<Vec<PathBuf>, LayerError> {
        let dir = self.path.join("children");
        let mut found = Vec::new();
        for entry in fs::read_dir(&dir).map_err(|e| LayerError::io("read", &dir, e))? {
            let entry = entry.map_err(|e| LayerError::io("read", &dir, e))?;
            let bytes = fs::read(entry.path()).unwrap_or_default();
            let path = PathBuf::from(crate::os_string(bytes));
            let same_id = Self::inspect(&path)
                .is_ok_and(|child| child.meta.id.as_str() == entry.file_name().to_string_lossy());
            if same_id {
                found.push(path);
            }
        }
        Ok(found)
    }

    /// Deletes the layer and everything in it, unless another one stands on it or it is in use.
    pub fn remove(self) -> Result<(), LayerError> {
        if let Some(child) = self.children()?.into_iter().next() {
            return Err(LayerError::InUseBy { path: self.path.clone(), child });
        }
        let _lock = match self.lock {
            Some(lock) => lock,
            None => self.take_lock()?,
        };
        for parent in &self.meta.parents {
            let _ = fs::remove_file(parent.join("children").join(&self.meta.id));
        }
        // The description goes first: what is left of a half-removed layer is not a layer.
        let meta = self.path.join("layer.json");
        fs::remove_file(&meta).map_err(|e| LayerError::io("remove", &meta, e))?;
        removal::remove_tree(&self.path).map_err(|e| LayerError::io("remove", &self.path, e))
    }

    fn take_lock(&self) -> Result<Locked, LayerError> {
        let path = self.path.join("lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(|e| LayerError::io("open", &path, e))?;
        let lock = Locked::take(file).map_err(|e| LayerError::io("lock", &path, e))?;
        lock.ok_or_else(|| LayerError::Busy { path: self.path.clone() })
    }

    fn clear_work(&self) -> Result<(), LayerError> {
        let work = self.path.join("work");
        let (tree, dir) = (self.open_dir("tree")?, self.open_dir("work")?);
        let names: std::io::Result<Vec<_>> = fs::read_dir(&work)
            .and_then(|dir| dir.map(|e| Ok(e?.file_name().as_bytes().to_vec())).collect());
        let names = names.map_err(|e| LayerError::io("clear", &work, e))?;
        intent::finish_all(&tree, &dir, &names);
        names.iter().for_each(|name| remove_tree(&dir, name));
        Ok(())
    }

    fn save(&self) -> Result<(), LayerError> {
        self.write_meta(Wait::ForDisk)
    }

    fn write_meta(&self, wait: Wait) -> Result<(), LayerError> {
        let mut text = serde_json::to_vec_pretty(&self.meta)
            .map_err(|source| LayerError::Damaged { path: self.path.clone(), source })?;
        text.push(b'\n');
        replace_file(&self.path.join("layer.json"), &text, wait)
    }
}

/// The root of the workspace looks like the root of the base.
fn look_like(tree: &Path, base: &Path) -> Result<(), LayerError> {
    let shown = fs::metadata(base).map_err(|e| LayerError::io("read", base, e))?;
    let copy = |dir: File| -> std::io::Result<()> {
        marks::set_dir_mode(&dir, shown.mode())?;
        dir.set_times(FileTimes::new().set_modified(shown.modified()?))
    };
    File::open(tree).and_then(copy).map_err(|e| LayerError::io("set the mode of", tree, e))
}

/// Nobody but the owner may look into a layer: the modes inside it are those of the workspace.
fn make_private_dir(path: &Path) -> Result<(), LayerError> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(LayerError::io("create", path, e)),
        _ => Ok(()),
    }
}

fn is_empty_dir(path: &Path) -> Result<bool, LayerError> {
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(e) if e.kind() == ErrorKind::NotADirectory => Ok(false),
        Err(e) => Err(LayerError::io("read", path, e)),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    ForDisk,
    No,
}

/// Replaces a small file so that a crash leaves the old or the new content, never half of one.
fn replace_file(path: &Path, bytes: &[u8], wait: Wait) -> Result<(), LayerError> {
    let temporary = path.with_extension("new");
    let write = || -> std::io::Result<()> {
        let mut options = File::options();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(bytes)?;
        match wait {
            Wait::ForDisk => file.sync_all()?,
            Wait::No => ringfence_sys::files::start_writeback(&file),
        }
        fs::rename(&temporary, path)
    };
    write().map_err(|e| LayerError::io("write", path, e))
}

fn new_id() -> String {
    let mut bytes = [0u8; 8];
    // The kernel's generator does not fail once the system has started.
    let _ = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    format!("ly_{}", bytes.iter().map(|b| format!("{b:02x}")).collect::<String>())
}
