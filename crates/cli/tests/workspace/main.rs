//! Promises about a mounted workspace, driven from outside through the `ringfence` binary.
//!
//! One binary for all of them, so that the suite links once. `support` mounts and cleans up.
#![allow(clippy::unwrap_used)]

mod support;

mod agent_safe;
mod bad_input;
mod crashes;
mod escapes;
mod events;
mod explains;
mod hosts;
mod levels;
mod mask;
mod model;
mod policy_change;
mod posix;
mod programs;
mod smoke;
