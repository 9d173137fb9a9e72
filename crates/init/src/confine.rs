//! What init does to itself before it listens; everything it starts inherits it.

use std::error::Error;
use std::fs::File;
use std::io::{self, Write};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};

/// Where files may be changed, as far as Landlock is concerned. What may be changed below
/// `/workspace` is the workspace's own decision.
const WRITABLE: &[&str] = &["/workspace", "/tmp", "/home", "/dev", "/run", "/proc", "/var"];

/// The newest version this was written against; older kernels enforce what they know.
const KNOWN: ABI = ABI::V6;

/// Keeps other processes of the same user from looking into this one or into its descriptors.
pub(crate) fn hide_memory() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// A second wall behind the mounts: nothing outside of the listed places can be changed, and
/// abstract sockets of others cannot be reached. Returns the version of Landlock that enforces it,
/// 0 where there is none.
pub(crate) fn restrict_files() -> Result<u32, Box<dyn Error>> {
    let all = AccessFs::from_all(KNOWN);
    let look = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::AbstractUnixSocket)?
        .create()?
        .add_rule(PathBeneath::new(PathFd::new("/")?, look))?;
    for place in WRITABLE {
        // What is not there needs no rule.
        if let Ok(fd) = PathFd::new(place) {
            rules = rules.add_rule(PathBeneath::new(fd, all))?;
        }
    }
    let status = rules.restrict_self()?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => Ok(0),
        (_, LandlockStatus::Available { effective_abi, .. }) => Ok(effective_abi as u32),
        _ => Ok(0),
    }
}

/// Limits that a program may lower but not raise. The many descriptors the warden may open are not
/// for the inside, and a core dump could hold what another command keeps secret. Processes are
/// counted per user namespace, so those are the sandbox's own; without a limit of its choice one
/// must not be able to use up the numbers of the host.
pub(crate) fn limit_resources() {
    let cap = |most: u64, usual: u64, of: Resource| {
        let maximum = getrlimit(of).maximum.map_or(most, |maximum| maximum.min(most));
        let current = Some(usual.min(maximum));
        let _ = setrlimit(of, Rlimit { current, maximum: Some(maximum) });
    };
    cap(65_536, 1024, Resource::Nofile);
    cap(8192, 8192, Resource::Nproc);
    cap(0, 0, Resource::Core);
}

/// This process's place in the queue of the OOM killer. A child starts with its parent's, so init
/// takes the child's place for the moment of the fork: a child cannot be allowed to write its own
/// before exec, because it would have to become visible to others with init's memory in it.
#[derive(Debug)]
pub(crate) struct OomScore(Option<File>);

impl OomScore {
    /// Must be made before [`hide_memory`], after which the file cannot be opened.
    pub(crate) fn of_this_process() -> Self {
        Self(File::options().write(true).open("/proc/self/oom_score_adj").ok())
    }

    pub(crate) fn during<R>(&mut self, score: i16, fork: impl FnOnce() -> R) -> R {
        self.set(score);
        let result = fork();
        self.set(0);
        result
    }

    fn set(&mut self, score: i16) {
        if let Some(file) = &mut self.0 {
            let _ = file.write_all(score.to_string().as_bytes());
        }
    }
}
