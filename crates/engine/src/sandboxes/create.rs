//! What can be asked for, and what is refused before anything is made.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use ringfence_policy::{Policy, Rule};
use ringfence_runtime::cgroup::{Cgroups, Controller};
use ringfence_runtime::{Limits, Network};

use super::Sandboxes;
use crate::Caller;
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
    pub limits: Limits,
    pub network: NetworkChoice,
    pub read_only_paths: Vec<PathBuf>,
    pub expires_in: Option<Duration>,
    pub leased: bool,
    pub snapshot_id: Option<String>,
}

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
    /// Puts a sandbox on record; nothing runs yet.
    pub fn create(&self, caller: &Caller, wanted: CreateSandbox) -> Result<SandboxRecord> {
        check_runtime(&wanted)?;
        let network = check_network(wanted.network, self.inner.settings.host_network)?;
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
            runtime: "bwrap".into(),
            image: wanted.image,
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
fn check_runtime(wanted: &CreateSandbox) -> Result<()> {
    match (wanted.runtime, wanted.image.is_empty()) {
        (RuntimeChoice::Docker, true) => {
            Err(Problem::invalid("the runtime docker needs an image: name one in `image`"))
        }
        (RuntimeChoice::Docker, false) => {
            Err(Problem::new(Code::Unsupported, "this server has no runtime docker")
                .with("runtime", "docker"))
        }
        (_, false) => {
            Err(Problem::invalid("the runtime bwrap takes no image: leave `image` empty"))
        }
        (_, true) => Ok(()),
    }
}

/// With the network of the host goes everything that trusts this host.
fn check_network(wanted: NetworkChoice, host: bool) -> Result<&'static str> {
    match wanted {
        NetworkChoice::None => Ok("none"),
        NetworkChoice::Host if host => Ok("host"),
        NetworkChoice::Host => {
            let message = "from the network of the host, this server could be asked for anything \
                           without a token";
            Err(Problem::new(Code::Unsupported, message)
                .with("network", "host")
                .with("hint", "start the server with --require-token, or with --listen off"))
        }
        NetworkChoice::Bridge => {
            Err(Problem::invalid("the network `bridge` needs the runtime docker"))
        }
    }
}

pub(super) fn network_of(name: &str) -> Network {
    match name {
        "host" => Network::Host,
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
