//! Who one is inside: the image does not know the sandbox's user.

use std::fs::{self, Permissions};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ringfence_sys::files::reopen;
use ringfence_sys::mounts::{attach_elsewhere, readonly_clone};
use ringfence_sys::spawn::Child;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};

use crate::etc::{HOME, USER};

/// A file of an image larger than this is no list of users.
const LARGEST: u64 = 1 << 20;

/// Adds the sandbox's user to the image's lists of users and groups, where it has them. The image is
/// not changed: a file of the sandbox covers each. One of its own is called as it says, if it does.
pub(super) fn introduce(
    dir: &Path,
    child: &Child,
    (uid, gid): (u32, u32),
    its_own: bool,
) -> io::Result<()> {
    let root = fs::File::open(format!("/proc/{}/root", child.pid.as_raw_pid()))?.into();
    let etc = dir.join("etc");
    let _ = fs::create_dir(&etc);
    let user = format!("{USER}:x:{uid}:{gid}:{USER}:{HOME}:/bin/sh");
    let group = format!("{USER}:x:{gid}:");
    for (name, path, line) in [("passwd", c"/etc/passwd", user), ("group", c"/etc/group", group)] {
        let file = etc.join(name);
        fs::write(&file, with(&read(&root, name)?, &line, its_own))?;
        fs::set_permissions(&file, Permissions::from_mode(0o644))?;
        attach_elsewhere(readonly_clone(&file)?, &child.pidfd, path)?;
    }
    Ok(())
}

/// No link of the image leads out of it, and no device of it is opened.
fn read(root: &OwnedFd, name: &str) -> io::Result<String> {
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = openat2(root, format!("etc/{name}"), flags, Mode::empty(), inside)?;
    if FileType::from_raw_mode(fstat(&found)?.st_mode) != FileType::RegularFile {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    let file = fs::File::from(reopen(&found, OFlags::RDONLY)?);
    file.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The first line with a name or number is the one that is found by it.
fn with(text: &str, line: &str, last: bool) -> String {
    match last {
        true if text.is_empty() || text.ends_with('\n') => format!("{text}{line}\n"),
        true => format!("{text}\n{line}\n"),
        false => format!("{line}\n{text}"),
    }
}

/// The user that an image names, if it does so by numbers. Nobody is root.
pub(super) fn numbers(user: &str) -> Option<(u32, u32)> {
    match user.split_once(':') {
        None if matches!(user, "" | "0" | "root") => Some((0, 0)),
        None => None,
        Some((uid, gid)) => Some((uid.parse().ok()?, gid.parse().ok()?)),
    }
}

/// What the user is called that an image names, if it does so by a name.
pub(super) fn name(user: &str) -> Option<&str> {
    match user.split(':').next() {
        None | Some("" | "0") => Some("root"),
        Some(uid) if uid.bytes().all(|byte| byte.is_ascii_digit()) => None,
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_images_are_known_by_numbers_and_names() {
        for (user, ids, called) in [
            ("", Some((0, 0)), Some("root")),
            ("root", Some((0, 0)), Some("root")),
            ("1000:100", Some((1000, 100)), None),
            ("1000", None, None),
            ("app", None, Some("app")),
            ("app:100", None, Some("app")),
            ("99999999999:1", None, None),
        ] {
            assert_eq!((numbers(user), name(user)), (ids, called), "{user:?}");
        }
    }

    #[test]
    fn a_user_is_added_before_others_or_after_them() {
        assert_eq!(with("a:\n", "u:", false), "u:\na:\n");
        assert_eq!(with("a:\n", "u:", true), "a:\nu:\n");
        assert_eq!(with("a:", "u:", true), "a:\nu:\n");
        assert_eq!(with("", "u:", true), "u:\n");
    }
}
