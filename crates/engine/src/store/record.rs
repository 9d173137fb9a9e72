//! What all records have in common.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use crate::problem::{Problem, Result};

/// A kind of record: a table whose key is `id`, with the columns `account` and `created_ms`.
pub(super) trait Record: Sized {
    const TABLE: &'static str;
    /// Beginning with `id`.
    const COLUMNS: &'static [&'static str];

    /// In the order of the columns.
    fn values(&self) -> Result<Vec<Value>>;
    fn read(row: &Row<'_>) -> rusqlite::Result<Self>;
    /// Where it is in a listing: oldest first.
    fn position(&self) -> (i64, &str);
}

/// Which part of a listing is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// How many at most; 0 is all of them.
    pub limit: usize,
    /// What the page before gave as `next`; empty for the first page.
    pub token: String,
}

/// One page, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    pub items: Vec<T>,
    /// What to ask the next page with, if there is one.
    pub next: Option<String>,
}

/// What must hold for the records that are listed.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    terms: Vec<&'static str>,
    values: Vec<Value>,
}

impl Conditions {
    /// `term` holds as many `?` as there are values.
    pub(super) fn and(
        mut self,
        term: &'static str,
        values: impl IntoIterator<Item = Value>,
    ) -> Self {
        self.terms.push(term);
        self.values.extend(values);
        self
    }

    pub(super) fn and_if(self, wanted: Option<&str>, term: &'static str) -> Self {
        match wanted {
            Some(value) => self.and(term, [value.to_owned().into()]),
            None => self,
        }
    }

    fn clause(&self) -> String {
        match self.terms.is_empty() {
            true => String::new(),
            false => format!("WHERE {}", self.terms.join(" AND ")),
        }
    }
}

pub(super) fn insert<R: Record>(connection: &Connection, record: &R) -> Result<()> {
    let marks = vec!["?"; R::COLUMNS.len()].join(", ");
    let columns = R::COLUMNS.join(", ");
    let sql = format!("INSERT INTO {} ({columns}) VALUES ({marks})", R::TABLE);
    connection.prepare_cached(&sql)?.execute(params_from_iter(record.values()?))?;
    Ok(())
}

pub(super) fn get<R: Record>(connection: &Connection, id: &str) -> Result<Option<R>> {
    let sql = format!("SELECT * FROM {} WHERE id = ?", R::TABLE);
    Ok(connection.prepare_cached(&sql)?.query_row([id], R::read).optional()?)
}

/// Only if it belongs to the account: for everybody else it is not there.
pub(super) fn get_of<R: Record>(
    connection: &Connection,
    account: &str,
    id: &str,
) -> Result<Option<R>> {
    let sql = format!("SELECT * FROM {} WHERE id = ? AND account = ?", R::TABLE);
    Ok(connection.prepare_cached(&sql)?.query_row([id, account], R::read).optional()?)
}

/// Reads, changes and writes back. The caller's transaction makes this one step.
pub(super) fn update<R: Record>(
    connection: &Connection,
    id: &str,
    change: impl FnOnce(&mut R),
) -> Result<Option<R>> {
    let Some(mut record) = get::<R>(connection, id)? else { return Ok(None) };
    change(&mut record);
    let (_, columns) = R::COLUMNS.split_at(1);
    let sql = format!("UPDATE {} SET {} = ? WHERE id = ?", R::TABLE, columns.join(" = ?, "));
    let mut values = record.values()?.split_off(1);
    // Not the id in the record: a change cannot turn it into another one.
    values.push(id.to_owned().into());
    connection.prepare_cached(&sql)?.execute(params_from_iter(values))?;
    get(connection, id)
}

pub(super) fn delete<R: Record>(connection: &Connection, id: &str) -> Result<bool> {
    let sql = format!("DELETE FROM {} WHERE id = ?", R::TABLE);
    Ok(connection.prepare_cached(&sql)?.execute([id])? > 0)
}

pub(super) fn list<R: Record>(
    connection: &Connection,
    mut conditions: Conditions,
    page: &Page,
) -> Result<Listed<R>> {
    if !page.token.is_empty() {
        let (created, id) = decode(&page.token)?;
        conditions = conditions.and("(created_ms, id) > (?, ?)", [created.into(), id.into()]);
    }
    // One more than asked for tells whether there is a next page.
    let limit = match page.limit {
        0 => -1,
        limit => i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1),
    };
    let sql = format!(
        "SELECT * FROM {} {} ORDER BY created_ms, id LIMIT {limit}",
        R::TABLE,
        conditions.clause()
    );
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map(params_from_iter(conditions.values), R::read)?;
    let mut items = rows.collect::<rusqlite::Result<Vec<R>>>()?;
    let more = page.limit > 0 && items.len() > page.limit;
    if more {
        items.truncate(page.limit);
    }
    let next = items.last().filter(|_| more).map(|last| encode(last.position()));
    Ok(Listed { items, next })
}

/// Callers must not read meaning into it, so it does not look like any.
fn encode((created, id): (i64, &str)) -> String {
    format!("{created}:{id}").bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn decode(token: &str) -> Result<(i64, String)> {
    let read = || {
        let digits = token.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
        let bytes: Option<Vec<u8>> =
            digits.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect();
        let text = String::from_utf8(bytes?).ok()?;
        let (created, id) = text.split_once(':')?;
        Some((created.parse().ok()?, id.to_owned()))
    };
    read().ok_or_else(|| Problem::invalid("the page token is not one of this server"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_tokens_come_back_as_they_were_and_others_are_refused() {
        assert_eq!(decode(&encode((-5, "cb_1"))).unwrap(), (-5, "cb_1".to_owned()));
        for bad in ["x", "zz", "00", "é", "31"] {
            assert!(decode(bad).is_err(), "{bad}");
        }
    }
}
