//! The parts of a workspace on disk: checks, base, layers, and the tree they make.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringfence_policy::{Policy, Rule};
use rustix::fs::{CWD, Mode, OFlags};

use crate::error::{LayerError, MountError};
use crate::layers::copy::Work;
use crate::layers::format::{LayerDir, LayerState, RuleRecord};
use crate::layers::mask::{MaskDir, MaskOptions};
use crate::layers::pool::DirPool;
use crate::layers::stack::{BASE, LayerIndex, Part, Stack};
use crate::tree::{Live, Tree};
use crate::watch::Watch;

pub(crate) fn check_base(base: &Path) -> Result<PathBuf, MountError> {
    let path = base.canonicalize().map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => MountError::BaseMissing { path: base.into() },
        io::ErrorKind::NotADirectory => MountError::BaseNotADirectory { path: base.into() },
        _ => MountError::io("find base", base, e),
    })?;
    match fs::metadata(&path) {
        Ok(meta) if meta.is_dir() => Ok(path),
        Ok(_) => Err(MountError::BaseNotADirectory { path: base.into() }),
        Err(e) => Err(MountError::io("read base", base, e)),
    }
}

/// The path a directory will have once it is made.
pub(crate) fn resolve_future(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let mut existing = absolute.as_path();
    let mut rest = Vec::new();
    loop {
        if let Ok(found) = existing.canonicalize() {
            return rest.iter().rev().fold(found, |path, name| path.join(name));
        }
        match (existing.parent(), existing.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name.to_owned());
                existing = parent;
            }
            _ => return absolute,
        }
    }
}

/// Behind a read-only mount where that is possible; an unprivileged server has no passthrough, and
/// opens lower files for reading only.
pub(crate) fn open_base(base: &Path) -> Result<OwnedFd, MountError> {
    if let Ok(clone) = ringfence_sys::mounts::readonly_clone(base) {
        return Ok(clone);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, base, flags, Mode::empty())
        .map_err(|e| MountError::io("open base", base, e.into()))
}

/// Opens a live layer over `base` that is going to be changed under `policy`, or makes it.
pub(crate) fn open_layer(
    path: &Path,
    base: &Path,
    policy: &Policy,
    mask: &MaskOptions,
) -> Result<LayerDir, MountError> {
    let rules = records(policy);
    let mut layer = match LayerDir::open(path) {
        Err(LayerError::NotALayer { path }) if !is_empty_dir(&path) => {
            return Err(LayerError::NotALayer { path }.into());
        }
        Err(LayerError::Missing { .. } | LayerError::NotALayer { .. }) => {
            return Ok(LayerDir::create(path, base, rules, mask.clone())?);
        }
        other => other?,
    };
    let path = layer.path().to_path_buf();
    if layer.meta().state == LayerState::Frozen {
        return Err(LayerError::Frozen { path }.into());
    }
    if layer.meta().base != base {
        let recorded = layer.meta().base.clone();
        return Err(LayerError::OtherBase { path, recorded, given: base.into() }.into());
    }
    layer.record_rules(rules)?;
    layer.record_mask(mask)?;
    Ok(layer)
}

fn is_empty_dir(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

pub(crate) fn build_tree(
    (stack, links): Layers,
    layer: &LayerDir,
    passthrough: bool,
    watch: Option<Arc<Watch>>,
) -> Result<Tree, MountError> {
    let live = Live {
        layer: layer.meta().parents.len() as LayerIndex + 1,
        work: Work::new(layer.open_dir("work")?, layer.meta().parents.clone()).into(),
        links,
    };
    Tree::new(stack, live, passthrough, watch)
        .map_err(|e| MountError::io("read", layer.path(), e.into()))
}

/// All layers of a workspace, uppermost first, and where each keeps its link copies.
pub(crate) type Layers = (Stack, Vec<Arc<Part>>);

pub(crate) fn open_stack(
    base: OwnedFd,
    mask: Option<Arc<MaskDir>>,
    layer: &LayerDir,
    pool: &Arc<DirPool>,
) -> Result<Layers, LayerError> {
    let root = |index, fd| Part::root(index, fd, None, pool);
    let parents = &layer.meta().parents;
    let mut roots = vec![root(parents.len() as LayerIndex + 1, layer.open_dir("tree")?)];
    let mut links = vec![root(parents.len() as LayerIndex + 1, layer.open_dir("links")?)];
    for (above, path) in parents.iter().enumerate() {
        let index = (parents.len() - above) as LayerIndex;
        let frozen = LayerDir::inspect(path)?;
        roots.push(root(index, frozen.open_dir("tree")?));
        links.push(root(index, frozen.open_dir("links")?));
    }
    roots.push(Part::root(BASE, base, mask, pool));
    Ok((Stack::new(roots), links))
}

pub(crate) fn records(policy: &Policy) -> Vec<RuleRecord> {
    policy.rules().iter().map(record).collect()
}

fn record(rule: &Rule) -> RuleRecord {
    RuleRecord {
        pattern: rule.pattern.clone(),
        pattern_type: rule.pattern_type.as_str().into(),
        level: rule.level.as_str().into(),
        priority: rule.priority,
    }
}
