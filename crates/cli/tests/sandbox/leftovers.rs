//! What a sandbox must not leave behind, looked for everywhere it could be.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringfence_sys::files::Locked;

use crate::support::PATIENCE;

/// The traces of one sandbox on the host.
pub(crate) struct Leftovers {
    id: String,
    dir: PathBuf,
    users: PathBuf,
}

/// What is in a sandbox's directory only while it runs.
const SCRATCH: [&str; 5] = ["home", "tmp", "stage", "workspace", "warden.sock"];

impl Leftovers {
    pub(crate) fn of(id: &str, dir: &Path, users: &Path) -> Self {
        Self { id: id.into(), dir: dir.into(), users: users.into() }
    }

    /// Everything that is there now, in words.
    pub(crate) fn found(&self) -> BTreeSet<String> {
        let mut found = self.processes();
        found.extend(self.groups());
        found.extend(self.mounts());
        found.extend(self.sockets());
        found.extend(self.files());
        found.extend(self.users());
        found
    }

    /// Waits until nothing is found: the kernel takes its time with what has been killed.
    pub(crate) fn assert_none(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.found();
            if found.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "left of {}: {found:#?}", self.id);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Those in its groups, those that were told its directory, and those that see mounts below it.
    fn processes(&self) -> BTreeSet<String> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let group = format!("/ringfence/{}", self.id);
        let dir = self.dir.display().to_string();
        let belongs = |pid: &u32| {
            let read = |file: &str| {
                let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                String::from_utf8_lossy(&text).into_owned()
            };
            let in_group = read("cgroup").lines().any(|line| {
                line.split(&group)
                    .nth(1)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
            in_group || read("cmdline").contains(&dir) || read("mountinfo").contains(&dir)
        };
        pids.filter(belongs).map(|pid| format!("process {pid}: {}", name_of(pid))).collect()
    }

    /// The directories of its groups, in every hierarchy.
    fn groups(&self) -> BTreeSet<String> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let places = mounts.lines().filter(|line| line.contains(" - cgroup"));
        let places = places.filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from);
        let mut found = BTreeSet::new();
        for place in places {
            find_dirs(&place, &self.id, 6, &mut found);
        }
        found.into_iter().map(|path| format!("group {}", path.display())).collect()
    }

    fn mounts(&self) -> BTreeSet<String> {
        let (mounts, dir) =
            (fs::read_to_string("/proc/self/mountinfo").unwrap(), self.dir.display().to_string());
        mounts.lines().filter(|l| l.contains(&dir)).map(|l| format!("mount {l}")).collect()
    }

    fn sockets(&self) -> BTreeSet<String> {
        let (sockets, dir) =
            (fs::read_to_string("/proc/net/unix").unwrap(), self.dir.display().to_string());
        sockets.lines().filter(|l| l.contains(&dir)).map(|l| format!("socket {l}")).collect()
    }

    fn files(&self) -> BTreeSet<String> {
        let paths = SCRATCH.map(|name| self.dir.join(name));
        let there = paths.iter().filter(|path| path.symlink_metadata().is_ok());
        there.map(|path| format!("file {}", path.display())).collect()
    }

    /// Numbers of users that nobody holds and whose file is still there.
    fn users(&self) -> BTreeSet<String> {
        let Ok(entries) = fs::read_dir(&self.users) else { return BTreeSet::new() };
        let files = entries.flatten().map(|entry| entry.path());
        let free = files.filter(|path| !is_locked(path) && path.exists());
        free.map(|path| format!("user {}", path.display())).collect()
    }
}

/// Whether somebody holds the lock of a file.
pub(crate) fn is_locked(path: &Path) -> bool {
    fs::File::open(path).is_ok_and(|file| Locked::is_held(&file))
}

fn name_of(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let state = status.lines().find(|line| line.starts_with("State:")).unwrap_or_default();
    format!("{} {state}", String::from_utf8_lossy(&line).replace('\0', " "))
}

/// Directories of this name, at most so deep below `dir`.
fn find_dirs(dir: &Path, name: &str, depth: u32, found: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten().filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())) {
        if entry.file_name() == name {
            found.insert(entry.path());
        } else if depth > 0 {
            find_dirs(&entry.path(), name, depth - 1, found);
        }
    }
}
