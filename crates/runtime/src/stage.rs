//! What init will see beside the host's programs, put together in one place.
//!
//! bwrap runs as the sandbox's own user and has to walk to everything it binds. The real
//! directories may lie below one that only their owner can enter. So each of them is bound into a
//! small filesystem that everybody can walk, which exists only in the caller's private mount
//! namespace: it and all binds vanish with it, however the caller ends.
//!
//! ```text
//! PLACE/workspace home tmp init   what the caller gives
//! PLACE/etc                       see `etc`
//! PLACE/paths/0 1 2 ...           further read-only paths
//! ```

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use ringfence_sys::mounts::{detach, readonly_clone};
use rustix::fs::CWD;
use rustix::mount::{MountFlags, MoveMountFlags, mount, mount_bind_recursive, move_mount};

use crate::etc::{Etc, FROM_HOST, KEYS, WITHOUT_KEYS, hostname, resolver};
use crate::{RuntimeError, Start};

/// Where root puts the stage.
pub const PLACE: &str = "/run/ringfence";

/// Copies of small files; nothing of the sandbox is written here.
const SIZE: &str = "mode=0755,size=16m,nr_inodes=4096";

/// A file of `/etc` larger than this is no configuration.
const LARGEST_COPY: u64 = 4 << 20;

/// Mounted by us inside: a path to show there may be neither one of these nor above one.
const TAKEN: [&str; 12] = [
    "/etc",
    "/proc",
    "/sys",
    "/dev",
    "/run/ringfence",
    "/workspace",
    "/home/user",
    "/tmp",
    "/var/tmp",
    "/usr",
    "/bin",
    "/lib",
];
/// And nothing below these.
const CLOSED: [&str; 5] = ["/proc", "/sys", "/dev", "/run/ringfence", "/workspace"];

/// A stage that is set up. Dropping it leaves the mounts to the end of the mount namespace; what
/// bwrap has bound from here lives on either way.
#[derive(Debug)]
pub struct Stage {
    at: PathBuf,
    read_only: Vec<(PathBuf, PathBuf)>,
}

impl Stage {
    /// Covers `at` with the stage. The mount namespace must be private, or the host would see it.
    pub fn build(start: &Start, at: &Path) -> Result<Self, RuntimeError> {
        start.read_only.iter().try_for_each(|path| may_show(path))?;
        cover(at).map_err(|e| RuntimeError::io(format!("prepare {}", at.display()), e))?;
        let mut stage = Self { at: at.to_owned(), read_only: Vec::new() };
        let filled = stage.fill(start);
        if filled.is_err() {
            stage.take_down();
        }
        filled.map(|()| stage)
    }

    fn fill(&mut self, start: &Start) -> Result<(), RuntimeError> {
        let given = [("workspace", &start.workspace), ("home", &start.home), ("tmp", &start.tmp)];
        for (name, source) in given {
            self.show(source, name, bind_directory)?;
        }
        self.show(&start.init, "init", bind_read_only)?;
        self.write_etc(start).map_err(|e| RuntimeError::io("prepare /etc", e))?;
        start.read_only.iter().try_for_each(|path| self.add_read_only(path))
    }

    pub fn path(&self) -> &Path {
        &self.at
    }

    /// Where each further path is on the stage, and where it is to be seen inside. Those in `/etc`
    /// are part of that already.
    pub fn read_only(&self) -> &[(PathBuf, PathBuf)] {
        &self.read_only
    }

    /// Unmounts the stage; what was bound from it elsewhere stays.
    pub fn take_down(&self) {
        // With the namespace it would vanish anyway.
        let _ = detach(&self.at);
    }

    fn show(
        &self,
        source: &Path,
        name: &str,
        bind: fn(&Path, &Path) -> io::Result<()>,
    ) -> Result<(), RuntimeError> {
        let failed = |e| RuntimeError::io(format!("show {} inside", source.display()), e);
        bind(source, &self.at.join(name)).map_err(failed)
    }

    fn write_etc(&self, start: &Start) -> io::Result<()> {
        let etc = self.at.join("etc");
        make_dir(&etc)?;
        let resolver = resolver(start.network, Path::new("/etc/resolv.conf"));
        let hostname = hostname(&start.id);
        for (name, text) in (Etc { hostname: &hostname, resolver: &resolver }).files() {
            write_file(&etc.join(name), text.as_bytes())?;
        }
        copy_host(Path::new("/etc"), &etc)
    }

    fn add_read_only(&mut self, path: &Path) -> Result<(), RuntimeError> {
        if let Ok(below) = path.strip_prefix("/etc") {
            return self.add_to_etc(path, below);
        }
        let name = format!("paths/{}", self.read_only.len());
        let parent = make_dirs(&self.at.join("paths"));
        parent.map_err(|e| RuntimeError::io("prepare the read-only paths", e))?;
        self.show(path, &name, bind_read_only)?;
        self.read_only.push((self.at.join(name), path.to_owned()));
        Ok(())
    }

    fn add_to_etc(&self, path: &Path, below: &Path) -> Result<(), RuntimeError> {
        let target = self.at.join("etc").join(below);
        if target.symlink_metadata().is_ok() {
            return Ok(());
        }
        let failed = |e| RuntimeError::io(format!("show {} inside", path.display()), e);
        make_dirs(target.parent().unwrap_or(&self.at)).map_err(failed)?;
        bind_read_only(path, &target).map_err(failed)
    }
}

/// Refuses what would cover our own mounts, and what is not there.
pub(crate) fn may_show(path: &Path) -> Result<(), RuntimeError> {
    let refuse = |why: &str, hint: &str| {
        let message = format!("{} cannot be shown inside: {why}", path.display());
        Err(RuntimeError::Refused { message, hint: hint.to_owned() })
    };
    let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    if !path.is_absolute() || !path.components().all(plain) {
        return refuse("it is not an absolute path without '..'", "write the path in full");
    }
    if TAKEN.iter().any(|taken| Path::new(taken).starts_with(path))
        || CLOSED.iter().any(|closed| path.starts_with(closed))
    {
        return refuse("the sandbox has its own", "name the directory that is needed below it");
    }
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() || meta.is_file() => Ok(()),
        Ok(_) => refuse("it is neither a file nor a directory", "name a file or directory"),
        Err(e) => refuse(&e.to_string(), "check the path"),
    }
}

fn cover(at: &Path) -> io::Result<()> {
    make_dirs(at)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let options = std::ffi::CString::new(SIZE)?;
    Ok(mount("ringfence", at, "tmpfs", flags, options.as_c_str())?)
}

/// Does not ask what the source is. It may be a filesystem that this very process serves: killed
/// while it waits for its own answer, it could never end.
fn bind_directory(source: &Path, target: &Path) -> io::Result<()> {
    make_dir(target)?;
    Ok(mount_bind_recursive(source, target)?)
}

/// Read-only in this namespace already, so that no mistake in an argument of bwrap can undo it.
fn bind_read_only(source: &Path, target: &Path) -> io::Result<()> {
    make_target(source, target)?;
    match readonly_clone(source) {
        Ok(tree) => {
            let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
            Ok(move_mount(tree.as_fd(), "", CWD, target, flags)?)
        }
        // Kernels before 5.12 cannot; there bwrap makes it read-only.
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::NOSYS.raw_os_error()) => {
            Ok(mount_bind_recursive(source, target)?)
        }
        Err(e) => Err(e),
    }
}

/// A directory is bound on a directory, anything else on a file.
fn make_target(source: &Path, target: &Path) -> io::Result<()> {
    match fs::metadata(source)?.is_dir() {
        true => make_dir(target),
        false => write_file(target, b""),
    }
}

/// With these permissions whatever the umask: another user has to walk here.
fn make_dir(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o755))
}

fn make_dirs(path: &Path) -> io::Result<()> {
    match make_dir(path) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            make_dirs(path.parent().ok_or(e)?)?;
            make_dirs(path)
        }
        result => result,
    }
}

fn write_file(path: &Path, content: &[u8]) -> io::Result<()> {
    fs::write(path, content)?;
    fs::set_permissions(path, Permissions::from_mode(0o644))
}

/// The part of the host's `/etc` that is shown.
fn copy_host(host: &Path, etc: &Path) -> io::Result<()> {
    for name in FROM_HOST {
        show_entry(&host.join(name), &etc.join(name))?;
    }
    for name in WITHOUT_KEYS {
        show_entries(&host.join(name), &etc.join(name))?;
    }
    Ok(())
}

fn show_entries(host: &Path, target: &Path) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(host) else { return Ok(()) };
    make_dirs(target)?;
    for entry in entries {
        let name = entry?.file_name();
        if !KEYS.iter().any(|key| OsStr::new(key) == name) {
            show_entry(&host.join(&name), &target.join(&name))?;
        }
    }
    Ok(())
}

/// Shows a file, directory or symlink of the host. What is absent or may not be read by the caller
/// is left out: none of it is needed to run, and it would not be readable inside either.
fn show_entry(host: &Path, target: &Path) -> io::Result<()> {
    let Ok(meta) = host.symlink_metadata() else { return Ok(()) };
    if let Some(parent) = target.parent() {
        make_dirs(parent)?;
    }
    let everybody = meta.permissions().mode() & 0o4 != 0;
    match meta.file_type() {
        kind if kind.is_symlink() => symlink(fs::read_link(host)?, target),
        kind if kind.is_dir() && everybody => bind_read_only(host, target),
        kind if kind.is_file() && everybody && meta.len() <= LARGEST_COPY => {
            write_file(target, &fs::read(host)?)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_would_cover_ours_are_refused() {
        for path in [
            "/",
            "/etc",
            "/home",
            "/home/user",
            "/run",
            "/var",
            "/tmp",
            "/proc/1",
            "/sys/kernel",
            "/dev/null",
            "/workspace/x",
            "/run/ringfence/init",
            "relative",
            "/opt/../etc",
            "/usr",
        ] {
            let error = may_show(Path::new(path)).unwrap_err();
            assert!(matches!(error, RuntimeError::Refused { .. }), "{path}");
            assert!(error.to_string().starts_with(path), "{error}");
        }
    }

    #[test]
    fn a_path_that_is_not_there_is_named() {
        let error = may_show(Path::new("/nonexistent/tool")).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/tool") && error.contains("No such file"), "{error}");
    }

    #[test]
    fn ordinary_paths_may_be_shown() {
        let dir = tempfile::tempdir().unwrap();
        assert!(may_show(dir.path()).is_ok());
        for path in ["/usr/share", "/etc/hostname"] {
            assert!(may_show(Path::new(path)).is_ok(), "{path}");
        }
    }

    #[test]
    fn keys_and_private_files_are_left_out() {
        let (host, etc) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| host.path().join(name);
        fs::create_dir_all(at("ssl/private")).unwrap();
        fs::write(at("ssl/private/key.pem"), "secret").unwrap();
        fs::write(at("ssl/openssl.cnf"), "config").unwrap();
        fs::write(at("ssl/own.key"), "secret").unwrap();
        fs::set_permissions(at("ssl/own.key"), Permissions::from_mode(0o600)).unwrap();
        fs::write(at("shadow"), "secret").unwrap();
        fs::write(at("timezone"), "Etc/UTC\n").unwrap();
        symlink("/usr/share/zoneinfo/Etc/UTC", at("localtime")).unwrap();
        copy_host(host.path(), etc.path()).unwrap();
        let shown = |name: &str| etc.path().join(name).symlink_metadata().is_ok();
        assert!(shown("ssl/openssl.cnf") && shown("timezone") && shown("localtime"));
        assert!(!shown("ssl/private") && !shown("ssl/own.key") && !shown("shadow"));
    }
}
