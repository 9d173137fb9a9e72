//! A layer's changes as text: a patch in git's format.
//!
//! `patch -p1` and `git apply` turn a copy of the base into the workspace with it. What the format
//! has no words for (directories by themselves, fifos, permission bits of directories) is noted in
//! lines both of them skip; so are binary and very large files, by name only.

mod hunks;
mod quote;

use std::collections::HashSet;
use std::io::{self, Read, Write};

use ringfence_policy::WorkspacePath;
use rustix::fs::FileType;

use crate::changes::compare::{link_target, same_content};
use crate::changes::{Change, ChangeKind, EntryKind, LayerView};
use crate::layers::copy::{MODE_BITS, open_source};
use crate::layers::stack::{BASE, Found, Leaf, Merged};
pub use quote::quoted;

/// Files above this size are noted, not compared line by line.
const LARGEST: u64 = 8 << 20;

/// Writes the patch for `changes`, which are those of `view`, in their order.
pub fn write_diff(view: &LayerView, changes: &[Change], out: &mut impl Write) -> io::Result<()> {
    let mut diff = Diff {
        view,
        sources: sources(changes),
        changed: changes.iter().map(|change| &change.path).collect(),
        filled: changes.iter().filter_map(|change| change.path.parent()).collect(),
        out,
    };
    for group in changes.chunk_by(|a, b| a.path == b.path) {
        match diff.group(group) {
            // Under a mounted workspace things come and go.
            Err(e) if is_gone(&e) => {}
            other => other?,
        }
    }
    Ok(())
}

/// One side of a comparison.
struct Side<'s> {
    path: &'s WorkspacePath,
    leaf: Leaf,
}

struct Diff<'d, W> {
    view: &'d LayerView,
    /// Base paths that are renamed and so are not deleted with their directory.
    sources: HashSet<&'d WorkspacePath>,
    changed: HashSet<&'d WorkspacePath>,
    /// Directories with a change in them.
    filled: HashSet<WorkspacePath>,
    out: &'d mut W,
}

impl<W: Write> Diff<'_, W> {
    /// All changes of one path.
    fn group(&mut self, group: &[Change]) -> io::Result<()> {
        for change in group.iter().filter(|change| change.kind == ChangeKind::Deleted) {
            self.deleted(&change.origin.place)?;
        }
        let rest = group.iter().find(|change| change.kind != ChangeKind::Deleted);
        match rest {
            None => Ok(()),
            Some(change) if change.entry == EntryKind::Directory => self.directory(group),
            Some(change) => self.leaf(change, group),
        }
    }

    fn leaf(&mut self, change: &Change, group: &[Change]) -> io::Result<()> {
        let Some(now) = self.view.content_of(change)? else { return Ok(()) };
        let added = group.iter().any(|change| change.kind == ChangeKind::Added);
        let from = change.origin.renamed_from.as_ref().unwrap_or(&change.origin.place);
        let was = match self.view.base.resolve(from)? {
            Found::Leaf(leaf) if !added => Some(Side { path: from, leaf }),
            _ => None,
        };
        let attributes_only = was.as_ref().map(|was| same_content(&was.leaf, &now)).transpose()?;
        if attributes_only == Some(true) && group.iter().all(|c| c.kind == ChangeKind::Modified) {
            return self.note(&change.path, change.entry, "extended attributes changed");
        }
        self.compare(was, Some(Side { path: &change.path, leaf: now }))
    }

    fn directory(&mut self, group: &[Change]) -> io::Result<()> {
        for change in group {
            let path = &change.path;
            match &change.kind {
                ChangeKind::Renamed { from } => {
                    let text = format!("renamed from {}/", quoted(&from.as_bytes()[1..]));
                    self.note(path, change.entry, &text)?;
                    self.moved(path)?;
                }
                ChangeKind::Added if !self.filled.contains(path) => {
                    self.note(path, change.entry, "added")?
                }
                ChangeKind::Mode { from, to } => {
                    self.note(path, change.entry, &format!("mode {from:03o} -> {to:03o}"))?;
                }
                ChangeKind::Modified => {
                    self.note(path, change.entry, "extended attributes changed")?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn note(&mut self, path: &WorkspacePath, entry: EntryKind, text: &str) -> io::Result<()> {
        let slash = if entry == EntryKind::Directory && !path.is_root() { "/" } else { "" };
        let name = quoted(&path.as_bytes()[1..]);
        let name = if path.is_root() { "." } else { name.as_ref() };
        writeln!(self.out, "ringfence: {} {name}{slash}: {text}", entry.as_str())
    }

    fn deleted(&mut self, place: &WorkspacePath) -> io::Result<()> {
        match self.view.base.resolve(place)? {
            Found::Absent => Ok(()),
            Found::Leaf(leaf) => self.compare(Some(Side { path: place, leaf }), None),
            Found::Dir(dir) => self.deleted_below(place, dir),
        }
    }

    fn deleted_below(&mut self, place: &WorkspacePath, dir: Merged) -> io::Result<()> {
        let mut pending = vec![(place.clone(), dir)];
        while let Some((place, dir)) = pending.pop() {
            for name in sorted_names(&self.view.base, &dir)? {
                let path = place.join(&name);
                if self.sources.contains(&path) {
                    continue;
                }
                match self.view.base.find(&dir.parts, &name)? {
                    Found::Absent => {}
                    Found::Leaf(leaf) => self.compare(Some(Side { path: &path, leaf }), None)?,
                    Found::Dir(inner) => pending.push((path, inner)),
                }
            }
        }
        Ok(())
    }

    /// The files of a renamed directory that are otherwise as they were.
    fn moved(&mut self, path: &WorkspacePath) -> io::Result<()> {
        let Found::Dir(dir) = self.view.stack.resolve(path)? else { return Ok(()) };
        let mut pending = vec![(path.clone(), dir)];
        while let Some((path, dir)) = pending.pop() {
            let Some(base) = dir.parts.last().filter(|part| part.layer == BASE) else { continue };
            for name in sorted_names(&self.view.stack, &dir)? {
                let (old, new) = (base.path().join(&name), path.join(&name));
                let renamed = |dir: &Merged| dir.parts.last().is_none_or(|p| p.path() != old);
                match self.view.stack.find(&dir.parts, &name)? {
                    Found::Leaf(leaf) if !self.changed.contains(&new) => {
                        let was = Side { path: &old, leaf: leaf.clone() };
                        self.compare(Some(was), Some(Side { path: &new, leaf }))?;
                    }
                    Found::Dir(inner) if !renamed(&inner) => pending.push((new, inner)),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn compare(&mut self, was: Option<Side<'_>>, now: Option<Side<'_>>) -> io::Result<()> {
        let sides = [&was, &now];
        if let Some(side) = sides.into_iter().flatten().find(|side| !is_diffable(&side.leaf)) {
            let entry = EntryKind::of(side.leaf.stat.st_mode);
            let what = if now.is_some() { "added" } else { "deleted" };
            return self.note(side.path, entry, what);
        }
        let same = match (&was, &now) {
            (Some(was), Some(now)) => same_content(&was.leaf, &now.leaf)?,
            _ => false,
        };
        // Read before anything is said about it: it may be gone.
        let contents = if same { None } else { Some((content(&was)?, content(&now)?)) };
        self.header(&was, &now)?;
        let Some(contents) = contents else { return Ok(()) };
        match contents {
            (Some(old), Some(new)) if old.is_empty() && new.is_empty() => Ok(()),
            (Some(old), Some(new)) => {
                writeln!(self.out, "--- {}", side_name("a/", &was))?;
                writeln!(self.out, "+++ {}", side_name("b/", &now))?;
                hunks::write(self.out, &old, &new)
            }
            _ => {
                let (old, new) = (side_name("a/", &was), side_name("b/", &now));
                writeln!(self.out, "Binary files {} and {} differ", old.trim(), new.trim())
            }
        }
    }

    fn header(&mut self, was: &Option<Side<'_>>, now: &Option<Side<'_>>) -> io::Result<()> {
        let Some(any) = was.as_ref().or(now.as_ref()) else { return Ok(()) };
        let old = was.as_ref().unwrap_or(any).path;
        let new = now.as_ref().unwrap_or(any).path;
        writeln!(self.out, "diff --git {} {}", named("a/", old), named("b/", new))?;
        match (was.as_ref().map(mode_of), now.as_ref().map(mode_of)) {
            (None, Some(mode)) => writeln!(self.out, "new file mode {mode:o}")?,
            (Some(mode), None) => writeln!(self.out, "deleted file mode {mode:o}")?,
            (Some(old), Some(new)) if old != new => {
                writeln!(self.out, "old mode {old:o}\nnew mode {new:o}")?;
            }
            _ => {}
        }
        if old != new {
            writeln!(self.out, "rename from {}", quoted(&old.as_bytes()[1..]))?;
            writeln!(self.out, "rename to {}", quoted(&new.as_bytes()[1..]))?;
        }
        Ok(())
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle)
}

fn sources(changes: &[Change]) -> HashSet<&WorkspacePath> {
    let from = |change| match change {
        &Change { kind: ChangeKind::Renamed { ref from }, .. } => Some(from),
        _ => None,
    };
    changes.iter().filter_map(from).collect()
}

fn sorted_names(
    stack: &crate::layers::stack::Stack,
    dir: &Merged,
) -> rustix::io::Result<Vec<Box<[u8]>>> {
    let mut names: Vec<_> = stack.list(&dir.parts)?.into_iter().map(|entry| entry.name).collect();
    names.sort();
    Ok(names)
}

fn is_diffable(leaf: &Leaf) -> bool {
    matches!(FileType::from_raw_mode(leaf.stat.st_mode), FileType::RegularFile | FileType::Symlink)
}

fn mode_of(side: &Side<'_>) -> u32 {
    match FileType::from_raw_mode(side.leaf.stat.st_mode) {
        FileType::Symlink => 0o120000,
        _ => 0o100000 | (side.leaf.stat.st_mode & MODE_BITS),
    }
}

/// The bytes to compare; nothing where they are not text or too many.
fn content(side: &Option<Side<'_>>) -> io::Result<Option<Vec<u8>>> {
    let Some(side) = side else { return Ok(Some(Vec::new())) };
    if EntryKind::of(side.leaf.stat.st_mode) == EntryKind::Symlink {
        return Ok(Some(link_target(&side.leaf)?));
    }
    if side.leaf.stat.st_size as u64 > LARGEST {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    open_source(&side.leaf)?.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(hunks::is_text(&bytes).then_some(bytes))
}

fn named(prefix: &str, path: &WorkspacePath) -> String {
    let full = [prefix.as_bytes(), &path.as_bytes()[1..]].concat();
    quoted(&full).into_owned()
}

/// A name in the two lines before the hunks. A tab ends a name with a space in it.
fn side_name(prefix: &str, side: &Option<Side<'_>>) -> String {
    let Some(side) = side else { return "/dev/null".into() };
    let name = named(prefix, side.path);
    if name.contains(' ') { name + "\t" } else { name }
}
