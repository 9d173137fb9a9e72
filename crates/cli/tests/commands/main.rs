//! What the commands that need no mount print and how they end.

#[path = "../workspace/support.rs"]
mod support;

mod layer;
mod policy;
