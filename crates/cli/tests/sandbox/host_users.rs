//! A host user of its own for every sandbox that root starts, whoever else starts some.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

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

#[test]
fn sandboxes_of_different_state_directories_are_different_users() {
    require_sandbox!();
    let all: Vec<_> = (0..4).map(|_| Running::start()).collect();
    let uids: BTreeSet<u64> = all.iter().map(Running::uid).collect();
    assert_eq!(uids.len(), all.len(), "{uids:?}");
}
