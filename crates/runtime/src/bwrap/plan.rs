//! The arguments of bwrap: what the inside looks like, as a pure function.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::etc::{GID, HOME, UID, hostname};
use crate::stage::Stage;
use crate::{Network, Start};

/// Where init finds itself.
pub const INIT: &str = "/run/ringfence/init";

/// Sizes of filesystems in memory, in bytes. `/dev/shm` is what programs expect to be large.
const SHM_SIZE: u64 = 256 << 20;
const RUN_SIZE: u64 = 16 << 20;
const VAR_SIZE: u64 = 16 << 20;

/// The directories of the host in which programs and libraries are.
const SYSTEM: [&str; 8] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libexec"];

/// A directory of the host's system, as it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum System {
    Directory(PathBuf),
    /// Most hosts have merged `/bin` and the like into `/usr`.
    Symlink {
        at: PathBuf,
        target: PathBuf,
    },
}

/// Everything the arguments depend on.
#[derive(Debug, Clone)]
pub struct Plan {
    /// See [`Stage`].
    pub stage: PathBuf,
    pub system: Vec<System>,
    /// Further paths: where they are now, where they are to be seen.
    pub read_only: Vec<(PathBuf, PathBuf)>,
    pub network: Network,
    /// The limit of memory.
    pub memory: Option<u64>,
    pub hostname: String,
    /// The descriptor on which bwrap tells init's pid.
    pub info_fd: i32,
}

impl Plan {
    pub fn new(start: &Start, stage: &Stage, info_fd: i32) -> Self {
        Self {
            stage: stage.path().to_owned(),
            system: system(Path::new("/")),
            read_only: stage.read_only().to_vec(),
            network: start.network,
            memory: start.limits.memory,
            hostname: hostname(&start.id),
            info_fd,
        }
    }
}

/// The system directories below `root`.
pub(crate) fn system(root: &Path) -> Vec<System> {
    let found = |at: &&str| {
        let here = root.join(at.trim_start_matches('/'));
        let at = PathBuf::from(at);
        match fs::read_link(&here) {
            Ok(target) => Some(System::Symlink { at, target }),
            Err(_) => here.is_dir().then_some(System::Directory(at)),
        }
    };
    SYSTEM.iter().filter_map(found).collect()
}

/// The arguments after the program's name. Order matters: later mounts are on top of earlier ones,
/// and the root is closed when everything is in place.
pub fn arguments(plan: &Plan) -> Vec<OsString> {
    let mut args = Arguments::default();
    namespaces(&mut args, plan);
    plan.system.iter().for_each(|entry| args.system(entry));
    filesystems(&mut args, plan);
    args.add(["--ro-bind".into(), plan.staged("etc"), "/etc".into()]);
    args.add(["--bind".into(), plan.staged("tmp"), "/tmp".into()]);
    args.add(["--bind".into(), plan.staged("home"), HOME.into()]);
    args.add(["--bind".into(), plan.staged("workspace"), "/workspace".into()]);
    for (source, target) in &plan.read_only {
        args.add(["--ro-bind".into(), source.into(), target.into()]);
    }
    init(&mut args, plan);
    args.0
}

/// Capabilities go first in importance: without them, and in namespaces that cannot be nested, the
/// inside has no use for most of the kernel's surface.
fn namespaces(args: &mut Arguments, plan: &Plan) {
    for namespace in ["user", "pid", "ipc", "uts", "cgroup"] {
        args.words(&[&format!("--unshare-{namespace}")]);
    }
    if plan.network != Network::Host {
        args.words(&["--unshare-net"]);
    }
    args.words(&["--disable-userns", "--cap-drop", "ALL"]);
    args.words(&["--uid", &UID.to_string(), "--gid", &GID.to_string()]);
    args.words(&["--hostname", &plan.hostname, "--clearenv"]);
    args.words(&["--die-with-parent", "--as-pid-1", "--info-fd", &plan.info_fd.to_string()]);
}

/// Files in memory count against its limit and outlive who wrote them. Could they use it up, every
/// command would be killed from then on, also one that is to delete them: all together stay below.
fn filesystems(args: &mut Arguments, plan: &Plan) {
    let part = |size: u64, divisor: u64| plan.memory.map_or(size, |m| size.min(m / divisor));
    args.words(&["--proc", "/proc", "--dev", "/dev"]);
    args.memory("/dev/shm", "1777", part(SHM_SIZE, 2));
    args.memory("/run", "0755", part(RUN_SIZE, 16));
    args.memory("/var", "0755", part(VAR_SIZE, 16));
    args.words(&["--symlink", "/tmp", "/var/tmp", "--symlink", "/run", "/var/run"]);
}

/// What is left of bwrap's own filesystems is closed, since they have no size: the root, `/dev`,
/// and the directory that init is in.
fn init(args: &mut Arguments, plan: &Plan) {
    args.memory("/run/ringfence", "0755", 4096);
    args.add(["--ro-bind".into(), plan.staged("init"), INIT.into()]);
    for closed in ["/run/ringfence", "/dev", "/"] {
        args.words(&["--remount-ro", closed]);
    }
    args.words(&["--chdir", "/", "--", INIT, "init"]);
}

impl Plan {
    fn staged(&self, name: &str) -> OsString {
        self.stage.join(name).into()
    }
}

#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn add<const N: usize>(&mut self, args: [OsString; N]) {
        self.0.extend(args);
    }

    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn memory(&mut self, at: &str, mode: &str, size: u64) {
        self.words(&["--perms", mode, "--size", &size.to_string(), "--tmpfs", at]);
    }

    fn system(&mut self, entry: &System) {
        match entry {
            System::Directory(at) => self.add(["--ro-bind".into(), at.into(), at.into()]),
            System::Symlink { at, target } => {
                self.add(["--symlink".into(), target.into(), at.into()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let link = |at: &str| System::Symlink { at: at.into(), target: format!("usr{at}").into() };
        Plan {
            stage: "/stage".into(),
            system: vec![System::Directory("/usr".into()), link("/bin"), link("/lib64")],
            read_only: vec![("/stage/paths/0".into(), "/opt/tool kit".into())],
            network: Network::None,
            memory: None,
            hostname: "box".into(),
            info_fd: 4,
        }
    }

    /// One option per line, as in the snapshots.
    fn text(plan: &Plan) -> String {
        let words: Vec<String> =
            arguments(plan).iter().map(|word| word.to_string_lossy().into_owned()).collect();
        words.join("\n").replace("\n--", "\r--").replace('\n', " ").replace('\r', "\n") + "\n"
    }

    #[test]
    fn without_a_network() {
        assert_eq!(text(&plan()), include_str!("../../tests/snapshots/without_network.txt"));
    }

    #[test]
    fn with_the_network_of_the_host() {
        let plan = Plan { network: Network::Host, ..plan() };
        assert_eq!(text(&plan), include_str!("../../tests/snapshots/host_network.txt"));
    }

    #[test]
    fn filesystems_in_memory_leave_room_below_its_limit() {
        let sizes = |memory: Option<u64>| {
            let words = arguments(&Plan { memory, ..plan() });
            let sizes = words.windows(2).filter(|pair| pair[0] == "--size");
            let number = |pair: &[OsString]| pair[1].to_string_lossy().parse::<u64>().ok();
            sizes.filter_map(number).sum::<u64>()
        };
        for memory in [4 << 20, 64 << 20, 300 << 20] {
            assert!(sizes(Some(memory)) < memory * 2 / 3, "{memory}");
        }
        assert_eq!(sizes(Some(1 << 40)), sizes(None));
    }

    #[test]
    fn on_a_host_whose_directories_are_not_merged() {
        let system = ["/usr", "/bin", "/lib"].map(|at| System::Directory(at.into())).to_vec();
        let plan = Plan { system, read_only: Vec::new(), ..plan() };
        assert_eq!(text(&plan), include_str!("../../tests/snapshots/not_merged.txt"));
    }

    #[test]
    fn the_system_is_found_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("usr/bin")).unwrap();
        fs::create_dir(root.path().join("lib")).unwrap();
        std::os::unix::fs::symlink("usr/bin", root.path().join("bin")).unwrap();
        fs::write(root.path().join("sbin"), "not a directory").unwrap();
        assert_eq!(
            system(root.path()),
            [
                System::Directory("/usr".into()),
                System::Symlink { at: "/bin".into(), target: "usr/bin".into() },
                System::Directory("/lib".into()),
            ]
        );
    }
}
