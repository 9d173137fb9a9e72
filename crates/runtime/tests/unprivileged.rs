//! A sandbox without root. Not a test of the usual kind: a process enters a user namespace only
//! while it has a single thread, and the test harness has several.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use ringfence_runtime::bwrap::Bwrap;
use ringfence_runtime::cgroup::{Cgroups, SandboxGroup};
use ringfence_runtime::{Limits, Network, Runtime, RuntimeError, Start};
use ringfence_sys::namespaces::enter_private_mounts;
use rustix::process::{WaitOptions, waitpid};

/// Nobody's number, outside of the range that sandboxes use.
const USER: u32 = 199_999;

fn main() {
    let arguments: Vec<_> = std::env::args_os().collect();
    match (arguments.as_slice(), rustix::process::geteuid().is_root()) {
        ([_, word, dir], _) if word == "inner" => inner(Path::new(dir)),
        (_, true) if Path::new("/usr/bin/bwrap").exists() => as_another_user(),
        (_, root) => skip(if root { "bubblewrap" } else { "root" }),
    }
}

fn skip(what: &str) {
    assert!(std::env::var_os("RINGFENCE_REQUIRE_KERNEL").is_none(), "required here: {what}");
    eprintln!("skipped: {what}");
}

fn as_another_user() {
    let dir = tempfile::tempdir().unwrap();
    chown(dir.path(), Some(USER), Some(USER)).unwrap();
    let program = dir.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut command = Command::new(program);
    command.arg("inner").arg(dir.path()).uid(USER).gid(USER).current_dir("/");
    assert!(command.status().unwrap().success());
    println!("a sandbox starts without root, and says which limits cannot be had: ok");
}

fn inner(dir: &Path) {
    if Cgroups::of_this_host().unwrap().unified().is_none() {
        limits_are_refused();
    }
    let group = SandboxGroup::create("test-unprivileged", &Limits::default(), None).unwrap();
    enter_private_mounts().unwrap();
    let started = Bwrap::default().start(&start(dir), &group).unwrap();
    let mut text = String::new();
    File::from(started.socket.try_clone().unwrap()).read_to_string(&mut text).unwrap();
    assert_eq!(text, "1000\nx\nno capabilities\n", "{}", started.complaint());
    let ended = waitpid(Some(started.child.pid), WaitOptions::empty()).unwrap().unwrap();
    assert_eq!(ended.1.exit_status(), Some(0));
}

fn limits_are_refused() {
    let limits = Limits { memory: Some(64 << 20), ..Limits::default() };
    match SandboxGroup::create("test-unprivileged", &limits, None) {
        Err(RuntimeError::Unenforceable { limit: "memory", hint, .. }) => {
            assert!(hint.contains("root"), "{hint}");
        }
        other => panic!("{other:?}"),
    }
    let group = SandboxGroup::create("test-unprivileged", &Limits::default(), None).unwrap();
    assert!(group.command("c").unwrap().is_none() && group.kill_all().is_err());
}

const SCRIPT: &str = "#!/bin/sh
exec >&3 2>&1
id -u
echo x >/workspace/x
cat /workspace/x
grep -q 'CapEff:.0000000000000000' /proc/self/status && echo no capabilities
";

fn start(dir: &Path) -> Start {
    for name in ["workspace", "home", "tmp"] {
        fs::create_dir(dir.join(name)).unwrap();
    }
    let init = dir.join("init");
    fs::write(&init, SCRIPT).unwrap();
    fs::set_permissions(&init, Permissions::from_mode(0o755)).unwrap();
    Start {
        id: "test-unprivileged".to_owned(),
        dir: dir.to_owned(),
        workspace: dir.join("workspace"),
        home: dir.join("home"),
        tmp: dir.join("tmp"),
        init,
        read_only: vec!["/usr/share".into()],
        network: Network::None,
        limits: Limits::default(),
        user: None,
        stage: dir.join("stage"),
    }
}
