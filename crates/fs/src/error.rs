//! Errors of setting up and administering workspaces. Toward the kernel there is only an errno.

use std::io;
use std::path::{Path, PathBuf};

use crate::layers::mask::NeverMatches;

/// What went wrong with a layer directory. Every message is for the owner, on the host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    #[error("there is no layer at {}", path.display())]
    Missing { path: PathBuf },
    #[error("{} is not a layer", path.display())]
    NotALayer { path: PathBuf },
    #[error("{} exists and is not empty", path.display())]
    Exists { path: PathBuf },
    #[error("layer {} has format {found}, this version reads up to {known}", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("the description of layer {} is damaged: {source}", path.display())]
    Damaged { path: PathBuf, source: serde_json::Error },
    #[error("layer {} is in use by another process", path.display())]
    Busy { path: PathBuf },
    #[error("layer {} is mounted, and so cannot be applied to its base", path.display())]
    Mounted { path: PathBuf },
    #[error("layer {} is frozen", path.display())]
    Frozen { path: PathBuf },
    #[error("layer {} is live: freeze it before another layer stands on it", path.display())]
    NotFrozen { path: PathBuf },
    #[error("layer {} is needed by {}", path.display(), child.display())]
    InUseBy { path: PathBuf, child: PathBuf },
    #[error("layer {} was made over {}, not over {}", path.display(), recorded.display(), given.display())]
    OtherBase { path: PathBuf, recorded: PathBuf, given: PathBuf },
    #[error("cannot {step} {}: {source}", path.display())]
    Io { step: &'static str, path: PathBuf, source: io::Error },
}

impl LayerError {
    pub fn io(step: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { step, path: path.into(), source }
    }
}

/// Why a workspace could not be mounted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    #[error("base {} does not exist", path.display())]
    BaseMissing { path: PathBuf },
    #[error("base {} is not a directory", path.display())]
    BaseNotADirectory { path: PathBuf },
    #[error("mountpoint {} does not exist or is not a directory", path.display())]
    MountpointMissing { path: PathBuf },
    #[error("mountpoint {} is inside {what} {}", mountpoint.display(), other.display())]
    MountpointInside { mountpoint: PathBuf, what: &'static str, other: PathBuf },
    #[error("layer {} and base {} are inside one another", layer.display(), base.display())]
    LayerInsideBase { layer: PathBuf, base: PathBuf },
    #[error("mountpoint {} is busy: something is mounted there", path.display())]
    MountpointBusy { path: PathBuf },
    #[error("/dev/fuse cannot be used: {advice}")]
    NoFuse { advice: &'static str },
    #[error("bad mask pattern {pattern:?}: {reason}")]
    BadMask { pattern: String, reason: NeverMatches },
    #[error("cannot {step} {}: {source}", path.display())]
    Io { step: &'static str, path: PathBuf, source: io::Error },
    #[error(transparent)]
    Layer(#[from] LayerError),
}

impl MountError {
    pub(crate) fn io(step: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { step, path: path.into(), source }
    }
}
