//! How answers are printed: as JSON for programs, as tables for people.

use std::time::{SystemTime, UNIX_EPOCH};

use pbjson_types::Timestamp;
use serde::Serialize;

use super::table::{sheet, table};
use crate::failure::Failure;
use crate::output::{self, Paint};

/// A list: an array, or a table.
pub(super) fn list<T: Serialize>(
    json: bool,
    items: &[T],
    titles: &[&str],
    row: impl Fn(&T) -> Vec<String>,
) -> Result<(), Failure> {
    match json {
        true => output::print_json(&items),
        false => {
            let rows: Vec<Vec<String>> = items.iter().map(row).collect();
            output::print(table(titles, &rows, Paint::for_stdout()).as_bytes())
        }
    }
}

/// One thing: an object, or its fields below each other.
pub(super) fn one<T: Serialize>(
    json: bool,
    item: &T,
    fields: impl FnOnce(&T) -> Vec<(&'static str, String)>,
) -> Result<(), Failure> {
    match json {
        true => output::print_json(item),
        false => output::print(sheet(&fields(item), Paint::for_stdout()).as_bytes()),
    }
}

/// What was made: an object, or its id alone, for the next command.
pub(super) fn made<T: Serialize>(json: bool, item: &T, id: &str) -> Result<(), Failure> {
    match json {
        true => output::print_json(item),
        false => output::print(format!("{id}\n").as_bytes()),
    }
}

/// How long ago, in the largest unit that says something.
pub(super) fn ago(time: Option<&Timestamp>) -> String {
    let Some(time) = time else { return String::new() };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() as i64;
    match now.saturating_sub(time.seconds) {
        past if past >= 0 => format!("{} ago", span(past as u64)),
        future => format!("in {}", span(future.unsigned_abs())),
    }
}

pub(super) fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

pub(super) fn size(bytes: i64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut amount = bytes.max(0) as f64;
    let mut unit = 0;
    while amount >= 1024.0 && unit + 1 < units.len() {
        amount /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{amount:.1} {}", units[unit]),
    }
}

/// `SANDBOX_STATUS_RUNNING` as people say it.
pub(super) fn word(name: &str, prefix: &str) -> String {
    let word = name.strip_prefix(prefix).unwrap_or(name).to_lowercase();
    if word == "unspecified" { String::new() } else { word.replace('_', " ") }
}

pub(super) fn pairs(map: &std::collections::HashMap<String, String>) -> String {
    let mut all: Vec<String> = map.iter().map(|(key, value)| format!("{key}={value}")).collect();
    all.sort();
    all.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_spans_are_in_the_largest_unit_that_says_something() {
        assert_eq!(
            (size(0), size(1023), size(1536)),
            ("0 B".into(), "1023 B".into(), "1.5 KiB".into())
        );
        assert_eq!((span(119), span(120), span(7200)), ("119s".into(), "2m".into(), "2h".into()));
        assert_eq!(word("SANDBOX_STATUS_RUNNING", "SANDBOX_STATUS_"), "running");
        assert_eq!(word("SANDBOX_STATUS_UNSPECIFIED", "SANDBOX_STATUS_"), "");
    }
}
