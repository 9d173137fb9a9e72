//! Between what is on the wire and what the engine speaks of.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use pbjson_types::Timestamp;
use ringfence_engine::problem::{Problem, Result};
use ringfence_engine::sandboxes::create::{NetworkChoice, RuntimeChoice};
use ringfence_engine::store::{SandboxRecord, Status};
use ringfence_link::warden::{Info, SessionInfo, Variable};
use ringfence_policy::{Level, PatternType, Rule, preset};
use ringfence_wire::v1;

pub(crate) fn time(milliseconds: i64) -> Timestamp {
    Timestamp {
        seconds: milliseconds.div_euclid(1000),
        nanos: (milliseconds.rem_euclid(1000) * 1_000_000) as i32,
    }
}

/// None, or a length of time that is positive; zero is the same as none.
pub(crate) fn duration(given: Option<pbjson_types::Duration>) -> Result<Option<Duration>> {
    let Some(given) = given else { return Ok(None) };
    if given.seconds < 0 || given.nanos < 0 {
        return Err(Problem::invalid("a length of time cannot be negative"));
    }
    let time = Duration::new(given.seconds as u64, given.nanos as u32);
    Ok((!time.is_zero()).then_some(time))
}

pub(crate) fn span(micros: u64) -> pbjson_types::Duration {
    pbjson_types::Duration {
        seconds: (micros / 1_000_000) as i64,
        nanos: (micros % 1_000_000 * 1000) as i32,
    }
}

/// The rules of a preset, then those that were given.
pub(crate) fn rules(name: &str, given: &[v1::PermissionRule]) -> Result<Vec<Rule>> {
    let mut rules = match name {
        "" => Vec::new(),
        name => {
            preset(name).ok_or_else(|| Problem::invalid(format!("there is no preset {name:?}")))?
        }
    };
    for rule in given {
        rules.push(self::rule(rule)?);
    }
    Ok(rules)
}

fn rule(given: &v1::PermissionRule) -> Result<Rule> {
    let level = match given.permission() {
        v1::Permission::Unspecified | v1::Permission::None => Level::None,
        v1::Permission::View => Level::View,
        v1::Permission::Read => Level::Read,
        v1::Permission::Write => Level::Write,
    };
    let kind = match given.r#type() {
        v1::PatternType::Unspecified | v1::PatternType::Glob => PatternType::Glob,
        v1::PatternType::Directory => PatternType::Directory,
        v1::PatternType::File => PatternType::File,
    };
    if v1::Permission::try_from(given.permission).is_err() {
        return Err(Problem::invalid(format!("{:?} has an unknown permission", given.pattern)));
    }
    Ok(Rule::glob(level, given.pattern.clone()).at(given.priority).of_type(kind))
}

pub(crate) fn permission(level: Level) -> v1::Permission {
    match level {
        Level::None => v1::Permission::None,
        Level::View => v1::Permission::View,
        Level::Read => v1::Permission::Read,
        Level::Write => v1::Permission::Write,
    }
}

pub(crate) fn wire_rule(rule: &Rule) -> v1::PermissionRule {
    let kind = match rule.pattern_type {
        PatternType::Glob => v1::PatternType::Glob,
        PatternType::Directory => v1::PatternType::Directory,
        PatternType::File => v1::PatternType::File,
    };
    v1::PermissionRule {
        pattern: rule.pattern.clone(),
        r#type: kind.into(),
        permission: permission(rule.level).into(),
        priority: rule.priority,
    }
}

pub(crate) fn runtime(given: i32) -> Result<RuntimeChoice> {
    match v1::RuntimeType::try_from(given) {
        Ok(v1::RuntimeType::Unspecified) => Ok(RuntimeChoice::Any),
        Ok(v1::RuntimeType::Bwrap) => Ok(RuntimeChoice::Bwrap),
        Ok(v1::RuntimeType::Docker) => Ok(RuntimeChoice::Docker),
        Err(_) => Err(Problem::invalid(format!("there is no runtime {given}"))),
    }
}

pub(crate) fn network(given: i32) -> Result<NetworkChoice> {
    match v1::NetworkMode::try_from(given) {
        Ok(v1::NetworkMode::Unspecified | v1::NetworkMode::None) => Ok(NetworkChoice::None),
        Ok(v1::NetworkMode::Host) => Ok(NetworkChoice::Host),
        Ok(v1::NetworkMode::Bridge) => Ok(NetworkChoice::Bridge),
        Err(_) => Err(Problem::invalid(format!("there is no network {given}"))),
    }
}

pub(crate) fn limits(given: Option<&v1::ResourceLimits>) -> Result<ringfence_engine::Limits> {
    let Some(given) = given else { return Ok(Default::default()) };
    let positive = |name: &str, value: i64| match value {
        0 => Ok(None),
        1.. => Ok(Some(value as u64)),
        _ => Err(Problem::invalid(format!("{name} cannot be negative"))),
    };
    Ok(ringfence_engine::Limits {
        memory: positive("memory_bytes", given.memory_bytes)?,
        cpu_quota: positive("cpu_quota", given.cpu_quota)?,
        cpu_shares: positive("cpu_shares", given.cpu_shares)?,
        pids: positive("pids_limit", given.pids_limit)?,
    })
}

pub(crate) fn sandbox(record: SandboxRecord, info: Option<&Info>) -> v1::Sandbox {
    let status = match record.status {
        Status::Pending => v1::SandboxStatus::Pending,
        Status::Running => v1::SandboxStatus::Running,
        Status::Stopped => v1::SandboxStatus::Stopped,
        Status::Error => v1::SandboxStatus::Error,
    };
    let limited = [record.memory, record.cpu_quota, record.cpu_shares, record.pids];
    let number = |limit: Option<u64>| limit.unwrap_or(0) as i64;
    let network = match record.network.as_str() {
        "host" => v1::NetworkMode::Host,
        "bridge" => v1::NetworkMode::Bridge,
        _ => v1::NetworkMode::None,
    };
    let runtime = match record.runtime.as_str() {
        "docker" => v1::RuntimeType::Docker,
        _ => v1::RuntimeType::Bwrap,
    };
    v1::Sandbox {
        id: record.id,
        codebase_id: record.codebase_id,
        permissions: record.rules.iter().map(wire_rule).collect(),
        status: status.into(),
        labels: record.labels.into_iter().collect(),
        created_at: Some(time(record.created_ms)),
        started_at: record.started_ms.map(time),
        stopped_at: record.stopped_ms.map(time),
        expires_at: record.expires_ms.map(time),
        runtime: runtime.into(),
        image: record.image,
        image_user: record.image_user,
        resources: limited.iter().any(Option::is_some).then(|| v1::ResourceLimits {
            memory_bytes: number(limited[0]),
            cpu_quota: number(limited[1]),
            cpu_shares: number(limited[2]),
            pids_limit: number(limited[3]),
        }),
        network: network.into(),
        reason: record.reason.unwrap_or_default(),
        owner_id: record.owner_id,
        confinement: info.map(|info| v1::Confinement {
            uid: info.uid,
            seccomp: info.seccomp,
            landlock_abi: info.landlock,
            tracking: info.tracking.clone(),
        }),
        codebase_version: record.codebase_version.unwrap_or(0),
        env: record.env.into_iter().collect(),
    }
}

pub(crate) fn session(sandbox_id: &str, info: SessionInfo) -> v1::Session {
    let status = match info.ended {
        true => v1::SessionStatus::Closed,
        false => v1::SessionStatus::Active,
    };
    v1::Session {
        id: info.id,
        sandbox_id: sandbox_id.into(),
        status: status.into(),
        shell: info.shell,
        created_at: Some(time(info.created_ms as i64)),
        closed_at: info.ended.then(|| time(info.last_used_ms as i64)),
        name: info.name,
        cwd: info.cwd,
        last_used_at: Some(time(info.last_used_ms as i64)),
        busy: info.busy,
    }
}

/// In a fixed order, so that the same request is the same command.
pub(crate) fn variables(env: HashMap<String, String>) -> Vec<Variable> {
    let sorted: BTreeMap<String, String> = env.into_iter().collect();
    sorted.into_iter().map(|(name, value)| (name.into_bytes(), value.into_bytes())).collect()
}
