//! The processes below a shell, where no cgroup knows them. Best effort: one that has left its
//! parents is not found.

use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The children of a process.
pub(super) fn children(pid: i32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| numbers(&list)).collect()
}

fn numbers(list: &str) -> Vec<i32> {
    list.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// Those below a process with their parents, except some children and what is below them.
pub(super) fn below(pid: i32, except: &[i32]) -> Vec<(i32, i32)> {
    let mut found: Vec<(i32, i32)> = Vec::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        for child in children(parent) {
            let known = found.iter().any(|(pid, _)| *pid == child);
            if !except.contains(&child) && !known {
                found.push((child, parent));
                parents.push(child);
            }
        }
    }
    found
}

pub(super) fn has_any(pid: i32, except: &[i32]) -> bool {
    children(pid).iter().any(|child| !except.contains(child))
}

pub(super) fn signal(pid: i32, except: &[i32], signal: i32) {
    let Some(signal) = Signal::from_named_raw(signal) else { return };
    for (child, parent) in below(pid, except) {
        // The number may be another's by now, unless it is still a child of the same parent.
        let opened = open(child).filter(|_| children(parent).contains(&child));
        if let Some(pidfd) = opened {
            let _ = pidfd_send_signal(&pidfd, signal);
        }
    }
}

fn open(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_is_below_is_found_except_what_was_there_before() {
        let mut sh = Command::new("sh")
            .args(["-c", "sleep 60 & echo; read x; sleep 61 & sh -c 'sleep 62; true' & echo; wait"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = sh.id() as i32;
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(sh.stdout.take().unwrap()));
        lines.next();
        let before = children(pid);
        assert_eq!(before.len(), 1);
        std::io::Write::write_all(&mut sh.stdin.take().unwrap(), b"\n").unwrap();
        lines.next();
        assert!(has_any(pid, &before) && below(pid, &before).len() >= 2);
        signal(pid, &before, 9);
        while has_any(pid, &before) {
            std::thread::yield_now();
        }
        assert_eq!(children(pid), before);
        signal(pid, &[], 9);
        sh.wait().unwrap();
    }
}
