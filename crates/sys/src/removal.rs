//! Removing a directory with everything in it, whatever modes programs gave to what is there.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, Mode, OFlags, chmod, fstat, mkdirat, openat, renameat, unlinkat,
};
use rustix::io::{Errno, Result};
use rustix::path::Arg;

use crate::files::reopen;

/// Names that are read before those entries are removed: a directory can have millions.
const BATCH: usize = 1024;

/// Removes a directory and all below it; that there is none is fine. Symlinks are not followed.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    Ok(path.into_with_c_str(|path| remove_tree_at(CWD, path))?)
}

/// The same for the entry `name` of a directory.
///
/// Programs can make trees that are deeper than any path is long, than there is stack to follow them
/// and than descriptors can be open. So nothing is followed: a directory that is found is moved to
/// the top, and emptied there.
///
/// Who is not root cannot look into a directory of their own that has lost its mode, and so cannot
/// empty it: it is given its mode back first.
pub fn remove_tree_at(parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    let top = match open_up(parent, name) {
        Err(Errno::NOENT) => return Ok(()),
        top => top?,
    };
    let gathered = Gathered::make(&top)?;
    let mut last = gathered.empty(&top, Some(&gathered.name), 0)?;
    let mut next = 0;
    while next < last {
        let name = number(next);
        last = gathered.empty(&open_up(gathered.dir.as_fd(), &name)?, None, last)?;
        unlinkat(&gathered.dir, &name, AtFlags::REMOVEDIR)?;
        next += 1;
    }
    unlinkat(&top, &gathered.name, AtFlags::REMOVEDIR)?;
    unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// The directory of those that are still to be emptied, below the one that is removed.
struct Gathered {
    dir: OwnedFd,
    name: CString,
}

impl Gathered {
    fn make(top: &OwnedFd) -> Result<Self> {
        // What is there may have any name.
        for attempt in 0u64.. {
            let name = number(attempt);
            match mkdirat(top, &name, Mode::RWXU) {
                Err(Errno::EXIST) => {}
                made => {
                    made?;
                    return Ok(Self { dir: open_up(top.as_fd(), &name)?, name });
                }
            }
        }
        Err(Errno::EXIST)
    }

    /// Removes all entries of a directory but `keep`, and gathers the directories among them. Those
    /// have the numbers from `last` on; returns the next one that is free.
    fn empty(&self, dir: &OwnedFd, keep: Option<&CStr>, mut last: u64) -> Result<u64> {
        loop {
            let names = some_of(dir, keep)?;
            if names.is_empty() {
                return Ok(last);
            }
            for name in names {
                match unlinkat(dir, &name, AtFlags::empty()) {
                    Err(Errno::ISDIR) => {
                        self.gather(dir, &name, last)?;
                        last += 1;
                    }
                    Err(Errno::NOENT) => {}
                    removed => removed?,
                }
            }
        }
    }

    fn gather(&self, from: &OwnedFd, name: &CStr, place: u64) -> Result<()> {
        let to = number(place);
        match renameat(from, name, &self.dir, &to) {
            // A directory that changes its parent is written to.
            Err(Errno::ACCESS) => {
                open_up(from.as_fd(), name)?;
                renameat(from, name, &self.dir, &to)
            }
            moved => moved,
        }
    }
}

/// Some entries of a directory other than `keep`: from the start each time, for what was read before
/// is gone by now.
fn some_of(dir: &OwnedFd, keep: Option<&CStr>) -> Result<Vec<CString>> {
    let entries = Dir::read_from(reopen(dir, OFlags::RDONLY | OFlags::DIRECTORY)?)?;
    let name = |entry: Result<rustix::fs::DirEntry>| Ok(entry?.file_name().to_owned());
    let stays = |name: &CStr| [Some(c"."), Some(c".."), keep].contains(&Some(name));
    let goes = |name: &Result<CString>| !name.as_ref().is_ok_and(|name| stays(name));
    entries.map(name).filter(goes).take(BATCH).collect()
}

fn number(number: u64) -> CString {
    CString::new(number.to_string()).unwrap_or_default()
}

/// Opens a directory, which its owner may read and change from then on.
fn open_up(parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = openat(parent, name, flags, Mode::empty())?;
    if !Mode::from_raw_mode(fstat(&found)?.st_mode).contains(Mode::RWXU) {
        // The descriptor leads to the directory itself, whatever has its name by now.
        chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), Mode::RWXU)?;
    }
    reopen(&found, OFlags::RDONLY | OFlags::DIRECTORY)
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
        for dir in [&tree.join("a"), &tree.join("a/b")] {
            dir.as_path().into_with_c_str(|path| open_up(CWD, path)).unwrap();
            assert_eq!(mode(dir), 0o700);
        }
        let link = tree.join("a/link");
        assert!(link.as_path().into_with_c_str(|path| open_up(CWD, path)).is_err());
        assert_eq!(mode(&other), 0, "what a link leads to");
        remove_tree(&tree).unwrap();
        assert!(!tree.exists() && other.exists());
        remove_tree(&tree).unwrap();
        fs::set_permissions(&other, Permissions::from_mode(0o700)).unwrap();
    }

    /// Deeper than a path, a stack or the open files of a process allow.
    #[test]
    fn a_tree_without_end_is_removed() {
        let all = tempfile::tempdir().unwrap();
        let tree = all.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let mut here = OwnedFd::from(fs::File::open(&tree).unwrap());
        for _ in 0..20_000 {
            mkdirat(&here, c"d", Mode::RWXU).unwrap();
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            here = openat(&here, c"d", flags, Mode::empty()).unwrap();
        }
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
    }

    #[test]
    fn names_like_those_it_gives_and_more_than_it_reads_at_once_are_removed() {
        let all = tempfile::tempdir().unwrap();
        let tree = all.path().join("tree");
        for number in 0..5 {
            fs::create_dir_all(tree.join(format!("{number}/{number}/0"))).unwrap();
        }
        for number in 0..3 * BATCH {
            fs::write(tree.join(format!("1/{number}.txt")), "").unwrap();
        }
        // Whatever it calls its own directory, others below have that name.
        for number in 0..20 {
            fs::create_dir_all(tree.join(format!("4/{number}/{number}"))).unwrap();
        }
        symlink("/", tree.join("5")).unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
    }
}
