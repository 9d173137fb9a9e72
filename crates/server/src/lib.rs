//! How does a request become a call of the engine?
//!
//! | file | what is in it |
//! |---|---|
//! | [`caller`] | who asks: credentials, peers of the Unix socket |
//! | [`status`] | problems as answers |
//! | [`convert`] | between the wire and the engine |
//! | [`commands`], [`output`] | commands as results and as streams, within bounds |
//! | [`grpc`] | the services |

mod caller;
mod commands;
mod convert;
mod grpc;
mod output;
pub mod serve;
mod status;

pub use ringfence_engine::codebases::Limits as Stored;
pub use ringfence_engine::sandboxes::Settings;
