//! Records of snapshots: layers that were frozen, and what they lie on.

use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, Row};

use crate::problem::{Code, Problem, Result};

use super::codebases::let_go;
use super::record::{self, Conditions, Listed, Page, Record};
use super::values::{path, path_from};
use super::{Codebase, SandboxRecord, Store, Survives};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub id: String,
    pub account: String,
    /// What it was taken of. That may be gone by now.
    pub sandbox_id: String,
    pub codebase_id: String,
    pub codebase_version: i64,
    pub name: String,
    /// The frozen layer, relative to the state directory.
    pub layer_path: PathBuf,
    pub created_ms: i64,
}

/// Which snapshots are wanted; what is not given does not matter.
#[derive(Debug, Clone, Default)]
pub struct SnapshotFilter {
    pub codebase_id: Option<String>,
    pub sandbox_id: Option<String>,
}

impl Record for Snapshot {
    const TABLE: &'static str = "snapshots";
    const COLUMNS: &'static [&'static str] = &[
        "id",
        "account",
        "sandbox_id",
        "codebase_id",
        "codebase_version",
        "name",
        "layer_path",
        "created_ms",
    ];

    fn values(&self) -> Result<Vec<Value>> {
        Ok(vec![
            self.id.clone().into(),
            self.account.clone().into(),
            self.sandbox_id.clone().into(),
            self.codebase_id.clone().into(),
            self.codebase_version.into(),
            self.name.clone().into(),
            path(&self.layer_path),
            self.created_ms.into(),
        ])
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            account: row.get("account")?,
            sandbox_id: row.get("sandbox_id")?,
            codebase_id: row.get("codebase_id")?,
            codebase_version: row.get("codebase_version")?,
            name: row.get("name")?,
            layer_path: path_from(row.get("layer_path")?),
            created_ms: row.get("created_ms")?,
        })
    }

    fn position(&self) -> (i64, &str) {
        (self.created_ms, &self.id)
    }
}

impl Store {
    pub fn insert_snapshot(&self, snapshot: &Snapshot) -> Result<()> {
        self.write(Survives::Kill, |connection| {
            need_codebase(connection, &snapshot.account, &snapshot.codebase_id)?;
            record::insert(connection, snapshot)
        })
    }

    /// The sandbox goes on in the layer `next`, and what it had is the snapshot: both or neither.
    pub fn insert_snapshot_of(&self, snapshot: &Snapshot, next: &str) -> Result<()> {
        self.write(Survives::Kill, |connection| {
            need_codebase(connection, &snapshot.account, &snapshot.codebase_id)?;
            record::insert(connection, snapshot)?;
            let goes_on = |sandbox: &mut SandboxRecord| sandbox.layer = next.to_owned();
            record::update(connection, &snapshot.sandbox_id, goes_on).map(|_| ())
        })
    }

    /// The sandbox goes back to the snapshot, which may have been deleted by now, in a new layer.
    pub fn stand_on(
        &self,
        sandbox: &str,
        snapshot: &Snapshot,
        layer: &str,
    ) -> Result<SandboxRecord> {
        self.write(Survives::Kill, |connection| {
            if record::get::<Snapshot>(connection, &snapshot.id)?.is_none() {
                return Err(Problem::new(Code::SnapshotNotFound, "snapshot not found"));
            }
            let changed = record::update(connection, sandbox, |sandbox: &mut SandboxRecord| {
                sandbox.snapshot_id = Some(snapshot.id.clone());
                sandbox.codebase_version = Some(snapshot.codebase_version);
                sandbox.layer = layer.to_owned();
            })?;
            changed.ok_or_else(|| Problem::new(Code::SandboxNotFound, "sandbox not found"))
        })
    }

    /// Whether a sandbox or a snapshot has this layer, by its name and by its path below the state
    /// directory. Layers that merely stand on it do not count.
    pub fn is_layer_named(&self, name: &str, layer_path: &Path) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM sandboxes WHERE layer = ?1)
                   OR EXISTS (SELECT 1 FROM snapshots WHERE layer_path = ?2)";
        self.read(|connection| {
            let values = (name, path(layer_path));
            Ok(connection.prepare_cached(sql)?.query_row(values, |row| row.get(0))?)
        })
    }

    /// Nothing if it belongs to another account.
    pub fn snapshot(&self, account: &str, id: &str) -> Result<Option<Snapshot>> {
        self.read(|connection| record::get_of(connection, account, id))
    }

    pub fn snapshots(
        &self,
        account: &str,
        filter: &SnapshotFilter,
        page: &Page,
    ) -> Result<Listed<Snapshot>> {
        let conditions = Conditions::default()
            .and("account = ?", [account.to_owned().into()])
            .and_if(filter.codebase_id.as_deref(), "codebase_id = ?")
            .and_if(filter.sandbox_id.as_deref(), "sandbox_id = ?");
        self.read(|connection| record::list(connection, conditions, page))
    }

    /// Those of all accounts, for reconciliation.
    pub fn all_snapshots(&self) -> Result<Vec<Snapshot>> {
        let all = Conditions::default();
        Ok(self.read(|connection| record::list(connection, all, &Page::default()))?.items)
    }

    pub fn update_snapshot(
        &self,
        id: &str,
        change: impl FnOnce(&mut Snapshot),
    ) -> Result<Option<Snapshot>> {
        self.write(Survives::Kill, |connection| record::update(connection, id, change))
    }

    /// Answers whether it was there. Refused while sandboxes stand on it. A fleeting codebase that
    /// nobody else stands on goes with it.
    pub fn delete_snapshot(&self, account: &str, id: &str) -> Result<bool> {
        self.write(Survives::Kill, |connection| {
            let Some(snapshot) = record::get_of::<Snapshot>(connection, account, id)? else {
                return Ok(false);
            };
            let sql = "SELECT COUNT(*) FROM sandboxes WHERE snapshot_id = ?";
            let users: i64 = connection.prepare_cached(sql)?.query_row([id], |row| row.get(0))?;
            if users > 0 {
                let message = format!("{users} sandboxes stand on the snapshot");
                return Err(Problem::new(Code::SnapshotInUse, message));
            }
            record::delete::<Snapshot>(connection, id)?;
            let_go(connection, &snapshot.codebase_id)?;
            Ok(true)
        })
    }
}

/// Asked in the transaction that relies on it: the codebase may be deleted at any moment.
pub(super) fn need_codebase(connection: &Connection, account: &str, id: &str) -> Result<()> {
    match record::get_of::<Codebase>(connection, account, id)? {
        Some(_) => Ok(()),
        None => Err(Problem::new(Code::CodebaseNotFound, "codebase not found")),
    }
}
