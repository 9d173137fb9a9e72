//! What a layer changes, relative to its base.
//!
//! Only directories the deltas touch are visited, and only files they hold are looked at: what was
//! never copied up is never read. A file that was copied up is compared by its content, not by its
//! times: untrusted code wrote it, and it can set times as it likes.
//!
//! | file | what is in it |
//! |---|---|
//! | `walk` | the deltas and the base side by side, entry by entry |
//! | `compare` | whether two entries hold the same |
//! | `cover` | when and how a delta covers what the base has |
//! | `origin` | what a file of the uppermost layer was in the base, through all layers between |
//! | `renames` | which deleted and added files are one |

pub(crate) mod compare;
mod cover;
mod origin;
mod renames;
mod walk;

pub(crate) use cover::made_at;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringfence_policy::{Level, Policy, Rule, WorkspacePath};
use rustix::fs::{FileType, Mode, OFlags};

use crate::error::LayerError;
use crate::layers::format::{LayerDir, LayerMeta, RuleRecord};
use crate::layers::marks::Stamp;
use crate::layers::mask::MaskDir;
use crate::layers::pool::DirPool;
use crate::layers::stack::{Found, Leaf, Part, Stack};
use origin::Origins;

/// What kind of thing a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    Device,
}

impl EntryKind {
    pub(crate) fn of(mode: u32) -> Self {
        Self::of_type(FileType::from_raw_mode(mode))
    }

    pub(crate) fn of_type(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            _ => Self::Device,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::Fifo => "fifo",
            Self::Socket => "socket",
            Self::Device => "device",
        }
    }
}

/// In the order in which changes of one path are listed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// Of a directory: with everything in it.
    Deleted,
    /// Of a directory: with everything in it. `from` is a path of the base.
    Renamed {
        from: WorkspacePath,
    },
    Added,
    /// The content, a symlink's target, or extended attributes.
    Modified,
    /// Permission bits.
    Mode {
        from: u32,
        to: u32,
    },
}

impl ChangeKind {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Renamed { .. } => "renamed",
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Mode { .. } => "mode",
        }
    }
}

/// One difference. A path can have several: renamed and modified, or deleted and added where its
/// type changed. Paths are those of the workspace, also below renamed directories.
#[derive(Debug, Clone)]
pub struct Change {
    pub path: WorkspacePath,
    pub entry: EntryKind,
    pub kind: ChangeKind,
    pub(crate) origin: Origin,
}

/// A time as the kernel gives it: seconds and nanoseconds.
pub(crate) type Time = (i64, u32);

/// Where a change comes from, for a three-way apply.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// The path in the base: the one before directories above were renamed.
    pub(crate) place: WorkspacePath,
    /// Whether the directory it is in has no counterpart in the base. Then what is at `place` is
    /// only of interest if it stays there.
    pub(crate) in_new_directory: bool,
    /// Paths by which the policy knows it beside its own, because a directory above was renamed.
    pub(crate) also: Vec<WorkspacePath>,
    /// What was at `place` when it was copied or deleted, where a mark says so. Of an added file:
    /// what it was copied from, if that is no longer in the base.
    pub(crate) stamp: Option<Stamp>,
    /// When a layer first covered `place`, where no mark says what was there.
    pub(crate) since: Option<Time>,
    /// The key of the copy in `links/` that holds the content, if the tree does not.
    pub(crate) link: Option<Vec<u8>>,
    /// The base path of the file this was, for all changes of a renamed file.
    pub(crate) renamed_from: Option<WorkspacePath>,
    /// The name a renamed file gave up, unless its whole directory is deleted.
    pub(crate) vacated: Option<WorkspacePath>,
}

/// A layer with everything below it, opened for looking.
#[derive(Debug)]
pub struct LayerView {
    pub(crate) stack: Stack,
    pub(crate) base: Stack,
    links: Vec<Arc<Part>>,
    has_links: bool,
    origins: Origins,
    rules: Policy,
    path: PathBuf,
}

impl LayerView {
    pub fn open(layer: &LayerDir) -> Result<Self, LayerError> {
        let meta = layer.meta();
        let fd = open_directory("open the base", &meta.base)?;
        let mask = MaskDir::root(&meta.mask, &fd);
        let (stack, links) =
            crate::workspace::open_stack(fd, mask, layer, &DirPool::for_this_process())?;
        let base = Stack::new(stack.roots().last().cloned().into_iter().collect());
        Ok(Self {
            origins: Origins::new(stack.roots()),
            has_links: links
                .iter()
                .any(|part| !walk::names_in(part).unwrap_or_default().is_empty()),
            rules: recorded_policy(layer.path(), meta)?,
            path: layer.path().into(),
            stack,
            base,
            links,
        })
    }

    /// Everything the layer and its parents change in the base, sorted by path.
    pub fn changes(&self) -> Result<Vec<Change>, LayerError> {
        let mut changes = walk::Walk::see(self)
            .and_then(|seen| renames::settle(self, seen))
            .map_err(|e| LayerError::io("compare", &self.path, e.into()))?;
        changes.sort_by(|a, b| (&a.path, &a.kind).cmp(&(&b.path, &b.kind)));
        Ok(changes)
    }

    /// The rules that were in force when the layer was last written.
    pub fn recorded_policy(&self) -> &Policy {
        &self.rules
    }

    /// Where the content of a changed entry that is not a directory is.
    pub(crate) fn content_of(&self, change: &Change) -> rustix::io::Result<Option<Leaf>> {
        if let Some(key) = &change.origin.link {
            return self.link_copy(key);
        }
        match self.stack.resolve(&change.path)? {
            Found::Leaf(leaf) => Ok(Some(leaf)),
            _ => Ok(None),
        }
    }

    fn link_copy(&self, key: &[u8]) -> rustix::io::Result<Option<Leaf>> {
        for part in &self.links {
            if let Some(stat) = part.stat(key)? {
                return Ok(Some(Leaf { part: part.clone(), name: key.into(), stat }));
            }
        }
        Ok(None)
    }
}

/// The changes of a layer: [`LayerView::changes`] for those who need nothing else.
pub fn changes(layer: &LayerDir) -> Result<Vec<Change>, LayerError> {
    LayerView::open(layer)?.changes()
}

pub(crate) fn open_directory(
    step: &'static str,
    path: &Path,
) -> Result<std::os::fd::OwnedFd, LayerError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|e| LayerError::io(step, path, e.into()))
}

fn recorded_policy(path: &Path, meta: &LayerMeta) -> Result<Policy, LayerError> {
    let rules: Result<Vec<_>, _> = meta.rules.iter().map(to_rule).collect();
    let rules = rules.map_err(|e| damaged(path, &e))?;
    Policy::compile(rules).map_err(|e| damaged(path, &e))
}

fn to_rule(record: &RuleRecord) -> Result<Rule, ringfence_policy::RuleError> {
    let level: Level = record.level.parse()?;
    let rule = Rule::glob(level, record.pattern.clone()).at(record.priority);
    Ok(rule.of_type(record.pattern_type.parse()?))
}

fn damaged(path: &Path, reason: &dyn std::fmt::Display) -> LayerError {
    let source = <serde_json::Error as serde::de::Error>::custom(reason);
    LayerError::Damaged { path: path.into(), source }
}
