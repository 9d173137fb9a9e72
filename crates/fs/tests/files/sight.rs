//! Programs see at once what callers change, and callers what programs change.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};

use ringfence_fs::files::{View, WriteOptions};

use crate::support::{Place, Quick, can_mount, content, in_both_modes, io_code, listed, owner, p};

const ENOENT: i32 = 2;

fn place() -> Place {
    Place::new().file("kept", "from the base").file("dir/inner", "inner").file("dir/sub/deep", "x")
}

#[test]
fn a_written_file_is_there_for_programs_at_once() {
    in_both_modes(place, |place, mounted| {
        let files = owner(mounted);
        for path in ["new", "dir/new", "dir/sub/new"] {
            // The kernel knows that it is absent, and the listing without it.
            let mnt = place.mnt(path);
            assert_eq!(io_code(fs::metadata(&mnt)), ENOENT);
            let parent = mnt.parent().unwrap().to_path_buf();
            assert!(!listed(parent.clone()).contains(&"new".into()));
            let entry = files.put(path, "content");
            assert_eq!((entry.size, entry.mode), (7, 0o644));
            assert_eq!(content(mnt.clone()), "content");
            assert_eq!(fs::metadata(&mnt).unwrap().len(), 7);
            assert!(listed(parent).contains(&"new".into()));
            // The kernel has all of it cached now.
            files.put(path, "other content");
            assert_eq!(content(mnt.clone()), "other content");
            assert_eq!(fs::metadata(&mnt).unwrap().len(), 13);
        }
    });
}

#[test]
fn a_file_of_the_base_is_replaced_for_programs_that_know_it() {
    in_both_modes(place, |place, mounted| {
        let files = owner(mounted);
        let mnt = place.mnt("kept");
        fs::set_permissions(&mnt, fs::Permissions::from_mode(0o600)).unwrap();
        let mut open = File::open(&mnt).unwrap();
        assert_eq!(content(mnt.clone()), "from the base");
        files.put("kept", "replaced");
        assert_eq!(content(mnt.clone()), "replaced");
        assert_eq!(fs::metadata(&mnt).unwrap().mode() & 0o777, 0o600, "it keeps its mode");
        let mut seen = String::new();
        open.read_to_string(&mut seen).unwrap();
        assert_eq!(seen, "from the base", "who has it open keeps it");
        assert_eq!(open.metadata().unwrap().nlink(), 0);
        let options = WriteOptions { mode: Some(0o4755), parents: false };
        files.write(&p("kept"), options).unwrap().finish().unwrap();
        let now = fs::metadata(&mnt).unwrap();
        assert_eq!((now.mode() & 0o7777, now.len()), (0o755, 0));
        assert_eq!(content(place.at("base/kept")), "from the base");
    });
}

#[test]
fn a_file_a_program_is_writing_to_is_replaced_under_it() {
    in_both_modes(place, |place, mounted| {
        let files = owner(mounted);
        let mut open = File::options().write(true).read(true).open(place.mnt("kept")).unwrap();
        open.write_all(b"mine").unwrap();
        files.put("kept", "theirs");
        open.write_all(b" still").unwrap();
        open.rewind().unwrap();
        let mut seen = String::new();
        open.read_to_string(&mut seen).unwrap();
        assert_eq!(
            seen,
            "mine still" /* 10 of 13 bytes */
                .to_owned()
                + "ase"
        );
        assert_eq!(content(place.mnt("kept")), "theirs");
        assert_eq!(files.get("kept"), "theirs");
    });
}

#[test]
fn directories_come_and_go_for_programs_at_once() {
    in_both_modes(place, |place, mounted| {
        let files = owner(mounted);
        assert_eq!(io_code(fs::metadata(place.mnt("a/b/c"))), ENOENT);
        assert_eq!(io_code(fs::metadata(place.mnt("a"))), ENOENT);
        files.mkdir(&p("a/b/c"), None, true).unwrap();
        assert!(place.mnt("a/b/c").is_dir());
        fs::write(place.mnt("a/b/c/file"), "x").unwrap();
        let options = WriteOptions { mode: None, parents: true };
        files.write(&p("a/d/e/f"), options).unwrap().finish().unwrap();
        assert_eq!(listed(place.mnt("a")), ["b", "d"]);

        listed(place.mnt("dir"));
        listed(place.mnt("dir/sub"));
        let open = File::open(place.mnt("dir/sub/deep")).unwrap();
        files.remove(&p("dir"), true).unwrap();
        assert_eq!(io_code(fs::metadata(place.mnt("dir"))), ENOENT);
        assert_eq!(io_code(fs::metadata(place.mnt("dir/sub/deep"))), ENOENT);
        assert_eq!(listed(place.mnt("")), ["a", "kept"]);
        assert_eq!(open.metadata().unwrap().len(), 1, "what is open stays usable");
        files.remove(&p("kept"), false).unwrap();
        assert_eq!(io_code(File::open(place.mnt("kept"))), ENOENT);
        fs::create_dir(place.mnt("dir")).unwrap();
        assert_eq!(listed(place.mnt("dir")), [""; 0], "nothing of the old one comes back");
    });
}

#[test]
fn what_is_moved_is_at_its_new_place_for_programs_at_once() {
    in_both_modes(place, |place, mounted| {
        let files = owner(mounted);
        assert_eq!(io_code(fs::metadata(place.mnt("moved"))), ENOENT);
        let number = fs::metadata(place.mnt("dir/inner")).unwrap().ino();
        let mut held = File::options().append(true).open(place.mnt("dir/inner")).unwrap();
        let mut inside = Command::new("sh")
            .args(["-c", "echo ready; read line; cat inner sub/deep; /bin/pwd -P; ls .."])
            .current_dir(place.mnt("dir"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(inside.stdout.take().unwrap());
        said.read_line(&mut String::new()).unwrap();
        files.rename(&p("dir"), &p("moved")).unwrap();
        assert_eq!(io_code(fs::metadata(place.mnt("dir"))), ENOENT);
        assert_eq!(content(place.mnt("moved/sub/deep")), "x");
        assert_eq!(fs::metadata(place.mnt("moved/inner")).unwrap().ino(), number);
        assert_eq!(listed(place.mnt("")), ["kept", "moved"]);
        inside.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let mut output = String::new();
        said.read_to_string(&mut output).unwrap();
        inside.wait().unwrap();
        let moved = place.mnt("moved").canonicalize().unwrap();
        let expected = format!("innerx{}\nkept\nmoved\n", moved.display());
        assert_eq!(output, expected);

        files.rename(&p("moved/inner"), &p("kept")).unwrap();
        assert_eq!(content(place.mnt("kept")), "inner");
        assert_eq!(io_code(fs::metadata(place.mnt("moved/inner"))), ENOENT);
        held.write_all(b" more").unwrap();
        assert_eq!(content(place.mnt("kept")), "inner more");
        assert_eq!(files.get("kept"), "inner more");
    });
}

#[test]
fn a_large_file_that_a_program_reads_is_moved_and_replaced() {
    let bytes = vec![b'x'; 17 << 20];
    let make = || Place::new().file("large", &bytes).file("other", &bytes);
    in_both_modes(make, |place, mounted| {
        let files = owner(mounted);
        let mut open = ["large", "other"].map(|name| File::open(place.mnt(name)).unwrap());
        open.iter_mut().for_each(|open| open.read_exact(&mut [0; 4096]).unwrap());
        files.rename(&p("large"), &p("moved")).unwrap();
        files.put("other", "small");
        assert_eq!(io_code(fs::metadata(place.mnt("large"))), ENOENT);
        assert_eq!(fs::metadata(place.mnt("moved")).unwrap().len(), 17 << 20);
        assert_eq!(content(place.mnt("other")), "small");
        for open in &mut open {
            let mut rest = Vec::new();
            assert_eq!(open.read_to_end(&mut rest).unwrap(), (17 << 20) - 4096);
        }
        fs::write(place.mnt("moved"), "written").unwrap();
        assert_eq!(files.get("moved"), "written");
    });
}

#[test]
fn callers_see_what_programs_do_while_they_do_it() {
    in_both_modes(place, |place, mounted| {
        let files = owner(mounted);
        assert_eq!(files.names("/"), ["dir", "kept"]);
        fs::write(place.mnt("dir/made"), "made").unwrap();
        assert_eq!(files.names("dir"), ["inner", "made", "sub"]);
        assert_eq!(files.get("dir/made"), "made");
        let mut open = File::options().append(true).open(place.mnt("kept")).unwrap();
        for n in 1..=3 {
            open.write_all(b"!").unwrap();
            assert_eq!(files.get("kept"), "from the base".to_owned() + &"!".repeat(n));
            assert_eq!(files.stat(&p("kept"), false).unwrap().size, 13 + n as u64);
        }
        let reading = files.read(&p("kept")).unwrap();
        open.write_all(b"?").unwrap();
        let mut last = [0; 8];
        assert_eq!(reading.read_at(16, &mut last).unwrap(), 1, "an open file goes on");
        open.set_len(4).unwrap();
        assert_eq!(files.get("kept"), "from");
        fs::rename(place.mnt("dir/sub"), place.mnt("up")).unwrap();
        fs::remove_file(place.mnt("dir/inner")).unwrap();
        assert_eq!(files.names("dir"), ["made"]);
        assert_eq!(files.get("up/deep"), "x");
        fs::set_permissions(place.mnt("up"), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(files.stat(&p("up"), false).unwrap().mode, 0o700);
        fs::write(place.at("base/host"), "h").unwrap();
        assert_eq!(files.get("host"), "h", "the base is read, not remembered");
    });
}

/// A program that writes through a shared mapping and keeps it.
const MAPS: &str = "
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
view = mmap.mmap(fd, 4, mmap.MAP_SHARED)
view[:4] = b'page'
print('written', flush=True)
sys.stdin.read()
";

#[test]
fn what_a_program_wrote_through_a_mapping_is_read() {
    in_both_modes(place, |place, mounted| {
        let files = owner(mounted);
        for path in ["kept", "fresh"] {
            if path == "fresh" {
                fs::write(place.mnt(path), "from me").unwrap();
            }
            let mut program = Command::new("python3")
                .args(["-c", MAPS])
                .arg(place.mnt(path))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = String::new();
            BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "written\n");
            assert!(files.get(path).starts_with("page"), "{path}: {}", files.get(path));
            drop(program.stdin.take());
            program.wait().unwrap();
        }
    });
}

#[test]
fn a_snapshot_during_an_upload_does_not_lose_it() {
    if !can_mount() {
        return;
    }
    for passthrough in [true, false] {
        let place = place();
        let mut mounted = place.mount(passthrough);
        let files = owner(&mounted);
        let mut writing = files.write(&p("made/up"), WriteOptions { mode: None, parents: true });
        writing.as_mut().unwrap().write_all(b"before ").unwrap();
        mounted.freeze(&place.at("next")).unwrap();
        writing.as_mut().unwrap().write_all(b"after").unwrap();
        writing.unwrap().finish().unwrap();
        assert_eq!(content(place.mnt("made/up")), "before after");
        assert!(!place.at("layer/tree/made").exists() && place.at("next/tree/made/up").exists());
        assert_eq!(listed(place.at("layer/work")), [""; 0]);
        mounted.unmount().unwrap();
    }
}

#[test]
fn what_becomes_visible_by_a_call_is_listed_where_it_was_not() {
    let place = || {
        let place = Place::new().file("secret/x", "x");
        place.rule("none:/secret/**@10").rule("read:/secret/shown/**@20")
    };
    in_both_modes(place, |place, mounted| {
        assert_eq!(listed(place.mnt("")), [""; 0]);
        assert_eq!(io_code(fs::metadata(place.mnt("secret"))), ENOENT);
        let files = owner(mounted);
        files.mkdir(&p("secret/shown"), None, false).unwrap();
        files.put("secret/shown/file", "seen");
        assert_eq!(listed(place.mnt("")), ["secret"]);
        assert_eq!(listed(place.mnt("secret")), ["shown"]);
        assert_eq!(content(place.mnt("secret/shown/file")), "seen");
        assert_eq!(mounted.files(View::Agent).names("secret"), ["shown"]);
        files.remove(&p("secret/shown"), true).unwrap();
        assert_eq!(listed(place.mnt("")), [""; 0]);
    });
}
