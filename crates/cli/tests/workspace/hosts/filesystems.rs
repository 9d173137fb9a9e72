use super::site::{Site, User, fill, holds};
use crate::support::{require_fuse, require_root};

/// Both ways of serving files on the same kind of host.
fn holds_in_both_modes(make: impl Fn() -> Site) {
    for args in [&[][..], &["--no-passthrough"]] {
        let site = make();
        fill(&site.path("base"));
        holds(site.args(args));
    }
}

#[test]
fn a_base_on_overlayfs_works_like_any_other() {
    require_fuse!();
    require_root!();
    holds_in_both_modes(|| Site::new(User::Root).overlay("base"));
}

#[test]
fn a_layer_on_overlayfs_works_like_any_other() {
    require_fuse!();
    require_root!();
    holds_in_both_modes(|| Site::new(User::Root).overlay("store"));
}

#[test]
fn base_and_layer_on_overlayfs_work_like_any_other() {
    require_fuse!();
    require_root!();
    holds_in_both_modes(|| Site::new(User::Root).overlay("base").overlay("store"));
}

/// The lower files of an overlay change their inode when the overlay copies them up.
#[test]
fn a_base_whose_content_is_in_the_lower_layer_of_an_overlay_works() {
    require_fuse!();
    require_root!();
    for args in [&[][..], &["--no-passthrough"]] {
        let site = Site::new(User::Root);
        std::fs::create_dir_all(site.path("overlay-base/lower")).unwrap();
        fill(&site.path("overlay-base/lower"));
        holds(site.overlay("base").args(args));
    }
}

#[test]
fn a_base_on_tmpfs_with_its_layer_on_a_disk_works() {
    require_fuse!();
    require_root!();
    holds_in_both_modes(|| Site::new(User::Root).mount("base", "-t tmpfs -o size=64m tmpfs"));
}

#[test]
fn a_layer_on_tmpfs_with_its_base_on_a_disk_works() {
    require_fuse!();
    require_root!();
    holds_in_both_modes(|| Site::new(User::Root).mount("store", "-t tmpfs -o size=64m tmpfs"));
}

#[test]
fn a_base_that_is_mounted_read_only_can_be_worked_on() {
    require_fuse!();
    require_root!();
    for args in [&[][..], &["--no-passthrough"]] {
        let site = Site::new(User::Root).mount("base", "-t tmpfs -o size=64m tmpfs");
        fill(&site.path("base"));
        site.prepare("mount -o remount,ro base");
        holds(site.args(args));
    }
}

/// Files of different filesystems may have the same inode number, and are still different files.
#[test]
fn mounts_inside_the_base_belong_to_the_workspace() {
    require_fuse!();
    require_root!();
    for args in [&[][..], &["--no-passthrough"]] {
        let site = Site::new(User::Root)
            .mount("base", "-t tmpfs -o size=64m tmpfs")
            .mount("base/one", "-t tmpfs -o size=8m tmpfs")
            .mount("base/one/two", "-t tmpfs -o size=32m tmpfs");
        fill(&site.path("base/one/two"));
        site.prepare("cd base; for d in . one one/two; do echo $d > $d/file; mkdir $d/d; echo $d > $d/d/in; done");
        let site = site.args(&["--preset", "full-access"]).args(args).start();
        site.ok("test ! file -ef one/file; test ! one/file -ef one/two/file
            test \"$(cat file one/file one/two/file | xargs)\" = '. one one/two'
            test \"$(cat d/in one/d/in one/two/d/in | xargs)\" = '. one one/two'
            find . | wc -l | grep -qx \"$(find . | sort -u | wc -l)\"");
        site.ok("mv one/file one/two/moved; mv one/two/d up; mv d one/d2; rm -r one/two/many
            echo more >> one/two/keep; mv one uno");
        let check = "test \"$(ls | xargs)\" = 'file uno up'; test \"$(cat up/in)\" = one/two
            test \"$(cat uno/two/moved)\" = one; test \"$(cat uno/d2/in)\" = .
            test \"$(cat uno/two/keep | xargs)\" = 'keep more'; test ! -e uno/two/many
            test \"$(cat uno/two/file)\" = one/two; test \"$(cat uno/d/in)\" = one";
        site.ok(check);
        let site = site.remount();
        site.ok(check);
        site.ok("rm -rf uno; test \"$(ls | xargs)\" = 'file up'");
        site.crash().ok("test \"$(ls | xargs)\" = 'file up'; mkdir one; test -z \"$(ls one)\"");
    }
}
