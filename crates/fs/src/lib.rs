//! What a process inside a workspace sees when it opens a file.
//!
//! Three rooms, to be read in this order: [`layers`] (directories on disk merged into one tree),
//! [`guard`] (the policy in front, as a table of every operation), [`fuse`] (decoding the kernel's
//! requests and encoding the answers). [`tree`] is where layers become nodes and files; [`mount`]
//! puts the rooms together; [`files`] is the way in for calls from outside, of a workspace that is
//! mounted or ([`offline`]) one that is not; [`changes`], [`diff`] and [`apply`] are the owner's view
//! of a layer.
//!
//! This crate knows nothing of sandboxes, sessions, networks or async.

pub mod apply;
pub mod changes;
pub mod diff;
mod error;
pub mod events;
pub mod files;
mod fuse;
pub mod guard;
mod kernel;
pub mod layers;
pub mod levels;
pub mod mount;
mod mountpoint;
pub mod offline;
pub mod tree;
mod watch;
mod workspace;

pub use error::{LayerError, MountError};

/// Bytes as an `OsString`, whatever they are.
pub(crate) fn os_string(bytes: Vec<u8>) -> std::ffi::OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}
