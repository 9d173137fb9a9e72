//! What `layer diff` prints, and that programs understand it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{after, layer_ok, run_in, tree};
use crate::support::{Mounted, Workspace, os, require_fuse};

fn diff(ws: &Mounted) -> String {
    layer_ok("diff", &[ws.layer.as_os_str()])
}

/// A copy of the base with the patch applied by another program.
fn patched(ws: &Mounted, program: &[&str]) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let status = Command::new("cp").arg("-a").arg(ws.base().join(".")).arg(copy.path()).status();
    assert!(status.unwrap().success());
    let mut child = Command::new(program[0])
        .args(&program[1..])
        .current_dir(copy.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(diff(ws).as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{program:?} refuses:\n{}", diff(ws));
    copy
}

/// The tree the layer stands for, as a plain directory.
fn workspace_tree(ws: Mounted) -> Vec<String> {
    let ws = ws.remount(None);
    tree(&ws.root())
}

const FILES: &[(&str, &str)] = &[
    ("changed.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n"),
    ("no newline", "a\nb"),
    ("deleted.txt", "gone\n"),
    ("dir/deleted too.txt", "gone\n"),
    ("renamed.txt", "a file that is renamed\nand changed\nin one line\n"),
    ("tool.sh", "#!/bin/sh\n"),
    ("old/one", "1\n"),
    ("old/two", "2\n"),
];

const SCRIPT: &str = "sed -i 's/^3$/three/; s/^14$/fourteen/' changed.txt
printf 'a\nb\nc' > 'no newline'
rm -r deleted.txt dir
mv renamed.txt elsewhere.txt; sed -i 's/one/a/' elsewhere.txt
chmod 755 tool.sh
mv old new; echo 22 > new/two
mkdir added; echo 1 > added/file; touch added/empty; printf 'no end' > 'added/with space'
ln -s changed.txt link";

#[test]
fn patch_turns_a_copy_of_the_base_into_the_workspace() {
    require_fuse!();
    let ws = after(FILES, SCRIPT);
    let copy = patched(&ws, &["patch", "-p1", "--quiet"]);
    assert_eq!(tree(copy.path()), workspace_tree(ws));
}

#[test]
fn git_apply_turns_a_copy_of_the_base_into_the_workspace() {
    require_fuse!();
    let ws = after(FILES, SCRIPT);
    let copy = patched(&ws, &["git", "apply", "-"]);
    assert_eq!(tree(copy.path()), workspace_tree(ws));
}

#[test]
fn hostile_names_survive_a_patch() {
    require_fuse!();
    let mut ws = Workspace::new().preset("full-access").mount();
    for name in [&b"line\nfeed"[..], b"\x1b[2J", b"\xff", b"quo\"te\\", b"--- a", "é".as_bytes()] {
        std::fs::write(ws.path(os(name)), "text\n").unwrap();
    }
    ws.unmount();
    let copy = patched(&ws, &["git", "apply", "-"]);
    assert_eq!(tree(copy.path()), workspace_tree(ws));
}

#[test]
fn a_diff_shows_what_changed_around_each_change() {
    require_fuse!();
    let ws = after(&[("a.py", "x = 1\ny = 2\n")], "sed -i 's/2/3/' a.py");
    let expected = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n";
    assert_eq!(diff(&ws), expected);
}

#[test]
fn binary_and_very_large_files_are_noted_not_shown() {
    require_fuse!();
    let script = "head -c 100 /dev/zero > binary; yes | head -c 9000000 > large";
    let ws = after(&[("binary", "text"), ("large", "text")], script);
    let text = diff(&ws);
    assert!(text.contains("Binary files a/binary and b/binary differ"), "{text}");
    assert!(text.contains("Binary files a/large and b/large differ"), "{text}");
    assert!(text.len() < 1000);
}

#[test]
fn what_a_patch_has_no_words_for_is_noted() {
    require_fuse!();
    let ws = after(&[("d/x", "1")], "mkdir empty; mkfifo pipe; chmod 700 d");
    let expected = "ringfence: directory d/: mode 755 -> 700\n\
                    ringfence: directory empty/: added\nringfence: fifo pipe: added\n";
    assert_eq!(diff(&ws), expected);
}

#[test]
fn a_diff_follows_no_symlink() {
    require_fuse!();
    let plant = |base: &Path| std::fs::write(base.join("passwd"), "text\n").unwrap();
    let ws = run_in(Workspace::new().with_base(plant), "rm passwd; ln -s /etc/passwd passwd");
    let text = diff(&ws);
    assert!(text.contains("+/etc/passwd\n"), "{text}");
    assert!(!text.contains("root:"), "{text}");
}
