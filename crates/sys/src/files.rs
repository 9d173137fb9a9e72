//! File interfaces beside those of `rustix`.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{FlockOperation, XattrFlags, flock};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};

/// Starts write-back of everything dirty in `fd` without waiting for it.
///
/// On ext4 this allocates the delayed blocks, so that a following rename cannot reach the journal
/// before the data does: a file copied aside and renamed into place is never found empty after a
/// power failure, and nobody waits for the disk.
pub fn start_writeback(fd: impl AsFd) {
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: plain integer arguments on a descriptor that is open for the duration of the call.
    // A failure (a filesystem without the call) only loses the hint.
    unsafe {
        libc::sync_file_range(fd, 0, 0, libc::SYNC_FILE_RANGE_WRITE);
    }
}

/// A path that names `name` below the directory `dir` for calls that take no descriptor.
///
/// The kernel resolves `/proc/self/fd/N` to the directory itself, so nothing between the host's
/// root and `dir` is walked again; `name` must be one component.
fn below(dir: impl AsFd, name: &[u8]) -> Vec<u8> {
    let mut path = format!("/proc/self/fd/{}/", dir.as_fd().as_raw_fd()).into_bytes();
    path.extend_from_slice(name);
    path
}

/// Reads an extended attribute of the entry `name` of `dir`, never following a symlink.
pub fn getxattr_at(
    dir: impl AsFd,
    name: &[u8],
    attr: &CStr,
    buf: &mut [u8],
) -> rustix::io::Result<usize> {
    rustix::fs::lgetxattr(below(dir, name), attr, buf)
}

/// Names of the extended attributes of the entry `name` of `dir`, each followed by a NUL.
pub fn listxattr_at(dir: impl AsFd, name: &[u8]) -> rustix::io::Result<Vec<u8>> {
    let path = below(dir, name);
    loop {
        let size = rustix::fs::llistxattr_query(&path[..])?;
        let mut buf = vec![0u8; size];
        match rustix::fs::llistxattr(&path[..], &mut buf[..]) {
            Ok(len) => {
                buf.truncate(len);
                return Ok(buf);
            }
            Err(rustix::io::Errno::RANGE) => continue,
            Err(e) => return Err(e),
        }
    }
}

/// Sets an extended attribute of the entry `name` of `dir`, never following a symlink.
pub fn setxattr_at(
    dir: impl AsFd,
    name: &[u8],
    attr: &CStr,
    value: &[u8],
    flags: XattrFlags,
) -> rustix::io::Result<()> {
    rustix::fs::lsetxattr(below(dir, name), attr, value, flags)
}

/// Removes an extended attribute of the entry `name` of `dir`, never following a symlink.
pub fn removexattr_at(dir: impl AsFd, name: &[u8], attr: &CStr) -> rustix::io::Result<()> {
    rustix::fs::lremovexattr(below(dir, name), attr)
}

/// Lets go of what `fd` refers to without waiting for it to be taken down; the number then refers to
/// what `instead` does.
///
/// Some descriptors take the kernel long to close: an inotify instance waits until nobody on the
/// host can be looking at its watches, some 15 ms. A socket that lies in its own queue can be
/// reached by nobody, and the kernel collects it, with all that lies beside it, in a thread of its
/// own. (Before Linux 6.10 it does so at once, and this takes as long as closing.)
pub fn let_go(fd: impl AsFd, instead: impl AsFd) -> io::Result<()> {
    let (near, far) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    let lost = [fd.as_fd(), far.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&lost));
    sendmsg(&near, &[io::IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
    let (fd, instead) = (fd.as_fd().as_raw_fd(), instead.as_fd().as_raw_fd());
    // SAFETY: both numbers are open descriptors for the duration of the call, and the first stays
    // one: what it refers to is exchanged in a single step.
    match unsafe { libc::dup3(instead, fd, libc::O_CLOEXEC) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A file that nobody else holds while this lives.
///
/// Closing a descriptor is not enough to unlock it at once: a program that another thread is just
/// about to start has a copy of it until its exec.
#[derive(Debug)]
pub struct Locked(File);

impl Locked {
    /// None if somebody holds it.
    pub fn take(file: File) -> io::Result<Option<Self>> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Whether somebody holds the file. To ask does not keep others from asking, and holds up one
    /// who wants to have it for an instant only.
    pub fn is_held(file: &File) -> bool {
        let held = flock(file, FlockOperation::NonBlockingLockShared).is_err();
        let _ = flock(file, FlockOperation::Unlock);
        held
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Opens again, with other flags, what an `O_PATH` descriptor refers to.
pub fn reopen(fd: impl AsFd, flags: rustix::fs::OFlags) -> rustix::io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    rustix::fs::open(path, flags | rustix::fs::OFlags::CLOEXEC, rustix::fs::Mode::empty())
}

/// Sends `FUSE_NOTIFY_INC_EPOCH`: every name the kernel has cached for this mount is looked up
/// again at its next use. Kernels before 6.16 (FUSE ABI 7.44) answer `EINVAL`.
pub fn bump_fuse_epoch(device: impl AsFd) -> io::Result<()> {
    const NOTIFY_INC_EPOCH: u32 = 8;
    let mut header = [0u8; 16];
    header[0..4].copy_from_slice(&16u32.to_ne_bytes());
    header[4..8].copy_from_slice(&NOTIFY_INC_EPOCH.to_ne_bytes());
    rustix::io::write(device, &header)?;
    Ok(())
}

/// Takes over a descriptor that this process was started with. It is not passed on to children.
///
/// Must be called once per number, first thing in `main`: nothing else may own it.
pub fn take_inherited(number: i32) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: only asks whether the number is open.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and by the contract above nothing else has taken it.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    #[test]
    fn what_was_let_go_is_closed_by_the_kernel() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let (other, instead) = rustix::pipe::pipe().unwrap();
        let_go(&writer, &instead).unwrap();
        let deadline = Timespec { tv_sec: 60, tv_nsec: 0 };
        let mut waits = [PollFd::new(&reader, PollFlags::IN)];
        assert_eq!(poll(&mut waits, Some(&deadline)).unwrap(), 1, "nobody closed the pipe");
        assert_eq!(rustix::io::read(&reader, &mut [0u8; 1]).unwrap(), 0);
        rustix::io::write(&writer, b"x").unwrap();
        assert_eq!(rustix::io::read(&other, &mut [0u8; 9]).unwrap(), 1, "the number goes on");
    }
}
