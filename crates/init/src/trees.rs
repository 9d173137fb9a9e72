//! The processes that belong to a command, where no cgroup says so.
//!
//! Best effort: who has left the tree of its parents and the session of the command is not found.

use std::collections::{HashMap, HashSet};

/// Parent and session of every process.
fn processes() -> HashMap<i32, (i32, i32)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return HashMap::new() };
    let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| Some((pid, relations(pid)?))).collect()
}

fn relations(pid: i32) -> Option<(i32, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything, parentheses included.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    Some((parent, session))
}

/// What is found to come from a command's first process; that one itself only if it is still there
/// (its number may be somebody else's by now, unless it is kept by a session of that number).
pub(crate) fn members(first: i32, is_there: bool) -> Vec<i32> {
    let all = processes();
    let in_session = all.iter().filter(|(_, (_, session))| *session == first);
    let mut found: HashSet<i32> = in_session.map(|(pid, _)| *pid).collect();
    found.extend(is_there.then_some(first));
    loop {
        let below =
            all.iter().filter(|(pid, (parent, _))| found.contains(parent) && !found.contains(*pid));
        let below: Vec<i32> = below.map(|(pid, _)| *pid).collect();
        if below.is_empty() {
            return found.into_iter().filter(|pid| *pid > 1).collect();
        }
        found.extend(below);
    }
}
