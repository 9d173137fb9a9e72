//! Telling the layer that the base now has what it has.
//!
//! A layer says what it is relative to its base, so when the base changes, what the layer says has
//! to change with it. Without this, a directory renamed in the base would be missing from a
//! workspace that still looks for it under its old name, and work that goes on after an apply would
//! conflict with itself. Everything here only keeps up; a failure leaves a layer that shows
//! the same and asks more questions at the next apply.

use std::collections::HashSet;

use ringfence_policy::WorkspacePath;
use rustix::fs::AtFlags;
use rustix::io::Result;

use super::Refusal;
use super::target::{Place, Target};
use crate::changes::compare::hash_of;
use crate::changes::{Change, ChangeKind, EntryKind, LayerView};
use crate::error::LayerError;
use crate::layers::copy::{HASHED_SIZE, open_source};
use crate::layers::format::{LayerDir, LayerState};
use crate::layers::marks::{self, Lower, Stamp};
use crate::layers::stack::{BASE, Found, LayerIndex, Merged, Stack};

/// Changes the marks of the layer to go with the base as it is now.
pub(super) fn settle(view: &LayerView, layer: &LayerDir, target: &Target, changes: &[Change]) {
    let top = view.stack.roots().first().map(|root| root.layer);
    let live = top.filter(|_| layer.meta().state == LayerState::Live);
    let settle = Settle { view, live };
    for change in changes {
        // See above: what cannot be noted now is asked about next time.
        let _ = settle.note(target, change);
    }
}

/// Whether the layer shows what it did. A frozen layer may have something of its own where a
/// renamed directory is now; then no mark can lead past it. A live layer of which nothing was
/// refused is emptied: the base has all of it.
pub(super) fn is_settled(
    layer: &mut LayerDir,
    changes: &[Change],
    refused: &[Refusal],
) -> std::result::Result<bool, LayerError> {
    let moved = |change: &Change| {
        change.entry == EntryKind::Directory && matches!(change.kind, ChangeKind::Renamed { .. })
    };
    if layer.meta().parents.is_empty() || !changes.iter().any(moved) {
        return Ok(true);
    }
    let known: HashSet<_> = refused.iter().map(|refusal| &refusal.change.path).collect();
    let left = crate::changes::changes(layer)?;
    if left.iter().all(|change| known.contains(&change.path)) {
        return Ok(true);
    }
    if layer.meta().state != LayerState::Live || !refused.is_empty() {
        return Ok(false);
    }
    layer.restart()?;
    Ok(true)
}

struct Settle<'s> {
    view: &'s LayerView,
    /// The live layer, if there is one: frozen ones are left alone except for renames, where
    /// keeping the mark would lose what they show.
    live: Option<LayerIndex>,
}

impl Settle<'_> {
    fn note(&self, target: &Target, change: &Change) -> Result<()> {
        if let Some(vacated) = &change.origin.vacated {
            self.drop_whiteout(vacated)?;
        }
        match (&change.kind, change.entry) {
            (ChangeKind::Deleted, _) => self.drop_whiteout(&change.path),
            (ChangeKind::Renamed { .. }, EntryKind::Directory) => self.redirect(&change.path),
            (ChangeKind::Added, EntryKind::Directory) => self.merge(&change.path),
            (_, EntryKind::File) => self.stamp(target, change),
            _ => Ok(()),
        }
    }

    /// The copy's origin is now the file that was just written.
    fn stamp(&self, target: &Target, change: &Change) -> Result<()> {
        let Some(copy) = self.view.content_of(change)? else { return Ok(()) };
        let Place::Leaf(written) = target.at(&change.path)? else { return Ok(()) };
        if Some(copy.part.layer) != self.live {
            return Ok(());
        }
        let mut stamp = Stamp::of(&written.stat);
        if stamp.size <= HASHED_SIZE {
            stamp.hash = Some(hash_of(&written)?);
        }
        marks::set_origin(open_source(&copy)?, &stamp)
    }

    /// The directory continues where the base has it now, unless other layers have something else
    /// there.
    fn redirect(&self, path: &WorkspacePath) -> Result<()> {
        let Found::Dir(dir) = self.view.stack.resolve(path)? else { return Ok(()) };
        let Some(part) = dir.parts.iter().rfind(|part| part.layer != BASE) else { return Ok(()) };
        let below = self.view.stack.roots().iter().filter(|root| root.layer < part.layer);
        let below = Stack::new(below.cloned().collect());
        uncover(&below, path)?;
        let reached = match below.resolve(path)? {
            Found::Dir(found) => found.parts.iter().all(|part| part.layer == BASE),
            _ => false,
        };
        match (reached, part.path() == *path) {
            (false, _) => Ok(()),
            (true, true) => marks::set_lower(part.fd()?, &Lower::SameName),
            (true, false) => marks::set_lower(part.fd()?, &Lower::At(path.clone())),
        }
    }

    /// A directory the layer made merges with the one that was made in the base from it, unless
    /// that would show anything it does not show now.
    fn merge(&self, path: &WorkspacePath) -> Result<()> {
        let Found::Dir(dir) = self.view.stack.resolve(path)? else { return Ok(()) };
        let [part] = &dir.parts[..] else { return Ok(()) };
        if Some(part.layer) != self.live || part.path() != *path {
            return Ok(());
        }
        let below = self.view.stack.roots()[1..].to_vec();
        let Found::Dir(base) = Stack::new(below).resolve(path)? else { return Ok(()) };
        if base.parts.iter().all(|part| part.layer == BASE) && self.shows_all(&dir, &base)? {
            marks::set_lower(part.fd()?, &Lower::SameName)?;
        }
        Ok(())
    }

    fn shows_all(&self, dir: &Merged, base: &Merged) -> Result<bool> {
        let shown = self.view.stack.list(&dir.parts)?.into_iter().map(|entry| entry.name);
        let shown: HashSet<_> = shown.collect();
        let there = self.view.base.list(&base.parts)?;
        Ok(there.iter().all(|entry| shown.contains(&entry.name)))
    }

    /// Nothing is left to hide, unless a frozen layer has something there.
    fn drop_whiteout(&self, path: &WorkspacePath) -> Result<()> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        let Found::Dir(dir) = self.view.stack.resolve(&parent)? else { return Ok(()) };
        let Some((top, below)) = dir.parts.split_first() else { return Ok(()) };
        let Some(stat) = top.stat(name)? else { return Ok(()) };
        if Some(top.layer) != self.live || !marks::is_whiteout(top.fd()?, name, &stat) {
            return Ok(());
        }
        for part in below {
            if part.stat(name)?.is_some() {
                return Ok(());
            }
        }
        rustix::fs::unlinkat(top.fd()?, name, AtFlags::empty())
    }
}

/// Takes away whiteouts of what the base had at `path` before.
fn uncover(below: &Stack, path: &WorkspacePath) -> Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let Found::Dir(dir) = below.resolve(&parent)? else { return Ok(()) };
    for part in dir.parts.iter().filter(|part| part.layer != BASE) {
        let Some(stat) = part.stat(name)? else { continue };
        if marks::is_whiteout(part.fd()?, name, &stat) {
            rustix::fs::unlinkat(part.fd()?, name, AtFlags::empty())?;
        }
    }
    Ok(())
}
