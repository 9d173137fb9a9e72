//! Mount interfaces: private read-only clones of a tree, detaching what a crash left behind.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{OpenTreeFlags, UnmountFlags, open_tree, unmount};

/// `struct mount_attr` of mount_setattr(2).
#[repr(C)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

/// Clones the mounts below `path` into a private, detached, read-only tree and returns its root.
///
/// A FUSE backing file is remembered by the kernel as a path, not with the mode of the descriptor
/// it came from, so a mistake above could turn a read grant on the source into a write. Behind a
/// read-only mount the kernel itself refuses that. The clone is attached nowhere: it disappears
/// with its descriptor, whatever happens to this process.
///
/// Needs `CAP_SYS_ADMIN` over the mount namespace; otherwise the error says so (`EPERM`).
pub fn readonly_clone(path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = open_tree(CWD, path, flags)?;
    set_readonly(&tree)?;
    Ok(tree)
}

fn set_readonly(tree: &OwnedFd) -> io::Result<()> {
    let attr = MountAttr {
        attr_set: libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOSUID,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    // SAFETY: the descriptor is open for the duration of the call, the path is a NUL-terminated
    // literal, and `attr` outlives the call with exactly the size that is passed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Detaches whatever is mounted at `path`, even if the server behind it is dead or busy.
pub fn detach(path: &Path) -> io::Result<()> {
    Ok(unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?)
}
