//! What a session costs the warden that keeps it for long.

use ringfence_link::warden::SessionExec;

use crate::support::{Sandbox, eventually, require_sandbox};

use super::{close, options};

/// Open descriptors, and resident memory in KiB.
fn use_of(pid: i32) -> (usize, u64) {
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    (fds, line.trim().trim_end_matches(" kB").parse().unwrap())
}

#[test]
fn ten_thousand_commands_leave_no_trace() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let pid = sandbox.info().warden_pid;
    let id = sandbox.open(options("dash")).unwrap().id;
    let run = |n: u32| {
        let run = sandbox.in_session(&id, SessionExec::new(format!("echo {n}"))).unwrap();
        assert_eq!(run.out(), format!("{n}\n"));
    };
    (0..1000).for_each(run);
    let (_, memory) = use_of(pid);
    (0..10_000).for_each(run);
    eventually("no descriptor is left", || use_of(pid).0 < 80);
    let (_, after) = use_of(pid);
    assert!(after < memory + 8 * 1024, "{memory} KiB, then {after} KiB");
}

#[test]
fn sessions_that_come_and_go_leave_no_trace() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let pid = sandbox.info().warden_pid;
    let before = use_of(pid).0;
    for n in 0..60 {
        let shell = ["bash", "dash"][n % 2];
        let id = sandbox.open(options(shell)).unwrap().id;
        sandbox.in_session(&id, SessionExec::new("sleep 100 & echo x")).unwrap();
        if n % 3 == 0 {
            sandbox.in_session(&id, SessionExec::new("exit 1")).unwrap();
        }
        close(&sandbox, &id).unwrap();
    }
    eventually("no descriptor is left", || use_of(pid).0 <= before + 2);
    eventually("no file is left", || sandbox.ok("ls /run/shell").is_empty());
    assert_eq!(crate::sessions::jobs::groups(&sandbox), 0);
    assert_eq!(sandbox.sh("ps -e | grep -c sleep").out(), "0\n");
}
