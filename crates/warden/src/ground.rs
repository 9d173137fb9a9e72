//! What a sandbox is told to stand on: its user, its directories, its runtime.

use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use ringfence_fs::guard::Owner;
use ringfence_fs::mount::MountOptions;
use ringfence_runtime::bwrap::Bwrap;
use ringfence_runtime::docker::Docker;
use ringfence_runtime::users::{HostUser, Users};
use ringfence_runtime::{Limits, Runtime, Start};

use crate::config::Config;
use crate::environment::is_name;
use crate::life::StartError;

/// Who everything inside is on the host: one that nobody else is, and is held until the end, or the
/// user of an image. Without root it is whoever started this.
pub(crate) struct Allotted {
    pub(crate) ids: Option<(u32, u32)>,
    _held: Option<HostUser>,
}

impl Allotted {
    pub(crate) fn for_sandbox(config: &Config) -> Result<Self, StartError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self { ids: None, _held: None });
        }
        if let Some(docker) = docker_of(config).filter(|docker| docker.image_user) {
            let places =
                Places::make(&config.dir, None).map_err(StartError::io("make directories"))?;
            let ids = docker.user_of_image(&start_of(config, &places, None)?)?;
            return Ok(Self { ids: Some(ids), _held: None });
        }
        let users = Users::new(ringfence_runtime::users::DEFAULT_RANGE, &config.users);
        let user = users.allocate()?;
        Ok(Self { ids: Some(user.ids()), _held: Some(user) })
    }
}

/// The user of an image may be others on the host too, or root, whose processes nobody counts: what
/// bounds those of a user does not bound those of the sandbox, and its groups must.
pub(crate) fn limits_of(config: &Config) -> Limits {
    const MOST: u64 = 8192;
    let pids = config.limits.pids.or(config.image_user.then_some(MOST));
    Limits { pids, ..config.limits }
}

/// Where things of the sandbox are on the host.
pub(crate) struct Places {
    workspace: PathBuf,
    home: PathBuf,
    tmp: PathBuf,
    stage: PathBuf,
}

impl Places {
    pub(crate) fn make(dir: &Path, user: Option<(u32, u32)>) -> io::Result<Self> {
        let make = |name: &str, mode: u32, owned: bool| {
            let path = dir.join(name);
            match std::fs::DirBuilder::new().mode(mode).create(&path) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
                _ => std::fs::set_permissions(&path, PermissionsExt::from_mode(mode))?,
            }
            if let Some(user) = user.filter(|_| owned) {
                crate::ownership::give(&path, user)?;
            }
            Ok(path)
        };
        Ok(Self {
            workspace: make("workspace", 0o755, false)?,
            home: make("home", 0o700, true)?,
            tmp: make("tmp", 0o1777, true)?,
            stage: make("stage", 0o700, false)?,
        })
    }
}

pub(crate) fn mount_options(
    config: &Config,
    places: &Places,
    ids: Option<(u32, u32)>,
) -> MountOptions {
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let (uid, gid) = ids.unwrap_or(own);
    MountOptions {
        base: config.base.clone(),
        base_in_place: true,
        layer: config.layer.clone(),
        mountpoint: places.workspace.clone(),
        mask: config.mask_options(),
        owner: Owner { uid, gid },
        passthrough: true,
    }
}

/// The runtime that was asked for, and never another one.
pub(crate) fn runtime_of(config: &Config) -> Box<dyn Runtime> {
    match (docker_of(config), &config.bwrap) {
        (Some(docker), _) => Box::new(docker),
        (None, Some(program)) => Box::new(Bwrap::at(program)),
        (None, None) => Box::new(Bwrap::default()),
    }
}

fn docker_of(config: &Config) -> Option<Docker> {
    let image = config.image.clone()?;
    Some(Docker { image, image_user: config.image_user })
}

/// What an image sets is below what the sandbox does.
pub(crate) fn with_image(image: &[String], own: &[(String, String)]) -> Vec<(String, String)> {
    let pairs = image.iter().filter_map(|variable| variable.split_once('='));
    let theirs = pairs.filter(|(name, _)| is_name(name.as_bytes()));
    let theirs = theirs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    theirs.chain(own.iter().cloned()).collect()
}

pub(crate) fn start_of(
    config: &Config,
    places: &Places,
    user: Option<(u32, u32)>,
) -> Result<Start, StartError> {
    let init = std::env::current_exe().map_err(StartError::io("find this program"))?;
    let stage = match user {
        Some(_) => PathBuf::from(ringfence_runtime::stage::PLACE),
        None => places.stage.clone(),
    };
    Ok(Start {
        id: config.id.clone(),
        dir: config.dir.clone(),
        workspace: places.workspace.clone(),
        home: places.home.clone(),
        tmp: places.tmp.clone(),
        init,
        read_only: config.read_only.clone(),
        network: config.network,
        limits: config.limits,
        user,
        stage,
    })
}
