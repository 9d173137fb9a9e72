//! Which cgroup hierarchies exist and where this process is in them, read from the texts of
//! `/proc/self/mountinfo` and `/proc/self/cgroup`. Nothing here touches a file.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    V1,
    V2,
}

/// A mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    pub version: Version,
    /// For version 1 only; which ones a version 2 group has is asked at the group.
    pub controllers: Vec<String>,
    pub mount: PathBuf,
    /// This process's own group, as a path below the mount.
    pub own: PathBuf,
}

struct Mount {
    version: Version,
    root: PathBuf,
    at: PathBuf,
    options: Vec<String>,
}

/// All hierarchies this process is in that are mounted, each once.
pub fn hierarchies(mountinfo: &str, own_groups: &str) -> Vec<Hierarchy> {
    let mounts: Vec<Mount> = mountinfo.lines().filter_map(mount).collect();
    own_groups.lines().filter_map(|line| hierarchy(line, &mounts)).collect()
}

/// A line of mountinfo: `31 23 0:28 ROOT AT OPTIONS [TAG]... - TYPE SOURCE SUPER_OPTIONS`.
fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut kind = after.split(' ');
    let version = match kind.next()? {
        "cgroup" => Version::V1,
        "cgroup2" => Version::V2,
        _ => return None,
    };
    let mut place = before.split(' ').skip(3);
    Some(Mount {
        version,
        root: unescaped(place.next()?),
        at: unescaped(place.next()?),
        options: kind.nth(1)?.split(',').map(str::to_owned).collect(),
    })
}

/// Blanks, tabs, newlines and backslashes are written as three octal digits.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let octal = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escape = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (first, escape) {
            (b'\\', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// A line of `/proc/self/cgroup`: `4:cpu,cpuacct:/path`, and `0::/path` for version 2.
fn hierarchy(line: &str, mounts: &[Mount]) -> Option<Hierarchy> {
    let mut fields = line.splitn(3, ':');
    let (number, names, path) = (fields.next()?, fields.next()?, fields.next()?);
    let version = if number == "0" && names.is_empty() { Version::V2 } else { Version::V1 };
    let controllers: Vec<String> =
        names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    if version == Version::V1 && names.starts_with("name=") {
        return None;
    }
    let mount = mounts.iter().find(|mount| {
        mount.version == version && controllers.iter().all(|name| mount.options.contains(name))
    })?;
    let own = own_below(&mount.root, Path::new(path));
    Some(Hierarchy { version, controllers, mount: mount.at.clone(), own })
}

/// In a container the mount may begin in the middle of the hierarchy. What lies outside of it
/// cannot be named; the mount itself is then the nearest.
fn own_below(root: &Path, path: &Path) -> PathBuf {
    let above = |path: &Path| path.components().any(|part| part.as_os_str() == "..");
    match path.strip_prefix(root) {
        Ok(below) if !above(below) => below.to_owned(),
        _ => PathBuf::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(mountinfo: &str, own: &str) -> Vec<String> {
        let line = |h: &Hierarchy| {
            let names = h.controllers.join(",");
            format!("{:?} {names} {} {}", h.version, h.mount.display(), h.own.display())
        };
        hierarchies(mountinfo, own).iter().map(line).collect()
    }

    #[test]
    fn separate_controllers_beside_an_empty_version_2() {
        let mounts = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
        let own = "9:name=systemd:/\n4:memory:/process_api/0acf\n2:cpuacct:/\n1:cpu:/\n0::/\n";
        assert_eq!(
            show(mounts, own),
            [
                "V1 memory /sys/fs/cgroup/memory process_api/0acf",
                "V1 cpuacct /sys/fs/cgroup/cpuacct ",
                "V1 cpu /sys/fs/cgroup/cpu ",
                "V2  /sys/fs/cgroup/unified ",
            ]
        );
    }

    #[test]
    fn a_systemd_host_with_version_2_only() {
        let mounts = "\
24 30 0:22 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
";
        let own = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope\n";
        let place = "user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope";
        assert_eq!(show(mounts, own), [format!("V2  /sys/fs/cgroup {place}")]);
    }

    #[test]
    fn a_host_with_version_1_only_and_joined_controllers() {
        let mounts = "\
30 24 0:26 / /sys/fs/cgroup/systemd rw,nosuid shared:10 - cgroup cgroup rw,xattr,name=systemd
33 24 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:13 - cgroup cgroup rw,cpu,cpuacct
34 24 0:30 / /sys/fs/cgroup/memory rw,nosuid shared:14 - cgroup cgroup rw,memory
";
        let own = "\
11:cpu,cpuacct:/user.slice
8:memory:/user.slice/user-0.slice/session-3.scope
1:name=systemd:/user.slice/user-0.slice/session-3.scope
";
        assert_eq!(
            show(mounts, own),
            [
                "V1 cpu,cpuacct /sys/fs/cgroup/cpu,cpuacct user.slice",
                "V1 memory /sys/fs/cgroup/memory user.slice/user-0.slice/session-3.scope",
            ]
        );
    }

    #[test]
    fn a_container_whose_mount_begins_at_its_own_group() {
        let mounts = "735 734 0:31 /docker/4f2a ro,nosuid - cgroup cgroup rw,memory
736 734 0:32 /docker/4f2a /sys/fs/cgroup/pids ro,nosuid master:12 - cgroup cgroup rw,pids
";
        let broken_line_is_skipped = show(mounts, "9:pids:/docker/4f2a\n4:memory:/docker/4f2a\n");
        assert_eq!(broken_line_is_skipped[0], "V1 pids /sys/fs/cgroup/pids ");
    }

    #[test]
    fn a_namespace_in_which_the_own_group_lies_outside() {
        let mounts = "735 734 0:31 /../.. /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        assert_eq!(show(mounts, "0::/\n"), ["V2  /sys/fs/cgroup "]);
        let mounts = "735 734 0:31 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        assert_eq!(show(mounts, "0::/../other\n"), ["V2  /sys/fs/cgroup "]);
    }

    #[test]
    fn nothing_mounted_is_nothing_found() {
        assert!(show("27 1 254:0 / / rw - ext4 /dev/vda rw\n", "0::/\n1:cpu:/\n").is_empty());
        assert!(show("", "").is_empty());
    }

    #[test]
    fn blanks_in_a_mount_point_are_unescaped() {
        let mounts = "41 31 0:38 / /mnt/my\\040groups\\134x rw - cgroup2 cgroup2 rw\n";
        assert_eq!(show(mounts, "0::/\n"), ["V2  /mnt/my groups\\x "]);
    }
}
