//! A base that its owner goes on working in.

use super::*;

/// Waits for a change made by the host; one second is promised, the rest is for a busy machine.
fn soon(what: &str, mut seen: impl FnMut() -> bool) {
    let start = Instant::now();
    while !seen() {
        assert!(start.elapsed() < Duration::from_secs(3), "not within a second: {what}");
        std::thread::yield_now();
    }
}

#[test]
fn what_the_host_changes_in_the_base_shows_up_within_a_second() {
    require_fuse!();
    each(
        |ws| {
            ws.file("f", "old")
                .file("same", "aaa")
                .file("gone", "x")
                .file("d/x", "x")
                .file("moved", "m")
        },
        |ws| {
            ws.ok("find . -ls >/dev/null; cat f same gone d/x moved >/dev/null");
            assert_eq!(errno(fs::metadata(ws.path("new"))), ENOENT);
            assert_eq!(errno(fs::metadata(ws.path("d/new"))), ENOENT);
            let base = ws.base();
            fs::write(base.join("new"), "new").unwrap();
            soon("a new file, known as absent before", || ws.path("new").exists());
            soon("the new file in the listing", || ws.names("").contains(&"new".into()));
            fs::write(base.join("f"), "changed").unwrap();
            soon("changed content", || fs::read(ws.path("f")).unwrap() == b"changed");
            soon("a changed size", || fs::metadata(ws.path("f")).unwrap().len() == 7);
            fs::write(base.join("same"), "bbb").unwrap();
            soon("changed content of the same size", || {
                fs::read(ws.path("same")).unwrap() == b"bbb"
            });
            fs::remove_file(base.join("gone")).unwrap();
            soon("a deleted file", || !ws.path("gone").exists());
            soon("the deleted file's listing", || !ws.names("").contains(&"gone".into()));
            fs::write(base.join("d/new"), "new").unwrap();
            soon("a new file in a directory", || ws.names("d") == ["new", "x"]);
            fs::create_dir_all(base.join("d/deep/er")).unwrap();
            fs::write(base.join("d/deep/er/f"), "f").unwrap();
            soon("a new tree", || ws.path("d/deep/er/f").exists());
            fs::rename(base.join("moved"), base.join("d/moved")).unwrap();
            soon("a moved file at its old place", || !ws.path("moved").exists());
            soon("a moved file at its new place", || ws.path("d/moved").exists());
            fs::rename(base.join("d"), base.join("e")).unwrap();
            soon("a moved directory", || ws.path("e/deep/er/f").exists() && !ws.path("d").exists());
            fs::set_permissions(base.join("f"), fs::Permissions::from_mode(0o600)).unwrap();
            soon("a changed mode", || fs::metadata(ws.path("f")).unwrap().mode() & 0o777 == 0o600);
            fs::write(base.join("f.tmp"), "replaced").unwrap();
            fs::rename(base.join("f.tmp"), base.join("f")).unwrap();
            soon("a replaced file", || fs::read(ws.path("f")).unwrap() == b"replaced");
        },
    );
}

#[test]
fn an_open_base_file_shows_what_the_host_appends() {
    require_fuse!();
    each(
        |ws| ws.file("log", "one\n"),
        |ws| {
            let mut reader = File::open(ws.path("log")).unwrap();
            let mut seen = String::new();
            reader.read_to_string(&mut seen).unwrap();
            let mut log = File::options().append(true).open(ws.base().join("log")).unwrap();
            log.write_all(b"two\n").unwrap();
            soon("the new line", || {
                reader.read_to_string(&mut seen).unwrap();
                seen == "one\ntwo\n"
            });
        },
    );
}

#[test]
fn what_was_changed_inside_is_not_disturbed_by_the_host() {
    require_fuse!();
    each(
        |ws| ws.file("f", "old").file("deleted", "x").file("d/x", "x"),
        |ws| {
            ws.ok("echo inside > f; rm deleted; rm -r d; mkdir d; echo mine > d/mine");
            let base = ws.base();
            fs::write(base.join("f"), "from the host").unwrap();
            fs::write(base.join("deleted"), "again").unwrap();
            fs::write(base.join("d/y"), "y").unwrap();
            fs::write(base.join("marker"), "x").unwrap();
            soon("the last change", || ws.path("marker").exists());
            assert_eq!(fs::read(ws.path("f")).unwrap(), b"inside\n");
            assert!(!ws.path("deleted").exists());
            assert_eq!(ws.names("d"), ["mine"]);
        },
    );
}

#[test]
fn a_directorys_time_follows_what_the_host_does_visibly() {
    require_fuse!();
    each(
        |ws| ws.file("d/f", "x"),
        |ws| {
            File::open(ws.base().join("d")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
            soon("the time that was set", || fs::metadata(ws.path("d")).unwrap().mtime() == 0);
            fs::write(ws.base().join("d/g"), "x").unwrap();
            soon("a new time", || fs::metadata(ws.path("d")).unwrap().mtime() > 0);
        },
    );
}

#[test]
fn what_the_host_moved_while_it_was_open_can_be_changed_at_its_new_place() {
    require_fuse!();
    each(
        |ws| ws.file("d/f", "f").file("d/sub/g", "g").file("loose", "l"),
        |ws| {
            let held = ["d/f", "d/sub/g", "loose"].map(|name| File::open(ws.path(name)).unwrap());
            let base = ws.base();
            fs::rename(base.join("d"), base.join("moved")).unwrap();
            fs::rename(base.join("loose"), base.join("moved/loose")).unwrap();
            for name in ["moved/f", "moved/sub/g", "moved/loose"] {
                soon(name, || fs::write(ws.path(name), "changed").is_ok());
                assert_eq!(fs::read(ws.path(name)).unwrap(), b"changed");
            }
            assert!(held.iter().all(|file| file.metadata().unwrap().len() == 1));
        },
    );
}
