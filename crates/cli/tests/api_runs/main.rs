//! Processes, terminals, the record, tokens, repeated requests and limits, over real gRPC: the
//! binary serves, and is asked as any client would.
#![allow(clippy::unwrap_used)]

mod audit;
mod exit_codes;
mod processes;
mod repeats;
mod storage;
mod support;
mod terminals;
mod tokens;
mod waits;
