//! A workspace whose user, filesystems and limits a test chooses.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::mount::{UnmountFlags, unmount};
use tempfile::TempDir;

use crate::support::Server;

/// Somebody without any privilege.
pub(super) const NOBODY: u32 = 65534;

/// Who runs the server and the programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    Root,
    /// An ordinary user, who mounts through `fusermount3`.
    Plain,
    /// An ordinary user who is root in a namespace of their own, and mounts there.
    Namespace,
}

/// A directory with `base`, `mnt` and `layer` in it, anything of which a test may mount first.
pub(super) struct Site {
    dir: TempDir,
    user: User,
    args: Vec<String>,
    descriptors: Option<u32>,
    server: Option<Server>,
    mounts: Vec<PathBuf>,
}

impl Site {
    pub(super) fn new(user: User) -> Self {
        let dir = TempDir::new().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        // The build directory need not be open to everybody, as the test's is.
        fs::copy(env!("CARGO_BIN_EXE_ringfence"), dir.path().join("ringfence")).unwrap();
        for sub in ["base", "mnt", "store"] {
            fs::create_dir(dir.path().join(sub)).unwrap();
        }
        let args = vec![];
        Self { dir, user, args, descriptors: None, server: None, mounts: vec![] }
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(super) fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// Limits the server to so many open descriptors.
    pub(super) fn descriptors(mut self, limit: u32) -> Self {
        self.descriptors = Some(limit);
        self
    }

    /// Mounts a filesystem at a directory of the site; it goes with the site.
    pub(super) fn mount(mut self, at: &str, arguments: &str) -> Self {
        let target = self.path(at);
        fs::create_dir_all(&target).unwrap();
        self.prepare(&format!("mount {arguments} {}", target.display()));
        self.mounts.push(target);
        self
    }

    /// Mounts an overlay whose own layers are on the disk.
    pub(super) fn overlay(self, at: &str) -> Self {
        let [lower, upper, work] = ["lower", "upper", "work"].map(|part| {
            let path = self.path(&format!("overlay-{at}/{part}"));
            fs::create_dir_all(&path).unwrap();
            path
        });
        let options = format!(
            "-t overlay -o lowerdir={},upperdir={},workdir={} overlay",
            lower.display(),
            upper.display(),
            work.display()
        );
        self.mount(at, &options)
    }

    /// Runs a shell command in the site's directory, before anything is mounted, as root.
    pub(super) fn prepare(&self, script: &str) -> String {
        let output = Command::new("sh")
            .arg("-ec")
            .arg(script)
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{script:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The server's command line. The layer is `store/layer`.
    pub(super) fn command(&self) -> Command {
        let mut words: Vec<String> = vec![];
        if let Some(limit) = self.descriptors {
            words.extend(["prlimit".into(), format!("--nofile={limit}:{limit}")]);
        }
        if self.user == User::Namespace {
            words.extend(["unshare", "-Urm"].map(String::from));
        }
        words.push(self.path("ringfence").display().to_string());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg("mount").arg("--base").arg(self.path("base"));
        command.arg("--layer").arg(self.path("store/layer")).args(&self.args);
        command.arg(self.path("mnt"));
        if self.user != User::Root {
            command.uid(NOBODY).gid(NOBODY).current_dir("/");
        }
        command
    }

    /// Hands the prepared directories to the user and mounts the workspace.
    pub(super) fn start(mut self) -> Self {
        if self.user != User::Root {
            self.prepare(&format!("chown -R -h {NOBODY}:{NOBODY} base mnt store"));
        }
        self.start_server();
        self
    }

    fn start_server(&mut self) {
        self.server = Some(Server::start(self.command()).unwrap());
    }

    /// Runs a shell command in the workspace, as its user.
    pub(super) fn sh(&self, script: &str) -> Output {
        let script = format!("cd {} || exit 99\n{script}", self.path("mnt").display());
        let server = self.server.as_ref().unwrap();
        let mut command = match self.user {
            User::Namespace => {
                let mut command = Command::new("nsenter");
                command.args(["-t", &server.pid().to_string(), "-U", "-m", "sh"]);
                command
            }
            _ => Command::new("sh"),
        };
        if self.user == User::Plain {
            command.uid(NOBODY).gid(NOBODY);
        }
        let command = command.arg("-ec").arg(script).current_dir("/").stdin(Stdio::null());
        command.env("HOME", "/nonexistent").output().unwrap()
    }

    /// Runs a shell command that must succeed and returns what it printed.
    pub(super) fn ok(&self, script: &str) -> String {
        let output = self.sh(script);
        assert!(output.status.success(), "{script:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a shell command that must fail and returns its errors.
    pub(super) fn fails(&self, script: &str) -> String {
        let output = self.sh(script);
        assert!(!output.status.success(), "{script:?} succeeded: {output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    pub(super) fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            assert_eq!(server.stop(), Some(0));
        }
    }

    pub(super) fn remount(mut self) -> Self {
        self.stop();
        self.start_server();
        self
    }

    pub(super) fn crash(mut self) -> Self {
        if let Some(server) = self.server.take() {
            server.kill();
        }
        self.start_server();
        self
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
        // What a failed test leaves mounted would keep its directory from being removed.
        let workspace = self.path("mnt");
        for path in std::iter::once(&workspace).chain(self.mounts.iter().rev()) {
            let _ = unmount(path, UnmountFlags::DETACH);
        }
    }
}

/// A base with everything in it that [`holds`] uses.
pub(super) fn fill(base: &Path) {
    let script = "set -e; umask 022
        mkdir -p dir/sub docs secret empty many
        echo keep > keep; echo gone > gone; echo deep > dir/sub/deep; echo old > replaced
        echo doc > docs/doc; echo hidden > secret/hidden; echo other > dir/other
        chmod 600 keep; ln -s keep link; for i in $(seq 50); do echo $i > many/$i; done
        dd if=/dev/zero of=large bs=1M count=20 status=none; echo end >> large";
    let output = Command::new("sh").arg("-c").arg(script).current_dir(base).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

pub(super) const RULES: [&str; 4] = ["--rule", "none:/secret/**", "--rule", "read:/docs/**"];

/// Drives a workspace over [`fill`]ed base through levels, copy-up, whiteouts and renames, and
/// checks that all of it is there after a remount and after a crash.
pub(super) fn holds(site: Site) -> Site {
    let before = fingerprint(&site);
    let site = site.args(&["--preset", "full-access"]).args(&RULES).start();
    site.ok("test \"$(cat keep)\" = keep && test \"$(tail -n1 large)\" = end && test -L link");
    site.ok("test \"$(stat -c %a keep)\" = 600 && test \"$(ls many | wc -l)\" = 50");
    site.ok("test ! -e secret && ! ls | grep secret");
    assert!(site.fails("echo x > docs/doc").contains("Permission denied"));
    assert!(site.fails("echo x > docs/new").contains("Permission denied"));
    assert!(site.fails("mkdir secret").contains("Permission denied"));
    site.ok("echo more >> keep; echo more >> large; cat link | tail -n1 | grep -q more");
    site.ok("rm gone; rmdir empty; rm -r many; mkdir many; echo new > many/new");
    site.ok(
        "mv dir moved; echo deeper >> moved/sub/deep; rm moved/other; mkdir dir; echo d > dir/d",
    );
    site.ok("echo fresh > fresh; mv fresh replaced; ln replaced second; chmod 640 replaced");
    site.ok("touch -d 2001-02-03T04:05:06Z many; ln -s nowhere many/link");
    check(&site);
    let site = site.remount();
    check(&site);
    let site = site.crash();
    check(&site);
    assert_eq!(fingerprint(&site), before, "the base was written to");
    site
}

fn check(site: &Site) {
    let names = "dir docs keep large link many moved replaced second";
    site.ok(&format!("test \"$(ls -A | xargs)\" = '{names}'"));
    site.ok("test \"$(cat keep | xargs)\" = 'keep more' && test \"$(stat -c %a keep)\" = 600");
    site.ok("test \"$(tail -n2 large | tr -d '\\0' | xargs)\" = 'end more'");
    site.ok("test \"$(stat -c %s large)\" = 20971529");
    site.ok("test ! -e gone && test ! -e empty && test ! -e secret && test ! -e secret/hidden");
    site.ok("test \"$(ls -A many | xargs)\" = 'link new' && test \"$(cat dir/d)\" = d");
    site.ok("test \"$(ls -A dir moved | xargs)\" = 'dir: d moved: sub'");
    site.ok("test \"$(cat moved/sub/deep | xargs)\" = 'deep deeper'");
    site.ok("test replaced -ef second && test \"$(cat second)\" = fresh");
    site.ok("test \"$(stat -c %a second)\" = 640 && test \"$(cat docs/doc)\" = doc");
}

fn fingerprint(site: &Site) -> String {
    site.prepare("cd base; find . -printf '%p %m %s %T@ %l\\n' | sort; find . -type f | sort | xargs cat | cksum")
}
