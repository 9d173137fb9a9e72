//! `ringfence policy tree`: a directory as an agent would see it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use ringfence_fs::diff::quoted;
use ringfence_fs::levels::Access;
use ringfence_policy::{Level, Policy, Verdict, WorkspacePath};
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::output::{self, Colour, Paint, path_fields};
use crate::policy_args::PolicyArgs;

/// Show a directory as an agent would see it, one entry per line
///
/// The letter in front is the level: w write, r read, v view, - hidden. A hidden directory with a
/// visible entry can be passed through and is marked p. What is in a hidden directory is not
/// listed. Exit codes: 0; 2 bad input.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence policy tree .
  ringfence policy tree --preset development --visible ./project
  ringfence policy tree --json . | jq -r '.entries[] | select(.access == \"hidden\") | .path'")]
pub(crate) struct TreeArgs {
    #[command(flatten)]
    policy: PolicyArgs,

    /// Leave out what is hidden
    #[arg(long)]
    visible: bool,

    /// Print the tree as JSON, as a flat list
    #[arg(long)]
    json: bool,

    /// The directory that would be the base of a workspace
    dir: PathBuf,
}

/// An entry and, for a directory that can be entered, what is in it.
struct Entry {
    path: WorkspacePath,
    is_dir: bool,
    access: Access,
    unreadable: bool,
    inner: Vec<Entry>,
}

pub(crate) fn run(args: &TreeArgs) -> Result<ExitCode, Failure> {
    let policy = args.policy.compile()?;
    let entries = read(&policy, &args.dir, &WorkspacePath::root(), &policy.root_verdict())
        .map_err(|e| Failure::bad_input(format!("cannot read {}: {e}", args.dir.display())))?;
    if args.json {
        let mut list = Vec::new();
        walk(&entries, 0, &mut |entry, _| list.extend(to_json(args, entry)));
        output::print_json(&json!({ "dir": args.dir.to_string_lossy(), "entries": list }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let paint = Paint::for_stdout();
    let mut text = String::new();
    walk(&entries, 0, &mut |entry, depth| text += &line(args, entry, depth, paint));
    output::print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn read(
    policy: &Policy,
    dir: &Path,
    path: &WorkspacePath,
    verdict: &Verdict,
) -> std::io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = path.join(entry.file_name().as_bytes());
        // The type of the entry itself: a symlink to a directory is not a directory.
        let is_dir = entry.file_type()?.is_dir();
        let verdict = policy.child_verdict(verdict, &path);
        entries.push(judge(policy, &entry.path(), path, is_dir, verdict));
    }
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}

/// As the filesystem decides it: a hidden directory is shown if anything below it is.
fn judge(
    policy: &Policy,
    place: &Path,
    path: WorkspacePath,
    is_dir: bool,
    verdict: Verdict,
) -> Entry {
    let hidden = verdict.level == Level::None;
    let enter = is_dir && (!hidden || policy.subtree(&path).max > Level::None);
    let inner = if enter { read(policy, place, &path, &verdict) } else { Ok(vec![]) };
    let unreadable = inner.is_err();
    let mut inner = inner.unwrap_or_default();
    let shows = inner.iter().any(|entry| entry.access != Access::Hidden);
    let access = match (hidden, shows) {
        (false, _) => Access::Level(verdict.level),
        (true, true) => Access::Passage,
        (true, false) => Access::Hidden,
    };
    if access == Access::Hidden {
        inner.clear();
    }
    Entry { path, is_dir, access, unreadable, inner }
}

fn walk<'e>(entries: &'e [Entry], depth: usize, each: &mut impl FnMut(&'e Entry, usize)) {
    for entry in entries {
        each(entry, depth);
        walk(&entry.inner, depth + 1, each);
    }
}

fn line(args: &TreeArgs, entry: &Entry, depth: usize, paint: Paint) -> String {
    let (letter, colour) = match entry.access {
        Access::Hidden if args.visible => return String::new(),
        Access::Hidden => ("-", Colour::of(Level::None)),
        Access::Passage => ("p", Colour::Grey),
        Access::Level(level) => (&level.as_str()[..1], Colour::of(level)),
    };
    let name = quoted(entry.path.file_name().unwrap_or_default());
    let slash = if entry.is_dir { "/" } else { "" };
    let note = if entry.unreadable { " (cannot be read)" } else { "" };
    let text = format!("{letter} {:indent$}{name}{slash}", "", indent = depth * 2);
    format!("{}{note}\n", paint.text(colour, &text))
}

fn to_json(args: &TreeArgs, entry: &Entry) -> Option<Value> {
    let access = match entry.access {
        Access::Hidden if args.visible => return None,
        Access::Hidden => "hidden",
        Access::Passage => "passage",
        Access::Level(_) => "visible",
    };
    let level = match entry.access {
        Access::Level(level) => level,
        _ => Level::None,
    };
    let mut fields: Map<_, _> = path_fields("path", &entry.path).into_iter().collect();
    fields.insert("directory".into(), json!(entry.is_dir));
    fields.insert("access".into(), json!(access));
    fields.insert("level".into(), json!(level));
    Some(Value::Object(fields))
}

/// Every path below a directory, for checks against what exists.
pub(crate) fn paths_below(dir: &Path) -> std::io::Result<Vec<WorkspacePath>> {
    let mut found = Vec::new();
    let mut pending = vec![WorkspacePath::root()];
    while let Some(path) = pending.pop() {
        let place = dir.join(OsStr::from_bytes(&path.as_bytes()[1..]));
        let entries = match fs::read_dir(&place) {
            Err(e) if path.is_root() => return Err(e),
            Err(_) => continue,
            Ok(entries) => entries,
        };
        for entry in entries {
            let entry = entry?;
            let path = path.join(entry.file_name().as_bytes());
            if entry.file_type()?.is_dir() {
                pending.push(path.clone());
            }
            found.push(path);
        }
    }
    Ok(found)
}
