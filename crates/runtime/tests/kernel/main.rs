//! What only a kernel can prove: real groups, real limits, a real sandbox.

// A test that cannot go on is a test that failed.
#![allow(clippy::unwrap_used)]

mod commands;
mod groups;
mod inside;
mod limits;
mod start;
mod support;
