//! What is removed again unless it was moved into its place.

use std::path::{Path, PathBuf};

/// A name whose file or directory goes with it. After a rename to another name there is nothing
/// left to remove; after `kill -9` reconciliation does it.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "a temporary file is left");
        }
    }
}

/// Removes whatever is there, a directory with everything in it. Never follows a symlink.
pub(super) fn remove(path: &Path) -> std::io::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => ringfence_sys::removal::remove_tree(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
