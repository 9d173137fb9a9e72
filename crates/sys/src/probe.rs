//! What this kernel and this process can do, asked rather than guessed.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::Path;

/// Whether a FUSE filesystem can be mounted by this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FuseDevice {
    /// The device opens.
    Usable,
    /// There is no `/dev/fuse`: the module is not loaded or the container does not pass it on.
    Missing,
    /// The device exists and may not be opened by this user.
    Forbidden,
}

impl FuseDevice {
    /// What is wrong, to be put after a colon.
    pub fn problem(self) -> &'static str {
        match self {
            Self::Usable => "nothing is wrong with it",
            Self::Missing => "there is no /dev/fuse",
            Self::Forbidden => "/dev/fuse may not be opened by this user",
        }
    }

    /// What a person can do about it, as one sentence; `None` if nothing is wrong.
    pub fn advice(self) -> Option<&'static str> {
        match self {
            Self::Usable => None,
            Self::Missing => Some(
                "load the module with `modprobe fuse`, or pass the device to the container with `--device /dev/fuse`",
            ),
            Self::Forbidden => {
                Some("open the device to users with `chmod 666 /dev/fuse` as root, or run as root")
            }
        }
    }
}

/// Tries the FUSE device the way a mount would.
pub fn fuse_device() -> FuseDevice {
    match OpenOptions::new().read(true).write(true).open("/dev/fuse") {
        Ok(_) => FuseDevice::Usable,
        Err(e) if e.kind() == ErrorKind::PermissionDenied => FuseDevice::Forbidden,
        Err(_) => FuseDevice::Missing,
    }
}

/// Whether files below `path` live on overlayfs, as the root of most containers does.
pub fn is_on_overlayfs(path: &Path) -> bool {
    const OVERLAYFS_SUPER_MAGIC: u64 = 0x794c_7630;
    rustix::fs::statfs(path).is_ok_and(|s| s.f_type as u64 == OVERLAYFS_SUPER_MAGIC)
}
