//! All processes of one command, to be signalled, ended and counted together.

use std::sync::Arc;
use std::time::Duration;

use ringfence_link::init::Spawn;
use ringfence_runtime::cgroup::CommandGroup;
use std::os::fd::BorrowedFd;

use crate::inside::{Inside, Program, SpawnFailure};
use crate::origins::{Origins, Owner};

pub(crate) const SIGTERM: i32 = 15;
pub(crate) const SIGKILL: i32 = 9;

/// The processes of a command: a cgroup of their own, or what init finds where there is none.
#[derive(Debug)]
pub(crate) struct Tree {
    name: String,
    group: Option<CommandGroup>,
    inside: Arc<Inside>,
    origins: Arc<Origins>,
    /// As it is called inside.
    first: i32,
}

impl Tree {
    /// Starts a program in a group of this name. Whatever it does is done for `owner`.
    pub(crate) fn start(
        (inside, origins): (&Arc<Inside>, &Arc<Origins>),
        (name, group): (String, Option<CommandGroup>),
        owner: &Arc<Owner>,
        mut request: Spawn,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(Self, Program), SpawnFailure> {
        let (inside, origins) = (inside.clone(), origins.clone());
        let mut tree = Self { name, group, inside, origins, first: 0 };
        let mut fds = fds.to_vec();
        if let Some(group) = &tree.group {
            tree.origins.add_group(&tree.name, owner);
            request.in_cgroup = true;
            fds.push(group.dir());
        }
        let program = tree.inside.spawn(request, &fds)?;
        tree.first = program.pid;
        if tree.group.is_none() {
            tree.origins.add_pid(program.host_pid, owner);
        }
        Ok((tree, program))
    }

    pub(crate) fn signal(&self, signal: i32) {
        match &self.group {
            Some(group) => drop(group.signal(signal, &[])),
            None => self.inside.signal(self.first, signal),
        }
    }

    /// Ends all of them for certain, as far as this host can.
    pub(crate) fn kill(&self) {
        match &self.group {
            Some(group) => drop(group.kill()),
            None => self.inside.signal(self.first, SIGKILL),
        }
    }

    /// Whether none is left; where nobody can tell, no.
    pub(crate) fn is_empty(&self) -> bool {
        self.group.as_ref().is_some_and(|group| group.is_empty())
    }

    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        self.group.as_ref().and_then(|group| group.cpu_time())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.group.is_none() {
            self.inside.signal(self.first, SIGKILL);
        }
        // The group kills and removes itself.
        self.group = None;
        self.origins.remove_group(&self.name);
    }
}
