//! `ringfence layer`: what a layer holds, and writing it back.

mod apply;
mod changes;
mod conflicts;
mod diff;
mod random;
mod stacks;
mod terminal;

use std::ffi::OsStr;
use std::path::Path;
use std::process::Output;

use crate::support::{Mounted, Workspace, binary};

fn layer_command(command: &str, args: &[&OsStr]) -> Output {
    binary().arg("layer").arg(command).args(args).output().unwrap()
}

/// Runs a command that must succeed and returns what it printed.
fn layer_ok(command: &str, args: &[&OsStr]) -> String {
    let output = layer_command(command, args);
    assert!(output.status.success(), "{command}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail with this exit code and returns its errors.
fn layer_fails(command: &str, args: &[&OsStr], code: i32) -> String {
    let output = layer_command(command, args);
    assert_eq!(output.status.code(), Some(code), "{command}: {output:?}");
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

fn changes(layer: &Path) -> Vec<String> {
    layer_ok("changes", &[layer.as_os_str()]).lines().map(String::from).collect()
}

fn apply(layer: &Path) -> String {
    layer_ok("apply", &[layer.as_os_str()])
}

/// A writable workspace with these files, after a script ran in it.
fn after(files: &[(&str, &str)], script: &str) -> Mounted {
    let workspace = files.iter().fold(Workspace::new(), |ws, (path, text)| ws.file(path, text));
    run_in(workspace, script)
}

fn run_in(workspace: Workspace, script: &str) -> Mounted {
    let mut mounted = workspace.preset("full-access").mount();
    mounted.ok(script);
    mounted.unmount();
    mounted
}

/// Everything in a directory: paths, types, modes and contents, for comparing trees.
fn tree(dir: &Path) -> Vec<String> {
    let script = "find . -mindepth 1 -printf '%P %y %m %l\\n' | LC_ALL=C sort; \
                  find . -type f -exec sha256sum {} + | LC_ALL=C sort -k2";
    let output = std::process::Command::new("sh").args(["-c", script]).current_dir(dir).output();
    let text = output.unwrap().stdout;
    String::from_utf8_lossy(&text).lines().map(String::from).collect()
}

#[test]
fn what_is_not_a_layer_is_refused_with_a_sentence_and_exit_code_2() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["changes", "diff", "apply", "freeze", "rm", "show"] {
        let error = layer_fails(command, &[dir.path().as_os_str()], 2);
        assert!(error.contains("is not a layer"), "{command}: {error}");
        let missing = dir.path().join("missing");
        let error = layer_fails(command, &[missing.as_os_str()], 2);
        assert!(error.contains("there is no layer"), "{command}: {error}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "something was created");
}

#[test]
fn a_layer_of_a_newer_version_is_refused_and_left_alone() {
    crate::support::require_fuse!();
    let ws = after(&[("a", "1")], "echo 2 > a");
    let meta = ws.layer.join("layer.json");
    let newer = std::fs::read_to_string(&meta).unwrap().replace("\"format\": 1", "\"format\": 999");
    std::fs::write(&meta, &newer).unwrap();
    for command in ["changes", "diff", "apply", "freeze", "rm", "show"] {
        let error = layer_fails(command, &[ws.layer.as_os_str()], 2);
        assert!(error.contains("format 999"), "{command}: {error}");
    }
    assert_eq!(std::fs::read_to_string(&meta).unwrap(), newer);
    assert_eq!(std::fs::read_to_string(ws.base().join("a")).unwrap(), "1");
}

#[test]
fn a_mounted_layer_can_be_looked_at_but_not_worked_with() {
    crate::support::require_fuse!();
    let ws = Workspace::new().file("a", "1\n").preset("full-access").mount();
    ws.ok("echo 2 > a; sync a");
    assert_eq!(changes(&ws.layer), ["M a"]);
    assert!(layer_ok("diff", &[ws.layer.as_os_str()]).contains("+2"));
    assert!(layer_ok("show", &[ws.layer.as_os_str()]).contains("live, in use"));
    for command in ["apply", "freeze", "rm"] {
        let error = layer_fails(command, &[ws.layer.as_os_str()], 2);
        assert!(error.contains("in use"), "{command}: {error}");
    }
    assert_eq!(std::fs::read_to_string(ws.base().join("a")).unwrap(), "1\n");
    assert_eq!(ws.ok("cat a"), "2\n");
}
