//! The services of `api/`, one file each.

mod audit;
mod codebases;
mod info;
mod logs;
mod processes;
mod sandboxes;
mod sessions;
mod terminals;
mod tokens;

use ringfence_engine::codebases::Codebases;
use ringfence_engine::sandboxes::Sandboxes;
use ringfence_engine::store::Store;

use crate::repeats::Repeats;

/// What every service needs. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Services {
    pub(crate) sandboxes: Sandboxes,
    pub(crate) codebases: Codebases,
    pub(crate) store: Store,
    pub(crate) repeats: Repeats,
}
