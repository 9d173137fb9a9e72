//! How to ask Linux safely: the few kernel interfaces that no crate wraps.
//!
//! This is the only crate with `unsafe`. It knows system calls and nothing of layers, policies or
//! sandboxes; what `rustix` already offers is not repeated here.
//!
//! Start with [`mounts`] (read-only views of a directory), then [`files`], [`signals`] and [`probe`].

pub mod files;
pub mod memory;
pub mod mounts;
pub mod probe;
pub mod signals;
