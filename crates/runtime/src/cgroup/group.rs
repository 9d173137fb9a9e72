//! One directory of a cgroup hierarchy and the files in it.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How long the kernel may take to finish what it was told: the last exits before a removal, the
/// last process to stop in a freeze.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_micros(100);

const SIGNAL_ROUNDS: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) path: PathBuf,
}

impl Group {
    pub(super) fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub(super) fn read(&self, file: &str) -> io::Result<String> {
        fs::read_to_string(self.path.join(file))
    }

    /// Never creates a file: on a cgroup filesystem that would be refused anyway, and on anything
    /// else it would be a mistake.
    pub(super) fn write(&self, file: &str, text: &str) -> io::Result<()> {
        use io::Write;
        fs::File::options().write(true).open(self.path.join(file))?.write_all(text.as_bytes())
    }

    pub(super) fn has(&self, file: &str) -> bool {
        self.path.join(file).exists()
    }

    /// The number in a file that holds one, or beside `key` in a file of such lines.
    pub(super) fn number(&self, file: &str, key: &str) -> Option<u64> {
        number(&self.read(file).ok()?, key)
    }

    pub(super) fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(&self.path, flags, Mode::empty())?)
    }

    /// Members of this group and of those below.
    pub(super) fn pids(&self) -> Vec<i32> {
        let mut pids = self.own_pids();
        pids.extend(self.below().iter().flat_map(Group::pids));
        pids
    }

    fn own_pids(&self) -> Vec<i32> {
        let text = self.read("cgroup.procs").unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 0).collect()
    }

    pub(super) fn below(&self) -> Vec<Group> {
        let Ok(entries) = fs::read_dir(&self.path) else { return Vec::new() };
        let is_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        entries.flatten().filter(is_dir).map(|entry| Group::at(entry.path())).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        match self.number("cgroup.events", "populated") {
            Some(populated) => populated == 0,
            None => self.pids().is_empty(),
        }
    }

    /// Sends `signal` to every member except some, and to those they fork meanwhile.
    ///
    /// A number read from the list may belong to somebody else by the time it is used. So each is
    /// turned into a descriptor first, and used only if the number is still listed afterwards.
    ///
    /// A group that forks faster than this catches no more than a plain `kill` would: to end it for
    /// certain there is [`kill`](Self::kill).
    pub(super) fn signal(&self, signal: Signal, except: &[i32]) {
        let mut done = except.to_vec();
        for _ in 0..SIGNAL_ROUNDS {
            let new: Vec<i32> = self.pids().into_iter().filter(|p| !done.contains(p)).collect();
            if new.is_empty() {
                return;
            }
            let opened: Vec<(i32, OwnedFd)> = new.iter().filter_map(|pid| opened(*pid)).collect();
            let listed = self.pids();
            for (_, pidfd) in opened.iter().filter(|(pid, _)| listed.contains(pid)) {
                // One that has ended meanwhile needs no signal.
                let _ = pidfd_send_signal(pidfd, signal);
            }
            done.extend(new);
        }
    }

    /// Ends every member of this group and of those below, for certain: what forks meanwhile is
    /// ended too. Returns when they have been told, not when they are gone.
    pub(super) fn kill(&self) -> io::Result<()> {
        match self.write("cgroup.kill", "1") {
            Err(e) if e.kind() == ErrorKind::NotFound => self.kill_frozen(),
            result => result,
        }
    }

    /// Kernels before 5.14, and version 1: nothing forks while it is frozen.
    fn kill_frozen(&self) -> io::Result<()> {
        if !self.path.exists() {
            return Ok(());
        }
        let deadline = Instant::now() + PATIENCE;
        while !self.pids().is_empty() {
            // A group that cannot be frozen is still emptied, unless it forks faster than we kill.
            let frozen = self.set_frozen(true);
            self.signal(Signal::KILL, &[]);
            frozen.and(self.set_frozen(false))?;
            if Instant::now() > deadline {
                return Err(ErrorKind::TimedOut.into());
            }
            sleep(PAUSE);
        }
        Ok(())
    }

    fn set_frozen(&self, frozen: bool) -> io::Result<()> {
        match (self.has("cgroup.freeze"), frozen) {
            (true, true) => self.write("cgroup.freeze", "1"),
            (true, false) => self.write("cgroup.freeze", "0"),
            (false, true) => self.write("freezer.state", "FROZEN"),
            (false, false) => self.write("freezer.state", "THAWED"),
        }
    }

    fn is_frozen(&self) -> bool {
        match self.read("freezer.state") {
            Ok(state) => state.trim() == "FROZEN",
            Err(_) => self.number("cgroup.events", "frozen") == Some(1),
        }
    }

    /// Stops every member; returns when all of them stand still.
    pub(super) fn freeze(&self) -> io::Result<()> {
        self.set_frozen(true)?;
        wait_until(|| self.is_frozen())
    }

    pub(super) fn thaw(&self) -> io::Result<()> {
        self.set_frozen(false)
    }

    /// Removes this group and those below. Members must have been killed; that they are still on
    /// their way out (`EBUSY`) is waited for.
    pub(super) fn remove(&self) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.below().iter().try_for_each(Group::remove)?;
            match fs::remove_dir(&self.path) {
                Ok(()) => return Ok(()),
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
                Err(e) if e.kind() != ErrorKind::ResourceBusy => return Err(e),
                Err(e) if Instant::now() > deadline => return Err(e),
                Err(_) => sleep(PAUSE),
            }
        }
    }
}

fn opened(pid: i32) -> Option<(i32, OwnedFd)> {
    Some((pid, pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?))
}

fn wait_until(done: impl Fn() -> bool) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        if Instant::now() > deadline {
            return Err(ErrorKind::TimedOut.into());
        }
        sleep(PAUSE);
    }
    Ok(())
}

/// The number in a text that is one, or beside `key` in lines of the form `key number`.
fn number(text: &str, key: &str) -> Option<u64> {
    let value = |line: &str| match line.split_once(' ') {
        Some((name, value)) if name == key => value.trim().parse().ok(),
        None if key.is_empty() => line.trim().parse().ok(),
        _ => None,
    };
    text.lines().find_map(value)
}

/// A name of ours as a directory: one component, nothing that a cgroup file could be called.
pub(super) fn is_valid_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !name.is_empty() && name.len() <= 128 && name.bytes().all(plain)
}

/// Makes the directory of a group, which others may look into and not more. (A warden has no
/// umask.)
pub(super) fn make_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o755).create(path)
}

/// Makes the directory and those above it that are ours.
pub(super) fn make(parent: &Path, name: &str) -> io::Result<Group> {
    match make_dir(parent) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    let path = parent.join(name);
    make_dir(&path)?;
    Ok(Group::at(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_key_and_alone() {
        let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        assert_eq!(number(text, "oom_kill"), Some(3));
        assert_eq!(number(text, "oom"), None);
        assert_eq!(number("4096\n", ""), Some(4096));
        assert_eq!(number("max\n", ""), None);
        assert_eq!(number("usage_usec 12\nuser_usec 5\n", "user_usec"), Some(5));
    }

    #[test]
    fn names_are_single_plain_components() {
        for name in ["a", "sandbox-1", "01J_x"] {
            assert!(is_valid_name(name), "{name}");
        }
        let long = "x".repeat(129);
        for name in ["", ".", "..", "a/b", "cgroup.procs", "a b", "a\n", &long] {
            assert!(!is_valid_name(name), "{name}");
        }
    }
}
