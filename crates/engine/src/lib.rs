//! What exists and what can be done with it: the one API that everything in front of it speaks to.
//!
//! | module | what is in it |
//! |---|---|
//! | `containers` | what container engines have |
//! | [`problem`] | why something could not be done |
//! | [`id`] | names of things |
//! | [`store`] | records, in SQLite |
//! | [`codebases`] | stored files: versions, uploads, listings |
//! | [`sandboxes`] | sandboxes: records, life, and what runs inside |
//! | [`wardens`] | the processes that own sandboxes: starting, asking, cleaning up after them |

pub mod codebases;
mod containers;
pub mod id;
pub mod problem;
pub mod sandboxes;
pub mod store;
pub mod wardens;

pub use containers::runtimes;
pub use ringfence_runtime::Limits;
pub use ringfence_runtime::docker::Step as FetchStep;

use problem::{Problem, Result};

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// What they see is what belongs to this account.
    pub account: String,
    /// They are this server's own user on its own host, and may name directories of it.
    pub local: bool,
}

impl Caller {
    pub fn may_name_host_paths(&self) -> Result<()> {
        match self.local {
            true => Ok(()),
            false => Err(Problem::invalid(
                "directories of the host can be named over the Unix socket by the server's own \
                 user only",
            )),
        }
    }
}
