use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use super::site::{Site, User};
use crate::support::{require_fuse, require_root};

const OWNER: u32 = 12345;
const STRANGER: u32 = 23456;

fn run_as(uid: u32, dir: &Path, script: &str) -> Output {
    let mut command = Command::new("sh");
    command.arg("-ec").arg(script).uid(uid).gid(uid).current_dir(dir).output().unwrap()
}

fn ok(uid: u32, dir: &Path, script: &str) -> String {
    let output = run_as(uid, dir, script);
    assert!(output.status.success(), "{uid} {script:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn fails(uid: u32, dir: &Path, script: &str, with: &str) {
    let output = run_as(uid, dir, script);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{uid} {script:?} succeeded");
    assert!(errors.contains(with), "{uid} {script:?}: {errors}");
}

fn owned(args: &[&str]) -> Site {
    let site = Site::new(User::Root);
    site.prepare(
        "cd base; mkdir docs dir closed; echo doc > docs/doc; echo a > dir/a
        echo p > private; chmod 600 private; echo r > readonly; chmod 444 readonly
        echo n > nobody; chmod 0 nobody; echo c > closed/c; chmod 555 closed; chmod 1777 dir
        printf '#!/bin/sh\\necho ran\\n' > program; chmod 4755 program",
    );
    site.args(&["--preset", "full-access", "--rule", "read:/docs/**", "--owner", "12345:12345"])
        .args(args)
        .start()
}

fn in_both_modes(check: impl Fn(Site, &Path)) {
    for args in [&[][..], &["--no-passthrough"]] {
        let site = owned(args);
        let root = site.path("mnt");
        check(site, &root);
    }
}

#[test]
fn everything_shows_the_chosen_owner() {
    require_fuse!();
    require_root!();
    in_both_modes(|site, root| {
        ok(OWNER, root, "echo x > new; mkdir made; ln -s x made/link; echo more >> dir/a");
        let shown = ok(OWNER, root, "find . -printf '%U:%G\\n' | sort -u");
        assert_eq!(shown, "12345:12345\n");
        let site = site.remount();
        // Files that root makes are shown with the same owner.
        site.ok("echo root > by-root; test \"$(stat -c %u:%g by-root)\" = 12345:12345");
        assert_eq!(ok(OWNER, root, "find . -printf '%U:%G\\n' | sort -u"), "12345:12345\n");
    });
}

#[test]
fn the_owner_writes_where_the_level_says_so_and_nowhere_else() {
    require_fuse!();
    require_root!();
    in_both_modes(|_site, root| {
        ok(OWNER, root, "echo more >> private; test \"$(cat private | xargs)\" = 'p more'");
        ok(
            OWNER,
            root,
            "echo x > dir/new; mv dir/new dir/moved; rm dir/moved; rm dir/a; mkdir d; rmdir d",
        );
        fails(OWNER, root, "echo x > docs/doc", "Permission denied");
        fails(OWNER, root, "echo x > docs/new", "Permission denied");
        fails(OWNER, root, "rm -f docs/doc", "Permission denied");
        fails(OWNER, root, "chmod 600 docs/doc", "Permission denied");
    });
}

#[test]
fn mode_bits_are_enforced_for_the_owner_and_for_strangers() {
    require_fuse!();
    require_root!();
    in_both_modes(|_site, root| {
        fails(OWNER, root, "echo x > readonly", "Permission denied");
        fails(OWNER, root, "cat nobody", "Permission denied");
        fails(OWNER, root, "echo x > closed/new", "Permission denied");
        fails(OWNER, root, "rm -f closed/c", "Permission denied");
        ok(OWNER, root, "chmod 644 readonly nobody; echo x > readonly; test \"$(cat nobody)\" = n");
        ok(OWNER, root, "chmod 755 closed; rm closed/c; test \"$(./program)\" = ran");
        fails(STRANGER, root, "cat private", "Permission denied");
        fails(STRANGER, root, "echo x >> readonly", "Permission denied");
        fails(STRANGER, root, "echo x > new", "Permission denied");
        fails(STRANGER, root, "chmod 777 readonly", "Operation not permitted");
        // A sticky directory protects files of others in it.
        fails(STRANGER, root, "rm -f dir/a", "Operation not permitted");
        ok(STRANGER, root, "test \"$(cat readonly)\" = x; test \"$(./program)\" = ran");
    });
}

#[test]
fn files_cannot_be_given_away_and_never_carry_a_set_user_id_bit() {
    require_fuse!();
    require_root!();
    in_both_modes(|site, root| {
        fails(OWNER, root, "chown 0 private", "Operation not permitted");
        fails(OWNER, root, "chgrp 0 private", "Operation not permitted");
        ok(OWNER, root, "chown 12345:12345 private; chgrp 12345 private");
        assert!(site.fails("chown 1:1 private").contains("Operation not permitted"));
        assert!(site.fails("chown -h 0:0 private").contains("Operation not permitted"));
        site.ok("chown 12345:12345 private; test \"$(stat -c %u:%g private)\" = 12345:12345");
        assert_eq!(ok(OWNER, root, "stat -c %a program").trim(), "755");
        let set = ok(OWNER, root, "cp program p2; chmod 6755 p2 || true; stat -c %a p2");
        assert_eq!(set.trim(), "755");
        let live = "find store/layer/tree -perm /6000 | wc -l";
        assert_eq!(site.prepare(live).trim(), "0");
    });
}
