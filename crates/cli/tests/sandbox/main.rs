//! What runs in a sandbox, through real wardens: the binary is started, asked through its socket,
//! and everything it leaves behind is looked for.
#![allow(clippy::unwrap_used)]

mod confinement;
mod exec;
mod files;
mod host_users;
mod hostile;
mod kills;
mod leftovers;
mod processes;
mod run;
mod sessions;
mod shell;
mod support;
mod terminals;
mod unprivileged;
mod workflows;
