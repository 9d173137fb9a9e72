//! Removing a directory with everything in it, whatever modes programs gave to what is there.

use std::ffi::CStr;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, chmod, openat};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::files::reopen;

/// Removes a directory and all below it; that there is none is fine. Symlinks are not followed.
///
/// Who is not root cannot look into a directory of their own that has lost its mode, and so cannot
/// empty it: then all are given their mode back first.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let removed = match std::fs::remove_dir_all(path) {
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            path.into_with_c_str(|path| open_up(CWD, path))?;
            std::fs::remove_dir_all(path)
        }
        removed => removed,
    };
    match removed {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Lets its owner into a directory and all below it.
fn open_up(parent: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = match openat(parent, name, flags, Mode::empty()) {
        // Some filesystems do not say in a listing what an entry is.
        Err(Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        found => found?,
    };
    // The descriptor leads to the directory itself, whatever has its name by now.
    chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), Mode::RWXU)?;
    let dir = reopen(&found, OFlags::RDONLY | OFlags::DIRECTORY)?;
    for entry in Dir::read_from(&dir)? {
        let entry = entry?;
        let may_be_dir = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
        if may_be_dir && ![c".", c".."].contains(&entry.file_name()) {
            open_up(dir.as_fd(), entry.file_name())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// Root may look into everything, so what others need is asked for directly.
    #[test]
    fn directories_without_a_mode_are_opened_up_and_links_left_alone() {
        let all = tempfile::tempdir().unwrap();
        let (tree, other) = (all.path().join("tree"), all.path().join("other"));
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(tree.join("a/b/file"), "").unwrap();
        symlink(&other, tree.join("a/link")).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        for dir in [&tree.join("a/b"), &tree.join("a"), &other] {
            fs::set_permissions(dir, Permissions::from_mode(0o000)).unwrap();
        }
        tree.as_path().into_with_c_str(|path| open_up(CWD, path)).unwrap();
        assert_eq!([mode(&tree), mode(&tree.join("a")), mode(&tree.join("a/b"))], [0o700; 3]);
        assert_eq!(mode(&other), 0, "what a link leads to");
        remove_tree(&tree).unwrap();
        assert!(!tree.exists() && other.exists());
        remove_tree(&tree).unwrap();
        fs::set_permissions(&other, Permissions::from_mode(0o700)).unwrap();
    }
}
