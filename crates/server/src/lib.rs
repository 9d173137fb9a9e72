//! How does a request become a call of the engine?
//!
//! | file | what is in it |
//! |---|---|
//! | [`serve`] | a server from its start to its end |
//! | [`listen`], [`tls`] | connections, on one port for everything |
//! | [`letting_in`], [`caller`] | who asks: tokens, peers of the Unix socket |
//! | [`status`] | problems as answers |
//! | [`convert`] | between the wire and the engine |
//! | [`commands`], [`output`] | commands as results and as streams, within bounds |
//! | [`repeats`] | requests that do nothing twice |
//! | [`exit_code`] | how a streamed command ended, in the trailers |
//! | [`grpc`] | the services |
//! | [`rest`] | the same as routes with JSON |
//! | [`metrics`] | health, readiness, and what was done |

mod caller;
mod commands;
mod convert;
mod exit_code;
mod grpc;
mod letting_in;
mod listen;
mod metrics;
mod output;
mod repeats;
mod rest;
pub mod serve;
mod status;
mod tls;

pub use ringfence_engine::codebases::Limits as Stored;
pub use ringfence_engine::sandboxes::owned::clean_up_after;
pub use ringfence_engine::sandboxes::{Belongs, Settings};
pub use ringfence_engine::wardens::end::Watched;
pub use tls::TlsFiles;
