//! Processes, terminals, the record, tokens, repeated requests, limits and servers of one process,
//! over real gRPC: the binary serves, and is asked as any client would.
#![allow(clippy::unwrap_used)]

mod audit;
mod exit_codes;
mod for_process;
#[path = "../sandbox/leftovers.rs"]
#[allow(dead_code)]
mod leftovers;
mod processes;
mod repeats;
mod storage;
mod support;
mod terminals;
mod tokens;
mod waits;
