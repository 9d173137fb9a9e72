//! Frozen layers, forks, and removing them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{after, apply, changes, layer_command, layer_fails, layer_ok};
use crate::support::{Mounted, Server, binary, require_fuse};

/// Runs a script in a workspace over an existing layer.
fn on(ws: &Mounted, layer: &Path, script: &str) -> String {
    let mut command = binary();
    command.args(["mount", "--preset", "full-access", "--base"]).arg(ws.base());
    command.arg("--layer").arg(layer).arg(ws.root());
    let server = Server::start(command).unwrap_or_else(|output| panic!("{output:?}"));
    let output = Command::new("sh").args(["-c", script]).current_dir(ws.root()).output().unwrap();
    assert_eq!(server.stop(), Some(0));
    assert!(output.status.success(), "{script}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn forked(ws: &Mounted, parent: &Path, name: &str) -> PathBuf {
    let path = ws.scratch().join(name);
    layer_ok("fork", &[parent.as_os_str(), path.as_os_str()]);
    path
}

#[test]
fn two_forks_of_a_frozen_layer_change_independently() {
    require_fuse!();
    let ws = after(&[("a", "base\n"), ("b", "base\n")], "echo frozen > a");
    layer_ok("freeze", &[ws.layer.as_os_str()]);
    let (one, two) = (forked(&ws, &ws.layer, "one"), forked(&ws, &ws.layer, "two"));
    on(&ws, &one, "echo one > b");
    on(&ws, &two, "rm b; echo two >> a");
    assert_eq!(changes(&one), ["M a", "M b"]);
    assert_eq!(changes(&two), ["M a", "D b"]);
    assert_eq!(on(&ws, &one, "cat a b"), "frozen\none\n");
    assert_eq!(on(&ws, &two, "cat a; ls"), "frozen\ntwo\na\n");
    assert_eq!(changes(&ws.layer), ["M a"]);
}

#[test]
fn changes_of_a_chain_of_three_are_relative_to_the_base() {
    require_fuse!();
    let files = [("file", "text\n"), ("dir/x", "x\n"), ("dir/y", "y\n"), ("z", "z\n")];
    let ws = after(&files, "mv file file2; mv dir dir2; rm z");
    layer_ok("freeze", &[ws.layer.as_os_str()]);
    let second = forked(&ws, &ws.layer, "second");
    on(&ws, &second, "mv file2 file3; mv dir2 dir3; echo changed > dir3/x; printf 'z\\n' > z");
    layer_ok("freeze", &[second.as_os_str()]);
    let third = forked(&ws, &second, "third");
    on(&ws, &third, "mv dir3 dir4; echo more >> file3; rm dir4/y");
    let expected = ["R dir/ -> dir4/", "M dir4/x", "D dir4/y", "R file -> file3", "M file3"];
    assert_eq!(changes(&third), expected);
    assert_eq!(changes(&second), ["R dir/ -> dir3/", "M dir3/x", "R file -> file3"]);
}

#[test]
fn a_chain_is_applied_as_a_whole_and_still_shows_the_same() {
    require_fuse!();
    let files = [("file", "text\n"), ("dir/x", "x\n"), ("dir/y", "y\n"), ("dir/z", "z\n")];
    let ws = after(&files, "mv dir dir2; echo frozen > dir2/x");
    layer_ok("freeze", &[ws.layer.as_os_str()]);
    let second = forked(&ws, &ws.layer, "second");
    let shown = on(&ws, &second, "mv dir2 dir3; rm dir3/y; grep -r . . | sort");
    apply(&second);
    let list = ["-c", "grep -r . . | sort"];
    let base = Command::new("sh").args(list).current_dir(ws.base()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&base.stdout), shown);
    assert!(changes(&second).is_empty(), "{:?}", changes(&second));
    assert_eq!(on(&ws, &second, "grep -r . . | sort"), shown);
}

#[test]
fn the_names_of_one_file_stay_together_through_a_stack() {
    require_fuse!();
    let ws = after(&[("x", "1\n")], "echo one > a; ln a b");
    layer_ok("freeze", &[ws.layer.as_os_str()]);
    let second = forked(&ws, &ws.layer, "second");
    on(&ws, &second, "echo two > a");
    assert_eq!(on(&ws, &second, "cat b"), "two\n");
    apply(&second);
    for name in ["a", "b"] {
        assert_eq!(std::fs::read_to_string(ws.base().join(name)).unwrap(), "two\n");
    }
}

#[test]
fn a_live_layer_cannot_be_forked_and_the_hint_says_how() {
    require_fuse!();
    let ws = after(&[("a", "1")], "echo 2 > a");
    let new = ws.scratch().join("new");
    let error = layer_fails("fork", &[ws.layer.as_os_str(), new.as_os_str()], 2);
    assert!(error.contains("hint: freeze it with: ringfence layer freeze"), "{error}");
    assert!(!new.exists());
}

#[test]
fn a_frozen_layer_cannot_be_mounted_and_a_fork_of_it_can() {
    require_fuse!();
    let ws = after(&[("a", "1")], "echo 2 > a");
    layer_ok("freeze", &[ws.layer.as_os_str()]);
    let mut mount = binary();
    mount.arg("mount").arg("--base").arg(ws.base()).arg("--layer").arg(&ws.layer).arg(ws.root());
    let refused = Server::start(mount).err().expect("a frozen layer was mounted");
    assert_eq!(refused.status.code(), Some(2));
    let fork = forked(&ws, &ws.layer, "fork");
    assert_eq!(on(&ws, &fork, "cat a"), "2\n");
}

#[test]
fn a_fork_is_made_for_every_name_or_for_none() {
    require_fuse!();
    let ws = after(&[("a", "1")], "echo 2 > a");
    layer_ok("freeze", &[ws.layer.as_os_str()]);
    let (good, inside) = (ws.scratch().join("good"), ws.base().join("inside"));
    for bad in [ws.base(), inside.clone(), ws.layer.join("x"), good.clone()] {
        let args = [ws.layer.as_os_str(), good.as_os_str(), bad.as_os_str()];
        layer_fails("fork", &args, 2);
        assert!(!good.exists() && !inside.exists(), "{}", bad.display());
    }
}

#[test]
fn a_layer_others_stand_on_is_not_removed() {
    require_fuse!();
    let ws = after(&[("a", "1")], "echo 2 > a");
    layer_ok("freeze", &[ws.layer.as_os_str()]);
    let child = forked(&ws, &ws.layer, "child");
    let error = layer_fails("rm", &[ws.layer.as_os_str()], 2);
    assert!(error.contains("is needed by"), "{error}");
    assert_eq!(on(&ws, &child, "cat a"), "2\n");
    let error = layer_fails("rm", &[ws.layer.as_os_str(), child.as_os_str()], 2);
    assert!(error.contains("is needed by") && child.exists(), "{error}");
    layer_ok("rm", &[child.as_os_str(), ws.layer.as_os_str()]);
    assert!(!child.exists() && !ws.layer.exists());
    assert_eq!(std::fs::read_to_string(ws.base().join("a")).unwrap(), "1");
}

#[test]
fn a_removed_layer_leaves_the_base_as_it_was() {
    require_fuse!();
    let ws = after(&[("a", "1")], "echo 2 > a; echo new > b");
    layer_ok("rm", &[ws.layer.as_os_str()]);
    assert!(!ws.layer.exists());
    assert_eq!(crate::support::names_in(&ws.base()), ["a"]);
}

#[test]
fn show_names_base_parents_children_and_rules() {
    require_fuse!();
    let ws = after(&[("a", "1")], "true");
    layer_ok("freeze", &[ws.layer.as_os_str()]);
    let child = forked(&ws, &ws.layer, "child");
    let output =
        layer_command("show", &["--json".as_ref(), ws.layer.as_os_str(), child.as_os_str()]);
    let text = String::from_utf8(output.stdout).unwrap();
    let values: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(values[0]["state"], "frozen");
    assert_eq!(values[0]["children"][0], child.to_str().unwrap());
    assert_eq!(values[1]["state"], "live");
    assert_eq!(values[1]["parents"][0], ws.layer.to_str().unwrap());
    assert_eq!(values[1]["base"], ws.base().to_str().unwrap());
    assert_eq!(values[1]["rules"][0]["pattern"], "**/*");
}
