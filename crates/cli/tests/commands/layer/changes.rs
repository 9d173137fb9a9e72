//! What `layer changes` lists.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::{after, changes, layer_ok, run_in};
use crate::support::{Workspace, os, require_fuse};

#[test]
fn a_layer_nobody_wrote_to_has_no_changes() {
    require_fuse!();
    let ws = after(&[("a", "1"), ("d/b", "2")], "cat a d/b; ls -R . >/dev/null");
    assert!(changes(&ws.layer).is_empty());
}

#[test]
fn added_modified_and_deleted_files_are_listed_by_path() {
    require_fuse!();
    let files = [("modified.txt", "1"), ("deleted.txt", "1"), ("same.txt", "1"), ("sub/x", "1")];
    let ws = after(&files, "echo 22 > modified.txt; rm deleted.txt; echo 1 > sub/new.txt");
    assert_eq!(changes(&ws.layer), ["D deleted.txt", "M modified.txt", "A sub/new.txt"]);
}

#[test]
fn a_new_directory_is_listed_with_everything_in_it() {
    require_fuse!();
    let ws = after(&[], "mkdir -p new/deep/er; echo 1 > new/deep/file; mkfifo new/pipe");
    let expected = ["A new/", "A new/deep/", "A new/deep/er/", "A new/deep/file", "A new/pipe"];
    assert_eq!(changes(&ws.layer), expected);
}

#[test]
fn a_deleted_directory_is_one_change() {
    require_fuse!();
    let ws = after(&[("d/a", "1"), ("d/e/f", "2"), ("k", "3")], "rm -r d");
    assert_eq!(changes(&ws.layer), ["D d/"]);
}

#[test]
fn a_directory_made_anew_is_compared_with_the_old_one_entry_by_entry() {
    require_fuse!();
    let script = "rm -r d; mkdir d; printf 1 > d/same; printf 9 > d/other; echo new > d/new";
    let ws = after(&[("d/same", "1"), ("d/other", "1"), ("d/gone", "1"), ("d/sub/x", "1")], script);
    assert_eq!(changes(&ws.layer), ["D d/gone", "A d/new", "M d/other", "D d/sub/"]);
}

#[test]
fn a_renamed_directory_is_one_change_plus_those_inside_it() {
    require_fuse!();
    let files = [("old/a", "1"), ("old/b", "1"), ("old/c", "1"), ("old/sub/x", "1")];
    let ws = after(&files, "mv old new; echo 22 > new/b; rm new/c; echo 1 > new/d");
    assert_eq!(changes(&ws.layer), ["R old/ -> new/", "M new/b", "D new/c", "A new/d"]);
}

#[test]
fn a_renamed_file_is_one_change_and_one_more_if_it_was_written_to() {
    require_fuse!();
    let files = [("a", "some text"), ("b", "more text"), ("d/c", "text in a directory")];
    let ws = after(&files, "mv a z; mv b y; echo more >> y; chmod 600 y; mv d/c x; rmdir d");
    let expected = ["D d/", "R d/c -> x", "R b -> y", "M y", "m y (mode 644 -> 600)", "R a -> z"];
    assert_eq!(changes(&ws.layer), expected);
}

#[test]
fn a_file_made_and_renamed_in_the_layer_is_only_added() {
    require_fuse!();
    let ws = after(&[], "echo 1 > a; mv a b");
    assert_eq!(changes(&ws.layer), ["A b"]);
}

#[test]
fn swapped_directories_are_two_renames() {
    require_fuse!();
    let ws = after(&[("a/x", "1"), ("b/y", "2")], "mv a t; mv b a; mv t b");
    assert_eq!(changes(&ws.layer), ["R b/ -> a/", "R a/ -> b/"]);
}

#[test]
fn a_directory_made_where_another_was_renamed_from_is_added() {
    require_fuse!();
    let ws = after(&[("d/a", "1"), ("d/b", "2")], "mv d e; mkdir d; echo 1 > d/b; mv e/a d/a");
    assert_eq!(changes(&ws.layer), ["A d/", "R d/a -> d/a", "A d/b", "R d/ -> e/"]);
}

#[test]
fn a_file_moved_over_another_modifies_it() {
    require_fuse!();
    let ws = after(&[("a", "one"), ("b", "two")], "mv a b");
    assert_eq!(changes(&ws.layer), ["D a", "M b"]);
}

#[test]
fn a_changed_mode_is_told_from_changed_content() {
    require_fuse!();
    let ws = after(&[("tool", "1"), ("d/x", "1")], "chmod 755 tool; chmod 700 d; chmod 600 d/x");
    let expected =
        ["m d/ (mode 755 -> 700)", "m d/x (mode 644 -> 600)", "m tool (mode 644 -> 755)"];
    assert_eq!(changes(&ws.layer), expected);
}

#[test]
fn a_changed_type_is_a_deletion_and_an_addition() {
    require_fuse!();
    let script = "rm file; mkdir file; echo 1 > file/x; rm -r dir; ln -s file dir";
    let ws = after(&[("file", "1"), ("dir/x", "1")], script);
    assert_eq!(changes(&ws.layer), ["D dir/", "A dir", "D file", "A file/", "A file/x"]);
}

#[test]
fn a_symlink_with_another_target_is_modified() {
    require_fuse!();
    let base = |base: &std::path::Path| std::os::unix::fs::symlink("a", base.join("link")).unwrap();
    let ws = run_in(Workspace::new().file("a", "1").with_base(base), "ln -sfn b link; ln -s x new");
    assert_eq!(changes(&ws.layer), ["M link", "A new"]);
}

#[test]
fn what_was_copied_but_not_changed_is_not_listed() {
    require_fuse!();
    let files = [("touched", "1"), ("d/rewritten", "text"), ("d/e/back", "x")];
    let script = "touch touched; cp d/rewritten t; cat t > d/rewritten; rm t; \
                  mv d/e/back d/e/away; mv d/e/away d/e/back; chmod 600 touched; chmod 644 touched";
    assert!(changes(&after(&files, script).layer).is_empty());
}

#[test]
fn times_set_back_do_not_hide_a_change() {
    require_fuse!();
    let big = "x".repeat(3 << 20);
    let script = "cp -p small ref; printf 2 > small; touch -r ref small; rm ref; \
                  cp -p big ref; printf y | dd of=big conv=notrunc status=none; \
                  touch -r ref big; rm ref";
    let ws = after(&[("small", "1"), ("big", &big)], script);
    let mtime = |name: &str| fs::metadata(ws.base().join(name)).unwrap().mtime();
    let copied = |name: &str| fs::metadata(ws.layer.join("tree").join(name)).unwrap().mtime();
    assert_eq!((mtime("small"), mtime("big")), (copied("small"), copied("big")));
    assert_eq!(changes(&ws.layer), ["M big", "M small"]);
}

#[test]
fn what_only_the_host_changed_is_not_a_change_of_the_layer() {
    require_fuse!();
    let ws = after(&[("a", "1"), ("b", "1")], "touch a");
    fs::write(ws.base().join("a"), "from the host").unwrap();
    fs::write(ws.base().join("b"), "from the host").unwrap();
    assert!(changes(&ws.layer).is_empty());
}

#[test]
fn every_name_of_a_file_with_several_is_modified_by_a_write_to_one() {
    require_fuse!();
    let link = |base: &std::path::Path| fs::hard_link(base.join("a"), base.join("d/b")).unwrap();
    let ws = run_in(Workspace::new().file("a", "1").dir("d").with_base(link), "echo 2 > a");
    assert_eq!(changes(&ws.layer), ["M a", "M d/b"]);
}

#[test]
fn changed_extended_attributes_are_a_modification() {
    require_fuse!();
    let set = "python3 -c 'import os; os.setxattr(\"a\", \"user.note\", b\"1\")'";
    let ws = after(&[("a", "1"), ("b", "1")], set);
    assert_eq!(changes(&ws.layer), ["M a"]);
}

#[test]
fn masked_paths_of_the_base_are_not_deleted() {
    require_fuse!();
    let ws = Workspace::new().file("node_modules/host", "1").file("a", "1");
    let ws = ws.arg("--mask").arg("node_modules");
    let ws = run_in(ws, "test ! -e node_modules; mkdir node_modules; echo 1 > node_modules/own");
    assert_eq!(changes(&ws.layer), ["A node_modules/", "A node_modules/own"]);
    super::apply(&ws.layer);
    assert_eq!(fs::read_to_string(ws.base().join("node_modules/host")).unwrap(), "1");
    assert!(ws.base().join("node_modules/own").exists());
}

#[test]
fn names_that_could_move_a_cursor_are_quoted_and_survive_json() {
    require_fuse!();
    let mut ws = Workspace::new().preset("full-access").mount();
    for name in [&b"line\nfeed"[..], b"\x1b[2Jclear", b"\xff\xfe", b"sp ace", b".wh.x"] {
        fs::write(ws.path(os(name)), "1").unwrap();
    }
    ws.unmount();
    let expected =
        ["A .wh.x", r#"A "\033[2Jclear""#, r#"A "line\nfeed""#, "A sp ace", r#"A "\377\376""#];
    let mut sorted = expected;
    sorted.sort();
    let mut lines = changes(&ws.layer);
    lines.sort();
    assert_eq!(lines, sorted);
    let json = layer_ok("changes", &[os(b"--json"), ws.layer.as_os_str()]);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let paths: Vec<_> = value["changes"].as_array().unwrap().iter().collect();
    assert!(paths.iter().any(|change| change["path"] == "/line\nfeed"));
    assert!(paths.iter().any(|change| change["path_bytes"] == serde_json::json!([47, 255, 254])));
}

#[test]
fn a_tree_deeper_than_the_stack_and_the_descriptors_is_listed() {
    require_fuse!();
    let script = "python3 -c 'import os\nfor i in range(1500): os.mkdir(\"d\"); os.chdir(\"d\")\n\
                  open(\"leaf\", \"w\").close()'";
    let ws = after(&[], script);
    let lines = changes(&ws.layer);
    assert_eq!(lines.len(), 1501);
    assert!(lines[1500].ends_with("/d/leaf"));
}

#[test]
fn the_layer_keeps_a_mirror_of_changed_files_and_the_base_is_untouched() {
    require_fuse!();
    let ws =
        after(&[("source.txt", "s"), ("sub/deep/both.txt", "s")], "echo n > sub/deep/both.txt");
    let copy = ws.layer.join("tree/sub/deep/both.txt");
    assert_eq!(fs::read_to_string(&copy).unwrap(), "n\n");
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o644);
    assert!(!ws.layer.join("tree/source.txt").exists());
    assert_eq!(fs::read_to_string(ws.base().join("sub/deep/both.txt")).unwrap(), "s");
}
