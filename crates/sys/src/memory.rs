//! Allocator and descriptor limits of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Makes glibc return large blocks to the kernel instead of keeping them on its heap.
///
/// The FUSE loop allocates a zeroed 16 MiB request buffer per thread. Mapped anonymously such a
/// buffer costs nothing until it is touched; once glibc has raised its threshold (it does so after
/// the first large `free`) the next one comes from the heap and is really zeroed.
pub fn keep_large_blocks_mapped() {
    // SAFETY: mallopt only changes allocator tunables and is called with a documented parameter;
    // it may run at any time, other threads included.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 * 1024);
    }
}

/// Raises the soft limit of open descriptors to the hard limit and returns it.
///
/// A mounted workspace holds a descriptor per directory the kernel remembers and one per open
/// file, which passes the usual soft limit of 1024 in any real repository.
pub fn raise_open_file_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum.unwrap_or(u64::MAX),
        Err(_) => limit.current.unwrap_or(1024),
    }
}

/// Makes room for many descriptors at once. The kernel lets all other threads of a process catch up
/// (milliseconds) whenever it has to enlarge the table of a process that has any, so this is called
/// before the first of them starts.
pub fn make_room_for_descriptors() {
    // The table keeps its size when the descriptor is closed.
    let _ = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 1000);
}
