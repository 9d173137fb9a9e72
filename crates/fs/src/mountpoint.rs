//! The directory a workspace is mounted on: is it free, and how to get it free again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::io::Errno;

use crate::error::MountError;

/// What the mount table shows as the source of our mounts.
pub(crate) const SOURCE: &str = "ringfence";

/// Checks a mountpoint and returns its real path. A mount of ours whose server died is removed.
pub(crate) fn prepare(given: &Path) -> Result<PathBuf, MountError> {
    // The path and attributes of a dead mount may still be cached; its space is always asked for.
    let find = || {
        let path = given.canonicalize()?;
        rustix::fs::statfs(&path)?;
        io::Result::Ok(path)
    };
    let path = match find() {
        Err(e) if e.raw_os_error() == Some(Errno::NOTCONN.raw_os_error()) => {
            detach(&stale_mount(given)?)?;
            find()
        }
        other => other,
    };
    let path = path.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => MountError::MountpointMissing { path: given.into() },
        _ => MountError::io("find mountpoint", given, e),
    })?;
    if !fs::metadata(&path).is_ok_and(|meta| meta.is_dir()) {
        return Err(MountError::MountpointMissing { path: given.into() });
    }
    if mounted(&path).is_some() {
        return Err(MountError::MountpointBusy { path });
    }
    Ok(path)
}

/// The real path of a mountpoint that cannot be entered, if the dead mount there is one of ours.
fn stale_mount(given: &Path) -> Result<PathBuf, MountError> {
    let busy = || MountError::MountpointBusy { path: given.into() };
    let absolute = std::path::absolute(given).map_err(|_| busy())?;
    let (parent, name) = absolute.parent().zip(absolute.file_name()).ok_or_else(busy)?;
    let path = parent.canonicalize().map_err(|_| busy())?.join(name);
    match mounted(&path) {
        Some(source) if source == SOURCE => Ok(path),
        _ => Err(busy()),
    }
}

/// Unmounts even if files are open; an unprivileged user through the helper made for it.
pub(crate) fn detach(path: &Path) -> Result<(), MountError> {
    match ringfence_sys::mounts::detach(path) {
        Ok(()) => Ok(()),
        Err(e) if e.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(()),
        Err(e) => {
            let helper = Command::new("fusermount3")
                .args(["-u", "-z", "-q", "--"])
                .arg(path)
                .stdin(Stdio::null())
                .status();
            match helper {
                Ok(status) if status.success() => Ok(()),
                _ => Err(MountError::io("unmount", path, e)),
            }
        }
    }
}

/// The source of what is mounted exactly at `path`, the uppermost if several are.
fn mounted(path: &Path) -> Option<String> {
    let table = fs::read("/proc/self/mountinfo").ok()?;
    let table = String::from_utf8_lossy(&table).into_owned();
    table.lines().rev().find_map(|line| {
        let (fields, filesystem) = line.split_once(" - ")?;
        let at = unescape(fields.split(' ').nth(4)?);
        let source = filesystem.split(' ').nth(1).unwrap_or_default();
        (Path::new(&crate::os_string(at)) == path).then(|| source.to_owned())
    })
}

/// The mount table writes blanks and the like as octal numbers.
fn unescape(field: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let [first, tail @ ..] = rest {
        let number = tail.get(..3).filter(|_| *first == b'\\');
        let number = number.and_then(|d| std::str::from_utf8(d).ok());
        match number.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}
