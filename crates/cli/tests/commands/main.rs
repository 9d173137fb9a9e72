//! What the commands that need no mount print and how they end.

// A test that cannot go on should say where.
#![allow(clippy::unwrap_used)]

#[path = "../workspace/support.rs"]
mod support;

mod audit;
mod layer;
mod policy;
