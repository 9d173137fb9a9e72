//! Where sandboxes are kept on this host, and which one is meant.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;

use crate::failure::Failure;

/// Where the state of sandboxes is.
#[derive(Debug, Args)]
pub(crate) struct StateArgs {
    /// Where the state of sandboxes is kept [default: $RINGFENCE_STATE, else /var/lib/ringfence for
    /// root, else $XDG_STATE_HOME/ringfence, else ~/.local/state/ringfence]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

/// A sandbox that has a state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) id: String,
    pub(crate) dir: PathBuf,
}

impl StateArgs {
    /// As if it had been given on the command line.
    pub(crate) fn named(state: Option<PathBuf>) -> Self {
        Self { state }
    }

    /// The state directory; it need not exist yet.
    pub(crate) fn dir(&self) -> Result<PathBuf, Failure> {
        let root = rustix::process::geteuid().is_root();
        choose(self.state.as_deref(), root, |name| std::env::var_os(name)).ok_or_else(|| {
            Failure::bad_input("there is no place for state: HOME is not set")
                .hint("name a directory with --state DIR or RINGFENCE_STATE")
        })
    }

    /// On the command line or in the environment.
    pub(crate) fn is_given(&self) -> bool {
        self.state.is_some()
            || std::env::var_os("RINGFENCE_STATE").is_some_and(|dir| !dir.is_empty())
    }

    /// The sandbox that is meant: by its id, by a beginning of it that no other has, or the newest
    /// as `last`.
    pub(crate) fn find(&self, id: &str) -> Result<Found, Failure> {
        let sandboxes = self.dir()?.join("sandboxes");
        let all = list(&sandboxes)?;
        match id {
            "last" => all.into_iter().max_by_key(age_key).ok_or_else(|| none_there(&sandboxes)),
            id => pick(all, id, &sandboxes),
        }
    }
}

fn choose(
    given: Option<&Path>,
    root: bool,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(dir) = given.map(Path::to_owned).or_else(|| set("RINGFENCE_STATE")) {
        return Some(dir);
    }
    if root {
        return Some("/var/lib/ringfence".into());
    }
    // The XDG specification says that a relative path there is to be ignored.
    set("XDG_STATE_HOME")
        .filter(|dir| dir.is_absolute())
        .or_else(|| Some(set("HOME")?.join(".local/state")))
        .map(|dir| dir.join("ringfence"))
}

/// Ids come from the directory, never from what was typed, so no path can be smuggled in.
fn list(sandboxes: &Path) -> Result<Vec<Found>, Failure> {
    let unreadable = |e| Failure::bad_input(format!("cannot read {}: {e}", sandboxes.display()));
    let entries = match std::fs::read_dir(sandboxes) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
        Err(e) => return Err(unreadable(e)),
    };
    let mut all = vec![];
    for entry in entries {
        let entry = entry.map_err(unreadable)?;
        if let (Ok(id), true) = (entry.file_name().into_string(), entry.path().is_dir()) {
            all.push(Found { id, dir: entry.path() });
        }
    }
    Ok(all)
}

/// By birth, since later changes in a directory do not make a sandbox newer.
fn age_key(found: &Found) -> (Option<SystemTime>, String) {
    let born = std::fs::metadata(&found.dir).and_then(|data| data.created().or(data.modified()));
    (born.ok(), found.id.clone())
}

fn pick(all: Vec<Found>, id: &str, sandboxes: &Path) -> Result<Found, Failure> {
    if let Some(exact) = all.iter().find(|found| found.id == id) {
        return Ok(exact.clone());
    }
    let fits = |found: &Found| !id.is_empty() && found.id.starts_with(id);
    let mut fitting: Vec<Found> = all.into_iter().filter(fits).collect();
    match fitting.len() {
        0 => Err(Failure::bad_input(format!(
            "there is no sandbox {id:?} in {}",
            sandboxes.display()
        ))
        .hint("`last` is the newest; --state DIR looks elsewhere")),
        1 => Ok(fitting.remove(0)),
        _ => Err(ambiguous(fitting, id)),
    }
}

fn ambiguous(mut fitting: Vec<Found>, id: &str) -> Failure {
    fitting.sort_by(|a, b| a.id.cmp(&b.id));
    let names: Vec<_> = fitting.iter().take(5).map(|found| found.id.as_str()).collect();
    let more = if fitting.len() > 5 { ", ..." } else { "" };
    Failure::bad_input(format!("{} sandboxes begin with {id:?}", fitting.len()))
        .hint(format!("one of {}{more}", names.join(", ")))
}

fn none_there(sandboxes: &Path) -> Failure {
    Failure::bad_input(format!("there is no sandbox in {}", sandboxes.display()))
        .hint("--state DIR looks elsewhere")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(given: Option<&str>, root: bool, set: &[(&str, &str)]) -> Option<PathBuf> {
        let variable = |name: &str| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        choose(given.map(Path::new), root, variable)
    }

    #[test]
    fn the_state_directory_is_the_first_that_is_named() {
        let set = [("RINGFENCE_STATE", "/r"), ("XDG_STATE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(chosen(Some("/s"), true, &set), Some("/s".into()));
        assert_eq!(chosen(None, true, &set), Some("/r".into()));
        assert_eq!(chosen(None, true, &set[1..]), Some("/var/lib/ringfence".into()));
        assert_eq!(chosen(None, false, &set[1..]), Some("/x/ringfence".into()));
        assert_eq!(chosen(None, false, &set[2..]), Some("/h/.local/state/ringfence".into()));
        assert_eq!(chosen(None, false, &[]), None);
    }

    #[test]
    fn empty_and_relative_variables_do_not_count() {
        let set = [("RINGFENCE_STATE", ""), ("XDG_STATE_HOME", "x"), ("HOME", "/h")];
        assert_eq!(chosen(None, false, &set), Some("/h/.local/state/ringfence".into()));
    }
}
