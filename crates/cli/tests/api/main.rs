//! The API from outside: `ringfence serve` is started, asked over gRPC, and ended.
#![allow(clippy::unwrap_used)]

mod files;
mod layers;
mod policy;
mod snapshots;
mod stored;
mod support;
