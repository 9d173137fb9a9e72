//! The private servers of `ringfence run`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{put, require_sandbox, ringfence, text};

/// A run on a small directory, with everything of its own below `scratch`.
fn run(scratch: &Path, script: &str) -> Command {
    put(&scratch.join("project/a.txt"), "hello\n");
    let mut command = ringfence(&["run", "--rule", "write:/**", "--discard"]);
    command.arg(scratch.join("project")).args(["--", "sh", "-c", script]);
    command.env("RINGFENCE_STATE", scratch.join("state"));
    command.env("XDG_RUNTIME_DIR", scratch.join("runtime"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The directory of the server of this process, while there is one.
fn place_of(scratch: &Path, pid: u32) -> Option<PathBuf> {
    let own = [scratch.join("runtime/ringfence-private"), scratch.join("state/private")];
    let all = ["/run/ringfence-private", "/dev/shm/ringfence-private"];
    let all = all.map(PathBuf::from).into_iter().chain(own);
    let entries = all.filter_map(|dir| std::fs::read_dir(dir).ok()).flatten().flatten();
    let begins = format!("{pid}-");
    let is_its = |dir: &PathBuf| {
        dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&begins))
    };
    entries.map(|entry| entry.path()).find(is_its)
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line
}

#[test]
fn several_runs_at_once_do_not_disturb_each_other() {
    require_sandbox!();
    let scratch = tempfile::tempdir().unwrap();
    let start = |n: u32| {
        let script = format!("echo {n} > mine; cat a.txt mine; ls; exit {n}");
        (n, run(scratch.path(), &script).spawn().unwrap())
    };
    let runs: Vec<(u32, Child)> = (1..=4).map(start).collect();
    for (n, child) in runs {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(n as i32), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), format!("hello\n{n}\na.txt\nmine\n"));
    }
}

#[test]
fn nobody_else_can_reach_the_server_of_a_run_and_it_is_gone_at_the_end() {
    require_sandbox!();
    use std::os::unix::fs::PermissionsExt;
    let scratch = tempfile::tempdir().unwrap();
    let mut command = run(scratch.path(), "echo ready; cat");
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    assert_eq!(first_line(&mut child), "ready\n");
    let place = place_of(scratch.path(), child.id()).unwrap();
    assert_eq!(place.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(!place.exists());
}

#[test]
fn what_a_killed_run_left_is_swept_by_the_next() {
    require_sandbox!();
    let scratch = tempfile::tempdir().unwrap();
    let mut command = run(scratch.path(), "echo ready; cat");
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    assert_eq!(first_line(&mut child), "ready\n");
    let place = place_of(scratch.path(), child.id()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(run(scratch.path(), "true").status().unwrap().success());
    assert!(!place.exists());
}
