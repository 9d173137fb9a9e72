//! How does a request become a call of the engine?
//!
//! | file | what is in it |
//! |---|---|
//! | [`caller`] | who asks: credentials, peers of the Unix socket |
//! | [`status`] | problems as answers |
//! | [`convert`] | between the wire and the engine |
//! | [`commands`], [`output`] | commands as results and as streams, within bounds |
//! | [`repeats`] | requests that do nothing twice |
//! | [`exit_code`] | how a streamed command ended, in the trailers |
//! | [`grpc`] | the services |

mod caller;
mod commands;
mod convert;
mod exit_code;
mod grpc;
mod output;
mod repeats;
pub mod serve;
mod status;

pub use ringfence_engine::codebases::Limits as Stored;
pub use ringfence_engine::sandboxes::Settings;
