//! The options by which `run` and `shell` describe a sandbox.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ringfence_runtime::limits::parse_duration;

use crate::failure::Failure;
use crate::own_sandbox::Wanted;
use crate::shape_args::{ShapeArgs, existing_dir};
use crate::state::StateArgs;

/// What the sandbox is made of, and what becomes of it.
#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    #[command(flatten)]
    shape: ShapeArgs,

    /// End the command after this time, e.g. 60s or 5m (exit code 124)
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    timeout: Option<String>,

    /// Start here instead of /workspace
    #[arg(long, value_name = "DIR")]
    pub(crate) workdir: Option<String>,

    /// Write the changes back to DIR at the end
    #[arg(long, conflicts_with_all = ["discard", "keep"])]
    pub(crate) apply: bool,

    /// Throw the changes away at the end
    #[arg(long, conflicts_with = "keep")]
    pub(crate) discard: bool,

    /// Keep the changes in their layer at the end, without asking
    #[arg(long)]
    pub(crate) keep: bool,

    /// Write the whole record of the run to FILE as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) state: StateArgs,

    /// The directory to work on; it is never written to before the changes are applied
    pub(crate) dir: PathBuf,
}

impl SandboxArgs {
    /// Checks everything that can be checked without starting anything.
    pub(crate) fn wanted(&self) -> Result<Wanted, Failure> {
        let base = existing_dir(&self.dir)?;
        Ok(Wanted {
            codebase: self.shape.codebase(&base)?,
            sandbox: self.shape.request()?,
            rules: self.shape.rules()?,
            base,
            // Wardens start elsewhere than here.
            state: std::path::absolute(self.state.dir()?).map_err(Failure::broken)?,
        })
    }

    pub(crate) fn timeout(&self) -> Result<Option<Duration>, Failure> {
        self.timeout.as_deref().map(parse_duration).transpose().map_err(Failure::bad_input)
    }
}
