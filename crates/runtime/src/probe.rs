//! What this host can enforce, as findings for `ringfence doctor`.
//!
//! Whatever can be tried is tried, not guessed from versions: containers and security modules make
//! guesses wrong.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use ringfence_sys::probe::{FuseDevice, fuse_device, is_on_overlayfs};
use rustix::process::geteuid;

use crate::RuntimeError;
use crate::bwrap::{INSTALL, failure, installed};
use crate::cgroup::hierarchy::Version;
use crate::cgroup::{Cgroups, Controller};
use crate::docker::Engine;
use crate::users::DEFAULT_RANGE;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Ok,
    /// Works, with something less than it could have.
    Limited,
    Missing,
}

/// One thing that a sandbox needs or could use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub what: &'static str,
    pub state: State,
    pub detail: String,
    /// What a person can do about it.
    pub fix: Option<String>,
}

impl Finding {
    fn ok(what: &'static str, detail: impl Into<String>) -> Self {
        Self { what, state: State::Ok, detail: detail.into(), fix: None }
    }

    fn limited(what: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { what, state: State::Limited, detail: detail.into(), fix: Some(fix.into()) }
    }

    fn missing(what: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { what, state: State::Missing, detail: detail.into(), fix: Some(fix.into()) }
    }
}

/// Everything there is to say about this host.
pub fn findings() -> Vec<Finding> {
    let release = release();
    let mut findings = vec![kernel(&release), bubblewrap(), namespaces(), fuse()];
    findings.push(passthrough(&release, geteuid().is_root()));
    findings.extend(cgroups());
    findings.extend([seccomp(), landlock(), storage(Path::new("/")), engine()]);
    findings
}

fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// `6.18.44-fc` as (6, 18).
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn is_at_least(text: &str, least: (u32, u32)) -> bool {
    version(text).is_some_and(|version| version >= least)
}

fn kernel(release: &str) -> Finding {
    match is_at_least(release, (5, 15)) {
        true => Finding::ok("kernel", release),
        false => Finding::limited("kernel", release, "use Linux 5.15 or newer; 6.9 is faster"),
    }
}

fn bubblewrap() -> Finding {
    const WHAT: &str = "bubblewrap";
    let Some(program) = installed() else {
        return Finding::missing(WHAT, "not installed", INSTALL);
    };
    let said = Command::new(program).arg("--version").output();
    let said = said.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match said {
        Ok(text) if is_at_least(text.trim_start_matches("bubblewrap "), (0, 8)) => {
            Finding::ok(WHAT, text.trim_start_matches("bubblewrap "))
        }
        Ok(text) => Finding::missing(WHAT, format!("too old: {text}"), INSTALL),
        Err(e) => Finding::missing(WHAT, format!("cannot be run: {e}"), INSTALL),
    }
}

/// All namespaces at once, by an ordinary user, with a `/proc` of their own: what a sandbox is.
const TRIAL: &str = "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup \
                     --unshare-net --disable-userns --uid 1000 --gid 1000 --ro-bind / / \
                     --proc /proc --dev /dev --chdir / -- /bin/true";

fn namespaces() -> Finding {
    const WHAT: &str = "namespaces";
    let Some(program) = installed() else {
        return Finding::missing(WHAT, "not tried without bubblewrap", INSTALL);
    };
    match trial(program) {
        Ok(()) => Finding::ok(WHAT, "user, mount, pid, ipc, uts, cgroup and network, unprivileged"),
        Err(e) => Finding::missing(WHAT, e.to_string(), e.hint().unwrap_or(INSTALL)),
    }
}

fn trial(program: &Path) -> Result<(), RuntimeError> {
    let mut command = Command::new(program);
    command.args(TRIAL.split_whitespace()).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null());
    if geteuid().is_root() {
        command.uid(DEFAULT_RANGE.end).gid(DEFAULT_RANGE.end);
    }
    let output = command.output().map_err(|e| RuntimeError::io("run bubblewrap", e))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failure(String::from_utf8_lossy(&output.stderr).trim())),
    }
}

fn fuse() -> Finding {
    const WHAT: &str = "FUSE";
    match fuse_device() {
        FuseDevice::Usable => Finding::ok(WHAT, "/dev/fuse opens"),
        device => Finding::missing(WHAT, device.problem(), device.advice().unwrap_or_default()),
    }
}

fn passthrough(release: &str, root: bool) -> Finding {
    const WHAT: &str = "FUSE passthrough";
    match (is_at_least(release, (6, 9)), root) {
        (true, true) => Finding::ok(WHAT, "files are read and written at native speed"),
        (true, false) => Finding::limited(WHAT, "files pass through our process", "run as root"),
        (false, _) => Finding::limited(
            WHAT,
            "files pass through our process",
            "use Linux 6.9 or newer, as root",
        ),
    }
}

fn cgroups() -> Vec<Finding> {
    let Ok(cgroups) = Cgroups::of_this_host() else { return Vec::new() };
    let mut findings: Vec<Finding> =
        Controller::ALL.into_iter().map(|controller| limit(&cgroups, controller)).collect();
    findings.push(grouping(&cgroups));
    findings
}

const DELEGATE: &str = "run as root, or inside `systemd-run --user --scope -p Delegate=yes`";

fn limit(cgroups: &Cgroups, controller: Controller) -> Finding {
    let what = match controller {
        Controller::Memory => "memory limit",
        Controller::Cpu => "cpu limit",
        Controller::Pids => "process limit",
    };
    match cgroups.place(controller) {
        Some((version, dir)) => Finding::ok(what, place(version, dir)),
        // Sandboxes can be started; who asks for the limit is told that it cannot be had.
        None => Finding::limited(
            what,
            format!("no writable control group has the {} controller", controller.name()),
            DELEGATE,
        ),
    }
}

fn place(version: Version, dir: &Path) -> String {
    let version = if version == Version::V1 { "version 1" } else { "version 2" };
    format!("cgroup {version} in {}", dir.display())
}

fn grouping(cgroups: &Cgroups) -> Finding {
    const WHAT: &str = "killing and freezing";
    match (cgroups.unified(), cgroups.legacy("freezer")) {
        (Some(dir), _) => Finding::ok(WHAT, place(Version::V2, dir)),
        (None, Some(dir)) => Finding::limited(
            WHAT,
            format!("the whole sandbox only, by {}", place(Version::V1, dir)),
            "mount cgroup2, for example at /sys/fs/cgroup/unified",
        ),
        (None, None) => Finding::limited(WHAT, "single commands by best effort only", DELEGATE),
    }
}

fn seccomp() -> Finding {
    const WHAT: &str = "seccomp";
    match fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail") {
        Ok(actions) if actions.contains("errno") => Finding::ok(WHAT, "filters can be installed"),
        _ => Finding::missing(
            WHAT,
            "this kernel has no filters",
            "use a kernel with CONFIG_SECCOMP_FILTER",
        ),
    }
}

/// The first version with cross-directory renames is 2; scoped signals and abstract sockets are 6.
fn landlock() -> Finding {
    const WHAT: &str = "Landlock";
    match ringfence_sys::landlock::abi() {
        Some(abi @ 6..) => Finding::ok(WHAT, format!("ABI {abi}")),
        Some(abi) => {
            Finding::limited(WHAT, format!("ABI {abi}"), "use Linux 6.12 or newer for ABI 6")
        }
        None => Finding::limited(
            WHAT,
            "not available: the second wall is missing",
            "boot with `lsm=landlock,...` on a kernel with CONFIG_SECURITY_LANDLOCK",
        ),
    }
}

fn storage(root: &Path) -> Finding {
    const WHAT: &str = "root filesystem";
    match is_on_overlayfs(root) {
        false => Finding::ok(WHAT, "not an overlay"),
        true => Finding::limited(
            WHAT,
            "an overlay, as in a container: every file operation is slower",
            "keep layers on a volume",
        ),
    }
}

/// Only for the runtime docker.
fn engine() -> Finding {
    const WHAT: &str = "container engine";
    let answer = Engine::connect().and_then(|engine| engine.about());
    match (answer, geteuid().is_root()) {
        (Ok(about), true) => {
            Finding::ok(WHAT, format!("{} {} at {}", about.name, about.version, about.address))
        }
        (Ok(about), false) => Finding::limited(
            WHAT,
            format!("{} {} answers, but only root can use it", about.name, about.version),
            "run as root for sandboxes in images",
        ),
        (Err(e), _) => Finding::limited(WHAT, e.to_string(), e.hint().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("6.18.44-fc-v490"), Some((6, 18)));
        assert_eq!(version("0.8.0"), Some((0, 8)));
        assert_eq!(version("rolling"), None);
        assert!(is_at_least("6.10.1", (6, 9)) && !is_at_least("6.8.0", (6, 9)));
        assert!(is_at_least("0.11.0", (0, 8)) && !is_at_least("0.4.1", (0, 8)));
    }

    #[test]
    fn passthrough_needs_root_and_a_new_kernel() {
        let state = |release, root| passthrough(release, root).state;
        assert_eq!(state("6.9.0", true), State::Ok);
        assert_eq!(state("6.9.0", false), State::Limited);
        assert_eq!(state("6.1.0", true), State::Limited);
    }

    #[test]
    fn whatever_is_not_fine_says_what_to_do() {
        let findings = findings();
        let names: Vec<&str> = findings.iter().map(|finding| finding.what).collect();
        assert_eq!(
            names,
            [
                "kernel",
                "bubblewrap",
                "namespaces",
                "FUSE",
                "FUSE passthrough",
                "memory limit",
                "cpu limit",
                "process limit",
                "killing and freezing",
                "seccomp",
                "Landlock",
                "root filesystem",
                "container engine",
            ]
        );
        for finding in findings {
            let silent = finding.fix.as_deref().unwrap_or_default().is_empty();
            assert_eq!(silent, finding.state == State::Ok, "{finding:?}");
            assert!(!finding.detail.is_empty(), "{finding:?}");
        }
    }
}
