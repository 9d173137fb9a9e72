//! The files through which the shell of a session is driven.

use std::os::fd::{AsFd, OwnedFd};

use ringfence_link::channel::MAX_FDS;
use ringfence_link::init::ShellFiles;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

const ROOT: &str = "/run/shell";

/// Nobody has a reason to write here, and a stray `rm -rf` should not take a session with it.
const SEALED: Mode = Mode::from_raw_mode(0o555);
const OPEN: Mode = Mode::from_raw_mode(0o755);

/// Makes what is asked for and returns a descriptor for each, in the order of the request.
pub(crate) fn make(session: u64, spec: &ShellFiles) -> rustix::io::Result<Vec<OwnedFd>> {
    if spec.files.len() + spec.outgoing.len() + spec.incoming.len() > MAX_FDS {
        return Err(Errno::INVAL);
    }
    let path = format!("{ROOT}/{session}");
    for dir in [ROOT, &path] {
        match rustix::fs::mkdir(dir, OPEN) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(e),
        }
    }
    rustix::fs::chmod(&path, OPEN)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = rustix::fs::openat(CWD, &path, flags, Mode::empty())?;
    let made = fill(&dir, spec);
    rustix::fs::fchmod(&dir, SEALED)?;
    made
}

fn fill(dir: &OwnedFd, spec: &ShellFiles) -> rustix::io::Result<Vec<OwnedFd>> {
    let mut made = Vec::new();
    for (name, content) in &spec.files {
        make_room(dir, name)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let file = open(dir, name, flags)?;
        let mut rest = &content[..];
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(&file, rest)?..];
        }
        made.push(file);
    }
    for name in &spec.outgoing {
        made.push(open_fifo(dir, name, OFlags::RDONLY)?);
    }
    for name in &spec.incoming {
        // Open for reading too, so that it can be opened before a shell reads from it, and a shell
        // that opens it does not wait.
        made.push(open_fifo(dir, name, OFlags::RDWR)?);
    }
    Ok(made)
}

fn open_fifo(dir: &OwnedFd, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    make_room(dir, name)?;
    rustix::fs::mknodat(dir, name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    open(dir, name, flags | OFlags::NONBLOCK)
}

fn make_room(dir: &OwnedFd, name: &str) -> rustix::io::Result<()> {
    check_name(name)?;
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(e) => Err(e),
    }
}

fn open(dir: impl AsFd, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    check_name(name)?;
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::openat(dir, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode)
}

fn check_name(name: &str) -> rustix::io::Result<()> {
    match name.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !name.is_empty() {
        true => Ok(()),
        false => Err(Errno::INVAL),
    }
}

/// Removes a session's directory and everything in it.
pub(crate) fn remove(session: u64) {
    let path = format!("{ROOT}/{session}");
    let _ = rustix::fs::chmodat(CWD, &path, OPEN, AtFlags::empty());
    let _ = std::fs::remove_dir_all(&path);
}
