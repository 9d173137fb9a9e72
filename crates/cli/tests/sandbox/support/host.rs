//! What is asked of the host: which processes there are.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Whether a process of the host is there and not a zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// Host processes whose command line holds a text.
pub(crate) fn processes_with(text: &str) -> Vec<i32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let holds = |pid: &i32| {
        let line = std::fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline"));
        String::from_utf8_lossy(&line.unwrap_or_default()).contains(text)
    };
    pids.filter(holds).collect()
}

/// Whether one of them has not ended.
pub(crate) fn any_alive(text: &str) -> bool {
    processes_with(text).iter().any(|pid| is_alive(*pid))
}

/// A number of seconds, long and like no other on this machine: who sleeps for it can be found.
pub(crate) fn unique_sleep() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    // All as long as each other: none is the beginning of another.
    format!("41{:03}.{:07}", NEXT.fetch_add(1, Ordering::Relaxed), std::process::id())
}

/// Bytes of memory that a process has.
pub(crate) fn memory_of(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
