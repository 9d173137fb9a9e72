//! `ringfence layer`: looking at what a layer changes, and what becomes of it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use ringfence_fs::LayerError;
use ringfence_fs::layers::format::LayerDir;

use crate::failure::Failure;
use crate::layer_apply::ApplyArgs;
use crate::layer_changes::{self, LookArgs};
use crate::layer_life::{self, ForkArgs, LayersArgs};

/// Look at what a layer changes, write it back, or manage layers
///
/// A layer is the directory given to `ringfence mount --layer`. It keeps what programs changed in
/// a workspace; the base stays as it was until `apply`.
#[derive(Debug, Args)]
pub(crate) struct LayerArgs {
    #[command(subcommand)]
    command: LayerCommand,
}

#[derive(Debug, Subcommand)]
enum LayerCommand {
    /// List what was added, modified, deleted and renamed
    ///
    /// One line per change, frozen layers below included: A added, M modified, D deleted, R
    /// renamed, m permission bits. Directories end in `/`; a deleted or renamed one stands for all
    /// that is in it. A mounted layer can be looked at too. Exit codes: 0, also if there are no
    /// changes; 2 not a layer, or one of a newer version.
    Changes(LookArgs),
    /// Show the changes as a patch for `git apply` or `patch -p1`
    ///
    /// Binary files and those over 8 MiB are only named, and so is what a patch cannot say (empty
    /// directories, fifos). Exit codes: 0, also if there are no changes; 2 not a layer, or one of
    /// a newer version.
    Diff(LookArgs),
    Apply(ApplyArgs),
    /// Make layers unchangeable, so that others can stand on them
    ///
    /// Exit codes: 0 done, also if it was frozen before; 2 not a layer, or in use.
    Freeze(LayersArgs),
    Fork(ForkArgs),
    /// Delete layers and the changes in them
    ///
    /// The base stays as it is. Exit codes: 0 done; 2 not a layer, in use, or needed by another
    /// layer that is not removed before it: then none was removed.
    Rm(LayersArgs),
    /// Show what layers are and what they stand on
    ///
    /// Exit codes: 0; 2 not a layer, or one of a newer version.
    Show(LayersArgs),
}

pub(crate) fn run(args: LayerArgs) -> Result<ExitCode, Failure> {
    ringfence_sys::memory::raise_open_file_limit();
    match args.command {
        LayerCommand::Changes(args) => layer_changes::changes(&args),
        LayerCommand::Diff(args) => layer_changes::diff(&args),
        LayerCommand::Apply(args) => crate::layer_apply::run(&args),
        LayerCommand::Freeze(args) => layer_life::freeze(&args),
        LayerCommand::Fork(args) => layer_life::fork(&args),
        LayerCommand::Rm(args) => layer_life::remove(&args),
        LayerCommand::Show(args) => layer_life::show(&args),
    }
}

/// Layers to look at; a mounted one will do.
pub(crate) fn inspect_all(paths: &[PathBuf]) -> Result<Vec<LayerDir>, Failure> {
    paths.iter().map(|path| LayerDir::inspect(path).map_err(explain)).collect()
}

/// A layer to work with; nobody else may use it meanwhile.
pub(crate) fn open(path: &Path) -> Result<LayerDir, Failure> {
    LayerDir::open(path).map_err(explain)
}

pub(crate) fn explain(e: LayerError) -> Failure {
    if let LayerError::Io { step, source, .. } = &e {
        let asked_for = matches!(
            source.kind(),
            ErrorKind::NotFound
                | ErrorKind::NotADirectory
                | ErrorKind::PermissionDenied
                | ErrorKind::InvalidInput
        );
        return match asked_for && *step != "write" {
            true => Failure::bad_input(&e),
            false => Failure::broken(&e),
        };
    }
    let failure = Failure::bad_input(&e);
    match e {
        LayerError::Busy { .. } => failure.hint("unmount the workspace first"),
        LayerError::Newer { .. } => failure.hint("update ringfence"),
        LayerError::NotFrozen { path } => {
            failure.hint(format!("freeze it with: ringfence layer freeze {}", path.display()))
        }
        LayerError::InUseBy { child, .. } => {
            failure.hint(format!("remove that one first: ringfence layer rm {}", child.display()))
        }
        LayerError::NotALayer { .. } | LayerError::Missing { .. } => {
            failure.hint("a layer is the directory given to `ringfence mount --layer`")
        }
        _ => failure,
    }
}
