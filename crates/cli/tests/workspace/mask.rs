//! The mask over the base: what git would ignore is not there, and may be made anew.

use std::fs;

use crate::support::{Workspace, require_fuse};

#[test]
fn a_masked_path_is_absent_and_can_be_created_without_seeing_the_hosts() {
    require_fuse!();
    let ws = Workspace::new()
        .preset("full-access")
        .file("node_modules/old/index.js", "host")
        .file("src/a.js", "a")
        .arg("--mask")
        .arg("node_modules/")
        .mount();
    assert_eq!(ws.names(""), ["src"]);
    assert!(!ws.path("node_modules/old").exists());
    ws.ok("mkdir node_modules && echo new > node_modules/x");
    assert_eq!(ws.names("node_modules"), ["x"]);
    assert_eq!(fs::read_to_string(ws.base().join("node_modules/old/index.js")).unwrap(), "host");
    let ws = ws.remount(None);
    assert_eq!(ws.names("node_modules"), ["x"]);
    ws.ok("rm -r node_modules");
    assert_eq!(ws.names(""), ["src"]);
}

#[test]
fn ignore_files_hold_at_every_level_with_negation_and_anchoring() {
    require_fuse!();
    let ws = Workspace::new()
        .preset("full-access")
        .file(".gitignore", "*.log\n!keep.log\n/dist\n**/cache/\n")
        .file("a.log", "")
        .file("keep.log", "")
        .file("dist/x", "")
        .file("sub/dist/x", "")
        .file("sub/b.log", "")
        .file("sub/deep/cache/x", "")
        .file("sub/.gitignore", "!b.log\nonly-here\n")
        .file("sub/only-here", "")
        .file("only-here", "")
        .file(".sandboxignore", "private\n")
        .file("sub/private", "")
        .arg("--gitignore")
        .mount();
    assert_eq!(ws.names(""), [".gitignore", ".sandboxignore", "keep.log", "only-here", "sub"]);
    assert_eq!(ws.names("sub"), [".gitignore", "b.log", "deep", "dist"]);
    assert_eq!(ws.names("sub/deep"), Vec::<String>::new());
}

#[test]
fn the_mask_agrees_with_git_about_every_path_of_a_tree() {
    require_fuse!();
    let names =
        ["build/x.o", "build/keep/y", "src/x.o", "src/x.c", "doc/a/b/c.txt", "tmp", "t/tmp/z"];
    let mut ws = Workspace::new().preset("full-access").arg("--gitignore").file(
        ".gitignore",
        "*.o\n!/src/x.o\nbuild/*\n!build/keep\ndoc/**/c.txt\n/tmp\n# comment\n\\#odd\n",
    );
    ws = ws.file("#odd", "").file("src/.gitignore", "*.c\n");
    for name in names {
        ws = ws.file(name, "");
    }
    let ws = ws.mount();
    let base = ws.base();
    let git = |args: &[&str]| {
        std::process::Command::new("git").args(args).current_dir(&base).output().unwrap()
    };
    assert!(git(&["init", "-q"]).status.success());
    for name in names.iter().chain(&["#odd"]) {
        let ignored = git(&["check-ignore", "-q", name]).status.success();
        assert_eq!(ws.path(name).exists(), !ignored, "{name}");
    }
}

#[test]
fn a_bad_mask_is_an_error_that_names_it() {
    require_fuse!();
    let output = Workspace::new().arg("--mask").arg("secret[").try_mount().map(drop).unwrap_err();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("secret["), "{text}");
}
