//! Noticing changes that the host makes in a base used in place.
//!
//! Names and attributes are cached by the kernel for as long as we allow, so a change made outside
//! the mount must be told to it. Each directory of the base is watched as soon as it is known; one
//! that cannot be watched (the system's limit) gets short caching times instead.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use ringfence_policy::WorkspacePath;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::Stat;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use crate::layers::stack::Part;
use crate::tree::NodeId;

/// What happened in the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseEvent {
    /// An entry appeared, disappeared or was replaced.
    /// `path` is the entry's in the base, for directories the kernel has forgotten meanwhile.
    Name { dir: NodeId, name: Box<[u8]>, path: WorkspacePath },
    /// The content or attributes of an entry changed.
    Content { dir: NodeId, name: Box<[u8]> },
    /// The attributes of the directory itself changed.
    Directory { dir: NodeId },
    /// Events were lost: nothing that is cached can be trusted.
    Overflow,
}

#[derive(Debug, Default)]
struct Watched {
    by_watch: HashMap<i32, (NodeId, Arc<Part>)>,
    by_node: HashMap<NodeId, Option<i32>>,
}

/// Seconds and nanoseconds of a directory's modification and change times.
type Times = [(i64, u64); 2];

#[derive(Debug)]
pub struct Watch {
    fd: OwnedFd,
    stopping: OwnedFd,
    watched: RwLock<Watched>,
    generation: AtomicU64,
    /// Times that directories of the base are shown with. The real ones also move when something
    /// hidden appears in them; the shown ones move only with something visible.
    shown: Mutex<HashMap<NodeId, Times>>,
}

impl Watch {
    pub fn new() -> std::io::Result<Arc<Self>> {
        let fd = inotify::init(CreateFlags::CLOEXEC)?;
        let stopping = eventfd(0, EventfdFlags::CLOEXEC)?;
        let (watched, generation) = (RwLock::default(), AtomicU64::new(0));
        Ok(Arc::new(Self { fd, stopping, watched, generation, shown: Mutex::default() }))
    }

    /// Increases whenever the base changed in a way that was noticed.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether changes in this directory will be noticed.
    pub fn covers(&self, id: NodeId) -> bool {
        self.watched.read().by_node.get(&id).is_some_and(|watch| watch.is_some())
    }

    /// Replaces the times of a base directory by those it is shown with. One that was never to be
    /// watched has none: they would not move with anything.
    pub fn show_times(&self, id: NodeId, stat: &mut Stat) {
        if !self.watched.read().by_node.contains_key(&id) {
            return;
        }
        let now = [(stat.st_mtime, stat.st_mtime_nsec), (stat.st_ctime, stat.st_ctime_nsec)];
        let [modified, changed] = *self.shown.lock().entry(id).or_insert(now);
        (stat.st_mtime, stat.st_mtime_nsec) = (modified.0, modified.1 as _);
        (stat.st_ctime, stat.st_ctime_nsec) = (changed.0, changed.1 as _);
    }

    /// Something visible changed in the directory: its times move.
    pub fn times_moved(&self, id: NodeId) {
        self.shown.lock().remove(&id);
    }

    /// Watches a directory of the base; does nothing the second time. Says whether this is the
    /// first.
    pub fn add(&self, id: NodeId, part: &Arc<Part>) -> bool {
        if self.watched.read().by_node.contains_key(&id) {
            return false;
        }
        // Held until both maps are filled, so that no event finds its watch unknown.
        let mut watched = self.watched.write();
        let added = part.with_proc_path(|path, may_be_symlink| {
            let mut flags = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::MODIFY
                | WatchFlags::ATTRIB
                | WatchFlags::ONLYDIR;
            flags.set(WatchFlags::DONT_FOLLOW, may_be_symlink);
            inotify::add_watch(&self.fd, path, flags)
        });
        let added = added.ok();
        watched.by_node.insert(id, added);
        if let Some(watch) = added {
            watched.by_watch.insert(watch, (id, part.clone()));
        }
        true
    }

    /// Waits for events and passes them on until [`Watch::stop`].
    pub fn run(&self, mut each: impl FnMut(BaseEvent)) {
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut reader = inotify::Reader::new(&self.fd, &mut buffer);
        while self.wait() {
            loop {
                if let Ok(event) = reader.next() {
                    let (watch, flags) = (event.wd(), event.events());
                    if let Some(event) = self.translate(watch, flags, event.file_name()) {
                        self.generation.fetch_add(1, Ordering::AcqRel);
                        each(event);
                    }
                }
                if reader.is_buffer_empty() {
                    break;
                }
            }
        }
    }

    /// Ends [`Watch::run`].
    pub fn stop(&self) {
        let _ = rustix::io::write(&self.stopping, &1u64.to_ne_bytes());
    }

    /// Lets go of all watches, after [`Watch::run`] has ended. Nobody waits for the kernel.
    pub fn release(&self) {
        let _ = ringfence_sys::files::let_go(&self.fd, &self.stopping);
    }

    /// Whether there is an event to read, as opposed to the end.
    fn wait(&self) -> bool {
        let mut fds =
            [PollFd::new(&self.fd, PollFlags::IN), PollFd::new(&self.stopping, PollFlags::IN)];
        loop {
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return false,
                Ok(_) => return fds[1].revents().is_empty(),
            }
        }
    }

    fn translate(
        &self,
        watch: i32,
        flags: ReadFlags,
        name: Option<&std::ffi::CStr>,
    ) -> Option<BaseEvent> {
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            return Some(BaseEvent::Overflow);
        }
        if flags.contains(ReadFlags::IGNORED) {
            let mut watched = self.watched.write();
            if let Some((id, _)) = watched.by_watch.remove(&watch) {
                watched.by_node.remove(&id);
            }
            return None;
        }
        let (dir, part) = self.watched.read().by_watch.get(&watch)?.clone();
        let Some(name) = name else { return Some(BaseEvent::Directory { dir }) };
        let name: Box<[u8]> = name.to_bytes().into();
        let names =
            ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
        if flags.intersects(names) {
            let path = part.path().join(&name);
            return Some(BaseEvent::Name { dir, name, path });
        }
        Some(BaseEvent::Content { dir, name })
    }
}
