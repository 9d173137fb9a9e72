//! Files that outlive the user they were written by.
//!
//! Each start of a sandbox may get another user of the host, and its home and temporary files must be
//! that user's. Whoever wrote them may have planted symlinks anywhere, so nothing is reached by a path:
//! every directory is entered from the descriptor of the one above, and links are given away
//! themselves. Nothing runs in the sandbox meanwhile.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Uid, chownat, fstat, openat};

const ENTER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Gives a directory and everything in it to a user. If the directory is his already, so is the rest:
/// it is given last.
pub(crate) fn give(path: &Path, (uid, gid): (u32, u32)) -> io::Result<()> {
    let root = rustix::fs::open(path, ENTER, Mode::empty())?;
    let stat = fstat(&root)?;
    if (stat.st_uid, stat.st_gid) == (uid, gid) {
        return Ok(());
    }
    let owner = (Uid::from_raw(uid), Gid::from_raw(gid));
    give_all_below(&root, owner)?;
    Ok(rustix::fs::fchown(&root, Some(owner.0), Some(owner.1))?)
}

/// Depth costs descriptors, not stack.
fn give_all_below(root: &OwnedFd, owner: (Uid, Gid)) -> io::Result<()> {
    let mut open = vec![Dir::read_from(root)?];
    while let Some(dir) = open.last_mut() {
        let Some(entry) = dir.read() else {
            open.pop();
            continue;
        };
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let above = dir.fd()?;
        chownat(above, name, Some(owner.0), Some(owner.1), AtFlags::SYMLINK_NOFOLLOW)?;
        if matches!(entry.file_type(), FileType::Directory | FileType::Unknown)
            && let Ok(inner) = openat(above, name, ENTER, Mode::empty())
        {
            open.push(Dir::new(inner)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn everything_in_a_directory_gets_the_owner_and_nothing_outside_does() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can give files away");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let (home, outside) = (place.path().join("home"), place.path().join("outside"));
        std::fs::create_dir_all(home.join("a/b/c")).unwrap();
        std::fs::create_dir_all(outside.join("inner")).unwrap();
        std::fs::write(home.join("a/b/file"), "x").unwrap();
        std::fs::write(outside.join("secret"), "x").unwrap();
        symlink(outside.join("secret"), home.join("link")).unwrap();
        symlink(&outside, home.join("a/directory")).unwrap();
        give(&home, (12345, 12346)).unwrap();
        let owner = |path: &Path| {
            let found = path.symlink_metadata().unwrap();
            (found.uid(), found.gid())
        };
        for inside in ["", "a", "a/b", "a/b/c", "a/b/file", "link", "a/directory"] {
            assert_eq!(owner(&home.join(inside)), (12345, 12346), "{inside}");
        }
        for beside in ["", "secret", "inner"] {
            assert_eq!(owner(&outside.join(beside)), (0, 0), "{beside}");
        }
    }

    #[test]
    fn a_symlink_in_the_place_of_the_directory_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("real")).unwrap();
        symlink(place.path().join("real"), place.path().join("home")).unwrap();
        assert!(give(&place.path().join("home"), (1, 1)).is_err());
    }
}
