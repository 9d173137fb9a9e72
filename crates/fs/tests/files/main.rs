//! The files of a workspace by path, beside programs that use the mount, and without a mount.
#![allow(clippy::unwrap_used)]

mod agent;
mod links;
mod offline;
mod owner;
mod races;
mod sight;
mod support;
