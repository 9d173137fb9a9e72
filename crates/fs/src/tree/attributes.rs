//! Attributes: what `stat` shows, what may be changed, extended attributes.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ringfence_sys::files::{getxattr_at, listxattr_at, removexattr_at, setxattr_at};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps, XattrFlags, fstat};
use rustix::io::{Errno, Result};

use super::files::Handle;
use super::node::{Body, Node, NodeId, Place};
use super::{State, Tree};
use crate::layers::copy::{MODE_BITS, is_user_attribute};
use crate::layers::marks;
use crate::layers::stack::Leaf;

/// What `stat` shows, except the owner, which is the same for the whole mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attr {
    pub id: NodeId,
    pub kind: FileType,
    pub mode: u32,
    pub nlink: u32,
    pub size: u64,
    pub blocks: u64,
    pub atime: SystemTime,
    pub mtime: SystemTime,
    pub ctime: SystemTime,
}

/// Size shown for every directory: a real one would grow with hidden entries.
const DIR_SIZE: u64 = 4096;

impl Attr {
    pub(super) fn of_dir(id: NodeId, stat: &Stat) -> Self {
        // One link means "unknown" to `find` and others; the true count would give away how many
        // subdirectories there are that cannot be seen.
        Self { nlink: 1, size: DIR_SIZE, blocks: DIR_SIZE / 512, ..Self::plain(id, stat) }
    }

    pub(super) fn of_leaf(id: NodeId, stat: &Stat) -> Self {
        Self::plain(id, stat)
    }

    fn plain(id: NodeId, stat: &Stat) -> Self {
        Self {
            id,
            kind: FileType::from_raw_mode(stat.st_mode),
            mode: stat.st_mode & MODE_BITS,
            nlink: stat.st_nlink as u32,
            size: stat.st_size as u64,
            blocks: stat.st_blocks as u64,
            atime: time(stat.st_atime, stat.st_atime_nsec),
            mtime: time(stat.st_mtime, stat.st_mtime_nsec),
            ctime: time(stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

fn time(seconds: i64, nanoseconds: impl TryInto<u32>) -> SystemTime {
    let part = Duration::from_nanos(nanoseconds.try_into().map_or(0, u64::from));
    let whole = Duration::from_secs(seconds.unsigned_abs());
    if seconds >= 0 { UNIX_EPOCH + whole + part } else { UNIX_EPOCH - whole + part }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    Now,
    At(SystemTime),
}

/// What a `setattr` request wants to change; the owner is decided by the guard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetAttr {
    pub mode: Option<u32>,
    pub size: Option<u64>,
    pub atime: Option<Time>,
    pub mtime: Option<Time>,
}

impl Tree {
    pub fn getattr(&self, id: NodeId) -> Result<Attr> {
        let state = self.state.read();
        self.attr(&state, &*self.node(id)?)
    }

    fn attr(&self, state: &State, node: &Node) -> Result<Attr> {
        match &node.body {
            Body::Dir(dir) => {
                let part = dir.merge.read().parts[0].clone();
                Ok(self.dir_attr(node.id, &part, part.own_stat()?))
            }
            Body::Leaf(leaf) => match &*leaf.place.read() {
                Place::At { part, name, .. } => {
                    let stat = part.stat(name)?.ok_or(Errno::NOENT)?;
                    let leaf = Leaf { part: part.clone(), name: name.clone(), stat };
                    Ok(self.leaf_attr(state, node.id, &leaf))
                }
                Place::Orphan { fd, .. } => {
                    Ok(Attr { nlink: 0, ..Attr::of_leaf(node.id, &fstat(fd)?) })
                }
            },
        }
    }

    pub fn setattr(&self, id: NodeId, handle: Option<Handle>, set: SetAttr) -> Result<Attr> {
        let state = self.state.read();
        let node = self.node(id)?;
        if let Some(size) = set.size {
            self.set_size(&state, &node, handle, size)?;
        }
        if set.mode.is_some() || set.atime.is_some() || set.mtime.is_some() {
            self.set_mode_and_times(&state, &node, set)?;
        }
        self.attr(&state, &node)
    }

    fn set_mode_and_times(&self, state: &State, node: &Node, set: SetAttr) -> Result<()> {
        let times = times(set);
        let Body::Leaf(leaf) = &node.body else {
            let part = self.upper(state, node.id)?;
            if let Some(mode) = set.mode {
                marks::set_dir_mode(part.fd()?, mode)?;
            }
            return rustix::fs::futimens(part.fd()?, &times);
        };
        let mode = set.mode.map(|mode| Mode::from(mode & MODE_BITS));
        self.copy_up_or_move_on(state, node, None)?;
        match &*leaf.place.read() {
            Place::At { part, name, .. } => {
                if let Some(mode) = mode {
                    rustix::fs::chmodat(part.fd()?, &name[..], mode, AtFlags::empty())?;
                }
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::utimensat(part.fd()?, &name[..], &times, flags)
            }
            Place::Orphan { fd, .. } => {
                let file = ringfence_sys::files::reopen(fd, OFlags::RDONLY | OFlags::NONBLOCK)?;
                if let Some(mode) = mode {
                    rustix::fs::fchmod(&file, mode)?;
                }
                rustix::fs::futimens(&file, &times)
            }
        }
    }

    pub fn readlink(&self, id: NodeId) -> Result<Vec<u8>> {
        let node = self.node(id)?;
        match &*node.as_leaf()?.place.read() {
            Place::At { part, name, .. } => {
                Ok(rustix::fs::readlinkat(part.fd()?, &name[..], Vec::new())?.into_bytes())
            }
            Place::Orphan { fd, .. } => {
                Ok(rustix::fs::readlinkat(fd, c"", Vec::new())?.into_bytes())
            }
        }
    }

    pub fn getxattr(&self, id: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        let name = attribute(name)?;
        let mut value = vec![0u8; 64 * 1024];
        let len = self.with_entry(id, |dir, entry| getxattr_at(dir, entry, &name, &mut value))?;
        value.truncate(len);
        Ok(value)
    }

    /// Names of the attributes that programs may see, each followed by a NUL.
    pub fn listxattr(&self, id: NodeId) -> Result<Vec<u8>> {
        let all = match self.with_entry(id, |dir, entry| listxattr_at(dir, entry)) {
            Err(Errno::OPNOTSUPP) => Vec::new(),
            other => other?,
        };
        let mut shown = Vec::new();
        for name in all.split(|b| *b == 0).filter(|name| is_user_attribute(name)) {
            shown.extend_from_slice(name);
            shown.push(0);
        }
        Ok(shown)
    }

    pub fn setxattr(&self, id: NodeId, name: &[u8], value: &[u8], flags: i32) -> Result<()> {
        let name = attribute(name)?;
        let flags = XattrFlags::from_bits(flags as u32).ok_or(Errno::INVAL)?;
        self.bring_up(id)?;
        self.with_entry(id, |dir, entry| setxattr_at(dir, entry, &name, value, flags))
    }

    pub fn removexattr(&self, id: NodeId, name: &[u8]) -> Result<()> {
        let name = attribute(name)?;
        self.bring_up(id)?;
        self.with_entry(id, |dir, entry| removexattr_at(dir, entry, &name))
    }

    fn bring_up(&self, id: NodeId) -> Result<()> {
        let state = self.state.read();
        let node = self.node(id)?;
        match &node.body {
            Body::Dir(_) => self.upper(&state, id).map(drop),
            Body::Leaf(_) => self.copy_up_or_move_on(&state, &node, None),
        }
    }

    /// Calls with a directory descriptor and the name in it of what the node stands for.
    fn with_entry<R>(
        &self,
        id: NodeId,
        call: impl FnOnce(BorrowedFd<'_>, &[u8]) -> Result<R>,
    ) -> Result<R> {
        let node = self.node(id)?;
        match &node.body {
            Body::Dir(dir) => {
                let part = dir.merge.read().parts[0].clone();
                call(part.fd()?.as_fd(), b".")
            }
            Body::Leaf(leaf) => match &*leaf.place.read() {
                Place::At { part, name, .. } => call(part.fd()?.as_fd(), name),
                Place::Orphan { .. } => Err(Errno::NODATA),
            },
        }
    }

    /// Space of the filesystem that holds the live layer.
    pub fn statfs(&self) -> Result<rustix::fs::StatVfs> {
        let state = self.state.read();
        let top = state.stack.roots().first().ok_or(Errno::IO)?.clone();
        rustix::fs::fstatvfs(top.fd()?)
    }
}

/// Only `user.*`, and not our own marks, exist in a workspace.
fn attribute(name: &[u8]) -> Result<CString> {
    if !is_user_attribute(name) {
        return Err(Errno::OPNOTSUPP);
    }
    CString::new(name).map_err(|_| Errno::INVAL)
}

fn times(set: SetAttr) -> Timestamps {
    Timestamps { last_access: timespec(set.atime), last_modification: timespec(set.mtime) }
}

fn timespec(time: Option<Time>) -> Timespec {
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT as _ },
        Some(Time::Now) => Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW as _ },
        Some(Time::At(at)) => match at.duration_since(UNIX_EPOCH) {
            Ok(after) => {
                Timespec { tv_sec: after.as_secs() as _, tv_nsec: after.subsec_nanos() as _ }
            }
            Err(before) => {
                let before = before.duration();
                let carry = i64::from(before.subsec_nanos() > 0);
                let nanoseconds = (1_000_000_000 - before.subsec_nanos()) % 1_000_000_000;
                Timespec { tv_sec: -(before.as_secs() as i64) - carry, tv_nsec: nanoseconds as _ }
            }
        },
    }
}
