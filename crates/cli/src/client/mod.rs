//! The commands that ask a server, as any SDK does: over gRPC, and never past it.
//!
//! | file | what is in it |
//! |---|---|
//! | [`connect`] | which server, and a connection to it |
//! | [`trouble`] | refusals of a server as sentences, hints and exit codes |
//! | [`show`], [`table`] | what is printed |
//! | [`attached`], [`input`], [`signals`] | a command with the streams and signals of this process |
//! | [`terminal`] | a terminal put through to this one |
//! | [`codebase`], [`push`], [`walk`], [`staging`] | stored files |
//! | [`images`] | what sandboxes run in |
//! | [`sandbox`] | sandboxes and what is in them |
//! | [`session`], [`process`], [`token`] | shells that live on, the background, who may call |

pub(crate) mod attached;
pub(crate) mod codebase;
pub(crate) mod completions;
pub(crate) mod connect;
pub(crate) mod images;
mod input;
pub(crate) mod process;
mod push;
pub(crate) mod rules;
pub(crate) mod sandbox;
pub(crate) mod session;
mod show;
pub(crate) mod signals;
mod staging;
mod table;
pub(crate) mod terminal;
pub(crate) mod token;
pub(crate) mod trouble;
mod walk;

use tokio::runtime::{Builder, Runtime};

use crate::failure::Failure;

/// Two threads beside this one: whoever waits here for a slow reader must not stop what is sent.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(Failure::broken)
}
