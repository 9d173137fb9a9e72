use std::fs;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use super::outside;
use crate::support::{Mounted, Workspace, require_fuse};

in_both_modes! {
    a_moved_directory_of_the_base_can_be_changed_and_moved_again
    what_is_made_while_others_remove_directories_is_what_was_asked_for
    work_in_a_directory_goes_on_while_others_rename_it
}

/// 10 000 files in 500 directories.
fn make_big_tree(base: &Path) {
    for dir in 0..500 {
        let dir = base.join(format!("big/{}/{dir}", dir % 20));
        std::fs::create_dir_all(&dir).unwrap();
        for file in 0..20 {
            std::fs::write(dir.join(format!("file{file}")), "some content of a file\n").unwrap();
        }
    }
}

fn count(ws: &Mounted, dir: &str) -> usize {
    ws.ok(&format!("find {dir} -type f | wc -l")).trim().parse().unwrap()
}

fn entries_in_layer(ws: &Mounted) -> usize {
    outside(&ws.layer, "find tree work links | wc -l").trim().parse().unwrap()
}

#[test]
fn a_big_tree_of_the_base_is_found_removed_and_stays_gone() {
    require_fuse!();
    let ws = Workspace::new().preset("development").with_base(make_big_tree).mount();
    assert_eq!(count(&ws, "big"), 10_000);
    ws.ok("echo changed > big/3/23/file7 && mkdir big/3/23/new && echo n > big/3/23/new/n");
    ws.ok("rm -rf big && test ! -e big && test -z \"$(ls)\"");
    assert!(entries_in_layer(&ws) < 10, "one whiteout says it all");
    ws.ok("mkdir big && test -z \"$(ls -A big)\" && mkdir big/3 && test -z \"$(ls -A big/3)\"");
    let ws = ws.remount(None);
    ws.ok("test -z \"$(ls -A big/3)\" && rmdir big/3 big && test ! -e big");
    let ws = ws.remount(None);
    ws.ok("test ! -e big && test -z \"$(ls -A)\"");
    assert_eq!(outside(&ws.base(), "find big -type f | wc -l").trim(), "10000");
}

#[test]
fn a_big_directory_of_the_base_moves_without_being_copied() {
    require_fuse!();
    let ws = Workspace::new().preset("full-access").with_base(make_big_tree).dir("other").mount();
    ws.ok("mv big other/moved && test ! -e big");
    assert!(entries_in_layer(&ws) < 10, "{}", outside(&ws.layer, "find tree"));
    assert_eq!(count(&ws, "other/moved"), 10_000);
    let ws = ws.remount(None);
    ws.ok("test ! -e big");
    assert_eq!(count(&ws, "other/moved"), 10_000);
    ws.ok("mv other/moved again && test ! -e other/moved && mv again/5 five");
    assert_eq!((count(&ws, "again"), count(&ws, "five")), (9_500, 500));
    let ws = ws.remount(None);
    assert_eq!((count(&ws, "again"), count(&ws, "five")), (9_500, 500));
    ws.ok("mv five again/5 && mv again big && test ! -e again && test ! -e five");
    assert_eq!(count(&ws, "big"), 10_000);
    let ws = ws.remount(None);
    assert_eq!(ws.names("/"), ["big", "other"]);
    ws.ok(&format!("diff -r big {}", ws.base().join("big").display()));
    assert!(entries_in_layer(&ws) < 30, "{}", outside(&ws.layer, "find tree"));
}

fn a_moved_directory_of_the_base_can_be_changed_and_moved_again(ws: Workspace) {
    require_fuse!();
    let ws = ws
        .preset("full-access")
        .file("a/keep", "keep\n")
        .file("a/gone", "gone\n")
        .file("a/sub/deep", "deep\n")
        .file("b/keep", "another\n")
        .mount();
    ws.ok("mv a a2 && rm a2/gone && echo more >> a2/keep && echo new > a2/sub/new
        mkdir a && echo other > a/keep && mv a2/sub a/sub && mv a2 c");
    let check = |ws: &Mounted, old: &str, new: &str| {
        ws.ok(&format!(
            "test \"$(ls {old})\" = keep && test \"$(tail -n1 {old}/keep)\" = more
            test \"$(cat {new}/keep)\" = other && test \"$(ls {new} | tr '\\n' ' ')\" = 'keep sub '
            test \"$(cat {new}/sub/deep {new}/sub/new | tr '\\n' ' ')\" = 'deep new '"
        ));
    };
    check(&ws, "c", "a");
    let ws = ws.remount(None);
    check(&ws, "c", "a");
    ws.ok("rm -rf b && mv a b && mv c a");
    check(&ws, "a", "b");
    let ws = ws.remount(None);
    check(&ws, "a", "b");
    assert_eq!(ws.names("/"), ["a", "b"]);
}

/// The filesystem gives the inode number of a removed directory to the next file that is made.
fn what_is_made_while_others_remove_directories_is_what_was_asked_for(ws: Workspace) {
    require_fuse!();
    let ws = ws.preset("full-access").dir("a").dir("b").dir("c").mount();
    std::thread::scope(|scope| {
        for dir in ["a", "b"] {
            let dir = ws.path(dir);
            scope.spawn(move || {
                for i in 0..1500 {
                    fs::create_dir(dir.join(format!("d{i}"))).unwrap();
                    fs::remove_dir(dir.join(format!("d{i}"))).unwrap();
                }
            });
        }
        let dir = ws.path("c");
        scope.spawn(move || {
            for i in 0..1500 {
                let (file, sub) = (dir.join(format!("f{i}")), dir.join(format!("s{i}")));
                fs::write(&file, "content").unwrap();
                fs::create_dir(&sub).unwrap();
                assert!(file.metadata().unwrap().is_file() && sub.metadata().unwrap().is_dir());
            }
        });
    });
    assert_eq!(ws.names("c").len(), 3000);
    assert!(ws.names("a").is_empty() && ws.names("b").is_empty());
}

fn work_in_a_directory_goes_on_while_others_rename_it(ws: Workspace) {
    require_fuse!();
    let ws = ws.preset("full-access").file("place/moving/sub/base", "base\n").dir("other").mount();
    let open = |path: &str| {
        rustix::fs::openat(CWD, ws.path(path), OFlags::PATH | OFlags::DIRECTORY, Mode::empty())
            .unwrap()
    };
    let (dir, sub) = (open("place/moving"), open("place/moving/sub"));
    std::thread::scope(|scope| {
        let (one, two) = (ws.path("place/moving"), ws.path("other/moved"));
        let mover = scope.spawn(move || {
            for _ in 0..300 {
                fs::rename(&one, &two).unwrap();
                fs::rename(&two, &one).unwrap();
            }
        });
        for i in 0.. {
            let name = format!("n{i}");
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
            for at in [&dir, &sub] {
                let file = rustix::fs::openat(at, &name, flags, Mode::from(0o600));
                rustix::io::write(file.unwrap(), b"x").unwrap();
                rustix::fs::mkdirat(at, format!("d{i}"), Mode::from(0o700)).unwrap();
                rustix::fs::unlinkat(at, format!("d{i}"), AtFlags::REMOVEDIR).unwrap();
                assert_eq!(rustix::fs::statat(at, &name, AtFlags::empty()).unwrap().st_size, 1);
            }
            rustix::fs::statat(&sub, "base", AtFlags::empty()).unwrap();
            if mover.is_finished() {
                break;
            }
        }
        mover.join().unwrap();
    });
    assert_eq!(ws.names("place/moving").len(), ws.names("place/moving/sub").len());
    let count = ws.names("place/moving").len();
    assert_eq!(ws.remount(None).names("place/moving/sub").len(), count);
}
