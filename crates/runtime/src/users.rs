//! A host user of its own for every sandbox, when root starts it.
//!
//! What the kernel counts per user (inotify instances, pipe pages, processes) is then counted per
//! sandbox, and no sandbox may signal or read another's processes even if its namespace leaks.
//!
//! A number is taken by locking a file named after it. The lock is the kernel's: it ends with the
//! process that holds it, so that a crash frees the number.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ringfence_sys::files::Locked;
use rustix::fs::OFlags;

use crate::RuntimeError;

/// Above the users that systems give out by themselves, below those that container engines like.
pub const DEFAULT_RANGE: Range<u32> = 200_000..265_535;

/// Where everybody on this host locks the numbers of that range. Gone after a reboot, as those who
/// held them are, and closed to all but root.
pub const HOST_LOCKS: &str = "/run/ringfence-users";

/// Where numbers are taken from.
#[derive(Debug, Clone)]
pub struct Users {
    range: Range<u32>,
    locks: PathBuf,
}

/// A number that nobody else has while this lives. User and group are the same.
#[derive(Debug)]
pub struct HostUser {
    id: u32,
    path: PathBuf,
    _lock: Locked,
}

impl HostUser {
    pub fn uid(&self) -> u32 {
        self.id
    }

    pub fn gid(&self) -> u32 {
        self.id
    }

    /// As `Start::user` wants it.
    pub fn ids(&self) -> (u32, u32) {
        (self.id, self.id)
    }
}

impl Drop for HostUser {
    fn drop(&mut self) {
        // Still locked: whoever opened it meanwhile will notice that it is gone.
        let _ = fs::remove_file(&self.path);
    }
}

impl Users {
    /// Numbers in `range`, taken by files in `locks`. The directory must be the same for everybody
    /// on this host who takes numbers from this range, and not below [`crate::stage::PLACE`], which
    /// is covered in a caller that has started a sandbox.
    pub fn new(range: Range<u32>, locks: impl Into<PathBuf>) -> Self {
        Self { range, locks: locks.into() }
    }

    /// Takes a number that is free and means nobody to the host.
    pub fn allocate(&self) -> Result<HostUser, RuntimeError> {
        let failed = |e| RuntimeError::io(format!("lock a user in {}", self.locks.display()), e);
        self.make_locks().map_err(failed)?;
        let known = Known::of_this_host();
        for id in self.range.clone().filter(|id| !known.contains(*id)) {
            if let Some(user) = self.take(id).map_err(failed)? {
                return Ok(user);
            }
        }
        Err(self.exhausted())
    }

    /// The directory is for its owner alone, whatever the umask: who could write to it could lock
    /// every number, or have a link followed.
    fn make_locks(&self) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.locks)?;
        let made = fs::symlink_metadata(&self.locks)?;
        if !made.is_dir() || made.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("it belongs to somebody else"));
        }
        if made.mode() & 0o077 != 0 {
            fs::set_permissions(&self.locks, PermissionsExt::from_mode(0o700))?;
        }
        Ok(())
    }

    /// Removes the files of numbers that nobody holds, which a crash has left.
    pub fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.locks) else { return };
        let ids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
        for id in ids.filter(|id| self.range.contains(id)) {
            // Taken and given back.
            drop(self.take(id));
        }
    }

    fn take(&self, id: u32) -> io::Result<Option<HostUser>> {
        let path = self.locks.join(id.to_string());
        let mut options = File::options();
        options.create(true).truncate(false).write(true).mode(0o600);
        let file = options.custom_flags(OFlags::NOFOLLOW.bits() as i32).open(&path)?;
        let ours = file.metadata()?;
        let Some(lock) = Locked::take(file)? else { return Ok(None) };
        // The holder before us may have removed the file between our opening and locking it; then
        // another could lock a new one of the same name.
        let same =
            fs::metadata(&path).is_ok_and(|now| (ours.dev(), ours.ino()) == (now.dev(), now.ino()));
        // Made only if it is ours: dropping one removes the file.
        Ok(same.then(|| HostUser { id, path, _lock: lock }))
    }

    fn exhausted(&self) -> RuntimeError {
        let Range { start, end } = self.range;
        RuntimeError::Unsupported {
            message: format!("no host user between {start} and {end} is free for the sandbox"),
            hint: "end sandboxes that are no longer needed, or configure a larger range".to_owned(),
        }
    }
}

/// Numbers that mean somebody on this host: users, groups, and ranges lent to users for containers
/// of their own.
#[derive(Debug, Default)]
struct Known(Vec<Range<u64>>);

impl Known {
    fn of_this_host() -> Self {
        let read = |name: &str| match fs::read_to_string(Path::new("/etc").join(name)) {
            Err(e) if e.kind() == ErrorKind::InvalidData => String::new(),
            result => result.unwrap_or_default(),
        };
        let mut known = Self::default();
        known.add_entries(&read("passwd"));
        known.add_entries(&read("group"));
        known.add_lent(&read("subuid"));
        known.add_lent(&read("subgid"));
        known
    }

    /// `name:x:NUMBER:...`, as in passwd and group.
    fn add_entries(&mut self, text: &str) {
        let id = |line: &str| line.split(':').nth(2)?.parse::<u64>().ok();
        self.0.extend(text.lines().filter_map(id).map(|id| id..id + 1));
    }

    /// `name:FIRST:COUNT`, as in subuid and subgid.
    fn add_lent(&mut self, text: &str) {
        let range = |line: &str| {
            let mut fields = line.split(':').skip(1).map(|field| field.parse::<u64>().ok());
            let (first, count) = (fields.next()??, fields.next()??);
            Some(first..first.saturating_add(count))
        };
        self.0.extend(text.lines().filter_map(range));
    }

    fn contains(&self, id: u32) -> bool {
        self.0.iter().any(|range| range.contains(&u64::from(id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(dir: &Path, range: Range<u32>) -> Users {
        Users::new(range, dir.join("users"))
    }

    #[test]
    fn each_gets_a_number_of_its_own_and_gives_it_back() {
        let dir = tempfile::tempdir().unwrap();
        let users = users(dir.path(), 300_000..300_003);
        let taken: Vec<_> = (0..3).map(|_| users.allocate().unwrap()).collect();
        assert_eq!(
            taken.iter().map(HostUser::uid).collect::<Vec<_>>(),
            [300_000, 300_001, 300_002]
        );
        let error = users.allocate().unwrap_err();
        assert!(error.to_string().contains("300000") && error.hint().is_some(), "{error}");
        drop(taken);
        assert_eq!(fs::read_dir(dir.path().join("users")).unwrap().count(), 0);
        assert_eq!(users.allocate().unwrap().ids(), (300_000, 300_000));
    }

    #[test]
    fn a_file_left_by_a_crash_does_not_keep_its_number() {
        let dir = tempfile::tempdir().unwrap();
        let users = users(dir.path(), 300_000..300_001);
        fs::create_dir(dir.path().join("users")).unwrap();
        fs::write(dir.path().join("users/300000"), "").unwrap();
        assert_eq!(users.allocate().unwrap().uid(), 300_000);
    }

    #[test]
    fn files_that_nobody_holds_are_swept_away() {
        let dir = tempfile::tempdir().unwrap();
        let users = users(dir.path(), 300_000..300_010);
        users.sweep();
        let held = users.allocate().unwrap();
        for name in ["300005", "300006", "other", "1"] {
            fs::write(dir.path().join("users").join(name), "").unwrap();
        }
        users.sweep();
        let left = fs::read_dir(dir.path().join("users")).unwrap().flatten();
        let mut left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        left.sort();
        assert_eq!(left, ["1", "300000", "other"]);
        assert_eq!(held.uid(), 300_000);
    }

    #[test]
    fn many_at_once_never_share_a_number() {
        let dir = tempfile::tempdir().unwrap();
        let users = users(dir.path(), 300_000..300_040);
        let held: Vec<HostUser> = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..10).map(|_| take_one(&users)).collect::<Vec<_>>()))
                .collect();
            takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect()
        });
        let mut ids: Vec<u32> = held.iter().map(HostUser::uid).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 40);
    }

    /// Gives some numbers back on the way, to have files come and go.
    #[test]
    fn the_directory_is_for_its_owner_alone_and_no_link_in_it_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (users, locks) = (users(dir.path(), 300_000..300_010), dir.path().join("users"));
        let mode = || fs::metadata(&locks).unwrap().mode() & 0o777;
        drop(users.allocate().unwrap());
        assert_eq!(mode(), 0o700);
        fs::set_permissions(&locks, PermissionsExt::from_mode(0o777)).unwrap();
        drop(users.allocate().unwrap());
        assert_eq!(mode(), 0o700);
        let elsewhere = dir.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, locks.join("300000")).unwrap();
        assert!(users.allocate().is_err());
        assert!(!elsewhere.exists(), "a link was followed");
        fs::remove_dir_all(&locks).unwrap();
        std::os::unix::fs::symlink("/tmp", &locks).unwrap();
        assert!(users.allocate().is_err(), "a link in its place");
    }

    fn take_one(users: &Users) -> HostUser {
        for _ in 0..20 {
            drop(users.allocate());
        }
        loop {
            if let Ok(user) = users.allocate() {
                return user;
            }
        }
    }

    #[test]
    fn numbers_the_host_knows_are_never_given_out() {
        let mut known = Known::default();
        known.add_entries("root:x:0:0::/root:/bin/sh\nanna:x:200001:200001::/:/bin/sh\nbroken\n");
        known.add_lent("anna:165536:65536\nbroken:x\n");
        for id in [0, 200_001, 165_536, 231_071] {
            assert!(known.contains(id), "{id}");
        }
        for id in [1, 231_072, 165_535] {
            assert!(!known.contains(id), "{id}");
        }
    }
}
