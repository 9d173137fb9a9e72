//! The life of an open file.
//!
//! The kernel serves reads and writes itself (passthrough) wherever the file behind an inode cannot
//! change under an open: files of the live layer, and lower files that will not be written to. A
//! small lower file that may be written is read through us, so that readers see the writes of
//! others after it was copied up. A large one is passed through all the same; if somebody writes
//! to it while another has it open, the writer gets a new inode (the kernel retries unseen after
//! `ESTALE`) and the old descriptor keeps the old bytes, as on overlayfs.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use rustix::fs::{FallocateFlags, Mode, OFlags, SeekFrom};
use rustix::io::{Errno, Result};
use std::collections::HashMap;

use super::node::{Backing, Io, IoMode, LeafBody, Node, NodeId, Place};
use super::{State, Tree};
use crate::layers::copy::errno;
use crate::layers::stack::LayerIndex;

/// Lower files from this size on are passed through even if they may be written to later.
const LARGE: u64 = 16 << 20;

/// How many closed lower files keep their registration.
const PARKED: usize = 128;

/// What an open is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFor {
    pub write: bool,
    pub truncate: bool,
    /// Whether anybody could be granted a write to this file later.
    pub may_be_written: bool,
}

/// Number of an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle(pub u64);

/// How an open was answered.
pub struct Opened {
    pub handle: Handle,
    /// The kernel may keep the pages it has.
    pub keep_cache: bool,
    /// Set if the kernel is to serve the file itself.
    pub backing: Option<Backing>,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { handle, keep_cache, backing } = self;
        write!(f, "Opened({handle:?}, {keep_cache}, {})", backing.is_some())
    }
}

/// Registers files with the kernel for passthrough.
pub trait Backer {
    fn register(&self, file: BorrowedFd<'_>) -> std::io::Result<Backing>;
}

/// For use without a kernel on the other side.
#[derive(Debug)]
pub struct NoBacking;

impl Backer for NoBacking {
    fn register(&self, _: BorrowedFd<'_>) -> std::io::Result<Backing> {
        Err(Errno::OPNOTSUPP.into())
    }
}

#[derive(Debug)]
struct OpenFile {
    node: Arc<Node>,
    write: bool,
}

#[derive(Debug, Default)]
pub(super) struct Handles {
    open: RwLock<HashMap<u64, Arc<OpenFile>>>,
    next: AtomicU64,
}

impl Handles {
    fn add(&self, node: &Arc<Node>, write: bool) -> Handle {
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        self.open.write().insert(number, Arc::new(OpenFile { node: node.clone(), write }));
        Handle(number)
    }

    fn get(&self, handle: Handle) -> Result<Arc<OpenFile>> {
        self.open.read().get(&handle.0).cloned().ok_or(Errno::BADF)
    }
}

impl Tree {
    pub fn open(&self, id: NodeId, want: OpenFor, backer: &dyn Backer) -> Result<Opened> {
        let state = self.state.read();
        let node = self.node(id)?;
        let leaf = node.as_leaf()?;
        let mut io = leaf.io.lock();
        if want.write || want.truncate {
            let limit = want.truncate.then_some(0);
            self.make_writable(&state, &node, leaf, &mut io, limit)?;
        }
        let file = self.file_for(&state, leaf, &mut io, want.write || want.truncate)?;
        if want.truncate {
            rustix::fs::ftruncate(&*file, 0)?;
        }
        let in_live = is_live(&state, leaf);
        if io.opens == 0 {
            let mode = self.choose_mode(in_live, want.may_be_written, &file);
            if std::mem::replace(&mut io.mode, mode) != mode {
                io.backing = None;
            }
        }
        self.register(&mut io, &file, backer);
        Ok(self.opened(&node, &mut io, want.write))
    }

    pub(super) fn open_created(
        &self,
        node: &Arc<Node>,
        file: File,
        backer: &dyn Backer,
    ) -> Result<Opened> {
        let leaf = node.as_leaf()?;
        let mut io = leaf.io.lock();
        let file = Arc::new(file);
        io.file = Some(file.clone());
        io.writable = true;
        if io.opens == 0 {
            io.mode = self.choose_mode(true, true, &file);
        }
        self.register(&mut io, &file, backer);
        Ok(self.opened(node, &mut io, true))
    }

    fn opened(&self, node: &Arc<Node>, io: &mut Io, write: bool) -> Opened {
        io.opens += 1;
        let cached = io.mode == IoMode::Cached;
        let fresh = cached && std::mem::replace(&mut io.cache_is_fresh, cached);
        // A file that other nodes stand for too may have been changed through them.
        let keep_cache = fresh && node.as_leaf().is_ok_and(|leaf| leaf.class == 0);
        let backing = if cached { None } else { io.backing.clone() };
        Opened { handle: self.handles.add(node, write), keep_cache, backing }
    }

    fn choose_mode(&self, in_live: bool, may_be_written: bool, file: &File) -> IoMode {
        if !self.passthrough.load(Ordering::Relaxed) {
            return IoMode::Cached;
        }
        let large = || file.metadata().is_ok_and(|m| m.len() >= LARGE);
        match in_live {
            true => IoMode::PassthroughLive,
            false if !may_be_written || large() => IoMode::PassthroughLower,
            false => IoMode::Cached,
        }
    }

    /// Registers the backing file once for all simultaneous opens; a refusal (no privilege, a
    /// filesystem stacked too deep) turns to reading through us.
    fn register(&self, io: &mut Io, file: &File, backer: &dyn Backer) {
        if io.mode == IoMode::Cached || io.backing.is_some() {
            return;
        }
        match backer.register(file.as_fd()) {
            Ok(backing) => io.backing = Some(backing),
            Err(e) => {
                io.mode = IoMode::Cached;
                if e.kind() == std::io::ErrorKind::PermissionDenied {
                    self.passthrough.store(false, Ordering::Relaxed);
                }
            }
        }
    }

    pub fn passes_through(&self) -> bool {
        self.passthrough.load(Ordering::Relaxed)
    }

    /// Brings the file into the live layer. If the kernel is reading the lower file itself, this
    /// inode cannot change its backing: the names move on to a new one.
    fn make_writable(
        &self,
        state: &State,
        node: &Node,
        leaf: &LeafBody,
        io: &mut Io,
        limit: Option<u64>,
    ) -> Result<()> {
        if is_live(state, leaf) {
            return Ok(());
        }
        let before = leaf.place.read().clone();
        self.copy_up(state, node, limit)?;
        if io.opens > 0 && io.mode == IoMode::PassthroughLower {
            *leaf.place.write() = before;
            self.table.write().detach(node.id);
            return Err(Errno::STALE);
        }
        io.close();
        Ok(())
    }

    /// As [`Tree::make_writable`], for operations that do not hold the file's state.
    pub(super) fn copy_up_or_move_on(
        &self,
        state: &State,
        node: &Node,
        limit: Option<u64>,
    ) -> Result<()> {
        let leaf = node.as_leaf()?;
        let mut io = leaf.io.lock();
        self.make_writable(state, node, leaf, &mut io, limit)?;
        if io.opens > 0 {
            self.file_for(state, leaf, &mut io, false)?;
        }
        Ok(())
    }

    /// The file shared by all opens, opened anew if it is missing or cannot be written.
    fn file_for(
        &self,
        state: &State,
        leaf: &LeafBody,
        io: &mut Io,
        write: bool,
    ) -> Result<Arc<File>> {
        match &io.file {
            Some(file) if io.writable || !write => return Ok(file.clone()),
            _ => {}
        }
        let (file, writable) = open_place(&leaf.place.read(), state.live.layer, write)?;
        let file = Arc::new(file);
        io.file = Some(file.clone());
        io.writable = writable;
        Ok(file)
    }

    /// The file behind a handle, as it is now.
    fn file(&self, handle: Handle) -> Result<(Arc<OpenFile>, Arc<File>)> {
        let open = self.handles.get(handle)?;
        let leaf = open.node.as_leaf()?;
        let file = self.file_for(&self.state.read(), leaf, &mut leaf.io.lock(), false)?;
        Ok((open.clone(), file))
    }

    fn file_to_write(&self, handle: Handle) -> Result<Arc<File>> {
        self.file_to_write_in(&self.state.read(), handle)
    }

    fn file_to_write_in(&self, state: &State, handle: Handle) -> Result<Arc<File>> {
        let open = self.handles.get(handle)?;
        if !open.write {
            return Err(Errno::BADF);
        }
        let leaf = open.node.as_leaf()?;
        self.file_for(state, leaf, &mut leaf.io.lock(), true)
    }

    /// Files that are open now, and whether for writing.
    pub fn open_files(&self) -> Vec<(NodeId, bool)> {
        self.handles.open.read().values().map(|open| (open.node.id, open.write)).collect()
    }

    pub fn is_writable(&self, handle: Handle) -> bool {
        self.handles.get(handle).is_ok_and(|open| open.write)
    }

    pub fn release(&self, handle: Handle) {
        let Some(open) = self.handles.open.write().remove(&handle.0) else { return };
        let Ok(leaf) = open.node.as_leaf() else { return };
        let mut io = leaf.io.lock();
        io.opens -= 1;
        if io.opens == 0 {
            io.cache_is_fresh &= io.mode == IoMode::Cached;
            match io.mode {
                IoMode::PassthroughLower => self.park(&open.node),
                _ => io.close(),
            }
        }
    }

    /// A lower file that was just closed keeps its registration for a while: programs open the
    /// same files again and again, and it is a tenth of the cost of an open.
    fn park(&self, node: &Arc<Node>) {
        let mut parked = self.parked.lock();
        parked.push_back(Arc::downgrade(node));
        let oldest = if parked.len() > PARKED { parked.pop_front() } else { None };
        drop(parked);
        let Some(oldest) = oldest.and_then(|node| node.upgrade()) else { return };
        if Arc::ptr_eq(&oldest, node) {
            return;
        }
        // Whoever is busy with it right now will park it again.
        if let Some(mut io) = oldest.as_leaf().ok().and_then(|leaf| leaf.io.try_lock())
            && io.opens == 0
        {
            io.close();
        }
    }

    pub fn read(&self, handle: Handle, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let (_, file) = self.file(handle)?;
        let mut filled = 0;
        while filled < buffer.len() {
            match file.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(errno(e)),
            }
        }
        Ok(filled)
    }

    pub fn write(&self, handle: Handle, offset: u64, data: &[u8]) -> Result<usize> {
        let file = self.file_to_write(handle)?;
        file.write_all_at(data, offset).map_err(errno)?;
        Ok(data.len())
    }

    pub fn fsync(&self, handle: Handle, data_only: bool) -> Result<()> {
        let (_, file) = self.file(handle)?;
        self.state.read().live.work.settle()?;
        if data_only { rustix::fs::fdatasync(&*file) } else { rustix::fs::fsync(&*file) }
    }

    /// Makes the names of a directory durable; one that only exists below already is.
    pub fn fsync_dir(&self, id: NodeId) -> Result<()> {
        let state = self.state.read();
        let node = self.node(id)?;
        let live = node.as_dir()?.merge.read().live(state.live.layer).cloned();
        let Some(part) = live else { return Ok(()) };
        state.live.work.settle()?;
        rustix::fs::fsync(part.fd()?)
    }

    pub fn fallocate(&self, handle: Handle, mode: i32, offset: u64, length: u64) -> Result<()> {
        let file = self.file_to_write(handle)?;
        let mode = FallocateFlags::from_bits(mode as u32).ok_or(Errno::OPNOTSUPP)?;
        rustix::fs::fallocate(&*file, mode, offset, length)
    }

    pub fn seek_data(&self, handle: Handle, offset: u64) -> Result<u64> {
        let (_, file) = self.file(handle)?;
        rustix::fs::seek(&*file, SeekFrom::Data(offset))
    }

    pub fn seek_hole(&self, handle: Handle, offset: u64) -> Result<u64> {
        let (_, file) = self.file(handle)?;
        rustix::fs::seek(&*file, SeekFrom::Hole(offset))
    }

    pub fn copy_range(
        &self,
        from: (Handle, u64),
        to: (Handle, u64),
        length: usize,
    ) -> Result<usize> {
        let (_, source) = self.file(from.0)?;
        let target = self.file_to_write(to.0)?;
        let (mut read_at, mut write_at) = (from.1, to.1);
        rustix::fs::copy_file_range(
            &*source,
            Some(&mut read_at),
            &*target,
            Some(&mut write_at),
            length,
        )
    }

    /// Cuts or extends a file, through an open handle or by itself.
    pub(super) fn set_size(
        &self,
        state: &State,
        node: &Node,
        handle: Option<Handle>,
        size: u64,
    ) -> Result<()> {
        if let Some(handle) = handle.filter(|handle| self.is_writable(*handle)) {
            return rustix::fs::ftruncate(&*self.file_to_write_in(state, handle)?, size);
        }
        let leaf = node.as_leaf()?;
        let mut io = leaf.io.lock();
        self.make_writable(state, node, leaf, &mut io, Some(size))?;
        match &io.file {
            Some(file) if io.writable => rustix::fs::ftruncate(&**file, size)?,
            _ => {
                let (file, _) = open_place(&leaf.place.read(), state.live.layer, true)?;
                rustix::fs::ftruncate(&file, size)?;
            }
        }
        if io.opens > 0 {
            self.file_for(state, leaf, &mut io, false)?;
        }
        Ok(())
    }

    /// The kernel's pages of this file are not to be trusted at the next open.
    pub fn content_changed_outside(&self, id: NodeId) {
        let Ok(node) = self.node(id) else { return };
        if let Ok(leaf) = node.as_leaf() {
            leaf.io.lock().cache_is_fresh = false;
        }
    }
}

pub(super) fn is_live(state: &State, leaf: &LeafBody) -> bool {
    leaf.place.read().layer() == state.live.layer
}

/// Opens what is at a place: a live file for both directions if possible, since all opens share
/// it; a lower one only for reading, whatever the caller wants.
fn open_place(place: &Place, live: LayerIndex, write: bool) -> Result<(File, bool)> {
    if place.layer() != live {
        return if write {
            Err(Errno::ROFS)
        } else {
            Ok((open_with(place, OFlags::RDONLY)?, false))
        };
    }
    match open_with(place, OFlags::RDWR) {
        Ok(file) => Ok((file, true)),
        Err(Errno::ACCESS | Errno::ROFS | Errno::PERM | Errno::TXTBSY) if !write => {
            Ok((open_with(place, OFlags::RDONLY)?, false))
        }
        Err(Errno::ACCESS) => Ok((open_with(place, OFlags::WRONLY)?, true)),
        Err(e) => Err(e),
    }
}

pub(super) fn open_with(place: &Place, access: OFlags) -> Result<File> {
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = match place {
        Place::At { part, name, .. } => {
            rustix::fs::openat(part.fd()?, &name[..], flags, Mode::empty())?
        }
        Place::Orphan { fd, .. } => ringfence_sys::files::reopen(fd, access | OFlags::NONBLOCK)?,
    };
    Ok(File::from(fd))
}
