//! The commands that ask a server, through the real binary and a real server.
#![allow(clippy::unwrap_used)]

mod background;
mod codebases;
mod commands;
mod errors;
mod private;
mod sandboxes;
mod support;
