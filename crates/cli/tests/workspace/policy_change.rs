//! A policy that changes while the workspace is in use: `--policy FILE` and SIGHUP.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use libc::{EACCES, ENOENT};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::{Mounted, Workspace, binary, errno, eventually, require_fuse};

/// A mounted workspace with a policy file that can be changed.
struct Ruled {
    ws: Mounted,
    file: PathBuf,
    _dir: TempDir,
}

/// Rules given as `LEVEL:PATTERN`, each above those before it.
fn policy(rules: &[&str]) -> String {
    let rule = |(n, rule): (usize, &&str)| {
        let (level, pattern) = rule.split_once(':').unwrap();
        format!("[[rule]]\npattern = \"{pattern}\"\nlevel = \"{level}\"\npriority = {n}\n")
    };
    rules.iter().enumerate().map(rule).collect()
}

impl Ruled {
    fn each(prepare: impl Fn(Workspace) -> Workspace, rules: &[&str], test: impl Fn(&Self)) {
        for ws in Workspace::both_ways() {
            let dir = TempDir::new().unwrap();
            let file = dir.path().join("policy.toml");
            fs::write(&file, policy(rules)).unwrap();
            let ws = prepare(ws).arg("--policy").arg(file.to_str().unwrap()).mount();
            test(&Self { ws, file, _dir: dir });
        }
    }

    fn change(&self, rules: &[&str]) {
        fs::write(&self.file, policy(rules)).unwrap();
        self.ws.server().signal(Signal::HUP);
    }

    /// The error of an attempt, 0 if it succeeds.
    fn read(&self, path: &str) -> i32 {
        fs::read(self.ws.path(path)).map_or_else(|e| e.raw_os_error().unwrap(), |_| 0)
    }

    fn write(&self, path: &str) -> i32 {
        let open = File::options().append(true).open(self.ws.path(path));
        open.map_or_else(|e| e.raw_os_error().unwrap(), |_| 0)
    }

    fn stat(&self, path: &str) -> i32 {
        let stat = fs::symlink_metadata(self.ws.path(path));
        stat.map_or_else(|e| e.raw_os_error().unwrap(), |_| 0)
    }

    fn create(&self, path: &str) -> i32 {
        let made = File::create_new(self.ws.path(path));
        made.map_or_else(|e| e.raw_os_error().unwrap(), |_| 0)
    }

    /// Asks for everything, so that names, attributes, listings and absences are all cached.
    fn warm(&self) {
        for _ in 0..3 {
            self.ws.ok("ls -laR . >/dev/null; cat * */* >/dev/null 2>&1; true");
            for path in ["d/f", "d/absent", "d", "f"] {
                self.stat(path);
            }
        }
    }
}

fn tree(ws: Workspace) -> Workspace {
    ws.file("f", "f").file("d/f", "content").file("d/g", "g")
}

#[test]
fn hidden_things_appear() {
    require_fuse!();
    Ruled::each(tree, &["write:**/*", "none:/d/**"], |it| {
        it.warm();
        assert_eq!((it.stat("d"), it.stat("d/f")), (ENOENT, ENOENT));
        it.change(&["write:**/*"]);
        eventually("the directory is there", || it.stat("d") == 0);
        eventually("it is listed", || it.ws.names("") == ["d", "f"]);
        assert_eq!(it.ws.names("d"), ["f", "g"]);
        assert_eq!((it.read("d/f"), it.write("d/f"), it.create("d/new")), (0, 0, 0));
    });
}

#[test]
fn visible_things_disappear() {
    require_fuse!();
    Ruled::each(tree, &["write:**/*"], |it| {
        it.warm();
        assert_eq!((it.read("d/f"), it.write("d/g")), (0, 0));
        it.change(&["write:**/*", "none:/d/f", "none:/f"]);
        eventually("the file is gone", || it.stat("d/f") == ENOENT);
        eventually("it is not listed", || it.ws.names("d") == ["g"]);
        eventually("nor the other", || it.ws.names("") == ["d"]);
        assert_eq!((it.read("d/f"), it.write("d/f"), it.stat("f")), (ENOENT, ENOENT, ENOENT));
        assert_eq!(it.create("d/f"), EACCES);
        assert_eq!((it.read("d/g"), it.write("d/g")), (0, 0));
    });
}

#[test]
fn whole_directories_disappear_with_all_that_was_known_below() {
    require_fuse!();
    let deep = |ws: Workspace| tree(ws).file("d/a/b/c", "deep");
    Ruled::each(deep, &["write:**/*"], |it| {
        it.warm();
        it.ws.ok("cat d/a/b/c && echo made > d/a/b/made");
        it.change(&["write:**/*", "none:/d/**"]);
        eventually("the directory is gone", || it.stat("d") == ENOENT);
        for below in ["d/f", "d/a", "d/a/b", "d/a/b/c", "d/a/b/made"] {
            assert_eq!((it.stat(below), it.read(below)), (ENOENT, ENOENT), "{below}");
        }
        eventually("it is not listed", || it.ws.names("") == ["f"]);
        assert_eq!(errno(fs::create_dir(it.ws.path("d"))), EACCES);
    });
}

#[test]
fn every_step_between_levels_takes_effect() {
    require_fuse!();
    let answers = |it: &Ruled| (it.stat("d/f"), it.read("d/f"), it.write("d/f"));
    let of = |level: &str| match level {
        "none" => (ENOENT, ENOENT, ENOENT),
        "view" => (0, EACCES, EACCES),
        "read" => (0, 0, EACCES),
        _ => (0, 0, 0),
    };
    let levels = ["none", "view", "read", "write"];
    Ruled::each(tree, &["write:**/*"], |it| {
        for from in levels {
            for to in levels {
                for level in [from, to] {
                    it.change(&["write:**/*", &format!("{level}:/d/f")]);
                    eventually(&format!("{from} to {to}"), || answers(it) == of(level));
                    it.warm();
                    assert_eq!(answers(it), of(level), "{from} to {to}, asked again");
                }
            }
        }
    });
}

#[test]
fn a_name_cached_as_absent_can_no_longer_be_made() {
    require_fuse!();
    Ruled::each(tree, &["write:**/*"], |it| {
        it.warm();
        assert_eq!(it.stat("d/absent"), ENOENT);
        it.change(&["write:**/*", "none:/d/absent*"]);
        eventually("the rule holds", || it.create("d/absent2") == EACCES);
        assert_eq!(it.create("d/absent"), EACCES);
        it.change(&["write:**/*"]);
        eventually("the rule is gone", || it.create("d/absent") == 0);
    });
}

#[test]
fn what_the_host_made_behind_a_cached_absence_appears_with_the_rule() {
    require_fuse!();
    Ruled::each(tree, &["write:**/*", "none:/d/late"], |it| {
        it.warm();
        assert_eq!(it.stat("d/late"), ENOENT);
        fs::write(it.ws.base().join("d/late"), "x").unwrap();
        assert_eq!(it.stat("d/late"), ENOENT);
        it.change(&["write:**/*"]);
        eventually("it is there", || it.read("d/late") == 0);
        assert_eq!(it.ws.names("d"), ["f", "g", "late"]);
    });
}

#[test]
fn ways_to_visible_things_open_and_close() {
    require_fuse!();
    Ruled::each(tree, &["read:/f"], |it| {
        it.warm();
        assert_eq!(it.ws.names(""), ["f"]);
        it.change(&["read:/f", "read:/d/g"]);
        eventually("the way is there", || it.read("d/g") == 0);
        assert_eq!(it.ws.names("d"), ["g"]);
        eventually("it is listed", || it.ws.names("") == ["d", "f"]);
        it.change(&["read:/f"]);
        eventually("it is closed", || it.stat("d") == ENOENT);
        eventually("and not listed", || it.ws.names("") == ["f"]);
    });
}

#[test]
fn open_descriptors_keep_what_they_were_granted() {
    require_fuse!();
    Ruled::each(tree, &["write:**/*"], |it| {
        fs::write(it.ws.path("d/live"), "content").unwrap();
        for name in ["d/f", "d/live"] {
            let open = File::options().read(true).write(true).open(it.ws.path(name)).unwrap();
            let reader = File::open(it.ws.path(name)).unwrap();
            it.change(&["write:**/*", &format!("none:/{name}")]);
            eventually("it is hidden", || it.stat(name) == ENOENT);
            let mut content = [0; 7];
            reader.read_exact_at(&mut content, 0).unwrap();
            assert_eq!(&content, b"content");
            open.write_all_at(b"CHANGED", 0).unwrap();
            reader.read_exact_at(&mut content, 0).unwrap();
            assert_eq!(&content, b"CHANGED");
            assert_eq!(open.metadata().unwrap().len(), 7);
            open.set_len(3).unwrap();
            open.sync_all().unwrap();
            let again = format!("/proc/self/fd/{}", open.as_raw_fd());
            assert_eq!(errno(File::open(&again)), ENOENT, "a new open is decided anew");
            let mode = fs::Permissions::from_mode(0o600);
            assert_eq!(errno(open.set_permissions(mode)), ENOENT, "so is a change of attributes");
            drop((open, reader));
            it.change(&["write:**/*"]);
            eventually("it is back", || it.stat(name) == 0);
            assert_eq!(fs::read(it.ws.path(name)).unwrap(), b"CHA");
        }
    });
}

#[test]
fn a_read_only_descriptor_of_a_file_that_became_writable_cannot_write() {
    require_fuse!();
    Ruled::each(tree, &["read:**/*"], |it| {
        let reader = File::open(it.ws.path("f")).unwrap();
        it.change(&["write:**/*"]);
        eventually("it can be written", || it.write("f") == 0);
        assert_eq!(errno(reader.write_at(b"x", 0)), libc::EBADF);
        fs::write(it.ws.path("f"), "new").unwrap();
        let now = fs::read(format!("/proc/self/fd/{}", reader.as_raw_fd())).unwrap();
        assert!(now == b"new" || now == b"f", "{now:?}");
        assert_eq!(fs::read(it.ws.path("f")).unwrap(), b"new");
    });
}

#[test]
fn a_directory_that_becomes_hidden_is_closed_to_those_who_are_in_it() {
    require_fuse!();
    Ruled::each(tree, &["write:**/*"], |it| {
        let dir = File::open(it.ws.path("d")).unwrap();
        it.warm();
        it.change(&["write:**/*", "none:/d/**"]);
        eventually("it is hidden", || it.stat("d") == ENOENT);
        let flags = rustix::fs::OFlags::RDONLY;
        let opened = rustix::fs::openat(&dir, "f", flags, rustix::fs::Mode::empty());
        assert_eq!(opened.unwrap_err().raw_os_error(), ENOENT);
        let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
        let made = rustix::fs::openat(&dir, "new", flags, rustix::fs::Mode::RWXU);
        let error = made.unwrap_err().raw_os_error();
        assert!([ENOENT, EACCES].contains(&error), "{error}");
    });
}

#[test]
fn two_names_of_one_file_keep_their_own_levels() {
    require_fuse!();
    Ruled::each(tree, &["write:**/*"], |it| {
        it.ws.ok("ln f linked");
        it.warm();
        it.change(&["write:**/*", "none:/f"]);
        eventually("one name is hidden", || it.stat("f") == ENOENT);
        assert_eq!((it.read("linked"), it.write("linked")), (0, 0));
        it.change(&["write:**/*", "view:/f"]);
        eventually("one name is viewed", || it.read("f") == EACCES);
        assert_eq!(it.read("linked"), 0);
    });
}

#[test]
fn changes_back_and_forth_are_all_followed() {
    require_fuse!();
    Ruled::each(tree, &["write:**/*"], |it| {
        for _ in 0..20 {
            it.change(&["write:**/*", "none:**/f"]);
            eventually("hidden", || it.stat("d/f") == ENOENT && it.ws.names("d") == ["g"]);
            it.change(&["write:**/*"]);
            eventually("there", || it.read("d/f") == 0 && it.ws.names("d") == ["f", "g"]);
        }
    });
}

// ---- what does not change it ----

/// A mount whose errors can be read.
struct Watched {
    child: Child,
    errors: BufReader<std::process::ChildStderr>,
}

impl Watched {
    fn start(dir: &TempDir, args: &[&str]) -> Self {
        let mut command = binary();
        command.args(["mount", "--base"]).arg(dir.path().join("base"));
        command.arg("--layer").arg(dir.path().join("layer")).args(args).arg(dir.path().join("mnt"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut ready = [0; 5];
        child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        Self { child, errors }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.signal(Signal::TERM);
        let code = self.child.wait().unwrap().code();
        if !std::thread::panicking() {
            assert_eq!(code, Some(0));
        }
    }
}

fn place() -> TempDir {
    let dir = TempDir::new().unwrap();
    ["base", "mnt"].iter().for_each(|sub| fs::create_dir(dir.path().join(sub)).unwrap());
    fs::write(dir.path().join("base/f"), "f").unwrap();
    fs::write(dir.path().join("base/hidden"), "h").unwrap();
    dir
}

#[test]
fn a_file_that_is_malformed_or_missing_keeps_the_old_policy() {
    require_fuse!();
    let dir = place();
    let file = dir.path().join("policy.toml");
    fs::write(&file, policy(&["read:**/*", "none:/hidden"])).unwrap();
    let mut mount = Watched::start(&dir, &["--policy", file.to_str().unwrap()]);
    let at = |name: &str| dir.path().join("mnt").join(name);
    let unchanged = || {
        assert_eq!(errno(fs::metadata(at("hidden"))), ENOENT);
        assert_eq!(fs::read(at("f")).unwrap(), b"f");
        assert_eq!(errno(fs::write(at("f"), "x")), EACCES);
    };
    unchanged();
    let bad =
        ["[[rule]\n", "[[rule]]\npattern = \"[\"\nlevel = \"write\"\n", "preset = \"none-such\"\n"];
    for text in bad.map(Some).into_iter().chain([None]) {
        match text {
            Some(text) => fs::write(&file, text).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        mount.signal(Signal::HUP);
        let mut complaint = String::new();
        mount.errors.read_line(&mut complaint).unwrap();
        assert!(complaint.starts_with("error: "), "{complaint}");
        assert!(complaint.contains("policy.toml"), "{complaint}");
        unchanged();
    }
    fs::write(&file, policy(&["write:**/*"])).unwrap();
    mount.signal(Signal::HUP);
    eventually("a good file is followed again", || at("hidden").exists());
    fs::write(at("f"), "x").unwrap();
}

#[test]
fn a_hangup_without_a_policy_file_changes_nothing() {
    require_fuse!();
    let dir = place();
    let mount = Watched::start(&dir, &["--rule", "read:/f"]);
    mount.signal(Signal::HUP);
    mount.signal(Signal::HUP);
    let at = |name: &str| dir.path().join("mnt").join(name);
    assert_eq!(fs::read(at("f")).unwrap(), b"f");
    assert_eq!(errno(fs::metadata(at("hidden"))), ENOENT);
}

#[test]
fn rules_of_the_command_line_stay_when_the_file_changes() {
    require_fuse!();
    let dir = place();
    let file = dir.path().join("policy.toml");
    fs::write(&file, policy(&["read:/f"])).unwrap();
    let rules = ["--policy", file.to_str().unwrap(), "--rule", "none:/hidden@100"];
    let mount = Watched::start(&dir, &rules);
    let at = |name: &str| dir.path().join("mnt").join(name);
    fs::write(&file, "preset = \"full-access\"\n").unwrap();
    mount.signal(Signal::HUP);
    eventually("the file is followed", || fs::write(at("f"), "x").is_ok());
    assert_eq!(errno(fs::metadata(at("hidden"))), ENOENT);
    assert_eq!(errno(fs::write(at("hidden"), "x")), EACCES);
}
