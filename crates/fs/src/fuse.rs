//! The adapter to the kernel: decodes requests, asks the [`Guard`], encodes answers. No decision is
//! made here. Requests that find or change names take their turn with calls of the API, which use the
//! same guard and tree.
//!
//! Settings that matter (measured in `docs/performance.md`): long times to live with explicit
//! invalidation; no `OPENDIR`, so that the kernel caches listings; attributes with listings; opens
//! passed through; no `FLUSH`. Whatever is not listed below is refused with `EPERM`: for some
//! requests the kernel takes `ENOSYS` as "never ask again", and the library's own default for
//! `open` grants.

use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    BackingId, BsdFileFlags, CopyFileRangeFlags, Errno, FileAttr, FileHandle, Filesystem,
    FopenFlags, Generation, INodeNo, InitFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty,
    ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request,
    TimeOrNow, WriteFlags,
};
use rustix::fs::FileType;

use crate::guard::{Guard, Keep, Looked, Seen};
use crate::kernel::Kernel;
use crate::tree::{Attr, Backer, Backing, Handle, NodeId, Opened, RenameMode, SetAttr, Time};

/// Generations are not needed: numbers in use are never given to something else.
const GENERATION: Generation = Generation(0);

/// A filesystem for the session loop.
#[derive(Debug)]
pub(crate) struct Adapter {
    pub(crate) guard: Arc<Guard>,
    /// How deep backing files may be stacked; 0 turns passthrough off.
    pub(crate) stack_depth: u32,
    pub(crate) kernel: Arc<Kernel>,
}

fn ttl(keep: Keep) -> Duration {
    match keep {
        Keep::Long => Duration::from_secs(3600),
        Keep::Short => Duration::from_secs(1),
        Keep::No => Duration::ZERO,
    }
}

fn errno(e: rustix::io::Errno) -> Errno {
    Errno::from_i32(e.raw_os_error())
}

fn kind(kind: FileType) -> fuser::FileType {
    match kind {
        FileType::Directory => fuser::FileType::Directory,
        FileType::Symlink => fuser::FileType::Symlink,
        FileType::Fifo => fuser::FileType::NamedPipe,
        FileType::Socket => fuser::FileType::Socket,
        FileType::CharacterDevice => fuser::FileType::CharDevice,
        FileType::BlockDevice => fuser::FileType::BlockDevice,
        _ => fuser::FileType::RegularFile,
    }
}

fn time(time: Option<TimeOrNow>) -> Option<Time> {
    time.map(|time| match time {
        TimeOrNow::Now => Time::Now,
        TimeOrNow::SpecificTime(at) => Time::At(before_the_epoch(at)),
    })
}

/// The library decodes a time before 1970 with its fraction on the wrong side of the second.
fn before_the_epoch(decoded: SystemTime) -> SystemTime {
    match SystemTime::UNIX_EPOCH.duration_since(decoded) {
        Ok(before) => {
            let fraction = Duration::from_nanos(before.subsec_nanos().into());
            SystemTime::UNIX_EPOCH - Duration::from_secs(before.as_secs()) + fraction
        }
        Err(_) => decoded,
    }
}

struct Register<'r, R>(&'r R, fn(&R, BorrowedFd<'_>) -> io::Result<BackingId>);

impl<R> Backer for Register<'_, R> {
    fn register(&self, file: BorrowedFd<'_>) -> io::Result<Backing> {
        Ok(Arc::new((self.1)(self.0, file)?))
    }
}

impl Adapter {
    fn attr(&self, attr: &Attr) -> FileAttr {
        let owner = self.guard.owner();
        FileAttr {
            ino: INodeNo(attr.id.0),
            size: attr.size,
            blocks: attr.blocks,
            atime: attr.atime,
            mtime: attr.mtime,
            ctime: attr.ctime,
            crtime: SystemTime::UNIX_EPOCH,
            kind: kind(attr.kind),
            perm: attr.mode as u16,
            nlink: attr.nlink,
            uid: owner.uid,
            gid: owner.gid,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    fn entry(&self, reply: ReplyEntry, answer: rustix::io::Result<(Attr, Keep)>) {
        match answer {
            Ok((attr, keep)) => reply.entry(&ttl(keep), &self.attr(&attr), GENERATION),
            Err(e) => reply.error(errno(e)),
        }
    }

    fn attributes(&self, reply: ReplyAttr, answer: rustix::io::Result<(Attr, Keep)>) {
        match answer {
            Ok((attr, keep)) => reply.attr(&ttl(keep), &self.attr(&attr)),
            Err(e) => reply.error(errno(e)),
        }
    }

    /// An answer without a node: the kernel may remember that the name is absent.
    fn absent(&self, reply: ReplyEntry, keep: Keep) {
        if keep == Keep::No {
            return reply.error(Errno::ENOENT);
        }
        // Shorter than for what exists: names that are hidden later must come back to be recorded.
        let ttl = ttl(keep).min(Duration::from_secs(10));
        let now = SystemTime::UNIX_EPOCH;
        let nothing = Attr {
            id: NodeId(0),
            kind: FileType::RegularFile,
            mode: 0,
            nlink: 0,
            size: 0,
            blocks: 0,
            atime: now,
            mtime: now,
            ctime: now,
        };
        reply.entry(&ttl, &self.attr(&nothing), GENERATION);
    }
}

fn empty(reply: ReplyEmpty, answer: rustix::io::Result<()>) {
    match answer {
        Ok(()) => reply.ok(),
        Err(e) => reply.error(errno(e)),
    }
}

fn opened_flags(opened: &Opened) -> FopenFlags {
    let mut flags = FopenFlags::FOPEN_NOFLUSH;
    // Together with passthrough this flag makes every open fail.
    flags.set(FopenFlags::FOPEN_KEEP_CACHE, opened.keep_cache && opened.backing.is_none());
    flags
}

fn backing_id(opened: &Opened) -> Option<&BackingId> {
    opened.backing.as_ref().and_then(|backing| backing.downcast_ref())
}

fn xattr(reply: ReplyXattr, size: u32, answer: rustix::io::Result<Vec<u8>>) {
    match answer {
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(e) => reply.error(errno(e)),
    }
}

impl Filesystem for Adapter {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let wanted = [
            InitFlags::FUSE_ATOMIC_O_TRUNC,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_CACHE_SYMLINKS,
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
            InitFlags::FUSE_AUTO_INVAL_DATA,
            InitFlags::FUSE_NO_OPENDIR_SUPPORT,
            InitFlags::FUSE_NO_EXPORT_SUPPORT,
        ];
        for flag in wanted {
            // An older kernel without one of these is slower, not less safe.
            let _ = config.add_capabilities(flag);
        }
        if self.stack_depth > 0 && config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok() {
            let _ = config.set_max_stack_depth(self.stack_depth);
        }
        let _ = config.set_max_write(1 << 20);
        let _ = config.set_max_background(64);
        Ok(())
    }

    fn lookup(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let _turn = self.guard.turn(&[NodeId(parent.0)]);
        match self.guard.lookup(req.pid(), NodeId(parent.0), name.as_bytes()) {
            Ok(Looked::Found(attr, keep)) => self.entry(reply, Ok((attr, keep))),
            Ok(Looked::Absent(keep)) => self.absent(reply, keep),
            Err(e) => reply.error(errno(e)),
        }
    }

    fn forget(&self, _: &Request, ino: INodeNo, nlookup: u64) {
        self.guard.forget(NodeId(ino.0), nlookup);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        self.attributes(reply, self.guard.getattr(NodeId(ino.0)));
    }

    fn setattr(
        &self,
        req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = SetAttr { mode, size, atime: time(atime), mtime: time(mtime) };
        let handle = fh.map(|fh| Handle(fh.0));
        let answer = self.guard.setattr(req.pid(), NodeId(ino.0), handle, set, (uid, gid));
        self.attributes(reply, answer);
    }

    fn readlink(&self, req: &Request, ino: INodeNo, reply: ReplyData) {
        match self.guard.readlink(req.pid(), NodeId(ino.0)) {
            Ok(target) => reply.data(&target),
            Err(e) => reply.error(errno(e)),
        }
    }

    fn mknod(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        let _turn = self.guard.turn(&[NodeId(parent.0)]);
        let kind = FileType::from_raw_mode(mode);
        let (parent, name) = (NodeId(parent.0), name.as_bytes());
        self.entry(reply, self.guard.mknod(req.pid(), parent, name, kind, mode));
    }

    fn mkdir(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let _turn = self.guard.turn(&[NodeId(parent.0)]);
        let (parent, name) = (NodeId(parent.0), name.as_bytes());
        self.entry(reply, self.guard.mkdir(req.pid(), parent, name, mode));
    }

    fn unlink(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _turn = self.guard.turn(&[NodeId(parent.0)]);
        empty(reply, self.guard.unlink(req.pid(), NodeId(parent.0), name.as_bytes()));
    }

    fn rmdir(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let _turn = self.guard.turn_with(&[(NodeId(parent.0), name.as_bytes())]);
        empty(reply, self.guard.rmdir(req.pid(), NodeId(parent.0), name.as_bytes()));
    }

    fn symlink(
        &self,
        req: &Request,
        parent: INodeNo,
        link_name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let _turn = self.guard.turn(&[NodeId(parent.0)]);
        let (parent, name) = (NodeId(parent.0), link_name.as_bytes());
        let target = target.as_os_str().as_bytes();
        self.entry(reply, self.guard.symlink(req.pid(), parent, name, target));
    }

    fn rename(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let mode = match flags {
            RenameFlags::RENAME_NOREPLACE => RenameMode::KeepExisting,
            RenameFlags::RENAME_EXCHANGE => RenameMode::Exchange,
            flags if flags.is_empty() => RenameMode::Replace,
            _ => return reply.error(Errno::EINVAL),
        };
        let from = (NodeId(parent.0), name.as_bytes());
        let to = (NodeId(newparent.0), newname.as_bytes());
        let _turn = self.guard.turn_with(&[from, to]);
        match self.guard.rename(req.pid(), from, to, mode) {
            Ok(levels_moved) => {
                if levels_moved {
                    self.kernel.forget_names();
                }
                reply.ok();
            }
            Err(e) => reply.error(errno(e)),
        }
    }

    fn link(
        &self,
        req: &Request,
        ino: INodeNo,
        newparent: INodeNo,
        newname: &OsStr,
        reply: ReplyEntry,
    ) {
        let _turn = self.guard.turn(&[NodeId(newparent.0)]);
        let (id, parent) = (NodeId(ino.0), NodeId(newparent.0));
        self.entry(reply, self.guard.link(req.pid(), id, parent, newname.as_bytes()));
    }

    fn open(&self, req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let write = flags.acc_mode() != OpenAccMode::O_RDONLY;
        let truncate = flags.0 & libc::O_TRUNC != 0;
        let backer = Register(&reply, |reply, file| reply.open_backing(file));
        match self.guard.open(req.pid(), NodeId(ino.0), write, truncate, &backer) {
            Ok(opened) => {
                let (handle, flags) = (FileHandle(opened.handle.0), opened_flags(&opened));
                match backing_id(&opened) {
                    Some(id) => reply.opened_passthrough(handle, flags, id),
                    None => reply.opened(handle, flags),
                }
            }
            Err(e) => reply.error(errno(e)),
        }
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let _turn = self.guard.turn(&[NodeId(parent.0)]);
        let backer = Register(&reply, |reply, file| reply.open_backing(file));
        let (parent, name) = (NodeId(parent.0), name.as_bytes());
        match self.guard.create(req.pid(), parent, name, mode, &backer) {
            Ok((attr, keep, opened)) => {
                let (handle, flags) = (FileHandle(opened.handle.0), opened_flags(&opened));
                let (ttl, attr) = (ttl(keep), self.attr(&attr));
                match backing_id(&opened) {
                    Some(id) => {
                        reply.created_passthrough(&ttl, &attr, GENERATION, handle, flags, id)
                    }
                    None => reply.created(&ttl, &attr, GENERATION, handle, flags),
                }
            }
            Err(e) => reply.error(errno(e)),
        }
    }

    fn read(
        &self,
        _: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut buffer = vec![0u8; size as usize];
        match self.guard.read(Handle(fh.0), offset, &mut buffer) {
            Ok(len) => reply.data(&buffer[..len]),
            Err(e) => reply.error(errno(e)),
        }
    }

    fn write(
        &self,
        _: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.guard.write(Handle(fh.0), offset, data) {
            Ok(len) => reply.written(len as u32),
            Err(e) => reply.error(errno(e)),
        }
    }

    /// Nothing is buffered here. "Never ask again" is what we want.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.error(Errno::ENOSYS);
    }

    fn release(
        &self,
        _: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.guard.release(Handle(fh.0));
        reply.ok();
    }

    fn fsync(&self, _: &Request, _ino: INodeNo, fh: FileHandle, datasync: bool, reply: ReplyEmpty) {
        empty(reply, self.guard.fsync(Handle(fh.0), datasync));
    }

    /// "Never ask again": the kernel then caches listings, and every name in them is decided when
    /// they are read.
    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.error(Errno::ENOSYS);
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let _turn = self.guard.turn(&[NodeId(ino.0)]);
        let dots = [(1, "."), (2, "..")];
        for (position, name) in dots.into_iter().filter(|(position, _)| *position > offset) {
            if reply.add(ino, position, fuser::FileType::Directory, name) {
                return reply.ok();
            }
        }
        let answer = self.guard.readdir(NodeId(ino.0), offset, false, |seen: Seen<'_>| {
            let name = OsStr::from_bytes(seen.name);
            !reply.add(INodeNo(seen.id.0), seen.position, kind(seen.kind), name)
        });
        match answer {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(errno(e)),
        }
    }

    fn readdirplus(
        &self,
        _: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let _turn = self.guard.turn(&[NodeId(ino.0)]);
        let own = match self.guard.getattr(NodeId(ino.0)) {
            Ok((attr, _)) => self.attr(&attr),
            Err(e) => return reply.error(errno(e)),
        };
        let dots = [(1, "."), (2, "..")];
        for (position, name) in dots.into_iter().filter(|(position, _)| *position > offset) {
            if reply.add(ino, position, name, &Duration::ZERO, &own, GENERATION) {
                return reply.ok();
            }
        }
        let answer = self.guard.readdir(NodeId(ino.0), offset, true, |seen: Seen<'_>| {
            let Some((attr, keep)) = seen.attr else { return true };
            let (attr, name) = (self.attr(&attr), OsStr::from_bytes(seen.name));
            !reply.add(attr.ino, seen.position, name, &ttl(keep), &attr, GENERATION)
        });
        match answer {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(errno(e)),
        }
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        empty(reply, self.guard.fsync_dir(NodeId(ino.0)));
    }

    fn statfs(&self, _: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        match self.guard.statfs() {
            Ok(s) => reply.statfs(
                s.f_blocks,
                s.f_bfree,
                s.f_bavail,
                s.f_files,
                s.f_ffree,
                s.f_bsize as u32,
                255,
                s.f_frsize as u32,
            ),
            Err(e) => reply.error(errno(e)),
        }
    }

    fn setxattr(
        &self,
        req: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let name = name.as_bytes();
        empty(reply, self.guard.setxattr(req.pid(), NodeId(ino.0), name, value, flags));
    }

    fn getxattr(&self, req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        xattr(reply, size, self.guard.getxattr(req.pid(), NodeId(ino.0), name.as_bytes()));
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        xattr(reply, size, self.guard.listxattr(NodeId(ino.0)));
    }

    fn removexattr(&self, req: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.guard.removexattr(req.pid(), NodeId(ino.0), name.as_bytes()));
    }

    fn fallocate(
        &self,
        _: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        empty(reply, self.guard.fallocate(Handle(fh.0), mode, offset, length));
    }

    fn lseek(
        &self,
        _: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let (handle, offset) = (Handle(fh.0), offset as u64);
        let answer = match whence {
            libc::SEEK_DATA => self.guard.seek_data(handle, offset),
            libc::SEEK_HOLE => self.guard.seek_hole(handle, offset),
            _ => Err(rustix::io::Errno::INVAL),
        };
        match answer {
            Ok(at) => reply.offset(at as i64),
            Err(e) => reply.error(errno(e)),
        }
    }

    fn copy_file_range(
        &self,
        _: &Request,
        _ino_in: INodeNo,
        fh_in: FileHandle,
        offset_in: u64,
        _ino_out: INodeNo,
        fh_out: FileHandle,
        offset_out: u64,
        len: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let from = (Handle(fh_in.0), offset_in);
        let to = (Handle(fh_out.0), offset_out);
        // The answer has 32 bits; a shorter copy is a valid one.
        let len = len.min(1 << 30) as usize;
        match self.guard.copy_range(from, to, len) {
            Ok(copied) => reply.written(copied as u32),
            Err(e) => reply.error(errno(e)),
        }
    }

    // ---- refused ----

    fn access(&self, _: &Request, _: INodeNo, _: fuser::AccessFlags, reply: ReplyEmpty) {
        // The kernel checks modes itself (`default_permissions`) and does not ask.
        reply.error(Errno::EPERM);
    }

    fn ioctl(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: fuser::IoctlFlags,
        _: u32,
        _: &[u8],
        _: u32,
        reply: ReplyIoctl,
    ) {
        // What a program that asks "is this a terminal" must hear.
        reply.error(Errno::ENOTTY);
    }

    fn bmap(&self, _: &Request, _: INodeNo, _: u32, _: u64, reply: fuser::ReplyBmap) {
        reply.error(Errno::EPERM);
    }

    /// "Never ask again": the kernel then treats files as always ready, as on any disk.
    fn poll(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: fuser::PollNotifier,
        _: fuser::PollEvents,
        _: fuser::PollFlags,
        reply: fuser::ReplyPoll,
    ) {
        reply.error(Errno::ENOSYS);
    }
}
