//! Preparing entries in a layer's work directory and publishing each with one rename.
//!
//! Whatever appears in a layer's tree was made complete first: content, mode, times, attributes
//! and marks. A crash before the rename leaves something in `work/`, which the next open clears.

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ringfence_policy::WorkspacePath;
use ringfence_sys::removal::remove_tree_at;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, SeekFrom, Stat, Timespec, Timestamps, XattrFlags,
};
use rustix::io::{Errno, Result};

use super::intent::{self, Intent};
use super::marks::{self, ContentHash, Lower, Stamp};
use super::stack::{Leaf, Part};

/// Permission bits that exist in a workspace: set-user-id and set-group-id never do.
pub const MODE_BITS: u32 = 0o1777;

/// Files up to this size are hashed while they are copied, so that `apply` can tell a base file
/// that was merely touched from one that was changed.
pub(crate) const HASHED_SIZE: u64 = 1 << 20;

/// The directory where entries of one layer are prepared.
#[derive(Debug)]
pub struct Work {
    dir: OwnedFd,
    next: AtomicU64,
    settled: AtomicBool,
    /// The layers below it, which it does not open without.
    below: Vec<PathBuf>,
}

/// An entry in the work directory. Removed on drop unless it was published.
#[derive(Debug)]
pub struct Prepared<'w> {
    work: &'w Work,
    name: Vec<u8>,
    published: bool,
}

impl Work {
    /// `dir` is the work directory of a layer, `below` are those it stands on.
    pub fn new(dir: OwnedFd, below: Vec<PathBuf>) -> Self {
        Self { dir, next: AtomicU64::new(0), settled: AtomicBool::new(false), below }
    }

    /// Makes the layer itself durable, once. To be called when a program asks that of something in
    /// it: without its description, and those of the layers it stands on, a layer does not open
    /// after a power failure. A snapshot does not wait for that: its cost would be that of writing
    /// out everything that was changed just before.
    pub fn settle(&self) -> Result<()> {
        if self.settled.load(Ordering::Acquire) {
            return Ok(());
        }
        let open = |name: &str, flags| {
            rustix::fs::openat(&self.dir, name, flags | OFlags::CLOEXEC, Mode::empty())
        };
        self.below.iter().rev().try_for_each(|layer| settle_below(layer))?;
        rustix::fs::fsync(open("../layer.json", OFlags::RDONLY)?)?;
        rustix::fs::fsync(open("..", OFlags::RDONLY | OFlags::DIRECTORY)?)?;
        self.settled.store(true, Ordering::Release);
        Ok(())
    }

    pub(super) fn dir(&self) -> &OwnedFd {
        &self.dir
    }

    fn next_name(&self) -> Vec<u8> {
        format!("{:x}", self.next.fetch_add(1, Ordering::Relaxed)).into_bytes()
    }

    fn prepare(&self) -> Prepared<'_> {
        Prepared { work: self, name: self.next_name(), published: false }
    }

    fn create_file(&self, mode: u32) -> Result<(Prepared<'_>, File)> {
        let (name, file) = self.unowned_file(mode)?;
        Ok((Prepared { work: self, name, published: false }, file))
    }

    /// A file that the caller removes or publishes.
    pub(super) fn unowned_file(&self, mode: u32) -> Result<(Vec<u8>, File)> {
        let name = self.next_name();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.dir, &name[..], flags, Mode::from(mode))?;
        Ok((name, File::from(fd)))
    }

    /// Writes down that `whiteout` is to be published at `old` once the entry with `inode` has
    /// moved from there to `new`; or that a whiteout there is to be removed. Forgotten with the
    /// value that is returned.
    pub fn intend(
        &self,
        whiteout: Option<&Prepared<'_>>,
        old: WorkspacePath,
        new: WorkspacePath,
        inode: u64,
    ) -> Result<Prepared<'_>> {
        let mut prepared = self.prepare();
        prepared.name.insert(0, intent::PREFIX);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.dir, &prepared.name[..], flags, Mode::from(0o600))?;
        let intent = Intent { old, new, inode, whiteout: whiteout.map(|w| w.name.clone()) };
        File::from(fd).write_all(&intent.encode()).map_err(errno)?;
        Ok(prepared)
    }

    /// A whiteout that remembers what it hides.
    pub fn whiteout(&self, hidden: Option<&Stamp>) -> Result<Prepared<'_>> {
        let (prepared, file) = self.create_file(0o600)?;
        marks::set_whiteout(&file, hidden)?;
        Ok(prepared)
    }

    /// A new, empty regular file, open for reading and writing.
    pub fn file(&self, mode: u32) -> Result<(Prepared<'_>, File)> {
        self.create_file(mode & MODE_BITS)
    }

    pub fn directory(&self, mode: u32) -> Result<Prepared<'_>> {
        let (prepared, dir) = self.open_directory()?;
        marks::set_dir_mode(dir, mode)?;
        Ok(prepared)
    }

    fn open_directory(&self) -> Result<(Prepared<'_>, OwnedFd)> {
        let prepared = self.prepare();
        rustix::fs::mkdirat(&self.dir, &prepared.name[..], Mode::from(0o700))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(&self.dir, &prepared.name[..], flags, Mode::empty())?;
        Ok((prepared, dir))
    }

    pub fn symlink(&self, target: &[u8]) -> Result<Prepared<'_>> {
        let prepared = self.prepare();
        rustix::fs::symlinkat(target, &self.dir, &prepared.name[..])?;
        Ok(prepared)
    }

    /// A fifo or a socket; nothing else can be made.
    pub fn special(&self, kind: FileType, mode: u32) -> Result<Prepared<'_>> {
        let prepared = self.prepare();
        make_special(&self.dir, &prepared.name, kind, mode)?;
        Ok(prepared)
    }

    /// Another name for an existing file.
    pub fn link(&self, dir: impl AsFd, name: &[u8]) -> Result<Prepared<'_>> {
        let prepared = self.prepare();
        rustix::fs::linkat(dir, name, &self.dir, &prepared.name[..], AtFlags::empty())?;
        Ok(prepared)
    }

    /// A directory that shows `from` and continues below as `lower` says.
    pub fn directory_over(
        &self,
        from: &Arc<Part>,
        stat: &Stat,
        lower: &Lower,
    ) -> Result<Prepared<'_>> {
        let (prepared, dir) = self.open_directory()?;
        marks::set_lower(&dir, lower)?;
        copy_attributes(from.fd()?, &dir)?;
        marks::set_dir_mode(&dir, stat.st_mode)?;
        rustix::fs::futimens(&dir, &times_of(stat))?;
        Ok(prepared)
    }

    /// A copy of a lower entry that is not a directory, with everything but its owner.
    /// `limit` leaves out content that is about to be cut off.
    pub fn copy(&self, from: &Leaf, limit: Option<u64>) -> Result<Prepared<'_>> {
        match FileType::from_raw_mode(from.stat.st_mode) {
            FileType::RegularFile => self.copy_file(from, limit),
            FileType::Symlink => self.copy_symlink(from),
            kind @ (FileType::Fifo | FileType::Socket) => self.special(kind, from.stat.st_mode),
            _ => Err(Errno::PERM),
        }
    }

    fn copy_symlink(&self, from: &Leaf) -> Result<Prepared<'_>> {
        let target = rustix::fs::readlinkat(from.part.fd()?, &from.name[..], Vec::new())?;
        let prepared = self.symlink(target.as_bytes())?;
        let name = &prepared.name[..];
        rustix::fs::utimensat(&self.dir, name, &times_of(&from.stat), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(prepared)
    }

    fn copy_file(&self, from: &Leaf, limit: Option<u64>) -> Result<Prepared<'_>> {
        let mut stamp = Stamp::of(&from.stat);
        let size = stamp.size.min(limit.unwrap_or(u64::MAX));
        let (prepared, copy, hash) = self.copy_all_but_marks(from, size)?;
        stamp.hash = hash;
        marks::set_origin(&copy, &stamp)?;
        Ok(prepared)
    }

    /// A copy of a file of this very layer, with the mark it carries.
    pub fn duplicate(&self, from: &Leaf) -> Result<Prepared<'_>> {
        let (prepared, copy, _) = self.copy_all_but_marks(from, from.stat.st_size as u64)?;
        if let Some(stamp) = marks::read_stamp(from.part.fd()?, &from.name) {
            marks::set_origin(&copy, &stamp)?;
        }
        Ok(prepared)
    }

    fn copy_all_but_marks(
        &self,
        from: &Leaf,
        size: u64,
    ) -> Result<(Prepared<'_>, File, Option<ContentHash>)> {
        let source = open_source(from)?;
        let (prepared, mut copy) = self.create_file(0o600)?;
        let hash = copy_content(&source, &mut copy, size, from.stat.st_size as u64)?;
        copy_attributes(&source, &copy)?;
        rustix::fs::fchmod(&copy, Mode::from(from.stat.st_mode & MODE_BITS))?;
        rustix::fs::futimens(&copy, &times_of(&from.stat))?;
        ringfence_sys::files::start_writeback(&copy);
        Ok((prepared, copy, hash))
    }
}

/// A layer below: its description, and the notes that keep it from being removed.
fn settle_below(layer: &Path) -> Result<()> {
    let sync = |path: &Path| {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::fsync(rustix::fs::open(path, flags, Mode::empty())?)
    };
    let notes = layer.join("children");
    let names = std::fs::read_dir(&notes).into_iter().flatten().flatten();
    for note in names {
        match sync(&note.path()) {
            // Of a layer that was being made or removed.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    sync(&notes)?;
    sync(&layer.join("layer.json"))?;
    sync(layer)
}

impl Prepared<'_> {
    /// Moves the entry to its place. Replaces a file there; with `NOREPLACE` refuses to.
    pub fn publish(mut self, dir: impl AsFd, name: &[u8], flags: RenameFlags) -> Result<()> {
        rustix::fs::renameat_with(&self.work.dir, &self.name[..], dir, name, flags)?;
        self.published = !flags.contains(RenameFlags::EXCHANGE);
        Ok(())
    }

    /// Swaps the entry with whatever is at `name`, which is deleted with this value.
    pub fn exchange(self, dir: impl AsFd, name: &[u8]) -> Result<()> {
        self.publish(dir, name, RenameFlags::EXCHANGE)
    }

    /// Puts the entry at `name` and moves what was there to another place.
    pub fn take_place_of(
        mut self,
        at: (impl AsFd, &[u8]),
        moved: (impl AsFd, &[u8]),
    ) -> Result<()> {
        let own = &self.name[..];
        rustix::fs::renameat_with(&self.work.dir, own, at.0, at.1, RenameFlags::EXCHANGE)?;
        rustix::fs::renameat(&self.work.dir, own, moved.0, moved.1)?;
        self.published = true;
        Ok(())
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        if !self.published {
            remove_tree(&self.work.dir, &self.name);
        }
    }
}

/// Removes an entry of the work directory, whatever it is. What cannot be removed now is removed
/// at the next open.
pub(super) fn remove_tree(dir: impl AsFd, name: &[u8]) {
    if rustix::fs::unlinkat(&dir, name, AtFlags::empty()).is_ok() {
        return;
    }
    if let Ok(name) = CString::new(name) {
        let _ = remove_tree_at(dir.as_fd(), &name);
    }
}

/// Makes a fifo or socket; devices are refused.
pub fn make_special(dir: impl AsFd, name: &[u8], kind: FileType, mode: u32) -> Result<()> {
    match kind {
        FileType::Fifo | FileType::Socket => {
            rustix::fs::mknodat(dir, name, kind, Mode::from(mode & MODE_BITS), 0)
        }
        _ => Err(Errno::PERM),
    }
}

pub(crate) fn open_source(from: &Leaf) -> Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(from.part.fd()?, &from.name[..], flags, Mode::empty())?;
    Ok(File::from(fd))
}

pub(crate) fn times_of(stat: &Stat) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: stat.st_atime, tv_nsec: stat.st_atime_nsec as _ },
        last_modification: Timespec { tv_sec: stat.st_mtime, tv_nsec: stat.st_mtime_nsec as _ },
    }
}

/// Copies the first `size` bytes, holes as holes. Returns the hash of a small, whole copy.
pub(crate) fn copy_content(
    from: &File,
    to: &mut File,
    size: u64,
    whole: u64,
) -> Result<Option<ContentHash>> {
    if whole <= HASHED_SIZE && size == whole {
        let mut content = Vec::with_capacity(size as usize);
        from.take(HASHED_SIZE).read_to_end(&mut content).map_err(errno)?;
        to.write_all(&content).map_err(errno)?;
        return Ok(Some(blake3::hash(&content).into()));
    }
    if size == whole && rustix::fs::ioctl_ficlone(&*to, from).is_ok() {
        return Ok(None);
    }
    copy_extents(from, to, size)?;
    rustix::fs::ftruncate(&*to, size)?;
    Ok(None)
}

fn copy_extents(from: &File, to: &mut File, size: u64) -> Result<()> {
    let mut at = 0;
    while at < size {
        let start = match rustix::fs::seek(from, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return Ok(()),
            Err(Errno::INVAL) => at,
            Err(e) => return Err(e),
        };
        let end = rustix::fs::seek(from, SeekFrom::Hole(start)).unwrap_or(size).min(size);
        if start >= end {
            return Ok(());
        }
        copy_range(from, to, start, end)?;
        at = end;
    }
    Ok(())
}

fn copy_range(from: &File, to: &mut File, mut at: u64, end: u64) -> Result<()> {
    const STEP: u64 = 64 << 20;
    while at < end {
        let (mut source, mut target) = (at, at);
        let length = (end - at).min(STEP) as usize;
        let range = (Some(&mut source), Some(&mut target));
        match rustix::fs::copy_file_range(from, range.0, &*to, range.1, length) {
            Ok(0) => return Ok(()),
            Ok(copied) => at += copied as u64,
            Err(Errno::XDEV | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                return copy_through_memory(from, to, at, end);
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn copy_through_memory(from: &File, to: &mut File, mut at: u64, end: u64) -> Result<()> {
    use std::os::unix::fs::FileExt;
    let mut buffer = vec![0u8; 1 << 20];
    while at < end {
        let want = (end - at).min(buffer.len() as u64) as usize;
        let got = from.read_at(&mut buffer[..want], at).map_err(errno)?;
        if got == 0 {
            return Ok(());
        }
        to.write_all_at(&buffer[..got], at).map_err(errno)?;
        at += got as u64;
    }
    Ok(())
}

/// Copies `user.*` attributes except our marks. A filesystem without them has none to lose.
pub(crate) fn copy_attributes(from: impl AsFd, to: impl AsFd) -> Result<()> {
    let mut names = vec![0u8; 64 * 1024];
    let Ok(len) = rustix::fs::flistxattr(&from, &mut names[..]) else { return Ok(()) };
    for name in names[..len].split(|b| *b == 0).filter(|name| is_user_attribute(name)) {
        let Ok(name) = CString::new(name) else { continue };
        let mut value = vec![0u8; 64 * 1024];
        if let Ok(len) = rustix::fs::fgetxattr(&from, &name, &mut value[..]) {
            rustix::fs::fsetxattr(&to, &name, &value[..len], XattrFlags::empty())?;
        }
    }
    Ok(())
}

/// Attributes that programs in a workspace may see and set.
pub fn is_user_attribute(name: &[u8]) -> bool {
    name.starts_with(b"user.") && !name.starts_with(marks::PREFIX)
}

/// The errno of a failed call, for answers to the kernel.
pub fn errno(e: std::io::Error) -> Errno {
    e.raw_os_error().map(Errno::from_raw_os_error).unwrap_or(Errno::IO)
}
