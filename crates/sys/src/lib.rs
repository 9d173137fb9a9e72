//! How to ask Linux safely: the few kernel interfaces that no crate wraps.
//!
//! This is the only crate with `unsafe`. It knows system calls and nothing of layers, policies or
//! sandboxes; what `rustix` already offers is not repeated here.
//!
//! Start with [`mounts`] (read-only views of a directory) and [`spawn`] (everything between fork and
//! exec), then the rest in any order.

pub mod children;
pub mod files;
pub mod landlock;
pub mod memory;
pub mod mounts;
pub mod namespaces;
pub mod probe;
pub mod removal;
pub mod signals;
pub mod spawn;
pub mod terminal;
