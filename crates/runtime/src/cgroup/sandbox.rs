//! The groups of one sandbox, in all hierarchies.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::chown;
use std::path::Path;

use super::enforce::{Seat, apply, hand_down, not_handed_down, unavailable, wanted};
use super::group::{Group, is_valid_name, make, make_dir};
use super::{Cgroups, CommandGroup, Controller, Version, end};
use crate::{Limits, RuntimeError};

/// Removing the last sandbox also removes the directory of all; a new one may then have to begin
/// again.
const ATTEMPTS: usize = 16;

/// The groups of one sandbox. Dropping them kills what is inside and removes them.
///
/// On a host without usable cgroups there may be none: then nothing was limited, and
/// [`command`](Self::command) and [`kill_all`](Self::kill_all) say that they cannot.
#[derive(Debug)]
pub struct SandboxGroup {
    /// Processes are born, frozen and killed here.
    unified: Option<(Group, OwnedFd)>,
    /// `tasks` files of the version 1 groups.
    tasks: Vec<OwnedFd>,
    seats: Vec<Seat>,
    /// Version 1, where there is no version 2.
    freezer: Option<Group>,
    owner: Option<(u32, u32)>,
}

/// How a process is born into the groups, in the terms of `ringfence_sys::spawn::Spawn`.
#[derive(Debug, Default)]
pub struct Attach<'a> {
    pub cgroup: Option<BorrowedFd<'a>>,
    pub tasks: Vec<BorrowedFd<'a>>,
}

impl SandboxGroup {
    /// Makes the groups of a sandbox where this host has them; see [`Cgroups::create`].
    pub fn create(
        id: &str,
        limits: &Limits,
        owner: Option<(u32, u32)>,
    ) -> Result<Self, RuntimeError> {
        let cgroups =
            Cgroups::of_this_host().map_err(|e| RuntimeError::io("look for control groups", e))?;
        cgroups.create(id, limits, owner)
    }

    pub(super) fn make(
        cgroups: &Cgroups,
        id: &str,
        limits: &Limits,
        owner: Option<(u32, u32)>,
    ) -> Result<Self, RuntimeError> {
        if !is_valid_name(id) {
            return Err(RuntimeError::io(format!("name a control group '{id}'"), invalid_name()));
        }
        let empty =
            Self { unified: None, tasks: Vec::new(), seats: Vec::new(), freezer: None, owner };
        // What was made before a failure is removed when the half-made value is dropped.
        let mut groups = empty;
        groups.make_unified(cgroups, id)?;
        for controller in Controller::ALL {
            groups.make_seat(cgroups, id, limits, controller)?;
        }
        groups.make_freezer(cgroups, id);
        groups.seats.iter().try_for_each(|seat| apply(seat, limits))?;
        Ok(groups)
    }

    fn make_unified(&mut self, cgroups: &Cgroups, id: &str) -> Result<(), RuntimeError> {
        let Some(base) = cgroups.unified() else { return Ok(()) };
        let parent = base.join(&cgroups.parent);
        let failed = |e| RuntimeError::io(format!("make a group in {}", parent.display()), e);
        let group = make_in(&parent, id).map_err(failed)?;
        let dir = group.open().map_err(failed)?;
        let procs = give(&group, self.owner).map_err(failed);
        self.unified = Some((group, dir));
        procs
    }

    /// Joins the controller's hierarchy. Memory and processes are counted even where they are not
    /// limited, if that can be had.
    fn make_seat(
        &mut self,
        cgroups: &Cgroups,
        id: &str,
        limits: &Limits,
        controller: Controller,
    ) -> Result<(), RuntimeError> {
        let limit = wanted(limits, controller);
        let counted = controller != Controller::Cpu;
        match (cgroups.place(controller), limit) {
            (Some((version, base)), _) if counted || limit.is_some() => {
                let seat = self.seat(&base.join(&cgroups.parent), id, controller, version);
                match (seat, limit) {
                    (Ok(seat), _) => self.seats.push(seat),
                    (Err(_), None) => {}
                    (Err(e), Some(limit)) => return Err(not_handed_down(limit, base, &e)),
                }
                Ok(())
            }
            (None, Some(limit)) => Err(unavailable(cgroups, limit, controller.name())),
            _ => Ok(()),
        }
    }

    fn seat(
        &mut self,
        parent: &Path,
        id: &str,
        controller: Controller,
        version: Version,
    ) -> io::Result<Seat> {
        let group = match version {
            Version::V2 => {
                hand_down(parent.parent().unwrap_or(parent), parent, controller)?;
                Group::at(parent.join(id))
            }
            Version::V1 => self.join_legacy(parent, id)?,
        };
        Ok(Seat { controller, version, group })
    }

    /// Two controllers may share a hierarchy, and so the group.
    fn join_legacy(&mut self, parent: &Path, id: &str) -> io::Result<Group> {
        let path = parent.join(id);
        if self.seats.iter().any(|seat| seat.group.path == path) {
            return Ok(Group::at(path));
        }
        let group = make_in(parent, id)?;
        let tasks = fs::File::options().write(true).open(path.join("tasks"));
        let tasks = tasks.inspect_err(|_| drop(group.remove()))?;
        self.tasks.push(tasks.into());
        Ok(group)
    }

    fn make_freezer(&mut self, cgroups: &Cgroups, id: &str) {
        if self.unified.is_none()
            && let Some(base) = cgroups.legacy("freezer")
        {
            self.freezer = self.join_legacy(&base.join(&cgroups.parent), id).ok();
        }
    }

    /// How init is to be started so that it is inside.
    pub fn attach(&self) -> Attach<'_> {
        Attach {
            cgroup: self.unified.as_ref().map(|(_, dir)| dir.as_fd()),
            tasks: self.tasks.iter().map(AsFd::as_fd).collect(),
        }
    }

    /// Moves a process that was born elsewhere into the groups.
    pub fn take_in(&self, pid: i32) -> io::Result<()> {
        let number = pid.to_string();
        if let Some((group, _)) = &self.unified {
            group.write("cgroup.procs", &number)?;
        }
        for tasks in &self.tasks {
            rustix::io::write(tasks, number.as_bytes())?;
        }
        Ok(())
    }

    /// Makes a group for one command. `None` where there is no version 2: the processes of a
    /// command can then be told apart by best effort only.
    pub fn command(&self, name: &str) -> Result<Option<CommandGroup>, RuntimeError> {
        let Some((sandbox, _)) = &self.unified else { return Ok(None) };
        let failed = |e| RuntimeError::io(format!("make a group for command '{name}'"), e);
        if !is_valid_name(name) {
            return Err(failed(invalid_name()));
        }
        let path = sandbox.path.join(name);
        make_dir(&path).map_err(failed)?;
        let group = Group::at(path);
        let dir = give(&group, self.owner).and_then(|()| group.open());
        let dir = dir.inspect_err(|_| drop(group.remove())).map_err(failed)?;
        Ok(Some(CommandGroup::new(group, dir)))
    }

    /// What is counted and, as far as it was asked for, limited.
    pub fn in_force(&self) -> Vec<(Controller, Version)> {
        self.seats.iter().map(|seat| (seat.controller, seat.version)).collect()
    }

    fn seat_of(&self, controller: Controller) -> Option<&Seat> {
        self.seats.iter().find(|seat| seat.controller == controller)
    }

    fn number(&self, controller: Controller, v1: (&str, &str), v2: (&str, &str)) -> Option<u64> {
        let seat = self.seat_of(controller)?;
        let (file, key) = if seat.version == Version::V1 { v1 } else { v2 };
        seat.group.number(file, key)
    }

    /// How many processes the kernel has killed for want of memory.
    pub fn oom_kills(&self) -> u64 {
        let (v1, v2) = (("memory.oom_control", "oom_kill"), ("memory.events", "oom_kill"));
        self.number(Controller::Memory, v1, v2).unwrap_or(0)
    }

    /// How often a process or thread was refused because there were too many.
    pub fn pids_refused(&self) -> u64 {
        let events = ("pids.events", "max");
        self.number(Controller::Pids, events, events).unwrap_or(0)
    }

    /// In how many periods of 100 ms the sandbox had to wait because its quota was used up.
    pub fn throttled(&self) -> u64 {
        let stat = ("cpu.stat", "nr_throttled");
        self.number(Controller::Cpu, stat, stat).unwrap_or(0)
    }

    /// The most memory that was in use at once, in bytes, where the kernel keeps it.
    pub fn memory_peak(&self) -> Option<u64> {
        let (v1, v2) = (("memory.max_usage_in_bytes", ""), ("memory.peak", ""));
        self.number(Controller::Memory, v1, v2)
    }

    /// Where processes are stopped and killed.
    fn stopper(&self) -> io::Result<&Group> {
        let unified = self.unified.as_ref().map(|(group, _)| group);
        unified.or(self.freezer.as_ref()).ok_or_else(|| ErrorKind::Unsupported.into())
    }

    /// All processes inside, as host pids, as far as any group knows.
    pub fn pids(&self) -> Vec<i32> {
        let any = self.stopper().ok().or(self.seats.first().map(|seat| &seat.group));
        any.map(Group::pids).unwrap_or_default()
    }

    /// Stops everything inside, init included; returns when all stands still.
    pub fn freeze(&self) -> io::Result<()> {
        self.stopper()?.freeze()
    }

    pub fn thaw(&self) -> io::Result<()> {
        self.stopper()?.thaw()
    }

    /// Ends everything inside, init included. `Unsupported` where there is no group to do it with;
    /// ending bwrap and init by their descriptors then ends their pid namespace.
    pub fn kill_all(&self) -> io::Result<()> {
        self.stopper()?.kill()
    }

    /// Kills everything inside and removes the groups in all hierarchies. Done twice is fine.
    pub fn remove(&self) -> io::Result<()> {
        let unified = self.unified.iter().map(|(group, _)| group);
        let seats = self.seats.iter().map(|seat| &seat.group);
        let mut groups: Vec<Group> = unified.chain(&self.freezer).chain(seats).cloned().collect();
        groups.retain(|group| group.path.exists());
        end(&groups)
    }
}

impl Drop for SandboxGroup {
    fn drop(&mut self) {
        // Nobody is left to tell; `remove_leftovers` finds what stays.
        let _ = self.remove();
    }
}

fn invalid_name() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "only letters, digits, '-' and '_' are possible")
}

fn make_in(parent: &Path, id: &str) -> io::Result<Group> {
    let mut result = make(parent, id);
    for _ in 1..ATTEMPTS {
        match &result {
            Err(e) if e.kind() == ErrorKind::NotFound => result = make(parent, id),
            _ => break,
        }
    }
    result
}

/// Lets the sandbox's user put processes into the group, and nothing more: it can neither change
/// limits nor make groups. To move one from group to group, both and the one above must be given.
fn give(group: &Group, owner: Option<(u32, u32)>) -> io::Result<()> {
    let Some((uid, gid)) = owner else { return Ok(()) };
    chown(group.path.join("cgroup.procs"), Some(uid), Some(gid))
}
