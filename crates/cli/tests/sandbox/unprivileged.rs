//! The same program for an ordinary user: what works without root, and what is said where it does
//! not.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ringfence_runtime::users::HOST_LOCKS;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use crate::confinement::Host;
use crate::leftovers::Leftovers;
use crate::support::{processes_with, require_sandbox, unique_sleep};

const USER: u32 = 65534;

/// A user's directory with the program in it, and a FUSE device that everybody may open.
struct Account {
    dir: TempDir,
}

/// Covers the device in a mount namespace of its own (the host's stays as it is), and becomes the
/// user for good.
const BECOME: &str = "mount --bind \"$0\" /dev/fuse
exec setpriv --reuid 65534 --regid 65534 --clear-groups -- \"$@\"";

impl Account {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        open(dir.path(), 0o755);
        let account = Self { dir };
        std::fs::copy(env!("CARGO_BIN_EXE_ringfence"), account.path("ringfence")).unwrap();
        for name in ["base", "state"] {
            std::fs::create_dir(account.path(name)).unwrap();
            chown(account.path(name), Some(USER), Some(USER)).unwrap();
        }
        std::fs::write(account.path("base/file"), "from the base\n").unwrap();
        let device = account.path("fuse");
        let made = Command::new("mknod").arg(&device).args(["c", "10", "229"]).status().unwrap();
        assert!(made.success());
        open(&device, 0o666);
        account
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-ec", BECOME]).arg(self.path("fuse"));
        command.arg(self.path("ringfence")).current_dir("/").stdin(Stdio::null());
        command.env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
        command
    }

    fn run(&self, options: &[&str], text: &str) -> Command {
        let mut command = self.command();
        command.args(["run", "--preset", "full-access", "--keep"]).args(options);
        command.arg("--state").arg(self.path("state")).arg(self.path("base"));
        command.args(["--", "sh", "-c", text]);
        command
    }

    fn sandboxes(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path("state/sandboxes")).into_iter().flatten();
        entries.flatten().map(|entry| entry.path()).collect()
    }

    fn assert_nothing_left(&self) {
        for dir in self.sandboxes() {
            let id = dir.file_name().unwrap().to_str().unwrap();
            Leftovers::of(id, &dir, Path::new(HOST_LOCKS)).assert_none();
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn says(output: &Output, code: i32, what: &[&str]) {
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{errors}");
    for word in what {
        assert!(errors.contains(word), "{word:?} is not in {errors}");
    }
}

/// Skips where there is no root to become somebody else.
macro_rules! require_root {
    () => {
        require_sandbox!();
        if !geteuid().is_root() {
            return;
        }
    };
}

#[test]
fn an_ordinary_user_runs_commands() {
    require_root!();
    let account = Account::new();
    let script = "id -u; cat file; echo new > new; echo more >> file; echo said >&2; exit 7";
    let output = account.run(&[], script).output().unwrap();
    says(&output, 7, &["said\n", "A new", "M file", "changes kept"]);
    assert_eq!(text(&output.stdout), "1000\nfrom the base\n");
    assert_eq!(std::fs::read_to_string(account.path("base/file")).unwrap(), "from the base\n");
    account.assert_nothing_left();
    let [dir] = &account.sandboxes()[..] else { panic!("{:?}", account.sandboxes()) };
    assert_eq!(std::fs::read_to_string(dir.join("layer/tree/new")).unwrap(), "new\n");
    let id = dir.file_name().unwrap().to_str().unwrap();
    assert!(ringfence_warden::journal::verify(dir, id).is_ok());
}

#[test]
fn nothing_gets_through_for_an_ordinary_user_either() {
    require_root!();
    let (account, host) = (Account::new(), Host::new());
    for name in ["base", "state", "state/sandboxes"] {
        chown(host.path(name), Some(USER), Some(USER)).unwrap();
    }
    let answers = host.probe_by(account.command(), &[]);
    assert_eq!(answers.broken(), [""; 0]);
    assert_eq!(answers.that(true), [""; 0], "got through");
}

#[test]
fn a_limit_that_cannot_be_had_is_an_error_that_names_it() {
    require_root!();
    let account = Account::new();
    for (option, value, name) in [
        ("--memory", "64M", "memory cannot be limited here"),
        ("--cpus", "1", "cpu time cannot be limited here"),
        ("--pids", "50", "the number of processes cannot be limited here"),
    ] {
        let output = account.run(&[option, value], "echo ran").output().unwrap();
        says(&output, 125, &[name, "hint: "]);
        assert_eq!(text(&output.stdout), "");
    }
    assert!(account.sandboxes().is_empty());
}

#[test]
fn doctor_tells_an_ordinary_user_what_is_limited() {
    require_root!();
    let output = Account::new().command().args(["doctor", "--json"]).output().unwrap();
    let findings: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let state = |what: &str| {
        let finding = findings.iter().find(|finding| finding["what"] == what);
        finding.unwrap()["state"].as_str().unwrap().to_owned()
    };
    for what in ["bubblewrap", "namespaces", "FUSE", "seccomp"] {
        assert_eq!(state(what), "ok", "{what}");
    }
    for what in ["FUSE passthrough", "memory limit", "cpu limit", "process limit"] {
        assert_ne!(state(what), "ok", "{what}");
    }
    // What is limited does not keep sandboxes from being started.
    assert_eq!(output.status.code(), Some(0), "{findings:?}");
    let fixes = findings.iter().filter(|finding| finding["state"] != "ok");
    assert!(fixes.into_iter().all(|finding| finding["fix"].is_string()), "{findings:?}");
}

#[test]
fn a_command_out_of_time_ends_with_its_tree_without_cgroups() {
    require_root!();
    let account = Account::new();
    let name = format!("user-tree-{}", std::process::id());
    let script = format!("setsid sh -c 'sleep 1000; :' {name} & sh -c 'sleep 1000; :' {name}");
    let output = account.run(&["--timeout", "500ms"], &script).output().unwrap();
    says(&output, 124, &["the time was up"]);
    assert_eq!(processes_with(&name), [0; 0]);
    account.assert_nothing_left();
}

#[test]
fn whatever_is_killed_nothing_is_left_for_an_ordinary_user_either() {
    require_root!();
    for victim in ["warden", "bwrap", "init", "run"] {
        let account = Account::new();
        let script = "echo up; while :; do echo line >> file; done";
        let mut caller =
            account.run(&[], script).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(caller.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "up\n");
        kill_by_role(&account, victim, caller.id() as i32);
        assert!(!caller.wait().unwrap().success());
        account.assert_nothing_left();
    }
}

/// Directories of one's own that have no mode cannot be looked into, and so not emptied.
#[test]
fn a_server_of_one_process_removes_whatever_an_ordinary_users_sandbox_left() {
    require_root!();
    let account = Account::new();
    let mut owner = Command::new("sleep").arg(unique_sleep()).uid(USER).spawn().unwrap();
    let mut server = account.command();
    server.args(["serve", "--for-process", &owner.id().to_string(), "--state"]);
    let mut server = server.arg(account.path("state")).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let endpoint = format!("unix://{}", line.trim_end().strip_prefix("ready ").unwrap());
    let ask = |words: &[&str]| {
        let mut command = account.command();
        command.env("RINGFENCE_ENDPOINT", &endpoint).args(["sandbox"]).args(words);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        text(&output.stdout).trim_end().to_owned()
    };
    let base = account.path("base");
    let base = base.to_str().unwrap();
    let id = ask(&["create", "--preset", "full-access", "--start", "--dir", base]);
    let script = "for at in . /tmp ~; do mkdir -p $at/a/b; touch $at/a/b/c; chmod 0 $at/a; done";
    ask(&["exec", &id, "--", "sh", "-c", script]);
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(server.wait().unwrap().success());
    assert_eq!(account.path("state/processes").read_dir().unwrap().count(), 0);
}

/// `run` is the caller itself; the others are found by what they are called.
fn kill_by_role(account: &Account, role: &str, caller: i32) {
    let id = account.sandboxes()[0].display().to_string();
    let warden = processes_with(&format!("{id}/config.json"))[0];
    let pid = match role {
        "run" => caller,
        "warden" => warden,
        "bwrap" => child_of(warden),
        _ => child_of(child_of(warden)),
    };
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

fn child_of(parent: i32) -> i32 {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.lines().any(|line| line == format!("PPid:\t{parent}"))
    };
    pids.find(is_child).unwrap()
}
