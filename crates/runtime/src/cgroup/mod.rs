//! Where limits are made, and processes are counted, frozen and killed.
//!
//! The kernel has two generations of cgroups, and hosts mix them: limits may be in version 1 while
//! version 2 is mounted without controllers. So the two questions are answered apart. A limit is
//! made in whichever hierarchy has its controller. The life of processes (being born inside, kill,
//! freeze, a group per command) is in version 2 where it is mounted at all, since even an empty
//! version 2 group can do that.
//!
//! ```text
//! memory/ringfence/<id>          limits, version 1: where version 2 lacks the controller
//! pids/ringfence/<id>
//! unified/ringfence/<id>         limits, version 2; bwrap and init are born here
//! unified/ringfence/<id>/<name>  one command
//! ```
//!
//! The sandbox's version 2 group never hands its controllers down (`cgroup.subtree_control` stays
//! empty). Its limits hold for all below it regardless, and so it may have processes of its own
//! beside groups of commands. That in turn is needed where the hierarchy is mounted with
//! `nsdelegate`, as systemd does: init may put commands only into groups below the root of its
//! cgroup namespace, which is the group that bwrap was born in.
//!
//! Start with [`Cgroups`] (what this host has), then [`SandboxGroup`].

mod command;
mod enforce;
mod group;
pub mod hierarchy;
mod sandbox;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::{Limits, RuntimeError};
pub use command::CommandGroup;
use group::Group;
use hierarchy::{Hierarchy, Version};
pub use sandbox::{Attach, SandboxGroup};

/// The directory that holds the groups of all sandboxes, in every hierarchy.
pub const PARENT: &str = "ringfence";

/// Where the caller goes if it is in the way of its own delegated group's limits.
const ASIDE: &str = "ringfence-self";

/// What can be limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controller {
    Memory,
    Cpu,
    Pids,
}

impl Controller {
    pub const ALL: [Self; 3] = [Self::Memory, Self::Cpu, Self::Pids];

    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Pids => "pids",
        }
    }
}

/// Where groups of sandboxes can be made on this host.
#[derive(Debug, Clone)]
pub struct Cgroups {
    /// The writable group below which ours go, in version 2.
    unified: Option<PathBuf>,
    /// The same for version 1, with the controllers there.
    legacy: Vec<(Vec<String>, PathBuf)>,
    parent: String,
}

impl Cgroups {
    /// What there is, according to `/proc`. None at all is a possible answer, not an error.
    pub fn of_this_host() -> io::Result<Self> {
        let (mounts, own) = ("/proc/thread-self/mountinfo", "/proc/self/cgroup");
        let or_nothing = |path| match fs::read_to_string(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(String::new()),
            result => result,
        };
        Ok(Self::among(&hierarchy::hierarchies(&or_nothing(mounts)?, &or_nothing(own)?)))
    }

    fn among(hierarchies: &[Hierarchy]) -> Self {
        let of = |version| hierarchies.iter().filter(move |h| h.version == version);
        let unified = of(Version::V2).find_map(base);
        let legacy =
            of(Version::V1).filter_map(|h| Some((h.controllers.clone(), base(h)?))).collect();
        Self { unified, legacy, parent: PARENT.to_owned() }
    }

    /// Makes the groups of sandboxes below a directory of this name instead of [`PARENT`].
    pub fn below(mut self, parent: &str) -> Self {
        self.parent = parent.to_owned();
        self
    }

    /// What a host would have on which version 2 is not mounted.
    pub fn without_unified(mut self) -> Self {
        self.unified = None;
        self
    }

    /// Where a controller's limits are made: its version and the group that ours go below.
    pub fn place(&self, controller: Controller) -> Option<(Version, &Path)> {
        let has = |dir: &&PathBuf| v2_controllers(dir).iter().any(|c| c == controller.name());
        match self.unified.as_ref().filter(has) {
            Some(dir) => Some((Version::V2, dir)),
            None => Some((Version::V1, self.legacy(controller.name())?)),
        }
    }

    /// The version 2 group that ours go below, if processes can be grouped, frozen and killed.
    pub fn unified(&self) -> Option<&Path> {
        self.unified.as_deref()
    }

    pub(crate) fn legacy(&self, controller: &str) -> Option<&Path> {
        let found = self.legacy.iter().find(|(names, _)| names.iter().any(|n| n == controller));
        found.map(|(_, dir)| dir.as_path())
    }

    /// Makes the groups of a sandbox. A limit that cannot be enforced is an error.
    ///
    /// `owner` is the host user that init runs as, who may then put commands into groups.
    pub fn create(
        &self,
        id: &str,
        limits: &Limits,
        owner: Option<(u32, u32)>,
    ) -> Result<SandboxGroup, RuntimeError> {
        SandboxGroup::make(self, id, limits, owner)
    }

    /// Kills and removes whatever exists of a sandbox, in all hierarchies. Nothing to do is fine.
    pub fn remove_leftovers(&self, id: &str) -> io::Result<()> {
        if !group::is_valid_name(id) {
            return Err(ErrorKind::InvalidInput.into());
        }
        let places = self.unified.iter().chain(self.legacy.iter().map(|(_, dir)| dir));
        let groups = places.map(|dir| Group::at(dir.join(&self.parent).join(id)));
        let existing: Vec<Group> = groups.filter(|group| group.path.exists()).collect();
        end(&existing)
    }
}

/// Kills everything in groups of one sandbox, removes them, and their parents if those are empty.
///
/// All are killed before any is removed. In version 1 only the freezer can stop a group; the others
/// are listed to find what is not in a version 2 group.
fn end(groups: &[Group]) -> io::Result<()> {
    // All are tried: one that fails does not spare the others.
    let failures = |step: fn(&Group) -> io::Result<()>| -> Vec<io::Error> {
        groups.iter().filter_map(|group| step(group).err()).collect()
    };
    let mut killing = failures(kill);
    let mut removing = failures(Group::remove);
    for parent in groups.iter().filter_map(|group| group.path.parent()) {
        // Another sandbox may be in it.
        let _ = fs::remove_dir(parent);
    }
    // What could be removed was empty, however the killing went.
    match (removing.pop(), killing.pop()) {
        (None, _) => Ok(()),
        (Some(busy), why) => Err(why.unwrap_or(busy)),
    }
}

fn kill(group: &Group) -> io::Result<()> {
    match group.has("cgroup.freeze") || group.has("freezer.state") {
        true => group.kill(),
        false => {
            group.signal(rustix::process::Signal::KILL, &[]);
            Ok(())
        }
    }
}

/// The group of a hierarchy below which we may make ours: the topmost there is (for root), or the
/// own one (for a user whom systemd has delegated it).
fn base(hierarchy: &Hierarchy) -> Option<PathBuf> {
    let own = hierarchy.mount.join(&hierarchy.own);
    let own = if own.ends_with(ASIDE) { own.parent()?.to_owned() } else { own };
    [hierarchy.mount.clone(), own].into_iter().find(|dir| is_writable(dir))
}

fn is_writable(dir: &Path) -> bool {
    let may_write = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    may_write(dir) && may_write(&dir.join("cgroup.procs"))
}

fn v2_controllers(dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(dir.join("cgroup.controllers")).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that looks like a group we may write, with these version 2 controllers.
    fn fake(path: PathBuf, controllers: Option<&str>) -> PathBuf {
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("cgroup.procs"), "").unwrap();
        if let Some(names) = controllers {
            fs::write(path.join("cgroup.controllers"), names).unwrap();
        }
        path
    }

    fn hierarchy(version: Version, names: &[&str], mount: &Path, own: &str) -> Hierarchy {
        let controllers = names.iter().map(|name| (*name).to_owned()).collect();
        Hierarchy { version, controllers, mount: mount.to_owned(), own: own.into() }
    }

    #[test]
    fn a_limit_is_made_where_its_controller_is() {
        let dir = tempfile::tempdir().unwrap();
        let v2 = fake(dir.path().join("unified"), Some("hugetlb pids\n"));
        let memory = fake(dir.path().join("memory"), None);
        let pids = fake(dir.path().join("pids"), None);
        let cgroups = Cgroups::among(&[
            hierarchy(Version::V1, &["memory"], &memory, ""),
            hierarchy(Version::V1, &["pids"], &pids, ""),
            hierarchy(Version::V2, &[], &v2, ""),
        ]);
        assert_eq!(cgroups.place(Controller::Memory), Some((Version::V1, memory.as_path())));
        assert_eq!(cgroups.place(Controller::Pids), Some((Version::V2, v2.as_path())));
        assert_eq!(cgroups.place(Controller::Cpu), None);
        assert_eq!(cgroups.unified(), Some(v2.as_path()));
    }

    #[test]
    fn the_own_group_is_used_where_the_topmost_may_not_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("cgroup");
        let own = fake(top.join("user.slice/run.scope"), Some("memory pids"));
        let of = |own: &str| Cgroups::among(&[hierarchy(Version::V2, &[], &top, own)]).unified;
        assert_eq!(of("user.slice/run.scope"), Some(own.clone()));
        // Having stepped aside, the process is one below the group that is its own.
        fake(own.join(ASIDE), None);
        assert_eq!(of("user.slice/run.scope/ringfence-self"), Some(own));
        assert_eq!(of("elsewhere"), None);
    }

    #[test]
    fn without_any_group_a_limit_is_refused_with_a_reason_and_no_limit_is_fine() {
        let cgroups = Cgroups::among(&[]);
        let limits = Limits { pids: Some(10), ..Limits::default() };
        let error = cgroups.create("box", &limits, None).unwrap_err();
        assert!(error.to_string().starts_with("the number of processes cannot be limited here: "));
        assert!(error.hint().is_some());
        let group = cgroups.create("box", &Limits::default(), None).unwrap();
        assert!(group.attach().cgroup.is_none() && group.attach().tasks.is_empty());
        assert!(group.command("c").unwrap().is_none());
        assert_eq!(group.kill_all().unwrap_err().kind(), ErrorKind::Unsupported);
        assert!(group.pids().is_empty() && group.oom_kills() == 0 && group.remove().is_ok());
    }
}
