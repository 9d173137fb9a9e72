//! One entry: complete under a temporary name in its directory, then renamed into place.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use ringfence_policy::WorkspacePath;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Stat, Uid, fstat};
use rustix::io::{Errno, Result};

use super::write::Writer;
use crate::changes::compare::{bits, link_target};
use crate::changes::{Change, ChangeKind, EntryKind};
use crate::layers::copy;
use crate::layers::stack::{Leaf, Part};

impl Writer<'_> {
    pub(super) fn put(&mut self, path: &WorkspacePath) -> Result<()> {
        let change = self.by_path.get(path).copied().ok_or(Errno::NOENT)?;
        let Some(content) = self.view.content_of(change)? else { return Err(Errno::NOENT) };
        let (dir, name) = self.parent(path)?;
        let temporary = temporary_name();
        let result = self
            .prepare(change, &content, &dir, &temporary)
            .and_then(|()| rustix::fs::renameat(dir.fd()?, &temporary, dir.fd()?, &name[..]));
        if result.is_err() {
            let _ = rustix::fs::unlinkat(dir.fd()?, &temporary, AtFlags::empty());
        }
        result
    }

    fn prepare(
        &mut self,
        change: &Change,
        content: &Leaf,
        dir: &Arc<Part>,
        temporary: &[u8],
    ) -> Result<()> {
        if self.link_instead(change, content, dir, temporary)? {
            return Ok(());
        }
        let name = change.path.file_name().ok_or(Errno::INVAL)?;
        let replaced = dir.stat(name)?;
        let owner = match (replaced, self.owners.get(&change.path)) {
            (Some(stat), _) => stat,
            (None, Some(stat)) => *stat,
            (None, None) => fstat(dir.fd()?)?,
        };
        match EntryKind::of(content.stat.st_mode) {
            EntryKind::File => self.write_file(change, content, (dir, temporary), &owner, replaced),
            EntryKind::Symlink => {
                rustix::fs::symlinkat(link_target(content)?, dir.fd()?, temporary)?;
                give_to(dir, temporary, &owner)
            }
            EntryKind::Fifo | EntryKind::Socket => {
                let mode = content.stat.st_mode;
                let kind = rustix::fs::FileType::from_raw_mode(mode);
                copy::make_special(dir.fd()?, temporary, kind, mode)?;
                give_to(dir, temporary, &owner)
            }
            EntryKind::Directory | EntryKind::Device => Err(Errno::PERM),
        }
    }

    /// Another name of a file that was just written.
    fn link_instead(
        &mut self,
        change: &Change,
        content: &Leaf,
        dir: &Arc<Part>,
        temporary: &[u8],
    ) -> Result<bool> {
        if content.stat.st_nlink < 2 {
            return Ok(false);
        }
        let id = (content.stat.st_dev, content.stat.st_ino);
        let Some(first) = self.linked.get(&id) else {
            self.linked.insert(id, change.path.clone());
            return Ok(false);
        };
        let source = self.existing_parent(first)?;
        let name = first.file_name().ok_or(Errno::INVAL)?;
        let flags = AtFlags::empty();
        rustix::fs::linkat(source.fd()?, name, dir.fd()?, temporary, flags).map(|()| true)
    }

    fn write_file(
        &self,
        change: &Change,
        content: &Leaf,
        (dir, temporary): (&Arc<Part>, &[u8]),
        owner: &Stat,
        replaced: Option<Stat>,
    ) -> Result<()> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let flags = flags | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(dir.fd()?, temporary, flags, Mode::from(0o600))?;
        let mut file = File::from(fd);
        let source = copy::open_source(content)?;
        let size = content.stat.st_size as u64;
        copy::copy_content(&source, &mut file, size, size)?;
        copy::copy_attributes(&source, &file)?;
        give_to(dir, temporary, owner)?;
        let kept = replaced.filter(|stat| {
            change.kind == ChangeKind::Modified && EntryKind::of(stat.st_mode) == EntryKind::File
        });
        let mode = bits(&kept.unwrap_or(content.stat));
        rustix::fs::fchmod(&file, Mode::from(mode))?;
        rustix::fs::futimens(&file, &copy::times_of(&content.stat))?;
        ringfence_sys::files::start_writeback(&file);
        Ok(())
    }
}

/// Only root can give files away; for everybody else they are already whose they must be.
pub(super) fn give_to(dir: &Arc<Part>, name: &[u8], owner: &Stat) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
    rustix::fs::chownat(dir.fd()?, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
}

/// Through a descriptor that cannot be a symlink: `fchmodat` would follow one.
pub(super) fn change_mode(dir: &Arc<Part>, name: &[u8], mode: u32) -> Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir.fd()?, name, flags, Mode::empty())?;
    if EntryKind::of(fstat(&fd)?.st_mode) == EntryKind::Symlink {
        return Err(Errno::LOOP);
    }
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::chmod(path, Mode::from(mode))
}

/// The same in a directory of which nothing is known: a file there may have other names elsewhere,
/// which keep their mode. It is replaced, as a file with another content is.
pub(super) fn replace_with_mode(dir: &Arc<Part>, name: &[u8], mode: u32) -> Result<()> {
    let stat = dir.stat(name)?.ok_or(Errno::NOENT)?;
    if EntryKind::of(stat.st_mode) != EntryKind::File || stat.st_nlink < 2 {
        return change_mode(dir, name, mode);
    }
    let temporary = temporary_name();
    let replaced = copy_with_mode(dir, name, &temporary, mode)
        .and_then(|()| rustix::fs::renameat(dir.fd()?, &temporary, dir.fd()?, name));
    if replaced.is_err() {
        let _ = rustix::fs::unlinkat(dir.fd()?, &temporary, AtFlags::empty());
    }
    replaced
}

fn copy_with_mode(dir: &Arc<Part>, name: &[u8], to: &[u8], mode: u32) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let source = File::from(rustix::fs::openat(dir.fd()?, name, flags, Mode::empty())?);
    let stat = fstat(&source)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(dir.fd()?, to, flags, Mode::from(0o600))?);
    let size = stat.st_size as u64;
    copy::copy_content(&source, &mut file, size, size)?;
    copy::copy_attributes(&source, &file)?;
    give_to(dir, to, &stat)?;
    rustix::fs::fchmod(&file, Mode::from(mode))?;
    rustix::fs::futimens(&file, &copy::times_of(&stat))?;
    ringfence_sys::files::start_writeback(&file);
    Ok(())
}

pub(super) fn temporary_name() -> Vec<u8> {
    let mut bytes = [0u8; 8];
    // A name that is taken is refused by the call that makes the entry.
    let _ = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    format!(".ringfence-{:016x}", u64::from_ne_bytes(bytes)).into_bytes()
}
