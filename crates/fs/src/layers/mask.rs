//! The mask over the base: paths that count as absent there, by gitignore patterns.
//!
//! A masked path is not hidden by policy: the sandbox may create it, and then it lives in the live
//! layer like any new file. This is how ignored files stay out when a local directory is used in
//! place (`npm install` into an ignored `node_modules` works and does not see the host's).

use std::os::fd::AsFd;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Mode, OFlags, openat};
use serde::{Deserialize, Serialize};

use crate::error::MountError;

/// What to leave out of the base.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MaskOptions {
    /// Patterns as in a `.gitignore` at the base's root. They rank above the ignore files.
    pub patterns: Vec<String>,
    /// Names of ignore files honoured in every directory (`.gitignore`, `.sandboxignore`).
    pub files: Vec<String>,
}

impl MaskOptions {
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty() && self.files.is_empty()
    }
}

#[derive(Debug)]
struct Shared {
    patterns: Gitignore,
    files: Vec<String>,
}

/// The mask as it applies inside one directory of the base: its own ignore files over its parents'.
#[derive(Debug)]
pub struct MaskDir {
    shared: Arc<Shared>,
    parent: Option<Arc<MaskDir>>,
    /// Path of this directory below the base, without a leading slash, with a trailing one.
    prefix: Vec<u8>,
    matchers: Vec<Gitignore>,
}

impl MaskDir {
    /// Compiles the mask for the root of the base; `None` if nothing is masked.
    pub fn root(options: &MaskOptions, root: impl AsFd) -> Result<Option<Arc<Self>>, MountError> {
        if options.is_empty() {
            return Ok(None);
        }
        let mut builder = GitignoreBuilder::new("");
        for pattern in &options.patterns {
            builder.add_line(None, pattern).map_err(|e| MountError::BadMask {
                pattern: pattern.clone(),
                reason: e.to_string(),
            })?;
        }
        let patterns = builder
            .build()
            .map_err(|e| MountError::BadMask { pattern: String::new(), reason: e.to_string() })?;
        let shared = Arc::new(Shared { patterns, files: options.files.clone() });
        let matchers = read_ignore_files(&shared.files, root);
        Ok(Some(Arc::new(Self { shared, parent: None, prefix: Vec::new(), matchers })))
    }

    /// The mask inside the directory `name` of this one, whose descriptor is `dir`.
    pub fn enter(self: &Arc<Self>, name: &[u8], dir: impl AsFd) -> Arc<Self> {
        let mut prefix = self.prefix.clone();
        prefix.extend_from_slice(name);
        prefix.push(b'/');
        let matchers = read_ignore_files(&self.shared.files, dir);
        Arc::new(Self { shared: self.shared.clone(), parent: Some(self.clone()), prefix, matchers })
    }

    /// Whether the entry `name` of this directory counts as absent.
    ///
    /// As in git the last matching pattern of the nearest file decides; a name below an excluded
    /// directory never gets here, because the directory itself is absent.
    pub fn hides(&self, name: &[u8], is_dir: bool) -> bool {
        let mut path = self.prefix.clone();
        path.extend_from_slice(name);
        let given = self.shared.patterns.matched(as_path(&path), is_dir);
        if !given.is_none() {
            return given.is_ignore();
        }
        let mut here = Some(self);
        while let Some(dir) = here {
            let below = as_path(&path[dir.prefix.len()..]);
            for matcher in dir.matchers.iter().rev() {
                let found = matcher.matched(below, is_dir);
                if !found.is_none() {
                    return found.is_ignore();
                }
            }
            here = dir.parent.as_deref();
        }
        false
    }
}

fn as_path(bytes: &[u8]) -> &std::path::Path {
    use std::os::unix::ffi::OsStrExt;
    std::path::Path::new(std::ffi::OsStr::from_bytes(bytes))
}

/// Ignore files are untrusted text of the base: bounded, never followed, bad lines skipped as git
/// does.
fn read_ignore_files(names: &[String], dir: impl AsFd) -> Vec<Gitignore> {
    names.iter().filter_map(|name| read_ignore_file(name, &dir)).collect()
}

fn read_ignore_file(name: &str, dir: &impl AsFd) -> Option<Gitignore> {
    const LARGEST: u64 = 1 << 20;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = std::fs::File::from(openat(dir, name, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(file, LARGEST), &mut text).ok()?;
    let mut builder = GitignoreBuilder::new("");
    for line in String::from_utf8_lossy(&text).lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}
