//! The files of a workspace by path, for callers that are not programs in it.
//!
//! | file | what is in it |
//! |---|---|
//! | `view` | the two ways to look at nodes: as their owner, or with the agent's eyes |
//! | `resolve` | from a path to a node, symlinks included |
//! | `list` | listings and walks |
//! | `read`, `write` | contents |
//! | `change` | making, removing and moving names |
//! | `call` | what one call has at hand; telling the kernel what it changed |
//! | `error` | what a caller hears |
//!
//! Everything goes through the guard and the tree, never through the mount: the server would wait
//! for itself. What is changed is seen by programs as soon as the call returns.

mod call;
mod change;
mod error;
mod list;
mod read;
mod resolve;
mod view;
mod write;

use std::sync::Arc;
use std::time::SystemTime;

use ringfence_policy::WorkspacePath;
use rustix::io::Errno;

use crate::changes::EntryKind;
use crate::guard::Guard;
use crate::kernel::Kernel;
use call::Call;

pub use error::{FileError, FileErrorKind};
pub use read::Reading;
pub use write::{WriteOptions, Writing};

/// With whose eyes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Everything is there and nothing is refused.
    Owner,
    /// What the policy and the permission bits let code in the sandbox do, and its errors.
    Agent,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// As it was asked for, or the listed directory's with the name.
    pub path: WorkspacePath,
    pub kind: EntryKind,
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    pub modified: SystemTime,
    /// Of a symlink.
    pub target: Option<Vec<u8>>,
}

/// Attempts at a call while things move under it.
const ATTEMPTS: usize = 8;

/// The files of one workspace in one view. Cheap to make, from
/// [`Mounted::files`](crate::mount::Mounted::files) or [`Offline::files`](crate::offline::Offline::files).
#[derive(Debug, Clone)]
pub struct Files {
    guard: Arc<Guard>,
    kernel: Arc<Kernel>,
    view: View,
}

impl Files {
    pub(crate) fn new(guard: Arc<Guard>, kernel: Arc<Kernel>, view: View) -> Self {
        Self { guard, kernel, view }
    }

    /// What is at a path; of a symlink in its last component, the link itself unless it is to be
    /// followed.
    pub fn stat(&self, path: &WorkspacePath, follow: bool) -> Result<Entry, FileError> {
        self.call(path, |call| call.stat(path, follow))
    }

    /// The entries of a directory, sorted by name.
    pub fn list(&self, path: &WorkspacePath) -> Result<Vec<Entry>, FileError> {
        self.call(path, |call| call.list(path))
    }

    /// Gives everything below a directory to `each` until it has enough: a directory before what is
    /// in it, names in order. Symlinks are not followed. What cannot be entered is passed over.
    pub fn walk(
        &self,
        path: &WorkspacePath,
        each: &mut dyn FnMut(Entry) -> std::ops::ControlFlow<()>,
    ) -> Result<(), FileError> {
        self.once(path, |call| call.walk(path, each))
    }

    /// Opens a regular file.
    pub fn read(&self, path: &WorkspacePath) -> Result<Reading, FileError> {
        self.call(path, |call| call.read(path))
    }

    /// Begins to write a file. It is there, whole, when [`Writing::finish`] has returned; until then
    /// nothing has changed, directories that are to be made included.
    pub fn write(&self, path: &WorkspacePath, options: WriteOptions) -> Result<Writing, FileError> {
        let started = self.call(path, |call| call.begin_write(path, options))?;
        Ok(Writing::new(self.clone(), path.clone(), started))
    }

    /// Makes a directory; with `parents` also those above it, and none if it is there already.
    pub fn mkdir(
        &self,
        path: &WorkspacePath,
        mode: Option<u32>,
        parents: bool,
    ) -> Result<Entry, FileError> {
        self.call(path, |call| call.mkdir(path, mode, parents))
    }

    /// Makes a symlink, wherever it leads; with `parents` also the directories on the way to it.
    pub fn symlink(
        &self,
        path: &WorkspacePath,
        target: &[u8],
        parents: bool,
    ) -> Result<Entry, FileError> {
        self.call(path, |call| call.symlink(path, target, parents))
    }

    /// Removes a file or an empty directory; with `recursive` a directory with everything in it, as
    /// far as that goes.
    pub fn remove(&self, path: &WorkspacePath, recursive: bool) -> Result<(), FileError> {
        self.call(path, |call| call.remove(path, recursive))
    }

    /// Moves a file or directory, as rename(2) does: a file or an empty directory that has the new
    /// name is replaced.
    pub fn rename(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<(), FileError> {
        self.call(from, |call| call.rename(from, to))
    }

    /// A node may become another one between two steps of a call, for which the kernel has
    /// `ESTALE`: then the path is walked again.
    fn call<T>(
        &self,
        path: &WorkspacePath,
        run: impl Fn(&Call) -> rustix::io::Result<T>,
    ) -> Result<T, FileError> {
        let again = |error: &FileError| error.errno == Errno::STALE;
        let mut result = self.once(path, &run);
        for _ in 1..ATTEMPTS {
            if !result.as_ref().is_err_and(again) {
                break;
            }
            result = self.once(path, &run);
        }
        result
    }

    fn once<T>(
        &self,
        path: &WorkspacePath,
        run: impl FnOnce(&Call) -> rustix::io::Result<T>,
    ) -> Result<T, FileError> {
        let call = Call::new(self);
        run(&call).map_err(|errno| FileError { path: path.clone(), errno, denial: call.denial() })
    }
}
