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

/// Gives back the pages of this program's code, which the kernel maps generously. What still runs
/// maps its own again; what only the start needed stays away.
///
/// A process that waits for most of its life holds a fraction of what it held (the pages
/// themselves stay in the kernel's cache, for all who share them).
pub fn give_back_code() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let Ok(program) = std::fs::read_link("/proc/self/exe") else { return };
    for (start, end) in code_of(&maps, &program.to_string_lossy()) {
        // SAFETY: a mapping of this process that is private, never written to and backed by the
        // file: its pages come back with the same content as soon as they are used.
        unsafe {
            libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED);
        }
    }
}

/// Where the code of `program` lies, by `/proc/self/maps`. (Not its data: of that a part is
/// written to when the program is loaded, and protected afterwards.)
fn code_of<'a>(maps: &'a str, program: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    maps.lines().filter_map(move |line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let is_code = rest.starts_with("r-xp ") && rest.ends_with(program);
        is_code.then_some((number(start)?, number(end)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_the_program_is_given_back() {
        let maps = "1000-2000 r--p 00000000 fe:00 7   /bin/it\n\
                    2000-4000 r-xp 00001000 fe:00 7   /bin/it\n\
                    4000-5000 rw-p 00003000 fe:00 7   /bin/it\n\
                    6000-7000 r-xp 00000000 00:00 0   [vdso]\n\
                    8000-9000 rwxp 00000000 fe:00 7   /bin/it\n";
        assert_eq!(code_of(maps, "/bin/it").collect::<Vec<_>>(), [(0x2000, 0x4000)]);
    }

    #[test]
    fn the_program_goes_on_without_the_code_it_gave_back() {
        // Pages of code that are mapped, in KiB.
        let mapped = || {
            let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let program = std::env::current_exe().unwrap();
            let code = maps.lines().skip_while(|line| {
                !line.contains(" r-xp ") || !line.ends_with(program.to_str().unwrap())
            });
            let line = code.skip(1).find_map(|line| line.strip_prefix("Rss:")).unwrap();
            line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap()
        };
        let before = mapped();
        give_back_code();
        assert!(mapped() < before, "nothing was given back");
    }
}
