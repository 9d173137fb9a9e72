//! Layers: merging base, frozen and live directories over descriptors, never over path strings.
//!
//! Read [`marks`] for what is on disk, [`format`] for a layer's own directory, [`stack`] for how
//! names are found and listed, [`copy`] for how an entry gets from a lower layer to the live one.

pub mod copy;
pub mod format;
mod gitignore;
mod intent;
pub mod marks;
pub mod mask;
pub mod pool;
pub mod stack;
pub mod temporary;
