//! Mounting a workspace for a test and taking it away again.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

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

macro_rules! require_fuse {
    () => {
        crate::support::require!(crate::support::can_mount(), "opening /dev/fuse")
    };
}
pub(crate) use require_fuse;

macro_rules! require_root {
    () => {
        crate::support::require!(crate::support::is_root(), "root")
    };
}
pub(crate) use require_root;

pub(crate) fn can_mount() -> bool {
    fs::File::options().read(true).write(true).open("/dev/fuse").is_ok()
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ringfence"))
}

/// A base directory with content, and how it is to be mounted.
pub(crate) struct Workspace {
    dir: TempDir,
    args: Vec<String>,
    passthrough: bool,
    kept_layer: Option<PathBuf>,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        for sub in ["base", "mnt"] {
            fs::create_dir(dir.path().join(sub)).unwrap();
        }
        Self { dir, args: vec![], passthrough: true, kept_layer: None }
    }

    /// One whose files the kernel serves itself where it may, and one that is asked for every read.
    pub(crate) fn both_ways() -> [Self; 2] {
        [Self::new(), Self::new().no_passthrough()]
    }

    pub(crate) fn base(&self) -> PathBuf {
        self.dir.path().join("base")
    }

    /// Writes a file into the base, with its parents.
    pub(crate) fn file(self, path: impl AsRef<OsStr>, content: impl AsRef<[u8]>) -> Self {
        let path = self.base().join(Path::new(path.as_ref()));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn dir(self, path: &str) -> Self {
        fs::create_dir_all(self.base().join(path)).unwrap();
        self
    }

    /// Does anything to the base before it is mounted.
    pub(crate) fn with_base(self, prepare: impl FnOnce(&Path)) -> Self {
        prepare(&self.base());
        self
    }

    pub(crate) fn preset(self, name: &str) -> Self {
        self.arg("--preset").arg(name)
    }

    /// `LEVEL:PATTERN[@PRIORITY]`
    pub(crate) fn rule(self, rule: &str) -> Self {
        self.arg("--rule").arg(rule)
    }

    pub(crate) fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub(crate) fn no_passthrough(mut self) -> Self {
        self.passthrough = false;
        self.arg("--no-passthrough")
    }

    /// Keeps changes in this layer instead of one of its own.
    pub(crate) fn layer(mut self, path: &Path) -> Self {
        self.kept_layer = Some(path.into());
        self
    }

    pub(crate) fn mount(self) -> Mounted {
        self.try_mount().unwrap_or_else(|output| panic!("mount failed: {output:?}"))
    }

    /// Mounts, or gives back what the command printed before it ended.
    pub(crate) fn try_mount(self) -> Result<Mounted, Output> {
        let layer = self.kept_layer.clone().unwrap_or_else(|| self.dir.path().join("layer"));
        let mut command = binary();
        command.arg("mount").arg("--base").arg(self.base()).arg("--layer").arg(&layer);
        command.args(&self.args).arg(self.dir.path().join("mnt"));
        let server = Server::start(command)?;
        Ok(Mounted { server: Some(server), layer, workspace: self })
    }
}

/// A running `ringfence mount`.
pub(crate) struct Server {
    child: Child,
    pub(crate) ready: String,
    _errors: Option<ChildStderr>,
}

impl Server {
    pub(crate) fn start(mut command: Command) -> Result<Self, Output> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        if ready.is_empty() {
            return Err(child.wait_with_output().unwrap());
        }
        let errors = child.stderr.take();
        Ok(Self { child, ready, _errors: errors })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Ends it as a person would and returns the exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.signal(rustix::process::Signal::TERM);
        self.child.wait().unwrap().code()
    }

    /// Kills it without a chance to clean up.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A mounted workspace; unmounted when it goes out of scope, also when a test fails.
pub(crate) struct Mounted {
    server: Option<Server>,
    pub(crate) layer: PathBuf,
    workspace: Workspace,
}

impl Mounted {
    pub(crate) fn root(&self) -> PathBuf {
        self.workspace.dir.path().join("mnt")
    }

    pub(crate) fn path(&self, path: impl AsRef<OsStr>) -> PathBuf {
        let path = Path::new(path.as_ref());
        self.root().join(path.strip_prefix("/").unwrap_or(path))
    }

    pub(crate) fn base(&self) -> PathBuf {
        self.workspace.base()
    }

    pub(crate) fn scratch(&self) -> &Path {
        self.workspace.dir.path()
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    /// Runs a shell command in the root of the workspace.
    pub(crate) fn sh(&self, script: &str) -> Output {
        Command::new("sh")
            .arg("-c")
            .arg(script)
            .current_dir(self.root())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Runs a shell command that must succeed and returns what it printed.
    pub(crate) fn ok(&self, script: &str) -> String {
        let output = self.sh(script);
        assert!(output.status.success(), "{script:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a shell command that must fail and returns its errors.
    pub(crate) fn fails(&self, script: &str) -> String {
        let output = self.sh(script);
        assert!(!output.status.success(), "{script:?} succeeded: {output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Runs a Python program in the root of the workspace, for system calls Rust has no safe name
    /// for. It must succeed; what it prints is returned.
    pub(crate) fn python(&self, program: &str) -> String {
        let mut python = Command::new("python3");
        let output = python.args(["-c", program]).current_dir(self.root()).output().unwrap();
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Names in a directory of the workspace, sorted.
    pub(crate) fn names(&self, dir: &str) -> Vec<String> {
        names_in(&self.path(dir))
    }

    /// Ends the mount and starts it again on the same layer, with other arguments if given.
    pub(crate) fn remount(mut self, args: Option<Vec<String>>) -> Self {
        if let Some(server) = self.server.take() {
            assert_eq!(server.stop(), Some(0));
        }
        self.start_again(args)
    }

    /// Kills the server without warning and starts it again.
    pub(crate) fn crash(mut self) -> Self {
        if let Some(server) = self.server.take() {
            server.kill();
        }
        self.start_again(None)
    }

    fn start_again(mut self, args: Option<Vec<String>>) -> Self {
        if let Some(args) = args {
            self.workspace.args = args;
        }
        let mut command = binary();
        command.arg("mount").arg("--base").arg(self.base()).arg("--layer").arg(&self.layer);
        command.args(&self.workspace.args).arg(self.root());
        self.server = Some(Server::start(command).unwrap());
        self
    }

    /// Ends the mount; the directories stay until the value is dropped.
    pub(crate) fn unmount(&mut self) {
        if let Some(server) = self.server.take() {
            assert_eq!(server.stop(), Some(0));
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
        // A test that failed after a crash leaves a dead mount, and with it its directories.
        let _ = rustix::mount::unmount(self.root(), rustix::mount::UnmountFlags::DETACH);
    }
}

pub(crate) fn names_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

pub(crate) fn os(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

/// Waits until `done` says so, for what happens in another process.
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The error number of a failed call.
pub(crate) fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> i32 {
    result.expect_err("it succeeded").raw_os_error().expect("an error of the system")
}
