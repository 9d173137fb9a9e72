//! The services of `api/`, one file each.

mod codebases;
mod files;
mod sandboxes;
mod sessions;
mod workspace;

use ringfence_engine::codebases::Codebases;
use ringfence_engine::sandboxes::Sandboxes;

/// What every service needs. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Services {
    pub(crate) sandboxes: Sandboxes,
    pub(crate) codebases: Codebases,
}
