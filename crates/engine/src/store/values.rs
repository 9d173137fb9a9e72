//! How fields become columns and come back.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rusqlite::Row;
use rusqlite::types::{FromSqlError, Type, Value};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::{Problem, Result};

/// A field with structure, as JSON text: people can read it in a `sqlite3` shell.
pub(super) fn json(field: &impl Serialize) -> Result<Value> {
    match serde_json::to_string(field) {
        Ok(text) => Ok(text.into()),
        // Paths are the only fields that JSON cannot say.
        Err(_) => Err(Problem::invalid("a path is not valid UTF-8")),
    }
}

pub(super) fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|e| malformed(row, column, Type::Text, e))
}

/// A path, byte for byte.
pub(super) fn path(path: &Path) -> Value {
    path.as_os_str().as_bytes().to_vec().into()
}

pub(super) fn path_from(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}

/// SQLite's integers end at 2^63; nothing that is counted here comes near.
pub(super) fn number(value: u64) -> Value {
    i64::try_from(value).unwrap_or(i64::MAX).into()
}

pub(super) fn optional_number(value: Option<u64>) -> Value {
    value.map_or(Value::Null, number)
}

pub(super) fn unsigned(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|e| malformed(row, column, Type::Integer, e))
}

pub(super) fn optional_unsigned(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<u64>> {
    match row.get::<_, Option<i64>>(column)? {
        Some(_) => unsigned(row, column).map(Some),
        None => Ok(None),
    }
}

/// A column does not hold what this program writes there.
pub(super) fn malformed(
    row: &Row<'_>,
    column: &str,
    found: Type,
    cause: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    let position = row.as_ref().column_index(column).unwrap_or_default();
    let cause = FromSqlError::Other(Box::new(cause));
    rusqlite::Error::FromSqlConversionFailure(position, found, Box::new(cause))
}
