//! The owner sees everything, and looking changes nothing for programs.

use std::fs::{self, File};
use std::io::Write;

use ringfence_fs::files::{FileErrorKind, View, WriteOptions};

use crate::support::{Place, Quick, code, content, in_both_modes, io_code, listed, owner, p};

#[test]
fn the_owner_reads_writes_and_lists_what_is_hidden() {
    let place = || {
        let place = Place::new().file("src/.env", "KEY=1").file("src/main", "x").file("ro", "r");
        place.rule("none:**/.env*@100").rule("read:/ro@10")
    };
    in_both_modes(place, |place, mounted| {
        let files = owner(mounted);
        assert_eq!(files.names("src"), [".env", "main"]);
        assert_eq!(files.get("src/.env"), "KEY=1");
        files.put("src/.env", "KEY=2");
        files.put("src/.env.local", "new");
        files.put("ro", "written");
        assert_eq!(listed(place.mnt("src")), ["main"]);
        assert_eq!(io_code(File::open(place.mnt("src/.env"))), 2);
        assert_eq!(content(place.mnt("ro")), "written");
        files.rename(&p("src/.env"), &p("src/shown")).unwrap();
        assert_eq!(content(place.mnt("src/shown")), "KEY=2", "the owner decides");
        files.rename(&p("src/main"), &p("src/.env")).unwrap();
        assert_eq!(listed(place.mnt("src")), ["shown"]);
        assert_eq!(io_code(fs::metadata(place.mnt("src/main"))), 2);
        files.remove(&p("src"), true).unwrap();
        assert_eq!(listed(place.mnt("")), ["ro"]);
        assert_eq!(content(place.at("base/src/.env")), "KEY=1");
    });
}

#[test]
fn names_of_one_file_keep_their_levels_when_the_owner_looks() {
    let place = || {
        let place = Place::new().file("dir/writable", "shared").rule("read:/dir/readonly@10");
        let (from, to) = (place.at("base/dir/writable"), place.at("base/dir/readonly"));
        fs::hard_link(from, to).unwrap();
        place
    };
    in_both_modes(place, |place, mounted| {
        let files = owner(mounted);
        files.names("dir");
        let _held = files.read(&p("dir/readonly")).unwrap();
        let mut open = File::options().append(true).open(place.mnt("dir/writable")).unwrap();
        files.names("dir");
        open.write_all(b" and changed").unwrap();
        assert_eq!(content(place.mnt("dir/readonly")), "shared");
        assert_eq!(files.get("dir/readonly"), "shared");
        assert_eq!(files.get("dir/writable"), "shared and changed");
        assert_eq!(io_code(File::options().append(true).open(place.mnt("dir/readonly"))), 13);
    });
}

#[test]
fn a_write_that_is_given_up_leaves_nothing() {
    in_both_modes(
        || Place::new().file("kept", "kept"),
        |place, mounted| {
            let files = owner(mounted);
            let options = WriteOptions { mode: None, parents: true };
            let mut writing = files.write(&p("a/b/c"), options).unwrap();
            writing.write_all(&[7; 100_000]).unwrap();
            assert_eq!(listed(place.at("layer/work")).len(), 1);
            drop(writing);
            let mut writing = files.write(&p("kept"), options).unwrap();
            writing.write_all(b"half").unwrap();
            drop(writing);
            assert_eq!(files.names("/"), ["kept"]);
            assert_eq!(files.get("kept"), "kept");
            assert_eq!(listed(place.at("layer/work")), [""; 0]);
        },
    );
}

#[test]
fn errors_say_what_is_the_matter() {
    let place = Place::new().file("file", "x").file("dir/inner", "x");
    let offline = place.offline();
    let files = offline.files(View::Owner);
    use FileErrorKind::*;
    let kind = |code: Result<(), ringfence_fs::files::FileError>| code.unwrap_err().kind();
    assert_eq!(kind(files.stat(&p("none"), false).map(drop)), NotFound);
    assert_eq!(kind(files.stat(&p("file/x"), false).map(drop)), NotADirectory);
    assert_eq!(kind(files.list(&p("file")).map(drop)), NotADirectory);
    assert_eq!(kind(files.list(&p("none")).map(drop)), NotFound);
    assert_eq!(kind(files.read(&p("dir")).map(drop)), IsADirectory);
    assert_eq!(kind(files.read(&p("/")).map(drop)), IsADirectory);
    assert_eq!(kind(files.try_put("dir", "").map(drop)), IsADirectory);
    assert_eq!(kind(files.try_put("none/x", "").map(drop)), NotFound);
    assert_eq!(kind(files.try_put("file/x", "").map(drop)), NotADirectory);
    assert_eq!(kind(files.mkdir(&p("dir"), None, false).map(drop)), Exists);
    assert_eq!(kind(files.mkdir(&p("file"), None, true).map(drop)), Exists);
    assert_eq!(kind(files.mkdir(&p("none/x"), None, false).map(drop)), NotFound);
    assert_eq!(kind(files.remove(&p("dir"), false)), NotEmpty);
    assert_eq!(kind(files.remove(&p("/"), true)), Invalid);
    assert_eq!(kind(files.rename(&p("none"), &p("x"))), NotFound);
    assert_eq!(kind(files.rename(&p("dir"), &p("dir/inner/x"))), NotADirectory);
    assert_eq!(kind(files.rename(&p("dir"), &p("dir/x"))), Invalid);
    assert_eq!(kind(files.rename(&p("dir/inner"), &p("dir"))), NotEmpty);
    assert_eq!(kind(files.rename(&p("dir"), &p("file"))), NotADirectory);
    assert_eq!(kind(files.rename(&p("file"), &p("/"))), Invalid);
    assert_eq!(kind(files.try_put(&"n".repeat(256), "").map(drop)), Invalid);
    assert_eq!(code(files.rename(&p("dir"), &p("dir"))), 0);
    assert_eq!(code(files.mkdir(&p("dir"), None, true)), 0);
    assert_eq!(code(files.mkdir(&p("/"), None, true)), 0);
    assert_eq!(files.names("/"), ["dir", "file"]);
    let text = files.read(&p("none")).unwrap_err().to_string();
    assert_eq!(text, "/none: there is no such file or directory");
}
