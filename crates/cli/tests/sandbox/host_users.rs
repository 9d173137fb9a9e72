//! A host user of its own for every sandbox that root starts, whoever else starts some.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ringfence_runtime::users::HOST_LOCKS;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{eventually, require_sandbox};

/// A run with a state directory of its own, which goes on until its input ends.
struct Running {
    scratch: TempDir,
    caller: Child,
}

impl Running {
    fn start() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::create_dir(scratch.path().join("base")).unwrap();
        let mut run = Command::new(env!("CARGO_BIN_EXE_ringfence"));
        run.args(["run", "--discard", "--state"]).arg(scratch.path().join("state"));
        run.arg(scratch.path().join("base")).args(["--", "sh", "-c", "echo up; cat"]);
        let mut caller = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(caller.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "up\n");
        Self { scratch, caller }
    }

    /// The user of the host that its warden has taken, as the record has it.
    fn uid(&self) -> u64 {
        let sandboxes = self.scratch.path().join("state/sandboxes");
        let dir = std::fs::read_dir(sandboxes).unwrap().next().unwrap().unwrap().path();
        let mut started = None;
        eventually("the start is on record", || {
            let text = std::fs::read_to_string(dir.join("journal.jsonl")).unwrap();
            let mut events = text.lines().flat_map(serde_json::from_str::<Value>);
            started = events.find(|event| event["kind"] == "sandbox_started");
            started.is_some()
        });
        started.unwrap()["uid"].as_u64().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.caller.stdin.take());
        let _ = self.caller.wait();
    }
}

/// A warden has no umask: files of the workspace have the modes that programs give them. What it
/// makes for itself must not be open to other users of the host all the same.
#[test]
fn what_a_sandbox_is_made_of_cannot_be_written_to_by_other_users() {
    require_sandbox!();
    let running = Running::start();
    let state = running.scratch.path().join("state");
    let id = std::fs::read_dir(state.join("sandboxes")).unwrap().next().unwrap().unwrap();
    let id = id.file_name().into_string().unwrap();
    let mut places = vec![state, HOST_LOCKS.into(), "/run/ringfence".into()];
    places.extend(groups_of(&id));
    assert!(places.len() > 3, "no groups were found");
    let open: Vec<PathBuf> = places.iter().flat_map(|place| open_to_others(place)).collect();
    assert!(open.is_empty(), "{open:#?}");
}

fn groups_of(id: &str) -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let places = mounts.lines().filter(|line| line.contains(" - cgroup"));
    let parents = places.map(|line| Path::new(line.split(' ').nth(4).unwrap()).join("ringfence"));
    let parents: Vec<PathBuf> = parents.filter(|parent| parent.join(id).exists()).collect();
    parents.iter().map(|parent| parent.join(id)).chain(parents.iter().cloned()).collect()
}

/// What others may write to, at and below a place. Files of the workspace, of its temporary
/// directory and of other sandboxes are not meant.
fn open_to_others(place: &Path) -> Vec<PathBuf> {
    let mut open = Vec::new();
    let Ok(data) = place.symlink_metadata() else { return open };
    if !data.is_symlink() && data.mode() & 0o022 != 0 {
        open.push(place.into());
    }
    let is_parent =
        place.ends_with("cgroup") || place.file_name().is_some_and(|n| n == "ringfence");
    if data.is_dir() && !is_parent {
        let entries = std::fs::read_dir(place).unwrap().flatten();
        let inside = ["tmp", "home", "tree"];
        let own = entries.filter(|e| !inside.iter().any(|name| e.file_name() == *name));
        open.extend(own.flat_map(|entry| open_to_others(&entry.path())));
    }
    open
}

#[test]
fn sandboxes_of_different_state_directories_are_different_users() {
    require_sandbox!();
    let all: Vec<_> = (0..4).map(|_| Running::start()).collect();
    let uids: BTreeSet<u64> = all.iter().map(Running::uid).collect();
    assert_eq!(uids.len(), all.len(), "{uids:?}");
}
