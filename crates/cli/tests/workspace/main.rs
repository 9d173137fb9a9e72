//! Promises about a mounted workspace, driven from outside through the `ringfence` binary.
//!
//! One binary for all of them, so that the suite links once. `support` mounts and cleans up.

mod support;

mod smoke;
