//! Making sandboxes for tests, and taking them away again.

use std::ffi::CString;
use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringfence_runtime::bwrap::Bwrap;
use ringfence_runtime::cgroup::SandboxGroup;
use ringfence_runtime::users::{HostUser, Users};
use ringfence_runtime::{Limits, Network, Runtime, RuntimeError, Start, Started};
use ringfence_sys::namespaces::enter_private_mounts;
use ringfence_sys::spawn::{Child, Spawn};
use rustix::process::{WaitOptions, WaitStatus, waitpid};
use tempfile::TempDir;

/// Skips a test with a reason where the machine cannot do it, and fails where it must.
macro_rules! require {
    ($can:expr, $what:expr) => {
        if !$can {
            assert!(
                std::env::var_os("RINGFENCE_REQUIRE_KERNEL").is_none(),
                "required here: {}",
                $what
            );
            eprintln!("skipped: {}", $what);
            return;
        }
    };
}
pub(crate) use require;

macro_rules! require_groups {
    () => {
        let cgroups = ringfence_runtime::cgroup::Cgroups::of_this_host().unwrap();
        crate::support::require!(cgroups.unified().is_some(), "a writable cgroup2");
    };
}
pub(crate) use require_groups;

macro_rules! require_limit {
    ($controller:ident) => {
        let cgroups = ringfence_runtime::cgroup::Cgroups::of_this_host().unwrap();
        let controller = ringfence_runtime::cgroup::Controller::$controller;
        crate::support::require!(cgroups.place(controller).is_some(), "a writable controller");
    };
}
pub(crate) use require_limit;

macro_rules! require_bwrap {
    () => {
        crate::support::require!(crate::support::is_root(), "root");
        crate::support::require!(std::path::Path::new("/usr/bin/bwrap").exists(), "bubblewrap");
    };
}
pub(crate) use require_bwrap;

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A name that no other test run uses.
pub(crate) fn id(name: &str) -> String {
    format!("test-{}-{name}", std::process::id())
}

/// Runs something in a mount namespace of its own, on a thread that ends with it.
pub(crate) fn privately<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let run = || {
            enter_private_mounts().unwrap();
            work()
        };
        scope.spawn(run).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The directories of one sandbox, where nobody but root can walk.
pub(crate) struct Site {
    pub(crate) dir: TempDir,
    pub(crate) user: HostUser,
    id: String,
}

impl Site {
    pub(crate) fn new(name: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let user = Users::new(200_000..200_100, dir.path().join("users")).allocate().unwrap();
        let site = Self { dir, user, id: id(name) };
        for name in ["", "workspace", "home", "tmp"] {
            fs::create_dir(site.path(name)).unwrap();
            chown(site.path(name), Some(site.user.uid()), Some(site.user.gid())).unwrap();
        }
        chown(site.path(""), Some(0), Some(0)).unwrap();
        fs::set_permissions(site.path(""), Permissions::from_mode(0o700)).unwrap();
        site
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("private").join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        write(&self.path(name), text, mode)
    }

    pub(crate) fn group(&self, limits: &Limits) -> SandboxGroup {
        SandboxGroup::create(&self.id, &limits.beside(2), Some(self.user.ids())).unwrap()
    }

    /// A start with a shell script in the place of init; its output goes to the socket.
    pub(crate) fn start(&self, script: &str) -> Start {
        let init = self.write("init", &format!("#!/bin/sh\nexec >&3 2>&1\n{script}\n"), 0o755);
        Start {
            id: self.id.clone(),
            dir: self.dir.path().to_owned(),
            workspace: self.path("workspace"),
            home: self.path("home"),
            tmp: self.path("tmp"),
            init,
            read_only: Vec::new(),
            network: Network::None,
            limits: Limits::default(),
            user: Some(self.user.ids()),
            stage: self.dir.path().join("stage"),
        }
    }

    /// What a script says that runs in the place of init, until it ends.
    pub(crate) fn output(&self, start: &Start) -> String {
        privately(|| {
            let group = self.group(&Limits::default());
            let started = Bwrap::default().start(start, &group).unwrap();
            let text = read_to_end(&started);
            assert_eq!(wait(&started.child).exit_status(), Some(0), "{}", started.complaint());
            text
        })
    }

    pub(crate) fn failure(&self, runtime: &Bwrap, start: &Start) -> RuntimeError {
        privately(|| {
            let group = self.group(&Limits::default());
            runtime.start(start, &group).unwrap_err()
        })
    }
}

pub(crate) fn write(path: &Path, text: &str, mode: u32) -> PathBuf {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    path.to_owned()
}

pub(crate) fn read_to_end(started: &Started) -> String {
    let mut text = String::new();
    let mut socket = File::from(started.socket.as_fd().try_clone_to_owned().unwrap());
    socket.read_to_string(&mut text).unwrap();
    text
}

pub(crate) fn wait(child: &Child) -> WaitStatus {
    waitpid(Some(child.pid), WaitOptions::empty()).unwrap().unwrap().1
}

/// A shell outside of any sandbox, in the groups of one.
pub(crate) fn shell(group: &SandboxGroup, script: &str) -> Child {
    let null = File::options().read(true).write(true).open("/dev/null").unwrap();
    let attach = group.attach();
    let words = ["sh", "-c", script];
    let spawn = Spawn {
        programs: vec![c"/bin/sh".to_owned()],
        argv: words.map(|word| CString::new(word).unwrap()).to_vec(),
        env: vec![c"PATH=/usr/bin:/bin".to_owned()],
        fds: vec![null.as_fd(), null.as_fd(), null.as_fd()],
        cgroup: attach.cgroup,
        tasks: attach.tasks,
        ..Spawn::default()
    };
    spawn.start().unwrap()
}

/// Waits for an event that has no descriptor.
pub(crate) fn eventually(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// All directories with this name in any hierarchy.
pub(crate) fn directories_named(id: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(Path::new("/sys/fs/cgroup"), id, 4, &mut found);
    found
}

fn collect(dir: &Path, id: &str, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten().filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())) {
        if entry.file_name() == id {
            found.push(entry.path());
        } else if depth > 0 {
            collect(&entry.path(), id, depth - 1, found);
        }
    }
}
