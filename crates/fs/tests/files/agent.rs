//! In the agent's view a call is answered as a program is through the mount, error by error.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use ringfence_fs::files::{FileError, FileErrorKind, Files, View};
use ringfence_policy::Level;

use crate::support::{Place, Quick, can_mount, code, in_both_modes, io_code, listed, p};

const LEVELS: [&str; 4] = ["none", "view", "read", "write"];
const THINGS: [&str; 6] = ["file", "script", "dir", "empty", "link", "absent"];

/// An operation as a program does it and as a call.
struct Row {
    name: &'static str,
    program: fn(&Path) -> io::Result<()>,
    call: fn(&Files, &str) -> Result<(), FileError>,
}

const ROWS: [Row; 11] = [
    Row {
        name: "stat",
        program: |path| fs::symlink_metadata(path).map(drop),
        call: |files, path| files.stat(&p(path), false).map(drop),
    },
    Row {
        name: "follow",
        program: |path| fs::metadata(path).map(drop),
        call: |files, path| files.stat(&p(path), true).map(drop),
    },
    Row {
        name: "list",
        program: |path| fs::read_dir(path).map(drop),
        call: |files, path| files.list(&p(path)).map(drop),
    },
    Row {
        name: "read",
        program: |path| fs::read(path).map(drop),
        call: |files, path| files.read(&p(path)).map(drop),
    },
    Row {
        name: "write",
        program: |path| fs::write(path, "x"),
        call: |files, path| files.try_put(path, "x").map(drop),
    },
    Row {
        name: "below",
        program: |path| fs::write(path.join("write"), "x"),
        call: |files, path| files.try_put(&format!("{path}/write"), "x").map(drop),
    },
    Row {
        name: "mkdir",
        program: |path| fs::create_dir(path),
        call: |files, path| files.mkdir(&p(path), None, false).map(drop),
    },
    Row {
        name: "remove",
        program: |path| match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => fs::remove_dir(path),
            _ => fs::remove_file(path),
        },
        call: |files, path| files.remove(&p(path), false),
    },
    Row {
        name: "clear",
        program: |path| match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(path),
            _ => fs::remove_file(path),
        },
        call: |files, path| files.remove(&p(path), true),
    },
    Row {
        name: "from",
        program: |path| fs::rename(path, path.with_file_name(moved(path))),
        call: |files, path| {
            let to = Path::new(path).with_file_name(moved(Path::new(path)));
            files.rename(&p(path), &p(to.to_str().unwrap()))
        },
    },
    Row {
        name: "to",
        program: |path| {
            let from = path.with_file_name(moved(path));
            File::create(&from)?;
            fs::rename(from, path)
        },
        call: |files, path| {
            let from = Path::new(path).with_file_name(moved(Path::new(path)));
            files.put(from.to_str().unwrap(), "");
            files.rename(&p(from.to_str().unwrap()), &p(path))
        },
    },
];

/// Another name, at level `write`.
fn moved(path: &Path) -> String {
    format!("write.moved.{}", path.file_name().unwrap().to_str().unwrap())
}

fn fill(base: &Path) {
    fs::create_dir(base.join("in")).unwrap();
    for (row, who) in ROWS.iter().flat_map(|row| [(row, "program"), (row, "call")]) {
        for level in LEVELS {
            let at = |thing: &str| base.join(format!("in/{level}.{}.{who}.{thing}", row.name));
            fs::write(at("file"), "content").unwrap();
            fs::write(at("script"), "#!/bin/sh\n").unwrap();
            fs::create_dir(at("empty")).unwrap();
            fs::create_dir(at("dir")).unwrap();
            fs::write(at("dir").join("child"), "x").unwrap();
            symlink(at("file").file_name().unwrap(), at("link")).unwrap();
        }
    }
}

fn place() -> Place {
    let place = Place::new();
    fill(&place.at("base"));
    LEVELS.iter().fold(place, |place, l| place.rule(format!("{l}:/in/{l}.*/**@10")))
}

#[test]
fn every_operation_at_every_level_has_the_programs_answer() {
    in_both_modes(place, |place, mounted| {
        let files = mounted.files(View::Agent);
        let mut seen = Vec::new();
        for row in &ROWS {
            for thing in THINGS {
                for level in LEVELS {
                    let name = |who: &str| format!("in/{level}.{}.{who}.{thing}", row.name);
                    let program = io_code((row.program)(&place.mnt(&name("program"))));
                    let call = code((row.call)(&files, &name("call")));
                    assert_eq!(call, program, "{} of {thing} at {level}", row.name);
                    seen.push(call);
                }
            }
        }
        // The comparison is worth something only if there is something to compare.
        for errno in [0, 2, 13, 17, 20, 21, 39] {
            assert!(seen.contains(&errno), "{errno} never happened");
        }
        let own = files.list(&p("in")).unwrap().len();
        assert_eq!(own, listed(place.mnt("in")).len());
    });
}

#[test]
fn a_refusal_names_path_level_and_rule_and_a_hidden_name_says_nothing() {
    let place = place();
    let offline = place.offline();
    let files = offline.files(View::Agent);
    let refused = files.try_put("in/read.write.call.file", "x").unwrap_err();
    assert_eq!(refused.kind(), FileErrorKind::Denied);
    let denial = refused.denial.as_ref().unwrap();
    assert_eq!((denial.needed, denial.level), (Level::Write, Level::Read));
    assert_eq!(denial.path, p("in/read.write.call.file"));
    assert_eq!(denial.rule.as_ref().unwrap().to_string(), "read:/in/read.*/**@10");
    let text = "/in/read.write.call.file: this needs level write at /in/read.write.call.file, which \
                has read (rule `read:/in/read.*/**@10`)";
    assert_eq!(refused.to_string(), text);

    let hidden = files.read(&p("in/none.read.call.file")).unwrap_err();
    assert_eq!(hidden.kind(), FileErrorKind::NotFound);
    assert!(hidden.denial.is_some(), "for the record");
    let absent = files.read(&p("in/none.read.call.absent")).unwrap_err();
    let there = files.try_put("in/none.read.call.file", "x").unwrap_err();
    let not_there = files.try_put("in/none.read.call.absent", "x").unwrap_err();
    let plain = |error: FileError| error.to_string().replace("absent", "file");
    assert_eq!(plain(hidden), plain(absent));
    assert_eq!(plain(there), plain(not_there));
    assert!(files.stat(&p("in/write.read.call.absent"), false).unwrap_err().denial.is_none());
}

#[test]
fn a_policy_that_changes_decides_what_was_begun_before() {
    if !can_mount() {
        return;
    }
    let place = Place::new().file("x", "x");
    let mut mounted = place.mount(true);
    let files = mounted.files(View::Agent);
    let writing = files.write(&p("x"), Default::default()).unwrap();
    let strict = Place::new().rule("read:/x@10").policy();
    mounted.set_policy(strict).unwrap();
    assert_eq!(code(writing.finish()), 13);
    assert_eq!(code(files.try_get("x")), 0);
    assert_eq!(listed(place.at("layer/work")), [""; 0]);
    mounted.unmount().unwrap();
}
