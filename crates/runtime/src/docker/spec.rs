//! The container of a sandbox: what the engine is asked for, as a pure function.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig,
    Mount, MountBindOptions, MountBindOptionsPropagationEnum, MountType, ResourcesUlimits,
};

use super::{DIR_LABEL, ID_LABEL};
use crate::bwrap::INIT;
use crate::etc::{HOME, hostname};
use crate::limits::CPU_PERIOD;
use crate::{Limits, Network};

/// Where init finds the directory of the socket to its warden.
const LINK: &str = "/run/ringfence/link";
/// The socket in it.
pub(super) const SOCKET: &str = "socket";

const SHM_SIZE: u64 = 256 << 20;
const RUN_SIZE: u64 = 16 << 20;

/// Everything the container depends on.
#[derive(Debug, Clone)]
pub struct Spec {
    pub id: String,
    pub image: String,
    /// The sandbox's own directory on the host: says whose the container is.
    pub dir: PathBuf,
    pub home: PathBuf,
    pub tmp: PathBuf,
    pub init: PathBuf,
    /// The directory with the socket to the warden.
    pub link: PathBuf,
    pub read_only: Vec<PathBuf>,
    /// `None`: whoever the image says, in all groups that its lists say.
    pub user: Option<(u32, u32)>,
    pub network: Network,
    /// Whether the kernel has IPv6: engines take it from containers, the loopback included.
    pub ipv6: bool,
    pub limits: Limits,
    /// How many files a process begins with, and the most it can ask for; nothing is no limit.
    pub open_files: (Option<u64>, Option<u64>),
}

/// No privilege is given and nothing of the image is run: init is the entry point, and puts its own
/// filters on itself and on all it starts (the engine's would keep it from doing so). The image is
/// read-only; what the sandbox may write is bound from its own directory or in memory.
///
/// The workspace is not among the mounts: its filesystem exists for the warden alone, who attaches
/// it when the container is there.
pub fn container(spec: &Spec) -> ContainerCreateBody {
    ContainerCreateBody {
        image: Some(spec.image.clone()),
        entrypoint: Some(words(&[INIT])),
        cmd: Some(words(&["init", &format!("{LINK}/{SOCKET}")])),
        user: spec.user.map(|(uid, gid)| format!("{uid}:{gid}")),
        hostname: Some(hostname(&spec.id)),
        working_dir: Some("/".into()),
        // Code of the image that the engine would run beside init, outside of its filters.
        healthcheck: Some(HealthConfig { test: Some(words(&["NONE"])), ..HealthConfig::default() }),
        stop_signal: Some("SIGKILL".into()),
        labels: Some(labels(spec)),
        host_config: Some(host(spec)),
        ..ContainerCreateBody::default()
    }
}

fn labels(spec: &Spec) -> HashMap<String, String> {
    let dir = spec.dir.display().to_string();
    HashMap::from([(ID_LABEL.into(), spec.id.clone()), (DIR_LABEL.into(), dir)])
}

fn host(spec: &Spec) -> HostConfig {
    let Limits { memory, cpu_quota, cpu_shares, pids } = spec.limits;
    let part = |size: u64, divisor: u64| memory.map_or(size, |m| size.min(m / divisor));
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    HostConfig {
        mounts: Some(mounts(spec)),
        tmpfs: Some(memory_filesystems(part(RUN_SIZE, 16))),
        shm_size: Some(number(part(SHM_SIZE, 2))),
        network_mode: Some(network(spec.network).into()),
        readonly_rootfs: Some(true),
        cap_drop: Some(words(&["ALL"])),
        security_opt: Some(words(&["no-new-privileges", "seccomp=unconfined"])),
        privileged: Some(false),
        // An engine may map users to others. Ours is nobody else's already, and owns its files.
        userns_mode: Some("host".into()),
        // Commands are put into groups of ours, which a namespace of groups would hide from init.
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::HOST),
        memory: memory.map(number),
        memory_swap: memory.map(number),
        cpu_period: cpu_quota.map(|_| number(CPU_PERIOD)),
        cpu_quota: cpu_quota.map(number),
        cpu_shares: cpu_shares.map(number),
        pids_limit: pids.map(number),
        sysctls: (spec.ipv6 && spec.network != Network::Host)
            .then(|| HashMap::from([("net.ipv6.conf.lo.disable_ipv6".into(), "0".into())])),
        ulimits: Some(vec![open_files(spec.open_files)]),
        auto_remove: Some(true),
        init: Some(false),
        log_config: Some(HostConfigLogConfig { typ: Some("none".into()), config: None }),
        ..HostConfig::default()
    }
}

fn open_files((soft, hard): (Option<u64>, Option<u64>)) -> ResourcesUlimits {
    let number = |limit: Option<u64>| Some(limit.map_or(-1, |n| i64::try_from(n).unwrap_or(-1)));
    ResourcesUlimits { name: Some("nofile".into()), soft: number(soft), hard: number(hard) }
}

fn network(network: Network) -> &'static str {
    match network {
        Network::None => "none",
        Network::Host => "host",
        Network::Bridge => "bridge",
    }
}

fn mounts(spec: &Spec) -> Vec<Mount> {
    let mut mounts = vec![
        bind(&spec.home, HOME, false),
        bind(&spec.tmp, "/tmp", false),
        bind(&spec.tmp, "/var/tmp", false),
        bind(&spec.init, INIT, true),
        bind(&spec.link, LINK, true),
    ];
    mounts.extend(spec.read_only.iter().map(|path| bind(path, &path.display().to_string(), true)));
    mounts
}

fn bind(source: &Path, target: &str, read_only: bool) -> Mount {
    let private = MountBindOptions {
        propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
        ..MountBindOptions::default()
    };
    Mount {
        typ: Some(MountType::BIND),
        source: Some(source.display().to_string()),
        target: Some(target.into()),
        read_only: Some(read_only),
        bind_options: Some(private),
        ..Mount::default()
    }
}

/// The place of the workspace is one of them, so that it is there whatever the image has.
fn memory_filesystems(run: u64) -> HashMap<String, String> {
    // Not every engine can be told whom one belongs to.
    let run = format!("rw,exec,nosuid,nodev,size={run},mode=1777");
    HashMap::from([
        ("/run".into(), run),
        ("/workspace".into(), "ro,nosuid,nodev,size=4096,mode=0555".into()),
    ])
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Spec {
        Spec {
            id: "sb_1".into(),
            image: "python:3.11-slim".into(),
            dir: "/state/sb_1".into(),
            home: "/state/sb_1/home".into(),
            tmp: "/state/sb_1/tmp".into(),
            init: "/usr/bin/ringfence".into(),
            link: "/state/sb_1/link".into(),
            read_only: vec!["/opt/tool: kit".into()],
            user: Some((200_007, 200_007)),
            network: Network::None,
            ipv6: false,
            limits: Limits::default(),
            open_files: (Some(1024), None),
        }
    }

    fn text(spec: &Spec) -> String {
        // Through a value, which sorts names.
        let value = serde_json::to_value(container(spec)).unwrap();
        serde_json::to_string_pretty(&value).unwrap() + "\n"
    }

    #[test]
    fn without_limits_and_network() {
        assert_eq!(text(&spec()), include_str!("../../tests/snapshots/container.json"));
    }

    #[test]
    fn with_all_limits() {
        let limits = Limits {
            memory: Some(64 << 20),
            cpu_quota: Some(50_000),
            cpu_shares: Some(512),
            pids: Some(20),
        };
        let spec =
            Spec { limits, network: Network::Bridge, ipv6: true, read_only: vec![], ..spec() };
        assert_eq!(text(&spec), include_str!("../../tests/snapshots/container_limits.json"));
    }

    #[test]
    fn with_the_network_of_the_host() {
        let host = Spec { network: Network::Host, ipv6: true, ..spec() };
        let [host, none] = [host, spec()].map(|spec| text(&spec));
        assert_eq!(host, none.replace("\"NetworkMode\": \"none\"", "\"NetworkMode\": \"host\""));
        assert_ne!(host, none);
    }
    #[test]
    fn with_the_user_of_the_image() {
        let image = Spec { user: None, ..spec() };
        let [image, ours] = [image, spec()].map(|spec| text(&spec));
        assert_eq!(image, ours.replace("  \"User\": \"200007:200007\",\n", ""));
        assert_ne!(image, ours);
    }
}
