//! Mount interfaces: private read-only clones of a tree, detaching what a crash left behind.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, UnmountFlags, move_mount, open_tree, unmount};
use rustix::thread::{
    ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces, unshare_unsafe,
};

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

/// Clones the mount at `path`, attached nowhere.
pub fn clone_mount(path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    Ok(open_tree(CWD, path, flags)?)
}

/// Attaches a tree that is attached nowhere in the mount namespace of another process, at a
/// directory as that process has it. A symlink there is not followed.
///
/// The thread that does it is one of its own: what it enters, it does not leave again.
pub fn attach_elsewhere(tree: OwnedFd, pidfd: &OwnedFd, target: &'static CStr) -> io::Result<()> {
    let pidfd = pidfd.try_clone()?;
    let attach = move || -> io::Result<()> {
        // SAFETY: of what threads share, only the current directory, root and umask are unshared.
        unsafe { unshare_unsafe(UnshareFlags::FS)? };
        move_into_thread_name_spaces(pidfd.as_fd(), ThreadNameSpaceType::MOUNT)?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        Ok(move_mount(tree.as_fd(), c"", CWD, target, flags)?)
    };
    let thread = std::thread::Builder::new().name("attach".into()).spawn(attach)?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread has failed")))
}

/// Detaches whatever is mounted at `path`, even if the server behind it is dead or busy.
pub fn detach(path: &Path) -> io::Result<()> {
    Ok(unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?)
}
