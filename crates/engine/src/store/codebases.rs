//! Records of codebases. Their files are the business of [`crate::codebases`].

use std::path::PathBuf;

use ringfence_fs::layers::mask::MaskOptions;
use rusqlite::types::Value;
use rusqlite::{Connection, Row};

use crate::problem::{Code, Problem, Result};

use super::record::{self, Conditions, Listed, Page, Record};
use super::values::{from_json, json, number, path, path_from, unsigned};
use super::{Store, Survives};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Codebase {
    pub id: String,
    pub account: String,
    /// A label inside the account, to filter by.
    pub owner_id: String,
    pub name: String,
    /// A directory of the host that is used where it is, instead of stored files.
    pub local_path: Option<PathBuf>,
    /// Gitignore-style patterns for what is left out of it.
    pub mask: Vec<String>,
    /// The same, but a `.sandboxignore` and `mask` can bring something back.
    pub default_mask: Vec<String>,
    /// Names of files in it that list what is left out.
    pub ignore_files: Vec<String>,
    /// Of all files together, in bytes. Not known of a directory used in place.
    pub size: u64,
    pub file_count: u64,
    /// The newest version. Sandboxes may stand on older ones.
    pub version: i64,
    /// It goes with the last sandbox or snapshot that stands on it.
    pub fleeting: bool,
    pub created_ms: i64,
    pub updated_ms: i64,
}

/// Which codebases are wanted; what is not given does not matter.
#[derive(Debug, Clone, Default)]
pub struct CodebaseFilter {
    pub owner_id: Option<String>,
}

impl Codebase {
    /// What a workspace on it does not show of it.
    pub fn mask_options(&self) -> MaskOptions {
        MaskOptions {
            patterns: self.mask.clone(),
            files: self.ignore_files.clone(),
            weak: self.default_mask.clone(),
        }
    }
}

impl Record for Codebase {
    const TABLE: &'static str = "codebases";
    const COLUMNS: &'static [&'static str] = &[
        "id",
        "account",
        "owner_id",
        "name",
        "local_path",
        "mask",
        "default_mask",
        "ignore_files",
        "size",
        "file_count",
        "version",
        "fleeting",
        "created_ms",
        "updated_ms",
    ];

    fn values(&self) -> Result<Vec<Value>> {
        Ok(vec![
            self.id.clone().into(),
            self.account.clone().into(),
            self.owner_id.clone().into(),
            self.name.clone().into(),
            self.local_path.as_deref().map_or(Value::Null, path),
            json(&self.mask)?,
            json(&self.default_mask)?,
            json(&self.ignore_files)?,
            number(self.size),
            number(self.file_count),
            self.version.into(),
            self.fleeting.into(),
            self.created_ms.into(),
            self.updated_ms.into(),
        ])
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            account: row.get("account")?,
            owner_id: row.get("owner_id")?,
            name: row.get("name")?,
            local_path: row.get::<_, Option<_>>("local_path")?.map(path_from),
            mask: from_json(row, "mask")?,
            default_mask: from_json(row, "default_mask")?,
            ignore_files: from_json(row, "ignore_files")?,
            size: unsigned(row, "size")?,
            file_count: unsigned(row, "file_count")?,
            version: row.get("version")?,
            fleeting: row.get("fleeting")?,
            created_ms: row.get("created_ms")?,
            updated_ms: row.get("updated_ms")?,
        })
    }

    fn position(&self) -> (i64, &str) {
        (self.created_ms, &self.id)
    }
}

impl Store {
    pub fn insert_codebase(&self, codebase: &Codebase) -> Result<()> {
        self.write(Survives::Kill, |connection| record::insert(connection, codebase))
    }

    /// Nothing if it belongs to another account.
    pub fn codebase(&self, account: &str, id: &str) -> Result<Option<Codebase>> {
        self.read(|connection| record::get_of(connection, account, id))
    }

    pub fn codebases(
        &self,
        account: &str,
        filter: &CodebaseFilter,
        page: &Page,
    ) -> Result<Listed<Codebase>> {
        let conditions = Conditions::default()
            .and("account = ?", [account.to_owned().into()])
            .and_if(filter.owner_id.as_deref(), "owner_id = ?");
        self.read(|connection| record::list(connection, conditions, page))
    }

    /// Those of all accounts, for reconciliation.
    pub fn all_codebases(&self) -> Result<Vec<Codebase>> {
        let all = Conditions::default();
        Ok(self.read(|connection| record::list(connection, all, &Page::default()))?.items)
    }

    pub fn update_codebase(
        &self,
        id: &str,
        change: impl FnOnce(&mut Codebase),
    ) -> Result<Option<Codebase>> {
        self.write(Survives::Kill, |connection| record::update(connection, id, change))
    }

    /// Answers whether it was there. Refused while sandboxes or snapshots stand on it.
    pub fn delete_codebase(&self, account: &str, id: &str) -> Result<bool> {
        self.write(Survives::Kill, |connection| {
            if record::get_of::<Codebase>(connection, account, id)?.is_none() {
                return Ok(false);
            }
            refuse_if_used(connection, id, "sandboxes")?;
            refuse_if_used(connection, id, "snapshots")?;
            record::delete::<Codebase>(connection, id)
        })
    }

    /// From now on it stays until somebody deletes it. Nothing if it is gone.
    pub fn keep_codebase(&self, id: &str) -> Result<()> {
        let keep = |codebase: &mut Codebase| codebase.fleeting = false;
        self.update_codebase(id, keep).map(drop)
    }

    /// Fleeting ones of all accounts that nobody stands on: no sandbox was made of them yet.
    pub(crate) fn unused_fleeting(&self) -> Result<Vec<String>> {
        let sql = format!("SELECT id FROM codebases WHERE {UNUSED_FLEETING}");
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map([], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Answers whether it was one of those.
    pub(crate) fn delete_unused_fleeting(&self, id: &str) -> Result<bool> {
        self.write(Survives::Kill, |connection| let_go(connection, id))
    }

    /// Whether a sandbox or a snapshot stands on this version.
    pub(crate) fn is_version_used(&self, id: &str, version: i64) -> Result<bool> {
        let sql = "SELECT
            EXISTS (SELECT 1 FROM sandboxes WHERE codebase_id = ?1 AND codebase_version = ?2)
            OR EXISTS (SELECT 1 FROM snapshots WHERE codebase_id = ?1 AND codebase_version = ?2)";
        self.read(|connection| {
            Ok(connection.prepare_cached(sql)?.query_row((id, version), |row| row.get(0))?)
        })
    }
}

const UNUSED_FLEETING: &str = "fleeting
    AND NOT EXISTS (SELECT 1 FROM sandboxes WHERE codebase_id = codebases.id)
    AND NOT EXISTS (SELECT 1 FROM snapshots WHERE codebase_id = codebases.id)";

/// Deletes a fleeting codebase that nobody stands on any more; says whether it did. Asked in the
/// transaction that takes a sandbox or a snapshot away.
pub(super) fn let_go(connection: &Connection, id: &str) -> Result<bool> {
    let sql = format!("DELETE FROM codebases WHERE id = ? AND {UNUSED_FLEETING}");
    Ok(connection.prepare_cached(&sql)?.execute([id])? > 0)
}

/// The turn to change a codebase does not keep it from going with its last sandbox, so this is asked
/// in the transaction of a change.
pub(super) fn still_there(connection: &Connection, id: &str) -> Result<()> {
    match record::get::<Codebase>(connection, id)? {
        Some(_) => Ok(()),
        None => Err(Problem::new(Code::CodebaseNotFound, "codebase not found")),
    }
}

fn refuse_if_used(connection: &Connection, id: &str, table: &str) -> Result<()> {
    let sql = format!("SELECT id FROM {table} WHERE codebase_id = ? ORDER BY created_ms");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([id], |row| row.get(0))?;
    let users = rows.collect::<rusqlite::Result<Vec<String>>>()?;
    if users.is_empty() {
        return Ok(());
    }
    let named = users.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
    let message = format!("{} {table} stand on the codebase: {named}", users.len());
    Err(Problem::new(Code::CodebaseInUse, message).with(table, named))
}
