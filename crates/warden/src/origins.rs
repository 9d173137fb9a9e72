//! Which command a process belongs to.
//!
//! Asked by the filesystem for every access, while the process waits for the answer. A process is
//! found by the cgroup it is in, once; after that by its number.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

/// Someone on whose behalf processes run: an exec, or a session with one command after another.
#[derive(Debug, Default)]
pub(crate) struct Owner {
    /// The command of now; 0 between commands.
    command: AtomicU64,
}

impl Owner {
    pub(crate) fn of(command: u64) -> Arc<Self> {
        Arc::new(Self { command: AtomicU64::new(command) })
    }

    pub(crate) fn set(&self, command: u64) {
        self.command.store(command, Ordering::Release);
    }
}

#[derive(Debug, Default)]
pub(crate) struct Origins {
    by_group: RwLock<HashMap<String, Arc<Owner>>>,
    by_pid: RwLock<HashMap<u32, Arc<Owner>>>,
}

/// More numbers than this are not worth remembering; they can be found again.
const REMEMBERED: usize = 100_000;

impl Origins {
    /// Processes of this group run for `owner` from now on.
    pub(crate) fn add_group(&self, name: &str, owner: &Arc<Owner>) {
        let before = self.by_group.write().insert(name.into(), owner.clone());
        if let Some(before) = before {
            self.forget_pids_of(&before);
        }
    }

    pub(crate) fn remove_group(&self, name: &str) {
        let removed = self.by_group.write().remove(name);
        if let Some(owner) = removed {
            self.forget_pids_of(&owner);
        }
    }

    /// The numbers of processes that ran for `owner` may be somebody else's from now on.
    pub(crate) fn forget_pids_of(&self, owner: &Arc<Owner>) {
        self.by_pid.write().retain(|_, known| !Arc::ptr_eq(known, owner));
    }

    /// A process known by its number, where there are no cgroups.
    pub(crate) fn add_pid(&self, pid: i32, owner: &Arc<Owner>) {
        self.by_pid.write().insert(pid as u32, owner.clone());
    }

    /// The command a process belongs to; 0 if nobody knows.
    pub(crate) fn command_of(&self, pid: u32) -> u64 {
        let known = self.by_pid.read().get(&pid).cloned();
        let owner = known.or_else(|| self.find(pid));
        owner.map_or(0, |owner| owner.command.load(Ordering::Acquire))
    }

    fn find(&self, pid: u32) -> Option<Arc<Owner>> {
        let owner = self.find_by_group(pid).or_else(|| self.find_by_parents(pid))?;
        let mut by_pid = self.by_pid.write();
        if by_pid.len() >= REMEMBERED {
            by_pid.clear();
        }
        by_pid.insert(pid, owner.clone());
        Some(owner)
    }

    fn find_by_group(&self, pid: u32) -> Option<Arc<Owner>> {
        let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
        let name = path.rsplit('/').next()?;
        self.by_group.read().get(name).cloned()
    }

    fn find_by_parents(&self, mut pid: u32) -> Option<Arc<Owner>> {
        while pid > 1 {
            if let Some(owner) = self.by_pid.read().get(&pid) {
                return Some(owner.clone());
            }
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            pid = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_by_itself_or_its_parents_and_follows_its_owner() {
        let origins = Origins::default();
        let me = std::process::id();
        assert_eq!(origins.command_of(me), 0);
        let owner = Owner::of(7);
        origins.add_pid(me as i32, &owner);
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        assert_eq!(origins.command_of(child.id()), 7);
        owner.set(8);
        assert_eq!(origins.command_of(child.id()), 8);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
