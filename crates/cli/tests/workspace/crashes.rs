//! `kill -9` of the server: what had returned is there, what had not happened or had not, and
//! nothing hidden comes to light.

mod points;
mod storm;

use std::os::unix::process::ExitStatusExt;

use crate::support::{Workspace, eventually, require_fuse};

fn mounts_at(path: &std::path::Path) -> usize {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let path = path.to_str().unwrap();
    table.lines().filter(|line| line.split(' ').nth(4) == Some(path)).count()
}

#[test]
fn a_crash_leaves_no_stale_mount_behind_the_next_start() {
    require_fuse!();
    let mut ws = Workspace::new().preset("full-access").file("a", "a\n").mount();
    let root = ws.root().canonicalize().unwrap();
    for round in 0..3 {
        ws.ok(&format!("echo {round} > f{round}"));
        ws = ws.crash();
        assert_eq!(mounts_at(&root), 1);
        ws.ok(&format!("test \"$(cat f{round})\" = {round} && test \"$(cat a)\" = a"));
    }
    ws.unmount();
    assert_eq!(mounts_at(&root), 0);
    assert!(std::fs::read_dir(&root).unwrap().next().is_none());
}

#[test]
fn a_start_after_a_crash_is_not_held_up_by_programs_left_in_the_old_mount() {
    require_fuse!();
    let ws = Workspace::new().preset("full-access").file("dir/a", "a\n").mount();
    let mut left = std::process::Command::new("sh")
        .args(["-c", "exec 3>>file; cd dir; echo inside >&3; exec cat"])
        .current_dir(ws.root())
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    eventually("the program to be inside", || {
        std::fs::read_to_string(ws.path("file")).is_ok_and(|text| text == "inside\n")
    });
    let ws = ws.crash();
    assert_eq!(mounts_at(&ws.root().canonicalize().unwrap()), 1);
    ws.ok("test \"$(cat file)\" = inside && echo more >> file && rm -r dir");
    left.kill().unwrap();
    assert_eq!(left.wait().unwrap().signal(), Some(9));
}
