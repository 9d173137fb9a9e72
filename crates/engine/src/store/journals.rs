//! Whose journal is whose, how far it was known to go, and how its sandbox ended.
//!
//! While the sandbox exists its journal is in the sandbox's own directory and a row, if there is
//! one, holds the last head that was seen. The row that says when the sandbox ended is written in
//! the step that deletes the sandbox's record, so there is always exactly one of the two.

use rusqlite::{Connection, OptionalExtension, Row};

use crate::problem::Result;

use super::sandboxes::take_away;
use super::{Store, Survives};

/// The journal of a sandbox that is no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptJournal {
    pub sandbox_id: String,
    pub account: String,
    pub ended_ms: i64,
    /// Why the sandbox ended.
    pub reason: String,
    /// How far the journal went, as `SEQ:HASH`. None if there never was one.
    pub head: Option<String>,
}

impl Store {
    /// The last head that was seen of a sandbox's journal, `SEQ:HASH`.
    pub fn journal_head(&self, sandbox_id: &str) -> Result<Option<String>> {
        let sql = "SELECT head FROM journals WHERE sandbox_id = ?";
        self.read(|connection| {
            let found = connection.query_row(sql, [sandbox_id], |row| row.get(0)).optional()?;
            Ok(found.flatten())
        })
    }

    /// From now on the journal must contain this. Nothing if the sandbox is gone.
    pub fn remember_journal_head(&self, sandbox_id: &str, head: &str) -> Result<()> {
        let sql = "INSERT INTO journals (sandbox_id, account, head)
                       SELECT id, account, ?2 FROM sandboxes WHERE id = ?1
                   ON CONFLICT (sandbox_id) DO UPDATE SET head = excluded.head";
        self.write(Survives::Kill, |connection| {
            connection.execute(sql, [sandbox_id, head])?;
            Ok(())
        })
    }

    /// Deletes the record of a sandbox and keeps that of its journal, in one step; a fleeting codebase
    /// goes with its last sandbox. Answers whether the sandbox was there.
    pub fn end_sandbox(&self, ended: &KeptJournal) -> Result<bool> {
        let sql = "INSERT OR REPLACE INTO journals
                       (sandbox_id, account, ended_ms, reason, head) VALUES (?, ?, ?, ?, ?)";
        self.write(Survives::Kill, |connection| {
            if !take_away(connection, &ended.sandbox_id)? {
                return Ok(false);
            }
            let KeptJournal { sandbox_id, account, ended_ms, reason, head } = ended;
            connection.execute(sql, (sandbox_id, account, ended_ms, reason, head))?;
            Ok(true)
        })
    }

    /// Nothing if the sandbox exists, never did, or was another account's.
    pub fn kept_journal(&self, account: &str, sandbox_id: &str) -> Result<Option<KeptJournal>> {
        let sql = "SELECT * FROM journals
                   WHERE sandbox_id = ? AND account = ? AND ended_ms IS NOT NULL";
        self.read(|connection| {
            Ok(connection.query_row(sql, [sandbox_id, account], read).optional()?)
        })
    }

    /// Of all accounts, for reconciliation.
    pub fn kept_journals(&self) -> Result<Vec<KeptJournal>> {
        self.read(|connection| ended_before(connection, i64::MAX))
    }

    /// Forgets those whose sandboxes ended before then; their files can go.
    pub fn forget_journals(&self, ended_before_ms: i64) -> Result<Vec<KeptJournal>> {
        self.write(Survives::Kill, |connection| {
            let forgotten = ended_before(connection, ended_before_ms)?;
            connection.execute("DELETE FROM journals WHERE ended_ms < ?", [ended_before_ms])?;
            Ok(forgotten)
        })
    }
}

fn ended_before(connection: &Connection, time_ms: i64) -> Result<Vec<KeptJournal>> {
    let mut statement = connection.prepare("SELECT * FROM journals WHERE ended_ms < ?")?;
    let rows = statement.query_map([time_ms], read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<KeptJournal> {
    Ok(KeptJournal {
        sandbox_id: row.get("sandbox_id")?,
        account: row.get("account")?,
        ended_ms: row.get("ended_ms")?,
        reason: row.get("reason")?,
        head: row.get("head")?,
    })
}
