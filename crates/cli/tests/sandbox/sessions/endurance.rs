//! What a session costs the warden that keeps it for long.

use ringfence_link::warden::SessionExec;

use crate::support::{Sandbox, eventually, require_sandbox};

use super::{Session, close, options};

/// Open descriptors, and resident memory in KiB.
fn use_of(pid: i32) -> (usize, u64) {
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    (fds, line.trim().trim_end_matches(" kB").parse().unwrap())
}

/// Everything that could grow with the number of commands.
#[derive(Debug)]
struct Held {
    /// Of the warden, init and the shell; of others only root is told.
    of_processes: Vec<(usize, u64)>,
    files: String,
    groups: usize,
}

impl Held {
    fn by(s: &Session) -> Self {
        let info = s.sandbox.info();
        let mut pids = vec![info.warden_pid];
        if rustix::process::geteuid().is_root() {
            eventually("nothing runs but the shell", || children(info.init_pid).len() == 1);
            pids.extend([info.init_pid, children(info.init_pid)[0]]);
        }
        let of_processes = pids.into_iter().map(use_of).collect();
        let files = s.sandbox.ok("cd /run/shell && ls -R");
        Self { of_processes, files, groups: crate::sessions::jobs::groups(&s.sandbox) }
    }

    /// Two descriptors may be on their way out when it is looked at, and 200 bytes for each command
    /// are not what was kept of it.
    fn is_no_more_than(&self, before: &Self) -> bool {
        let pairs = self.of_processes.iter().zip(&before.of_processes);
        let mut within = pairs.map(|((fds, memory), (fds_before, memory_before))| {
            *fds <= fds_before + 2 && *memory < memory_before + 2 * 1024
        });
        within.all(|within| within) && self.files == before.files && self.groups <= before.groups
    }
}

fn children(pid: i32) -> Vec<i32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    list.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

in_every_shell! {
    fn ten_thousand_commands_leave_no_trace(s) {
        let run = |n: u32| match n % 100 {
            // One that prints when its command is over: it gets streams and a group of its own.
            0 => assert_eq!(s.run("(sleep 0.01; echo job) &").code(), 0),
            1 => assert_eq!(s.run("false").code(), 1),
            _ => assert_eq!(s.run(format!("echo {n}")).out(), format!("{n}\n")),
        };
        (0..1000).for_each(run);
        let before = Held::by(s);
        (0..10_000).for_each(run);
        // Old groups are swept with each command.
        let mut after = Held::by(s);
        for _ in 0..1000 {
            if after.is_no_more_than(&before) {
                return;
            }
            s.run(":");
            after = Held::by(s);
        }
        panic!("{before:?}, then {after:?}");
    }
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
