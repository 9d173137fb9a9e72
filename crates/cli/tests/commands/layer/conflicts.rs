//! When `layer apply` refuses: what changed on both sides.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::{after, apply, layer_fails, layer_ok, tree};
use crate::support::{Mounted, require_fuse};

/// Applies and expects conflicts with these paths and words, and that nothing was written.
fn conflicts(ws: &Mounted, expected: &[&str]) {
    let before = tree(&ws.base());
    let text = layer_fails("apply", &[ws.layer.as_os_str()], 1);
    let lines: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("conflict: ")).collect();
    assert_eq!(lines, expected, "{text}");
    assert!(text.contains("nothing was written"), "{text}");
    assert_eq!(tree(&ws.base()), before);
}

fn force(ws: &Mounted) {
    layer_ok("apply", &["--force".as_ref(), ws.layer.as_os_str()]);
}

#[test]
fn a_file_that_changed_on_both_sides_is_a_conflict_and_nothing_is_written() {
    require_fuse!();
    let ws = after(&[("a", "1\n"), ("b", "1\n")], "echo 2 > a; echo 2 > b; echo new > c");
    fs::write(ws.base().join("a"), "3\n").unwrap();
    conflicts(&ws, &["a: changed in the target too"]);
    force(&ws);
    for name in ["a", "b"] {
        assert_eq!(fs::read_to_string(ws.base().join(name)).unwrap(), "2\n");
    }
}

#[test]
fn a_large_file_that_changed_on_both_sides_is_a_conflict() {
    require_fuse!();
    let big = "x".repeat(3 << 20);
    let ws = after(&[("big", &big)], "echo more >> big");
    fs::write(ws.base().join("big"), big.replacen('x', "y", 1)).unwrap();
    conflicts(&ws, &["big: changed in the target too"]);
}

#[test]
fn a_file_replaced_by_the_host_with_the_same_size_and_time_is_a_conflict() {
    require_fuse!();
    let ws = after(&[("a", "1\n")], "echo 22 > a");
    let times = fs::metadata(ws.base().join("a")).unwrap().modified().unwrap();
    fs::write(ws.base().join("new"), "3\n").unwrap();
    fs::File::options()
        .write(true)
        .open(ws.base().join("new"))
        .unwrap()
        .set_modified(times)
        .unwrap();
    fs::rename(ws.base().join("new"), ws.base().join("a")).unwrap();
    conflicts(&ws, &["a: changed in the target too"]);
}

#[test]
fn a_file_the_host_only_touched_is_no_conflict() {
    require_fuse!();
    let ws = after(&[("a", "1\n")], "echo 2 >> a");
    fs::write(ws.base().join("a"), "1\n").unwrap();
    apply(&ws.layer);
    assert_eq!(fs::read_to_string(ws.base().join("a")).unwrap(), "1\n2\n");
}

#[test]
fn the_same_change_on_both_sides_is_no_conflict() {
    require_fuse!();
    let ws = after(&[("a", "1\n"), ("d", "1\n")], "echo 2 > a; echo new > b; rm d; chmod 600 a");
    fs::write(ws.base().join("a"), "2\n").unwrap();
    fs::write(ws.base().join("b"), "new\n").unwrap();
    fs::remove_file(ws.base().join("d")).unwrap();
    apply(&ws.layer);
    let mode = fs::metadata(ws.base().join("a")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_file_added_on_both_sides_is_a_conflict_unless_it_is_the_same() {
    require_fuse!();
    let ws = after(&[("x", "1")], "echo mine > a; ln -s here l; mkdir d; echo 1 > d/f");
    fs::write(ws.base().join("a"), "theirs\n").unwrap();
    symlink("there", ws.base().join("l")).unwrap();
    fs::create_dir(ws.base().join("d")).unwrap();
    conflicts(&ws, &["a: changed in the target too", "l: changed in the target too"]);
    force(&ws);
    assert_eq!(fs::read_to_string(ws.base().join("a")).unwrap(), "mine\n");
    assert_eq!(fs::read_link(ws.base().join("l")).unwrap().to_str(), Some("here"));
}

#[test]
fn a_file_deleted_here_and_changed_there_is_a_conflict() {
    require_fuse!();
    let ws = after(&[("a", "1\n"), ("b", "1\n")], "rm a b");
    fs::write(ws.base().join("a"), "2\n").unwrap();
    conflicts(&ws, &["a: changed in the target too"]);
    force(&ws);
    assert!(crate::support::names_in(&ws.base()).is_empty());
}

#[test]
fn a_file_changed_here_and_deleted_there_is_a_conflict() {
    require_fuse!();
    let ws = after(&[("d/a", "1\n"), ("b", "text to move\n")], "echo 2 > d/a; mv b c");
    fs::remove_dir_all(ws.base().join("d")).unwrap();
    fs::remove_file(ws.base().join("b")).unwrap();
    conflicts(&ws, &["c: was deleted in the target", "d/a: was deleted in the target"]);
    force(&ws);
    assert_eq!(fs::read_to_string(ws.base().join("d/a")).unwrap(), "2\n");
    assert_eq!(fs::read_to_string(ws.base().join("c")).unwrap(), "text to move\n");
}

#[test]
fn a_file_only_copied_here_and_deleted_there_stays_deleted() {
    require_fuse!();
    let ws = after(&[("a", "1\n"), ("b", "1\n")], "touch a; echo 2 > b");
    fs::remove_file(ws.base().join("a")).unwrap();
    apply(&ws.layer);
    assert_eq!(crate::support::names_in(&ws.base()), ["b"]);
}

#[test]
fn a_second_name_made_in_the_layer_is_no_conflict() {
    require_fuse!();
    let ws = after(&[("a", "1\n"), ("b", "2\n")], "ln a c; mv b d; cp d b");
    apply(&ws.layer);
    assert_eq!(crate::support::names_in(&ws.base()), ["a", "b", "c", "d"]);
}

#[test]
fn a_deleted_directory_somebody_worked_in_is_a_conflict() {
    require_fuse!();
    let ws = after(&[("d/a", "1"), ("d/e/b", "1"), ("f/x", "1")], "rm -r d f");
    fs::write(ws.base().join("d/e/new"), "1").unwrap();
    let text = layer_fails("apply", &[ws.layer.as_os_str()], 1);
    assert!(text.contains("conflict: d: deleted here, but /d/e"), "{text}");
    assert!(ws.base().join("f/x").exists() && ws.base().join("d/a").exists());
    force(&ws);
    assert!(!ws.base().join("d").exists());
}

#[test]
fn entries_the_host_added_to_a_directory_made_anew_are_a_conflict() {
    require_fuse!();
    let ws = after(&[("d/a", "1")], "rm -r d; mkdir d; echo 2 > d/b");
    fs::write(ws.base().join("d/host"), "1").unwrap();
    conflicts(&ws, &["d/host: changed in the target too"]);
}

#[test]
fn a_directory_renamed_here_and_gone_there_is_a_conflict_force_cannot_solve() {
    require_fuse!();
    let ws = after(&[("old/a", "1"), ("old/b", "1")], "mv old new; echo 2 > new/a");
    let copy = ws.scratch().join("copy");
    fs::create_dir(&copy).unwrap();
    let args = ["--force".as_ref(), "--to".as_ref(), copy.as_os_str(), ws.layer.as_os_str()];
    let text = layer_fails("apply", &args, 1);
    assert!(text.contains("renamed here, but /old is gone"), "{text}");
    assert!(crate::support::names_in(&copy).is_empty());
}

#[test]
fn changes_of_the_host_inside_a_renamed_directory_move_with_it() {
    require_fuse!();
    let ws = after(&[("old/a", "1"), ("old/b", "1")], "mv old new; echo 2 > new/a");
    fs::write(ws.base().join("old/b"), "host").unwrap();
    fs::write(ws.base().join("old/c"), "host").unwrap();
    apply(&ws.layer);
    assert_eq!(crate::support::names_in(&ws.base().join("new")), ["a", "b", "c"]);
    assert_eq!(fs::read_to_string(ws.base().join("new/b")).unwrap(), "host");
}

#[test]
fn a_mode_changed_on_both_sides_is_a_conflict() {
    require_fuse!();
    let ws = after(&[("a", "1")], "chmod 700 a");
    fs::set_permissions(ws.base().join("a"), fs::Permissions::from_mode(0o600)).unwrap();
    conflicts(&ws, &["a: its mode was changed in the target too"]);
}

#[test]
fn a_directory_where_a_file_should_go_is_never_overwritten() {
    require_fuse!();
    let ws = after(&[("a", "1")], "echo 2 > a; echo 1 > b");
    fs::remove_file(ws.base().join("a")).unwrap();
    for dir in ["a", "b"] {
        fs::create_dir(ws.base().join(dir)).unwrap();
        fs::write(ws.base().join(dir).join("work"), "1").unwrap();
    }
    let args = ["--force".as_ref(), ws.layer.as_os_str()];
    let text = layer_fails("apply", &args, 1);
    assert!(text.contains("conflict: a: is a directory in the target"), "{text}");
    assert!(ws.base().join("a/work").exists() && ws.base().join("b/work").exists());
}

#[test]
fn another_target_must_hold_what_the_base_holds() {
    require_fuse!();
    let big = "x".repeat(3 << 20);
    let files = [("a", "1\n"), ("b", "1\n"), ("d/x", "1\n"), ("big", &big)];
    let ws = after(&files, "echo 2 > a; rm b; rm -r d; echo more >> big");
    let copy = ws.scratch().join("copy");
    let fresh = || {
        let _ = fs::remove_dir_all(&copy);
        let copied = std::process::Command::new("cp").arg("-r").arg(ws.base()).arg(&copy).status();
        assert!(copied.unwrap().success());
    };
    let args = ["--to".as_ref(), copy.as_os_str(), ws.layer.as_os_str()];
    for name in ["a", "b", "d/x", "big"] {
        fresh();
        fs::write(copy.join(name), "other\n").unwrap();
        let text = layer_fails("apply", &args, 1);
        let path = name.split('/').next().unwrap();
        assert!(text.contains(&format!("conflict: {path}: ")), "{name}: {text}");
    }
    fresh();
    layer_ok("apply", &args);
    assert_eq!(crate::support::names_in(&copy), ["a", "big"]);
}

#[test]
fn conflicts_are_listed_in_json_too() {
    require_fuse!();
    let ws = after(&[("a", "1\n")], "echo 2 > a");
    fs::write(ws.base().join("a"), "3\n").unwrap();
    let text = layer_fails("apply", &["--json".as_ref(), ws.layer.as_os_str()], 1);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["written"], false);
    assert_eq!(value["conflicts"][0]["path"], "/a");
}
