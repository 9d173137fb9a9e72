//! What can be asked for, and what is refused before anything is made.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use ringfence_policy::{Policy, Rule};
use ringfence_runtime::cgroup::{Cgroups, Controller};
use ringfence_runtime::docker::Step;
use ringfence_runtime::{Limits, Network};

use super::Sandboxes;
use super::reach::blocking;
use crate::Caller;
use crate::containers;
use crate::id::Kind;
use crate::problem::{Code, Problem, Result};
use crate::store::{SandboxRecord, Status, now_ms};

/// A sandbox as it is asked for.
#[derive(Debug, Clone, Default)]
pub struct CreateSandbox {
    pub codebase_id: String,
    pub owner_id: String,
    pub rules: Vec<Rule>,
    pub labels: BTreeMap<String, String>,
    pub env: BTreeMap<String, String>,
    pub runtime: RuntimeChoice,
    pub image: String,
    /// Be who the image says.
    pub image_user: bool,
    pub limits: Limits,
    pub network: NetworkChoice,
    pub read_only_paths: Vec<PathBuf>,
    pub expires_in: Option<Duration>,
    pub leased: bool,
    pub snapshot_id: Option<String>,
}

/// The runtimes, as they are on record.
pub(super) const BWRAP: &str = "bwrap";
pub(super) const DOCKER: &str = "docker";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RuntimeChoice {
    #[default]
    Any,
    Bwrap,
    Docker,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NetworkChoice {
    #[default]
    None,
    Host,
    Bridge,
}

impl Sandboxes {
    /// Makes sure that what is asked for can be had from a container engine, which may have to fetch
    /// an image first.
    pub async fn prepare(&self, wanted: &CreateSandbox) -> Result<()> {
        match check_runtime(wanted)? {
            DOCKER => self.fetch_image(&wanted.image, |_| ControlFlow::Continue(())).await,
            _ => Ok(()),
        }
    }

    /// Makes sure that the container engine has an image. Each step is told as it comes; who does
    /// not want to go on says so.
    pub async fn fetch_image(
        &self,
        name: &str,
        tell: impl FnMut(Step) -> ControlFlow<()> + Send + 'static,
    ) -> Result<()> {
        check_image(name)?;
        let (name, allowed) = (name.to_owned(), self.inner.settings.fetch_images);
        blocking(move || containers::ensure(&name, allowed, tell)).await
    }

    /// Puts a sandbox on record; nothing runs yet.
    pub fn create(&self, caller: &Caller, wanted: CreateSandbox) -> Result<SandboxRecord> {
        let runtime = check_runtime(&wanted)?;
        let network = check_network(&wanted, self.inner.settings.host_network)?;
        check_limits(&wanted.limits)?;
        check_rules(&wanted.rules)?;
        check_names(&wanted.env)?;
        if !wanted.read_only_paths.is_empty() {
            caller.may_name_host_paths()?;
        }
        let codebase = self.inner.codebases.get(&caller.account, &wanted.codebase_id)?;
        let snapshot = wanted.snapshot_id.as_deref();
        let snapshot = snapshot.map(|id| self.snapshot_of(&caller.account, id, &codebase.id));
        let snapshot = snapshot.transpose()?;
        let now = now_ms();
        let expires = wanted.expires_in.map(|time| now.saturating_add(time.as_millis() as i64));
        let lease = self.inner.settings.lease.as_millis() as i64;
        let id = Kind::Sandbox.random();
        let record = SandboxRecord {
            layer: self.first_layer(&id),
            id,
            account: caller.account.clone(),
            owner_id: if wanted.owner_id.is_empty() { codebase.owner_id } else { wanted.owner_id },
            codebase_id: codebase.id,
            codebase_version: snapshot.map(|snapshot| snapshot.codebase_version),
            rules: wanted.rules,
            labels: wanted.labels,
            env: wanted.env,
            runtime: runtime.into(),
            image: wanted.image,
            image_user: wanted.image_user,
            memory: wanted.limits.memory,
            cpu_quota: wanted.limits.cpu_quota,
            cpu_shares: wanted.limits.cpu_shares,
            pids: wanted.limits.pids,
            network: network.into(),
            read_only_paths: wanted.read_only_paths,
            status: Status::Pending,
            reason: None,
            created_ms: now,
            started_ms: None,
            stopped_ms: None,
            expires_ms: expires,
            leased: wanted.leased,
            lease_until_ms: wanted.leased.then(|| now + lease),
            snapshot_id: wanted.snapshot_id,
        };
        self.put_on_record(&record)?;
        Ok(record)
    }
}

/// Never another runtime than the one that was asked for.
fn check_runtime(wanted: &CreateSandbox) -> Result<&'static str> {
    match (wanted.runtime, wanted.image.is_empty()) {
        (RuntimeChoice::Docker, true) => {
            Err(Problem::invalid("the runtime docker needs an image: name one in `image`"))
        }
        (RuntimeChoice::Docker, false) => check_image(&wanted.image).map(|()| DOCKER),
        (_, false) => {
            Err(Problem::invalid("the runtime bwrap takes no image: leave `image` empty"))
        }
        (_, true) if wanted.image_user => {
            Err(Problem::invalid("`image_user` is for the runtime docker: there is no image"))
        }
        (_, true) => Ok(BWRAP),
    }
}

/// What an engine would make of other names is not for a caller to find out.
pub fn check_image(name: &str) -> Result<()> {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    match starts_well && name.len() <= 512 && name.chars().all(good) {
        true => Ok(()),
        false => Err(Problem::invalid(format!("{name:?} is no name of an image"))),
    }
}

/// With the network of the host goes everything that trusts this host.
fn check_network(wanted: &CreateSandbox, host: bool) -> Result<&'static str> {
    match wanted.network {
        NetworkChoice::None => Ok("none"),
        NetworkChoice::Host if host => Ok("host"),
        NetworkChoice::Host => {
            let message = "from the network of the host, this server could be asked for anything \
                           without a token";
            Err(Problem::new(Code::Unsupported, message)
                .with("network", "host")
                .with("hint", "start the server with --require-token, or with --listen off"))
        }
        NetworkChoice::Bridge if wanted.runtime == RuntimeChoice::Docker => Ok("bridge"),
        NetworkChoice::Bridge => {
            Err(Problem::invalid("the network `bridge` needs the runtime docker"))
        }
    }
}

pub(super) fn network_of(name: &str) -> Network {
    match name {
        "host" => Network::Host,
        "bridge" => Network::Bridge,
        _ => Network::None,
    }
}

pub(super) fn check_rules(rules: &[Rule]) -> Result<()> {
    match Policy::compile(rules.to_vec()) {
        Ok(_) => Ok(()),
        Err(error) => Err(Problem::invalid(error.to_string())),
    }
}

/// Limits that cannot be enforced here are refused now, not at the start.
fn check_limits(limits: &Limits) -> Result<()> {
    if *limits == Limits::default() {
        return Ok(());
    }
    let groups =
        Cgroups::of_this_host().map_err(|e| Problem::internal("find control groups", e))?;
    let asked = [
        (Controller::Memory, limits.memory.is_some(), "memory"),
        (Controller::Cpu, limits.cpu_quota.is_some() || limits.cpu_shares.is_some(), "cpu time"),
        (Controller::Pids, limits.pids.is_some(), "the number of processes"),
    ];
    match asked.iter().find(|(controller, asked, _)| *asked && groups.place(*controller).is_none())
    {
        None => Ok(()),
        Some((_, _, name)) => {
            let message = format!("{name} cannot be limited here");
            Err(Problem::new(Code::Unsupported, message)
                .with("limit", *name)
                .with("hint", "`ringfence doctor` on the server says what is missing"))
        }
    }
}

fn check_names(env: &BTreeMap<String, String>) -> Result<()> {
    for (name, value) in env {
        let good = !name.is_empty() && !name.contains(['=', '\0']);
        if !good || value.contains('\0') {
            return Err(Problem::invalid(format!("{name:?} cannot be a variable")));
        }
    }
    Ok(())
}
