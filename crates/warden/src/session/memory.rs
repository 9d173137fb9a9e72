//! How much memory a command has.
//!
//! The figure means the same as for a command without a session: the most that any one process had
//! at once. There the kernel tells it to init, which waits for the process. Here the shell waits for
//! its children and keeps to itself what it hears, so they are looked at while they run. Each has a
//! high-water mark, hence one look late in its life tells all of it, and looks come at intervals
//! that are a small part of the time the command has taken so far. What is seen is true; what a
//! process grew by between the last look and its end is missing.
//!
//! The memory controller would miss nothing, but it counts something else: the files that a command
//! has read stay in the page cache on its account, and on that of every command after it. In version
//! 2 a group of a command has no such controller anyway.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

/// How long a command runs before it is looked at first. What it can take in that time is little.
const FIRST: Duration = Duration::from_millis(4);
/// From then on, the part of its time so far after which it is looked at again.
const PART: u32 = 16;
/// But no later than this.
const LONGEST: Duration = Duration::from_millis(250);

/// `VmHWM` is in the first half of it.
const STATUS: usize = 4096;
/// To `clear_refs`: the high-water mark begins anew with what there is now.
const BEGIN_ANEW: &[u8] = b"5";

/// The memory of a session's shell and of its commands.
#[derive(Debug)]
pub(super) struct Memory {
    /// The shell's directory in `/proc`. Where there is none, nothing is known of it.
    shell: Option<OwnedFd>,
    /// Held open: it is read after every command, and cheap.
    statm: Option<OwnedFd>,
    page: u64,
    began: Instant,
    next: Instant,
    /// The shell's high-water mark is the command's: it was set anew since that began.
    marked: bool,
    peak: u64,
}

impl Memory {
    pub(super) fn of(shell: Option<&OwnedFd>) -> Self {
        let shell = shell.and_then(|shell| shell.try_clone().ok());
        let statm = shell.as_ref().and_then(|shell| open(shell, "statm", OFlags::RDONLY));
        let (page, now) = (page_size().unwrap_or(0), Instant::now());
        Self { shell, statm, page, began: now, next: now, marked: false, peak: 0 }
    }

    /// A command begins: what was before is not its own.
    pub(super) fn begin(&mut self) {
        self.began = Instant::now();
        self.next = self.began + FIRST;
        (self.marked, self.peak) = (false, 0);
    }

    /// When the command is to be looked at next.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Looks at the shell and at the other processes of the command.
    pub(super) fn look(&mut self, now: Instant, processes: impl Fn() -> Vec<i32>) {
        // It may not be there any more when the command is over.
        self.peak = self.peak();
        self.marked = self.marked || self.begin_anew().is_some();
        let mut largest = (0, 0);
        for pid in processes() {
            let file = std::fs::File::open(format!("/proc/{pid}/status"));
            let mark = file.ok().and_then(|file| high_water(&file.into()));
            largest = largest.max((mark.unwrap_or(0), pid));
        }
        let (mark, pid) = largest;
        // A number that is no longer listed may have been another's when it was looked at.
        if mark > self.peak && processes().contains(&pid) {
            self.peak = mark;
        }
        self.next = now + ((now - self.began) / PART).clamp(FIRST, LONGEST);
    }

    fn begin_anew(&self) -> Option<()> {
        let file = open(self.shell.as_ref()?, "clear_refs", OFlags::WRONLY)?;
        rustix::io::write(&file, BEGIN_ANEW).ok().map(drop)
    }

    /// The most that a process of the command had, the shell included, in bytes; 0 if unknown.
    pub(super) fn peak(&self) -> u64 {
        let shell = match self.marked {
            true => self.shell_at_most(),
            false => self.shell_now(),
        };
        self.peak.max(shell.unwrap_or(0))
    }

    fn shell_at_most(&self) -> Option<u64> {
        high_water(&open(self.shell.as_ref()?, "status", OFlags::RDONLY)?)
    }

    /// Costs a fifth of what the mark does, and a builtin is over in a third of a millisecond.
    fn shell_now(&self) -> Option<u64> {
        let mut space = [0; 128];
        let length = rustix::io::pread(self.statm.as_ref()?, &mut space[..], 0).ok()?;
        let resident = std::str::from_utf8(&space[..length]).ok()?.split(' ').nth(1)?;
        Some(resident.parse::<u64>().ok()? * self.page)
    }
}

fn open(dir: &OwnedFd, name: &str, flags: OFlags) -> Option<OwnedFd> {
    rustix::fs::openat(dir, name, flags | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// As the kernel has told this process.
fn page_size() -> Option<u64> {
    const AT_PAGESZ: usize = 6;
    const WORD: usize = size_of::<usize>();
    let auxv = std::fs::read("/proc/self/auxv").ok()?;
    let words = auxv.chunks_exact(WORD).map_while(|word| word.try_into().ok());
    let words: Vec<usize> = words.map(usize::from_ne_bytes).collect();
    words.chunks_exact(2).find(|pair| pair[0] == AT_PAGESZ).map(|pair| pair[1] as u64)
}

/// The most that a process has had, in bytes. One that has ended has no memory, and no such line.
fn high_water(status: &OwnedFd) -> Option<u64> {
    let mut space = [0; STATUS];
    let length = rustix::io::pread(status, &mut space[..], 0).ok()?;
    parse_high_water(&space[..length])
}

fn parse_high_water(status: &[u8]) -> Option<u64> {
    let mut lines = status.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| line.strip_prefix(b"VmHWM:"))?;
    let number = std::str::from_utf8(value).ok()?.trim().strip_suffix(" kB")?;
    Some(number.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_this_process() -> Memory {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open("/proc/self", flags, Mode::empty()).unwrap();
        Memory::of(Some(&dir))
    }

    #[test]
    fn the_mark_is_found_by_its_name() {
        let status = b"Name:\tVmHWM: 7 kB\nVmPeak:\t  9 kB\nVmHWM:\t    1792 kB\nVmRSS:\t 8 kB\n";
        assert_eq!(parse_high_water(status), Some(1792 * 1024));
        let zombie = b"Name:\tx\nState:\tZ (zombie)\n";
        for none in [&zombie[..], b"VmHWM:\t1 MB\n", b"VmHWM: -1 kB\n", b""] {
            assert_eq!(parse_high_water(none), None);
        }
    }

    #[test]
    fn what_was_before_a_command_is_not_its_own() {
        const LARGE: u64 = 256 << 20;
        let take = || std::hint::black_box(vec![1u8; LARGE as usize]);
        let mut memory = of_this_process();
        memory.begin();
        let held = take();
        assert!(memory.peak() >= LARGE, "what is there at the end is counted without a look");
        drop(held);
        assert!((100_000..LARGE).contains(&memory.peak()));
        memory.look(Instant::now(), Vec::new);
        assert!(memory.marked);
        drop(take());
        assert!(memory.peak() >= LARGE, "after a look all of it is");
        memory.begin();
        memory.look(Instant::now(), Vec::new);
        assert!((100_000..LARGE).contains(&memory.peak()));
    }

    #[test]
    fn looks_come_at_a_part_of_the_time_so_far() {
        let mut memory = Memory::of(None);
        memory.begin();
        let mut pause_after = |milliseconds| {
            let now = memory.began + Duration::from_millis(milliseconds);
            memory.look(now, Vec::new);
            memory.next() - now
        };
        assert_eq!(pause_after(4), FIRST);
        assert_eq!(pause_after(1600), Duration::from_millis(100));
        assert_eq!(pause_after(1_000_000), LONGEST);
        assert_eq!(memory.peak(), 0);
    }

    #[test]
    fn a_process_that_is_no_longer_listed_does_not_count() {
        let own = std::process::id() as i32;
        let mut memory = Memory::of(None);
        let calls = std::cell::Cell::new(0);
        memory.look(Instant::now(), || {
            calls.set(calls.get() + 1);
            if calls.get() == 1 { vec![own] } else { vec![] }
        });
        assert_eq!(memory.peak(), 0);
        memory.look(Instant::now(), || vec![own]);
        assert!(memory.peak() > 0);
    }
}
