//! Directories of one process alone. Whose process ends in order takes its own away; those of
//! killed ones are told by a lock that nobody holds.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringfence_link::socket::LONGEST;
use ringfence_sys::files::Locked;
use ringfence_sys::removal::remove_tree;

use crate::failure::Failure;

/// What `statfs` says of a tmpfs.
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// A process's own directory, with the greatest number that one can have.
const LONGEST_NAME: &str = "4194304-0123456789abcdef";
const SOCKET: &str = "api.sock";

/// A directory that nobody else has. It goes with this.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) dir: PathBuf,
    _lock: Locked,
}

impl Place {
    /// Where what is gone with a restart belongs. What others have left there is swept.
    pub(crate) fn fleeting(state: &Path) -> Result<Self, Failure> {
        let mut last = None;
        for all in candidates(state) {
            match Self::make_in(&all) {
                Ok(place) => {
                    left(&all).iter().for_each(|dir| drop(remove_tree(dir)));
                    return Ok(place);
                }
                Err(e) => last = Some((all, e)),
            }
        }
        let (all, e) = last.unwrap_or_else(|| (state.into(), ErrorKind::NotFound.into()));
        Err(unusable(&all, &e))
    }

    /// One among others of its kind.
    pub(crate) fn among(all: &Path) -> Result<Self, Failure> {
        Self::make_in(all).map_err(|e| unusable(all, &e))
    }

    /// Where to listen, if the path is not too long for that.
    pub(crate) fn socket(&self) -> Option<PathBuf> {
        has_room(&self.dir).then(|| self.dir.join(SOCKET))
    }

    fn make_in(all: &Path) -> io::Result<Self> {
        make_private_dir(all)?;
        check_owner(all)?;
        let dir = all.join(format!("{}-{}", std::process::id(), random()?));
        fs::DirBuilder::new().mode(0o700).create(&dir)?;
        // Held before it can be found.
        let new = dir.join("own.new");
        let lock = Locked::take(fs::File::create(&new)?)?.ok_or(ErrorKind::WouldBlock)?;
        fs::rename(new, dir.join("own"))?;
        Ok(Self { dir, _lock: lock })
    }
}

/// Whether a socket in this directory has a path that the kernel has room for.
fn has_room(dir: &Path) -> bool {
    dir.join(SOCKET).as_os_str().len() <= LONGEST
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = remove_tree(&self.dir);
    }
}

fn unusable(all: &Path, e: &io::Error) -> Failure {
    Failure::bad_input(format!("cannot use {}: {e}", all.display()))
        .hint("name a directory with --state DIR or RINGFENCE_STATE")
}

/// What is in memory anyway if there is such a place, then the state directory; if the path of a
/// socket would be too long there, where everybody has directories.
fn candidates(state: &Path) -> Vec<PathBuf> {
    let in_memory =
        |dir: &PathBuf| rustix::fs::statfs(dir.as_path()).is_ok_and(|fs| fs.f_type == TMPFS_MAGIC);
    let fleeting = match rustix::process::geteuid().is_root() {
        true => ["/run", "/dev/shm"].map(PathBuf::from).into_iter().find(in_memory),
        false => std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
    };
    let fleeting =
        fleeting.filter(|dir| dir.is_absolute()).map(|dir| dir.join("ringfence-private"));
    let user = rustix::process::geteuid().as_raw();
    let shared = std::env::temp_dir().join(format!("ringfence-private-{user}"));
    let all = fleeting.into_iter().chain([state.join("private"), shared]);
    all.filter(|all| has_room(&all.join(LONGEST_NAME))).collect()
}

/// Somebody else may have been there first where everybody may make directories.
fn check_owner(dir: &Path) -> io::Result<()> {
    let data = dir.symlink_metadata()?;
    let own = data.is_dir() && data.uid() == rustix::process::geteuid().as_raw();
    match own && data.mode() & 0o022 == 0 {
        true => Ok(()),
        false => Err(ErrorKind::PermissionDenied.into()),
    }
}

/// Those whose processes were killed.
pub(crate) fn left(all: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(all).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|dir| is_left(dir)).collect()
}

/// One that is being made has no lock yet, and one that is going has none any more.
fn is_left(dir: &Path) -> bool {
    match fs::File::open(dir.join("own")) {
        Ok(file) => !Locked::is_held(&file),
        Err(e) => e.kind() == ErrorKind::NotFound && is_old(dir),
    }
}

fn is_old(dir: &Path) -> bool {
    let age = fs::metadata(dir).and_then(|data| data.modified()).ok();
    age.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > Duration::from_secs(60))
}

fn random() -> io::Result<String> {
    let mut bytes = [0u8; 8];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

pub(crate) fn make_private_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).recursive(true).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_others_can_change_is_not_used() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let all = tempfile::tempdir().unwrap();
        let [own, open, link] = ["own", "open", "link"].map(|name| all.path().join(name));
        Place::make_in(&own).unwrap();
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Place::make_in(&open).is_err());
        symlink(&own, &link).unwrap();
        assert!(Place::make_in(&link).is_err());
    }

    #[test]
    fn a_fleeting_place_has_room_for_a_socket_wherever_the_state_is() {
        let state = Path::new("/").join("d".repeat(LONGEST));
        let all = candidates(&state);
        assert!(!all.is_empty() && !all.contains(&state.join("private")), "{all:?}");
    }

    #[test]
    fn a_place_goes_with_its_owner_and_is_left_if_that_was_killed() {
        let all = tempfile::tempdir().unwrap();
        let kept = Place::make_in(all.path()).unwrap();
        let killed = all.path().join("1-0");
        fs::create_dir(&killed).unwrap();
        fs::write(killed.join("own"), "").unwrap();
        fs::create_dir(all.path().join("2-0")).unwrap();
        assert_eq!(left(all.path()), [killed], "neither one in use nor one that is being made");
        let dir = kept.dir.clone();
        drop(kept);
        assert!(!dir.exists());
    }
}
