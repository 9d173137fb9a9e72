//! Turning limits into what the kernel wants to read, in either version.

use std::io::{self, ErrorKind};
use std::path::Path;

use super::group::{Group, make_dir};
use super::{ASIDE, Cgroups, Controller, Version};
use crate::limits::CPU_PERIOD;
use crate::{Limits, RuntimeError};

/// The controller's group of one sandbox.
#[derive(Debug, Clone)]
pub(super) struct Seat {
    pub(super) controller: Controller,
    pub(super) version: Version,
    pub(super) group: Group,
}

/// One value to write. A missing file is a failure only if it is `required`.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    file: &'static str,
    value: String,
    required: bool,
}

fn must(file: &'static str, value: impl ToString) -> Setting {
    Setting { file, value: value.to_string(), required: true }
}

fn may(file: &'static str, value: impl ToString) -> Setting {
    Setting { file, value: value.to_string(), required: false }
}

/// The limits that are asked for and belong to a controller, by the name a person knows.
pub(super) fn wanted(limits: &Limits, controller: Controller) -> Option<&'static str> {
    match controller {
        Controller::Memory => limits.memory.map(|_| "memory"),
        Controller::Cpu => limits.cpu_quota.or(limits.cpu_shares).map(|_| "cpu time"),
        Controller::Pids => limits.pids.map(|_| "the number of processes"),
    }
}

fn settings(limits: &Limits, controller: Controller, version: Version) -> Vec<Setting> {
    match controller {
        Controller::Memory => limits.memory.map_or_else(Vec::new, |m| memory(m, version)),
        Controller::Cpu => cpu(limits, version),
        Controller::Pids => limits.pids.map(|n| must("pids.max", n)).into_iter().collect(),
    }
}

/// Swap counts too, or a limit of memory would only move the excess to the disk. The kernel may
/// have been built or started without counting it.
fn memory(bytes: u64, version: Version) -> Vec<Setting> {
    match version {
        Version::V1 => vec![
            must("memory.limit_in_bytes", bytes),
            // Never below the limit of memory, hence after it.
            may("memory.memsw.limit_in_bytes", bytes),
        ],
        Version::V2 => vec![must("memory.max", bytes), may("memory.swap.max", 0)],
    }
}

fn cpu(limits: &Limits, version: Version) -> Vec<Setting> {
    let mut settings = Vec::new();
    match (version, limits.cpu_quota) {
        (Version::V1, Some(quota)) => settings
            .extend([must("cpu.cfs_period_us", CPU_PERIOD), must("cpu.cfs_quota_us", quota)]),
        (Version::V2, Some(quota)) => {
            settings.push(must("cpu.max", format!("{quota} {CPU_PERIOD}")));
        }
        (_, None) => {}
    }
    match (version, limits.cpu_shares) {
        (Version::V1, Some(shares)) => settings.push(must("cpu.shares", shares)),
        (Version::V2, Some(shares)) => settings.push(must("cpu.weight", weight(shares))),
        (_, None) => {}
    }
    settings
}

/// Shares (2 to 262144, normally 1024) as a weight (1 to 10000), the way every container engine
/// converts them.
fn weight(shares: u64) -> u64 {
    1 + (shares.clamp(2, 262_144) - 2) * 9_999 / 262_142
}

/// Writes the limits of one controller into its group.
pub(super) fn apply(seat: &Seat, limits: &Limits) -> Result<(), RuntimeError> {
    let Some(limit) = wanted(limits, seat.controller) else { return Ok(()) };
    for setting in settings(limits, seat.controller, seat.version) {
        match seat.group.write(setting.file, &setting.value) {
            Err(e) if setting.required => return Err(refused(limit, seat, &setting, &e)),
            _ => {}
        }
    }
    Ok(())
}

fn refused(limit: &'static str, seat: &Seat, setting: &Setting, error: &io::Error) -> RuntimeError {
    let file = seat.group.path.join(setting.file);
    RuntimeError::Unenforceable {
        limit,
        reason: format!("writing {} to {} failed: {error}", setting.value, file.display()),
        hint: "`ringfence doctor` shows which limits this host can enforce".to_owned(),
    }
}

/// The error for a limit whose controller is nowhere to be had.
pub(super) fn unavailable(cgroups: &Cgroups, limit: &'static str, name: &str) -> RuntimeError {
    let (reason, hint) = match (cgroups.unified(), rustix::process::geteuid().is_root()) {
        (None, false) => (
            "no control group may be written by this user".to_owned(),
            "run as root, or inside `systemd-run --user --scope -p Delegate=yes`",
        ),
        (None, true) => (
            format!("no hierarchy with the {name} controller is mounted writable"),
            "mount cgroup2 at /sys/fs/cgroup, or give the container writable cgroups",
        ),
        (Some(dir), _) => (
            format!("the {name} controller is not available in {}", dir.display()),
            "enable it in `cgroup.subtree_control` of the groups above, or boot with it enabled",
        ),
    };
    RuntimeError::Unenforceable { limit, reason, hint: hint.to_owned() }
}

/// Hands a version 2 controller down from `base` to the groups in `base/parent`.
pub(super) fn hand_down(base: &Path, parent: &Path, controller: Controller) -> io::Result<()> {
    let word = format!("+{}", controller.name());
    let enable = |dir: &Path| Group::at(dir).write("cgroup.subtree_control", &word);
    match enable(base) {
        // A group below the root cannot have both processes and controllers below it, and the
        // process in a user's delegated group is most likely this one.
        Err(e) if e.kind() == ErrorKind::ResourceBusy => {
            step_aside(base)?;
            enable(base)?;
        }
        result => result?,
    }
    enable(parent)
}

fn step_aside(base: &Path) -> io::Result<()> {
    let aside = base.join(ASIDE);
    match make_dir(&aside) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(e),
        _ => Group::at(aside).write("cgroup.procs", "0"),
    }
}

/// The error for a controller that exists and cannot be handed down.
pub(super) fn not_handed_down(limit: &'static str, base: &Path, error: &io::Error) -> RuntimeError {
    let hint = match error.kind() {
        ErrorKind::ResourceBusy => format!(
            "move the processes listed in {}/cgroup.procs to a group below it",
            base.display()
        ),
        _ => "run as root, or inside `systemd-run --user --scope -p Delegate=yes`".to_owned(),
    };
    let reason = format!("its controller cannot be enabled below {}: {error}", base.display());
    RuntimeError::Unenforceable { limit, reason, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(limits: &Limits, version: Version) -> Vec<String> {
        let of = |controller| settings(limits, controller, version);
        let show =
            |s: Setting| format!("{}={}{}", s.file, s.value, if s.required { "" } else { "?" });
        Controller::ALL.into_iter().flat_map(of).map(show).collect()
    }

    #[test]
    fn every_limit_is_written_in_the_words_of_its_version() {
        let limits = Limits {
            memory: Some(1 << 29),
            cpu_quota: Some(150_000),
            cpu_shares: Some(512),
            pids: Some(100),
        };
        assert_eq!(
            shown(&limits, Version::V1),
            [
                "memory.limit_in_bytes=536870912",
                "memory.memsw.limit_in_bytes=536870912?",
                "cpu.cfs_period_us=100000",
                "cpu.cfs_quota_us=150000",
                "cpu.shares=512",
                "pids.max=100",
            ]
        );
        assert_eq!(
            shown(&limits, Version::V2),
            [
                "memory.max=536870912",
                "memory.swap.max=0?",
                "cpu.max=150000 100000",
                "cpu.weight=20",
                "pids.max=100",
            ]
        );
    }

    #[test]
    fn no_limits_are_no_settings() {
        assert!(shown(&Limits::default(), Version::V1).is_empty());
        assert!(shown(&Limits::default(), Version::V2).is_empty());
    }

    #[test]
    fn shares_become_weights_within_bounds() {
        assert_eq!([0, 2, 1024, 262_144, u64::MAX].map(weight), [1, 1, 39, 10_000, 10_000]);
    }
}
