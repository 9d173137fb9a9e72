//! Namespaces of this process.

use std::io;

use rustix::mount::{MountPropagationFlags, mount_change};

/// Gives this process a mount namespace of its own: what it mounts from now on is seen by it and
/// its children only, and is gone when the last of them ends, however that happens. What the host
/// mounts still arrives.
///
/// As root directly; otherwise inside a new user namespace in which the caller keeps its numbers.
/// Must be called before other threads start.
pub fn enter_private_mounts() -> io::Result<()> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    if uid.is_root() {
        unshare(libc::CLONE_NEWNS)?;
    } else {
        unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", format!("{0} {0} 1", uid.as_raw()))?;
        std::fs::write("/proc/self/gid_map", format!("{0} {0} 1", gid.as_raw()))?;
    }
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    Ok(mount_change("/", slave)?)
}

fn unshare(flags: i32) -> io::Result<()> {
    // SAFETY: only integers. The flags used here (mounts, users) leave memory and descriptors
    // shared as they are.
    if unsafe { libc::unshare(flags) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
