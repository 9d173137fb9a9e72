//! `ringfence shell` on a terminal.

use std::process::{Command, Stdio};

use crate::support::require_sandbox;

#[test]
fn a_person_works_on_a_terminal_with_job_control_and_decides_about_the_changes() {
    require_sandbox!();
    let scratch = tempfile::tempdir().unwrap();
    let project = scratch.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join(".env"), "SECRET").unwrap();
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sandbox/shell.py");
    let done = Command::new("python3")
        .args([driver, env!("CARGO_BIN_EXE_ringfence")])
        .arg(&project)
        .env("RINGFENCE_STATE", scratch.path().join("state"))
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn without_a_terminal_it_says_what_to_use_instead() {
    let done = Command::new(env!("CARGO_BIN_EXE_ringfence"))
        .args(["shell", "."])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("ringfence run"));
}
