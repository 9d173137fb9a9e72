//! The cgroups of a session.
//!
//! The shell is alone in its group when a command starts, so whatever else is in it belongs to
//! that command. What a command leaves behind keeps the group, and the shell moves to a fresh one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ringfence_link::warden::Failure;
use ringfence_runtime::cgroup::CommandGroup;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::os::fd::BorrowedFd;

use super::kin;
use crate::origins::Owner;
use crate::sandbox::Sandbox;
use crate::tree::SIGKILL;

/// Old groups looked at after each command, to see whether they are empty by now.
const LOOKED_AT: usize = 4;

pub(super) struct Groups {
    sandbox: Arc<Sandbox>,
    session: u64,
    made: u64,
    /// Whoever is in the current group works for this one.
    owner: Arc<Owner>,
    /// None where this host has no cgroups (v2).
    current: Option<Named>,
    older: VecDeque<Named>,
    /// Where there are no groups: children of the shell from before the command that runs.
    earlier: Vec<i32>,
    /// Whether the last of the older ones is the running command's.
    left: bool,
    /// The shell, as it is called outside.
    shell: i32,
    /// What the current group had used before the command that runs.
    cpu_before: Duration,
    /// What that command has used in a group that was left.
    cpu_left: Duration,
}

struct Named {
    name: String,
    group: CommandGroup,
}

impl std::fmt::Debug for Groups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Groups").field("session", &self.session).finish_non_exhaustive()
    }
}

impl Groups {
    pub(super) fn new(sandbox: &Arc<Sandbox>, session: u64) -> Result<Self, Failure> {
        let mut groups = Self {
            sandbox: sandbox.clone(),
            session,
            made: 0,
            owner: Owner::of(0),
            current: None,
            older: VecDeque::new(),
            earlier: Vec::new(),
            left: false,
            shell: 0,
            cpu_before: Duration::ZERO,
            cpu_left: Duration::ZERO,
        };
        groups.current = groups.make()?;
        Ok(groups)
    }

    fn make(&mut self) -> Result<Option<Named>, Failure> {
        self.made += 1;
        let name = format!("s{}-{}", self.session, self.made);
        let Some(group) = self.sandbox.new_group(&name)? else { return Ok(None) };
        self.sandbox.origins.add_group(&name, &self.owner);
        Ok(Some(Named { name, group }))
    }

    /// Where the shell is to be born.
    pub(super) fn dir(&self) -> Option<BorrowedFd<'_>> {
        self.current.as_ref().map(|named| named.group.dir())
    }

    pub(super) fn shell_is(&mut self, host_pid: i32) {
        self.shell = host_pid;
        self.know_the_shell();
    }

    fn know_the_shell(&self) {
        if self.current.is_none() && self.shell > 0 {
            self.sandbox.origins.add_pid(self.shell, &self.owner);
        }
    }

    /// Whether the shell is the only one in its group. Where there are no groups, nobody knows.
    pub(super) fn is_alone(&self) -> bool {
        self.current.as_ref().is_none_or(|named| named.group.holds_only(self.shell))
    }

    /// From now on the shell works for this command.
    pub(super) fn begin_command(&mut self, command: u64) {
        self.owner.set(command);
        if self.current.is_none() {
            self.earlier = kin::children(self.shell);
        }
    }

    /// A command is over: whatever runs in the group it leaves behind runs for that command.
    pub(super) fn end_command(&mut self, command: u64) {
        if !self.is_alone() {
            self.move_out(command);
        }
        self.left = false;
        self.owner.set(0);
        self.sandbox.origins.forget_pids_of(&self.owner);
        self.know_the_shell();
        self.sweep();
    }

    /// What was used so far is not the next command's.
    pub(super) fn rest(&mut self) {
        (self.cpu_before, self.cpu_left) = (self.cpu_of_group(), Duration::ZERO);
    }

    /// Takes the shell to a fresh group. What stays in the old one runs for `command`. Whether it
    /// could be done: otherwise all stay together, and what is left over counts as the next
    /// command's.
    pub(super) fn move_out(&mut self, command: u64) -> bool {
        self.left = false;
        if self.current.is_none() {
            return false;
        }
        let used = self.cpu_time();
        let Ok(Some(fresh)) = self.make() else { return false };
        if fresh.group.move_in(self.shell).is_err() {
            self.remove(fresh);
            return false;
        }
        if let Some(old) = self.current.replace(fresh) {
            // After the move, or the shell would be remembered as working for the old command.
            self.sandbox.origins.add_group(&old.name, &Owner::of(command));
            self.older.push_back(old);
            self.left = true;
            (self.cpu_before, self.cpu_left) = (Duration::ZERO, used);
        }
        true
    }

    /// Removes some of the old groups that have become empty.
    fn sweep(&mut self) {
        for _ in 0..LOOKED_AT.min(self.older.len()) {
            let Some(old) = self.older.pop_front() else { return };
            match old.group.is_empty() {
                true => self.remove(old),
                false => self.older.push_back(old),
            }
        }
    }

    fn remove(&self, old: Named) {
        drop(old.group);
        self.sandbox.origins.remove_group(&old.name);
    }

    /// The group of the running command, if the shell was moved out of it.
    fn left_last(&self) -> Option<&CommandGroup> {
        self.older.back().filter(|_| self.left).map(|named| &named.group)
    }

    pub(super) fn signal_left(&self, signal: i32) {
        match self.left_last() {
            Some(group) => drop(group.signal(signal, &[])),
            None => self.signal_kin(signal),
        }
    }

    pub(super) fn kill_left(&self) {
        match self.left_last() {
            Some(group) => drop(group.kill()),
            None => self.signal_kin(SIGKILL),
        }
    }

    /// Whether nothing is left of the running command, as far as can be seen.
    pub(super) fn left_is_empty(&self) -> bool {
        match (self.left_last(), &self.current) {
            (Some(group), _) => group.is_empty(),
            (None, None) => !kin::has_any(self.shell, &self.earlier),
            (None, Some(_)) => false,
        }
    }

    fn signal_kin(&self, signal: i32) {
        if self.current.is_none() && self.shell > 1 {
            kin::signal(self.shell, &self.earlier, signal);
        }
    }

    /// Signals the processes of the running command.
    pub(super) fn signal_command(&self, signal: i32) {
        match &self.current {
            Some(named) => drop(named.group.signal(signal, &[self.shell])),
            None => self.signal_kin(signal),
        }
    }

    /// Signals the process group in the foreground of the shell's terminal: a job of an earlier
    /// command may have been brought there.
    ///
    /// The number may be stale, and then belong to anybody. So only processes of the shell's own
    /// session are taken, whose number cannot be given away while the shell is there.
    pub(super) fn signal_foreground(&self, signal: i32, foreground: i32) {
        let Some(signal) = Signal::from_named_raw(signal) else { return };
        if !self.is_foreign(foreground) {
            return;
        }
        let wanted = (foreground, self.shell);
        for pid in numbers_in_proc().filter(|pid| group_and_session(*pid) == Some(wanted)) {
            let Some(number) = Pid::from_raw(pid) else { continue };
            let Ok(pidfd) = pidfd_open(number, PidfdFlags::empty()) else { continue };
            if group_and_session(pid) == Some(wanted) {
                let _ = pidfd_send_signal(&pidfd, signal);
            }
        }
    }

    /// Whether a process group in the foreground is one of a command, not the shell's own.
    pub(super) fn is_foreign(&self, foreground: i32) -> bool {
        self.shell > 1 && foreground > 1 && foreground != self.shell
    }

    /// The processes of the running command, without the shell.
    pub(super) fn processes(&self) -> Vec<i32> {
        let groups = self.left_last().into_iter().chain(self.current.iter().map(|n| &n.group));
        let mut pids: Vec<i32> = groups.flat_map(CommandGroup::pids).collect();
        pids.retain(|pid| *pid != self.shell);
        if self.current.is_none() && self.shell > 1 {
            pids.extend(kin::below(self.shell, &self.earlier).iter().map(|(pid, _)| pid));
        }
        pids
    }

    /// Processor time that the running command has used so far.
    pub(super) fn cpu_time(&self) -> Duration {
        self.cpu_left + self.cpu_of_group().saturating_sub(self.cpu_before)
    }

    fn cpu_of_group(&self) -> Duration {
        let time = self.current.as_ref().and_then(|named| named.group.cpu_time());
        time.unwrap_or_default()
    }

    /// Ends everything the session has started, the shell included.
    pub(super) fn kill_all(&self, shell_inside: i32) {
        if self.current.is_none() {
            self.sandbox.inside.signal(shell_inside, SIGKILL);
        }
        for named in self.current.iter().chain(&self.older) {
            let _ = named.group.kill();
        }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        let all: Vec<Named> = self.current.take().into_iter().chain(self.older.drain(..)).collect();
        // All are told first, then waited for one by one.
        for named in &all {
            let _ = named.group.kill();
        }
        for named in all {
            self.remove(named);
        }
        self.sandbox.origins.forget_pids_of(&self.owner);
    }
}

fn numbers_in_proc() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Process group and session of a process.
fn group_and_session(pid: i32) -> Option<(i32, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything, parentheses included.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}
