//! The life of one sandbox: mount, launch, run commands, keep the journal, end.
//!
//! A warden is a process of its own. It owns one sandbox's filesystem, cgroup, runtime child and
//! journal, and is asked through a socket by whoever may; it knows nothing of storage, accounts or
//! networks.
//!
//! | file | what is in it |
//! |---|---|
//! | `ground` | the user, directories and runtime that a sandbox stands on |
//! | [`life`] | from a description to a sandbox that runs, and to nothing left of it |
//! | `serve` | calls on the socket, one thread each |
//! | `sandbox` | what everything that runs shares |
//! | `exec`, `session`, `processes`, `terminals` | the four ways of running something |
//! | `files`, `layer` | calls about the workspace's files; about what was changed, and snapshots |
//! | `background`, `ring` | what processes and terminals have in common; the last bytes they printed |
//! | `pump` | bytes between a command and its caller, with deadlines |
//! | `inside` | the link to init |
//! | `tree` | all processes of a command together |
//! | `trace` | what a call is part of, for the record |
//! | `ownership` | home and temporary files, given to the user of this start |
//! | `origins`, `ledger` | whose access was that, and what was a command refused |
//! | [`journal`] | the audit record |

mod background;
pub mod config;
mod environment;
mod exec;
pub mod files;
mod ground;
mod inside;
pub mod journal;
mod layer;
mod ledger;
pub mod life;
mod origins;
mod ownership;
mod processes;
mod pump;
mod ring;
mod sandbox;
mod serve;
mod session;
mod terminals;
mod trace;
mod tree;

pub use config::Config;
