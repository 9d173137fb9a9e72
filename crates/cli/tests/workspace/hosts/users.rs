use std::fs;
use std::os::unix::fs::PermissionsExt;

use device_lock::DeviceLock;

use super::site::{Site, User, fill, holds};
use crate::support::{require, require_fuse, require_root};

/// `/dev/fuse` opened to everybody for as long as this exists, also when the test fails.
struct OpenDevice {
    mode: u32,
    _lock: DeviceLock,
}

impl OpenDevice {
    fn new() -> Self {
        let _lock = DeviceLock::take();
        let mode = device_mode();
        set_device_mode(mode | 0o666);
        Self { mode, _lock }
    }
}

impl Drop for OpenDevice {
    fn drop(&mut self) {
        set_device_mode(self.mode);
    }
}

fn device_mode() -> u32 {
    fs::metadata("/dev/fuse").unwrap().permissions().mode() & 0o777
}

fn set_device_mode(mode: u32) {
    fs::set_permissions("/dev/fuse", fs::Permissions::from_mode(mode)).unwrap();
}

/// The mode of the device is the machine's: one test at a time, of this run and of any other.
mod device_lock {
    use std::fs::File;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use rustix::fs::{FlockOperation, flock};

    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    pub(super) struct DeviceLock {
        _file: File,
        _guard: MutexGuard<'static, ()>,
    }

    impl DeviceLock {
        pub(super) fn take() -> Self {
            let guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
            let path = std::env::temp_dir().join("ringfence-test-device.lock");
            let file = File::options().create(true).append(true).open(path).unwrap();
            flock(&file, FlockOperation::LockExclusive).unwrap();
            Self { _file: file, _guard: guard }
        }
    }
}

fn has_namespaces() -> bool {
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new("unshare");
    command.args(["-Urm", "true"]).uid(super::site::NOBODY).gid(super::site::NOBODY);
    command.output().is_ok_and(|output| output.status.success())
}

macro_rules! require_namespaces {
    () => {
        require!(has_namespaces(), "user namespaces for ordinary users")
    };
}

fn filled(user: User) -> Site {
    let site = Site::new(user);
    fill(&site.path("base"));
    site
}

#[test]
fn root_gets_a_workspace_that_holds() {
    require_fuse!();
    require_root!();
    holds(filled(User::Root));
    holds(filled(User::Root).args(&["--no-passthrough"]));
}

#[test]
fn a_device_closed_to_users_is_named_together_with_the_command_that_opens_it() {
    require_fuse!();
    require_root!();
    let _lock = DeviceLock::take();
    if device_mode() & 0o006 == 0o006 {
        return;
    }
    for user in [User::Plain, User::Namespace] {
        let site = filled(user);
        site.prepare("chown -R 65534:65534 base mnt store");
        let output = site.command().output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains("/dev/fuse"), "{errors}");
        assert!(errors.contains("chmod 666 /dev/fuse"), "{errors}");
        assert!(errors.starts_with("error: ") && errors.lines().count() <= 2, "{errors}");
        assert!(!site.path("store/layer").exists(), "a layer was made for nothing");
    }
}

#[test]
fn an_ordinary_user_mounts_through_fusermount() {
    require_fuse!();
    require_root!();
    let _device = OpenDevice::new();
    holds(filled(User::Plain));
}

#[test]
fn an_ordinary_user_mounts_in_a_namespace() {
    require_fuse!();
    require_root!();
    require_namespaces!();
    let _device = OpenDevice::new();
    holds(filled(User::Namespace));
}

#[test]
fn an_ordinary_user_deletes_files_whatever_their_mode() {
    require_fuse!();
    require_root!();
    require_namespaces!();
    let _device = OpenDevice::new();
    for user in [User::Plain, User::Namespace] {
        let site = filled(user);
        site.prepare("cd base; for m in 000 200 400 444 700; do echo $m > f$m; chmod $m f$m; done");
        let site = site.args(&["--preset", "full-access"]).start();
        site.ok("rm -f f*; test -z \"$(ls | grep ^f)\"");
        site.ok("for m in 000 200 400 444 700; do test ! -e f$m; done");
        site.ok("for m in 000 200 400 444 700; do echo new > f$m; chmod $m f$m; done");
        let site = site.remount();
        site.ok(
            "test \"$(stat -c %a f* | xargs)\" = '0 200 400 444 700'; test \"$(cat f444)\" = new",
        );
        site.ok("rm -f f*; test -z \"$(ls | grep ^f)\"");
        site.remount().ok("test -z \"$(ls | grep ^f)\"");
    }
}

#[test]
fn an_ordinary_user_writes_below_a_directory_that_is_read_only() {
    require_fuse!();
    require_root!();
    let _device = OpenDevice::new();
    let site = filled(User::Plain);
    site.prepare("cd base; mkdir -p closed/open; echo x > closed/open/file; echo y > closed/file; chmod 555 closed");
    let site = site.args(&["--preset", "full-access"]).start();
    let check = "test \"$(stat -c %a closed closed/open | xargs)\" = '555 755'
        test \"$(cat closed/open/file | xargs)\" = 'x more'; test \"$(cat closed/open/new)\" = n
        test \"$(cat closed/file | xargs)\" = 'y z'";
    site.ok("echo more >> closed/open/file; echo n > closed/open/new; echo z >> closed/file");
    site.ok(check);
    assert!(site.fails("echo x > closed/new").contains("Permission denied"));
    assert!(site.fails("rm closed/file").contains("Permission denied"));
    site.remount().ok(check);
}

#[test]
fn a_mount_of_an_ordinary_user_is_closed_to_everybody_else() {
    require_fuse!();
    require_root!();
    let _device = OpenDevice::new();
    let site = filled(User::Plain).args(&["--preset", "full-access"]).start();
    // A mount by a user is that user's alone: the kernel refuses everybody else.
    let denied = std::fs::read_dir(site.path("mnt")).unwrap_err();
    assert_eq!(denied.kind(), std::io::ErrorKind::PermissionDenied);
}

#[test]
fn git_works_for_an_ordinary_user() {
    require_fuse!();
    require_root!();
    require_namespaces!();
    let _device = OpenDevice::new();
    for user in [User::Plain, User::Namespace] {
        let site = filled(user).args(&["--preset", "full-access"]).start();
        site.ok("export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
            rm -rf large; git init -q .; git config user.email a@b; git config user.name a
            git add .; git commit -qm one; echo more >> keep; git mv dir moved; git commit -qam two
            git checkout -q HEAD~1; test -e dir/other; git checkout -q -; git gc -q; git fsck");
        let site = site.remount();
        assert_eq!(site.ok("git status --porcelain"), "");
    }
}

#[test]
fn whatever_a_crash_left_behind_is_cleared_by_an_ordinary_user_too() {
    require_fuse!();
    require_root!();
    let _device = OpenDevice::new();
    let mut site = filled(User::Plain).args(&["--preset", "full-access"]).start();
    site.stop();
    // A directory that was being replaced, with the mode it had and whiteouts still in it.
    site.prepare("mkdir -p store/layer/work/1/in; touch store/layer/work/1/in/f store/layer/work/2
        chmod 0 store/layer/work/2; chown -R 65534:65534 store/layer/work; chmod 555 store/layer/work/1/in
        chmod 0 store/layer/work/1");
    let site = site.remount();
    assert_eq!(site.prepare("ls -A store/layer/work"), "");
    site.ok("rm keep; echo new > keep; test \"$(cat keep)\" = new");
}
