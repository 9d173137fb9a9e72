//! Records of sandboxes: what was asked for, and what became of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ringfence_policy::Rule;
use rusqlite::types::{Type, Value};
use rusqlite::{Connection, Row};

use crate::problem::{Code, Problem, Result};

use super::codebases::let_go;
use super::record::{self, Conditions, Listed, Page, Record};
use super::snapshots::need_codebase;
use super::values::{from_json, json, malformed, optional_number, optional_unsigned};
use super::{Snapshot, Store, Survives};

/// Where a sandbox is in its life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Status {
    #[default]
    Pending,
    Running,
    Stopped,
    Error,
}

impl Status {
    pub const ALL: [Self; 4] = [Self::Pending, Self::Running, Self::Stopped, Self::Error];

    /// `pending` and so on.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Error => "error",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxRecord {
    pub id: String,
    pub account: String,
    /// A label inside the account, to filter by.
    pub owner_id: String,
    pub codebase_id: String,
    /// The version it first started on, and keeps. Set as soon as the version is pinned.
    pub codebase_version: Option<i64>,
    pub rules: Vec<Rule>,
    pub labels: BTreeMap<String, String>,
    pub env: BTreeMap<String, String>,
    pub runtime: String,
    pub image: String,
    /// Be who the image says.
    pub image_user: bool,
    pub memory: Option<u64>,
    pub cpu_quota: Option<u64>,
    pub cpu_shares: Option<u64>,
    pub pids: Option<u64>,
    pub network: String,
    pub read_only_paths: Vec<PathBuf>,
    pub status: Status,
    /// Why it is in error.
    pub reason: Option<String>,
    pub created_ms: i64,
    pub started_ms: Option<i64>,
    pub stopped_ms: Option<i64>,
    pub expires_ms: Option<i64>,
    pub leased: bool,
    pub lease_until_ms: Option<i64>,
    /// The snapshot it was made from.
    pub snapshot_id: Option<String>,
    /// The name of the live layer among all layers.
    pub layer: String,
}

/// Which sandboxes are wanted; what is not given does not matter.
#[derive(Debug, Clone, Default)]
pub struct SandboxFilter {
    pub codebase_id: Option<String>,
    pub owner_id: Option<String>,
    pub status: Option<Status>,
    /// All of these, with these values.
    pub labels: BTreeMap<String, String>,
}

impl Record for SandboxRecord {
    const TABLE: &'static str = "sandboxes";
    const COLUMNS: &'static [&'static str] = &[
        "id",
        "account",
        "owner_id",
        "codebase_id",
        "codebase_version",
        "rules",
        "labels",
        "env",
        "runtime",
        "image",
        "image_user",
        "memory",
        "cpu_quota",
        "cpu_shares",
        "pids",
        "network",
        "read_only_paths",
        "status",
        "reason",
        "created_ms",
        "started_ms",
        "stopped_ms",
        "expires_ms",
        "leased",
        "lease_until_ms",
        "snapshot_id",
        "layer",
    ];

    fn values(&self) -> Result<Vec<Value>> {
        Ok(vec![
            self.id.clone().into(),
            self.account.clone().into(),
            self.owner_id.clone().into(),
            self.codebase_id.clone().into(),
            self.codebase_version.into(),
            json(&self.rules)?,
            json(&self.labels)?,
            json(&self.env)?,
            self.runtime.clone().into(),
            self.image.clone().into(),
            self.image_user.into(),
            optional_number(self.memory),
            optional_number(self.cpu_quota),
            optional_number(self.cpu_shares),
            optional_number(self.pids),
            self.network.clone().into(),
            json(&self.read_only_paths)?,
            self.status.name().to_owned().into(),
            self.reason.clone().into(),
            self.created_ms.into(),
            self.started_ms.into(),
            self.stopped_ms.into(),
            self.expires_ms.into(),
            self.leased.into(),
            self.lease_until_ms.into(),
            self.snapshot_id.clone().into(),
            self.layer.clone().into(),
        ])
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            account: row.get("account")?,
            owner_id: row.get("owner_id")?,
            codebase_id: row.get("codebase_id")?,
            codebase_version: row.get("codebase_version")?,
            rules: from_json(row, "rules")?,
            labels: from_json(row, "labels")?,
            env: from_json(row, "env")?,
            runtime: row.get("runtime")?,
            image: row.get("image")?,
            image_user: row.get("image_user")?,
            memory: optional_unsigned(row, "memory")?,
            cpu_quota: optional_unsigned(row, "cpu_quota")?,
            cpu_shares: optional_unsigned(row, "cpu_shares")?,
            pids: optional_unsigned(row, "pids")?,
            network: row.get("network")?,
            read_only_paths: from_json(row, "read_only_paths")?,
            status: status(row)?,
            reason: row.get("reason")?,
            created_ms: row.get("created_ms")?,
            started_ms: row.get("started_ms")?,
            stopped_ms: row.get("stopped_ms")?,
            expires_ms: row.get("expires_ms")?,
            leased: row.get("leased")?,
            lease_until_ms: row.get("lease_until_ms")?,
            snapshot_id: row.get("snapshot_id")?,
            layer: row.get("layer")?,
        })
    }

    fn position(&self) -> (i64, &str) {
        (self.created_ms, &self.id)
    }
}

fn status(row: &Row<'_>) -> rusqlite::Result<Status> {
    let name: String = row.get("status")?;
    let unknown = || std::io::Error::other(format!("{name:?} is not a status"));
    Status::from_name(&name).ok_or_else(|| malformed(row, "status", Type::Text, unknown()))
}

impl Store {
    /// Refused if the account would have more than `most`, or if what the sandbox is to stand on is
    /// gone by now.
    pub fn insert_sandbox(&self, sandbox: &SandboxRecord, most: usize) -> Result<()> {
        self.write(Survives::Kill, |connection| {
            need_codebase(connection, &sandbox.account, &sandbox.codebase_id)?;
            if let Some(snapshot) = &sandbox.snapshot_id
                && record::get_of::<Snapshot>(connection, &sandbox.account, snapshot)?.is_none()
            {
                return Err(Problem::new(Code::SnapshotNotFound, "snapshot not found"));
            }
            let sql = "SELECT COUNT(*) FROM sandboxes WHERE account = ?";
            let count = |row: &Row<'_>| row.get::<_, i64>(0);
            let there = connection.prepare_cached(sql)?.query_row([&sandbox.account], count)?;
            if usize::try_from(there).unwrap_or(usize::MAX) >= most {
                let message = format!("an account can have {most} sandboxes at a time");
                let problem = Problem::new(Code::ResourceLimitExceeded, message);
                return Err(problem.with("limit", "sandboxes").with("most", most.to_string()));
            }
            record::insert(connection, sandbox)
        })
    }

    /// Nothing if it belongs to another account.
    pub fn sandbox(&self, account: &str, id: &str) -> Result<Option<SandboxRecord>> {
        if let Some(known) = self.inner.seen.get(id) {
            return Ok((known.account == account).then(|| SandboxRecord::clone(&known)));
        }
        let moment = self.inner.seen.now();
        let found = self.read(|connection| record::get_of(connection, account, id))?;
        if let Some(record) = &found {
            self.inner.seen.keep(moment, record);
        }
        Ok(found)
    }

    pub fn sandboxes(
        &self,
        account: &str,
        filter: &SandboxFilter,
        page: &Page,
    ) -> Result<Listed<SandboxRecord>> {
        let mut conditions = Conditions::default()
            .and("account = ?", [account.to_owned().into()])
            .and_if(filter.codebase_id.as_deref(), "codebase_id = ?")
            .and_if(filter.owner_id.as_deref(), "owner_id = ?")
            .and_if(filter.status.map(Status::name), "status = ?");
        for (key, value) in &filter.labels {
            conditions = conditions.and(
                "EXISTS (SELECT 1 FROM json_each(labels) AS label
                 WHERE label.key = ? AND label.value = ?)",
                [key.clone().into(), value.clone().into()],
            );
        }
        self.read(|connection| record::list(connection, conditions, page))
    }

    pub fn running_sandboxes(&self, account: &str) -> Result<Vec<SandboxRecord>> {
        let filter = SandboxFilter { status: Some(Status::Running), ..SandboxFilter::default() };
        Ok(self.sandboxes(account, &filter, &Page::default())?.items)
    }

    /// Those of a codebase that have been started, whatever became of them since.
    pub fn started_sandboxes(&self, account: &str, codebase: &str) -> Result<Vec<SandboxRecord>> {
        let started = Conditions::default()
            .and("account = ?", [account.to_owned().into()])
            .and("codebase_id = ?", [codebase.to_owned().into()])
            .and("started_ms IS NOT NULL", []);
        Ok(self.read(|connection| record::list(connection, started, &Page::default()))?.items)
    }

    /// Those of all accounts, for reconciliation.
    pub fn all_sandboxes(&self) -> Result<Vec<SandboxRecord>> {
        let all = Conditions::default();
        Ok(self.read(|connection| record::list(connection, all, &Page::default()))?.items)
    }

    /// Those of all accounts whose time has come: expired, or leased and not renewed.
    pub fn sandboxes_due(&self, now_ms: i64) -> Result<Vec<SandboxRecord>> {
        let due = Conditions::default().and(
            "(expires_ms <= ? OR (leased AND lease_until_ms <= ?))",
            [now_ms.into(), now_ms.into()],
        );
        Ok(self.read(|connection| record::list(connection, due, &Page::default()))?.items)
    }

    /// Reads, changes and writes back in one step. Nothing if there is no such sandbox.
    pub fn update_sandbox(
        &self,
        id: &str,
        change: impl FnOnce(&mut SandboxRecord),
    ) -> Result<Option<SandboxRecord>> {
        self.write(Survives::Kill, |connection| record::update(connection, id, change))
    }

    /// Answers whether it was there.
    pub fn delete_sandbox(&self, id: &str) -> Result<bool> {
        self.write(Survives::Kill, |connection| take_away(connection, id))
    }
}

/// Deletes a record, and with it the codebase that was made for it if nobody else stands on that.
/// Says whether there was a sandbox.
pub(super) fn take_away(connection: &Connection, id: &str) -> Result<bool> {
    let Some(sandbox) = record::get::<SandboxRecord>(connection, id)? else { return Ok(false) };
    record::delete::<SandboxRecord>(connection, id)?;
    let_go(connection, &sandbox.codebase_id)?;
    Ok(true)
}
