//! What cannot be mounted is refused with one clear sentence and leaves nothing behind; what was
//! mounted ends cleanly however it is ended.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::{binary, errno, eventually, is_root, names_in, require_fuse, require_root};

/// A base, a mountpoint and a place for a layer.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        for sub in ["base", "mnt", "tmp"] {
            fs::create_dir(dir.path().join(sub)).unwrap();
        }
        fs::write(dir.path().join("base/f"), "content").unwrap();
        Self { dir }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `ringfence mount` in this place; `{}` in an argument stands for its path.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = binary();
        let here = self.dir.path().to_str().unwrap();
        command.arg("mount").args(args.iter().map(|arg| arg.replace("{}", here)));
        command.env("TMPDIR", self.at("tmp")).stdin(Stdio::null());
        command
    }

    /// The usual arguments with some more.
    fn with(&self, more: &[&str]) -> Command {
        let usual = ["--base", "{}/base", "--layer", "{}/layer"];
        self.command(&[&usual[..], more, &["{}/mnt"]].concat())
    }

    /// Runs to the end, which must be a refusal that changed nothing; returns the sentence.
    fn refused(&self, command: Command) -> String {
        let before = self.everything();
        let output = output_of(command);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let errors = String::from_utf8(output.stderr).unwrap();
        let mut lines = errors.lines();
        let sentence = lines.next().unwrap_or_default().to_owned();
        assert!(sentence.starts_with("error: "), "{errors}");
        let hints: Vec<_> = lines.collect();
        assert!(hints.iter().all(|line| line.starts_with("hint: ")), "one sentence: {errors}");
        assert!(hints.len() <= 1, "{errors}");
        assert_eq!(self.everything(), before, "something was made");
        sentence
    }

    /// Every path in the place and whether anything is mounted in it.
    fn everything(&self) -> (String, usize) {
        let find =
            Command::new("find").arg(self.dir.path()).args(["-printf", "%p %y %m\n"]).output();
        let found = String::from_utf8_lossy(&find.unwrap().stdout).into_owned();
        let mut found: Vec<_> = found.lines().collect();
        found.sort_unstable();
        (found.join("\n"), self.mounts())
    }

    fn mounts(&self) -> usize {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        table.lines().filter(|line| line.contains(self.dir.path().to_str().unwrap())).count()
    }

    /// A layer as an earlier mount leaves it.
    fn make_layer(&self) {
        assert!(Running::start(self.with(&[])).end(Signal::TERM).success());
        assert!(self.at("layer/layer.json").is_file());
    }

    fn edit_layer(&self, from: &str, to: &str) {
        let path = self.at("layer/layer.json");
        let text = fs::read_to_string(&path).unwrap();
        let edited = text.replacen(from, to, 1);
        assert_ne!(text, edited, "{text}");
        fs::write(path, edited).unwrap();
    }
}

/// What a command prints that ends by itself; one that mounts instead is ended.
fn output_of(mut command: Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
            panic!("accepted: {:?}", child.wait_with_output().unwrap());
        }
        std::thread::yield_now();
    }
    child.wait_with_output().unwrap()
}

/// A mount that is up.
struct Running {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    ready: String,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        out.read_line(&mut ready).unwrap();
        let mut running = Self { child, out, ready };
        assert!(running.ready.starts_with("ready "), "{}", running.errors());
        running
    }

    fn errors(&mut self) -> String {
        let mut errors = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut errors);
        }
        errors
    }

    fn end(mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            let _ = self.child.wait();
        }
    }
}

// ---- refused ----

#[test]
fn a_base_that_is_missing_or_a_file_is_refused() {
    require_fuse!();
    let place = Place::new();
    let usual = ["--layer", "{}/layer", "{}/mnt"];
    for base in ["{}/absent", "{}/absent/deeper", "{}/base/f", "{}/base/f/below"] {
        let sentence = place.refused(place.command(&[&["--base", base], &usual[..]].concat()));
        assert!(sentence.contains("base"), "{sentence}");
        assert!(sentence.contains(place.dir.path().to_str().unwrap()), "{sentence}");
    }
}

#[test]
fn a_mountpoint_that_is_missing_or_a_file_is_refused() {
    require_fuse!();
    let place = Place::new();
    let usual = ["--base", "{}/base", "--layer", "{}/layer"];
    fs::write(place.at("file"), "x").unwrap();
    for mountpoint in ["{}/absent", "{}/file", "{}/file/below"] {
        let sentence = place.refused(place.command(&[&usual[..], &[mountpoint]].concat()));
        assert!(sentence.contains("mountpoint"), "{sentence}");
    }
}

#[test]
fn base_layer_and_mountpoint_must_be_apart() {
    require_fuse!();
    let place = Place::new();
    fs::create_dir(place.at("base/in")).unwrap();
    fs::create_dir(place.at("mnt/in")).unwrap();
    fs::create_dir(place.at("empty")).unwrap();
    std::os::unix::fs::symlink(place.at("base/in"), place.at("link")).unwrap();
    let cases = [
        ("{}/base", "{}/layer", "{}/base"),
        ("{}/base", "{}/layer", "{}/base/in"),
        ("{}/base", "{}/layer", "{}/link"),
        ("{}/base", "{}/layer", "{}/base/../base/in"),
        ("{}/base", "{}/base/layer", "{}/mnt"),
        ("{}/base", "{}/base/in/a/b", "{}/mnt"),
        ("{}/base", "{}/link/layer", "{}/mnt"),
        ("{}/base", "{}/base", "{}/mnt"),
        ("{}/base/in", "{}/base", "{}/mnt"),
        ("{}/base", "{}/mnt/layer", "{}/mnt"),
        ("{}/base", "{}/mnt", "{}/mnt/in"),
        ("{}/mnt/in", "{}/layer", "{}/mnt"),
        ("{}/base", "{}/empty", "{}/empty"),
    ];
    for (base, layer, mountpoint) in cases {
        let sentence =
            place.refused(place.command(&["--base", base, "--layer", layer, mountpoint]));
        assert!(sentence.len() > 20, "{base} {layer} {mountpoint}: {sentence}");
    }
}

#[test]
fn a_mountpoint_in_use_is_refused() {
    require_fuse!();
    let place = Place::new();
    let running = Running::start(place.with(&[]));
    let usual = ["--base", "{}/base", "--layer", "{}/other", "{}/mnt"];
    let sentence = place.refused(place.command(&usual));
    assert!(sentence.contains("busy"), "{sentence}");
    assert_eq!(fs::read(place.at("mnt/f")).unwrap(), b"content", "the first one goes on");
    assert!(running.end(Signal::TERM).success());
}

#[test]
fn a_layer_in_use_is_refused() {
    require_fuse!();
    let place = Place::new();
    fs::create_dir(place.at("mnt2")).unwrap();
    let running = Running::start(place.with(&[]));
    let again = ["--base", "{}/base", "--layer", "{}/layer", "{}/mnt2"];
    let sentence = place.refused(place.command(&again));
    assert!(sentence.contains("in use"), "{sentence}");
    assert!(running.end(Signal::TERM).success());
}

#[test]
fn what_is_not_a_layer_is_refused() {
    require_fuse!();
    let place = Place::new();
    fs::write(place.at("layer"), "a file").unwrap();
    place.refused(place.with(&[]));
    fs::remove_file(place.at("layer")).unwrap();
    fs::create_dir(place.at("layer")).unwrap();
    fs::write(place.at("layer/precious"), "x").unwrap();
    let sentence = place.refused(place.with(&[]));
    assert!(sentence.contains("not a layer"), "{sentence}");
    assert_eq!(fs::read(place.at("layer/precious")).unwrap(), b"x");
}

#[test]
fn a_layer_below_a_file_is_refused() {
    require_fuse!();
    let place = Place::new();
    place.refused(place.command(&["--base", "{}/base", "--layer", "{}/base/f/layer", "{}/mnt"]));
    fs::write(place.at("file"), "x").unwrap();
    place.refused(place.command(&["--base", "{}/base", "--layer", "{}/file/layer", "{}/mnt"]));
}

#[test]
fn a_layer_that_cannot_be_read_is_refused() {
    require_fuse!();
    let place = Place::new();
    place.make_layer();
    fs::write(place.at("layer/layer.json"), "{ \"format\": 1, ").unwrap();
    let sentence = place.refused(place.with(&[]));
    assert!(sentence.contains("damaged"), "{sentence}");
    fs::remove_file(place.at("layer/layer.json")).unwrap();
    let sentence = place.refused(place.with(&[]));
    assert!(sentence.contains("not a layer"), "{sentence}");
}

#[test]
fn a_layer_of_a_newer_format_is_refused() {
    require_fuse!();
    let place = Place::new();
    place.make_layer();
    place.edit_layer("\"format\": 1", "\"future\": [1, 2], \"format\": 99");
    let sentence = place.refused(place.with(&[]));
    assert!(sentence.contains("99"), "{sentence}");
}

#[test]
fn a_frozen_layer_is_refused() {
    require_fuse!();
    let place = Place::new();
    place.make_layer();
    place.edit_layer("\"live\"", "\"frozen\"");
    let sentence = place.refused(place.with(&[]));
    assert!(sentence.contains("frozen"), "{sentence}");
}

#[test]
fn a_layer_over_another_base_is_refused() {
    require_fuse!();
    let place = Place::new();
    place.make_layer();
    fs::create_dir(place.at("base2")).unwrap();
    let sentence =
        place.refused(place.command(&["--base", "{}/base2", "--layer", "{}/layer", "{}/mnt"]));
    assert!(sentence.contains("base2") && sentence.contains("base"), "{sentence}");
}

#[test]
fn a_malformed_rule_is_refused_by_name() {
    require_fuse!();
    let place = Place::new();
    // Each with the part of it that the sentence must name.
    let rules = [
        ("none", "none"),
        ("none:", "empty"),
        ("secret:/x", "secret"),
        ("none:[abc", "[abc"),
        ("none:{a,b", "{a,b"),
        ("none:/a/../b", "/a/../b"),
        ("none:**/*.key@99999999999", "99999999999"),
        (":/x", "not a level"),
        ("", "not a rule"),
        ("none:a\\", "a\\"),
    ];
    for (rule, part) in rules {
        let sentence = place.refused(place.with(&["--rule", "write:**/*", "--rule", rule]));
        assert!(sentence.contains(part), "{rule:?}: {sentence}");
    }
}

#[test]
fn a_malformed_policy_file_is_refused_with_line_and_column() {
    require_fuse!();
    let place = Place::new();
    let cases = [
        ("preset = \"agent-safe\"\n[[rule]\n", 2),
        ("preset = \"no-such-preset\"\n", 1),
        ("\n\n[[rule]]\npattern = \"[\"\nlevel = \"none\"\n", 4),
        ("[[rule]]\npattern = \"/x\"\nlevel = \"secret\"\n", 3),
        ("[[rule]]\npattern = \"/x\"\nlevel = \"none\"\npriorty = 5\n", 4),
        ("[[rule]]\npattern = \"/x\"\nlevel = \"none\"\npriority = \"5\"\n", 4),
        ("[[rule]]\npattern = \"/x\"\nlevel = \"none\"\ntype = \"regex\"\n", 4),
        ("[[rule]]\nlevel = \"none\"\n", 1),
        ("unknown = 1\n", 1),
        ("\u{0}", 1),
    ];
    for (text, line) in cases {
        fs::write(place.at("policy.toml"), text).unwrap();
        let sentence = place.refused(place.with(&["--policy", "{}/policy.toml"]));
        assert!(sentence.contains("policy.toml"), "{sentence}");
        let places = [format!("line {line}, column "), format!("policy.toml:{line}:")];
        assert!(places.iter().any(|place| sentence.contains(place)), "{text:?}: {sentence}");
    }
    let sentence = place.refused(place.with(&["--policy", "{}/absent.toml"]));
    assert!(sentence.contains("absent.toml"), "{sentence}");
    fs::write(place.at("policy.toml"), b"preset = \"\xff\"").unwrap();
    place.refused(place.with(&["--policy", "{}/policy.toml"]));
}

#[test]
fn an_unknown_preset_is_refused_with_the_known_ones() {
    require_fuse!();
    let place = Place::new();
    let sentence = place.refused(place.with(&["--preset", "agent-save"]));
    assert!(sentence.contains("agent-save"), "{sentence}");
    let output = output_of(place.with(&["--preset", "agent-save"]));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("agent-safe"), "{errors}");
}

#[test]
fn bad_values_of_other_options_are_refused() {
    require_fuse!();
    let place = Place::new();
    place.refused(place.with(&["--owner", "somebody"]));
    place.refused(place.with(&["--owner", "1:2:3"]));
    place.refused(place.with(&["--mask", "[z"]));
    place.refused(place.with(&["--events", "{}/absent/events"]));
}

#[test]
fn a_refusal_without_a_layer_named_leaves_no_temporary_one() {
    require_fuse!();
    let place = Place::new();
    place.refused(place.command(&["--base", "{}/base", "{}/absent"]));
    place.refused(place.command(&["--base", "{}/absent", "{}/mnt"]));
    place.refused(place.command(&["--base", "{}/base", "--owner", "x", "{}/mnt"]));
    assert_eq!(names_in(&place.at("tmp")), Vec::<String>::new());
}

// ---- the end of a mount ----

#[test]
fn interrupt_and_terminate_unmount_cleanly() {
    require_fuse!();
    for signal in [Signal::INT, Signal::TERM] {
        let place = Place::new();
        let running = Running::start(place.with(&[]));
        assert_eq!(place.mounts(), 1);
        assert_eq!(running.end(signal).code(), Some(0));
        assert_eq!(place.mounts(), 0);
        assert_eq!(names_in(&place.at("mnt")), Vec::<String>::new());
    }
}

#[test]
fn it_ends_also_while_files_are_open() {
    require_fuse!();
    let place = Place::new();
    let running = Running::start(place.with(&[]));
    let file = fs::File::open(place.at("mnt/f")).unwrap();
    let dir = fs::File::open(place.at("mnt")).unwrap();
    assert_eq!(running.end(Signal::TERM).code(), Some(0));
    assert_eq!(place.mounts(), 0);
    drop((file, dir));
}

#[test]
fn one_line_says_that_it_is_ready() {
    require_fuse!();
    let place = Place::new();
    let mut running = Running::start(place.with(&[]));
    assert!(running.ready.contains(place.at("mnt").to_str().unwrap()), "{}", running.ready);
    assert!(fs::read(place.at("mnt/f")).is_ok(), "ready means usable");
    kill_process(Pid::from_child(&running.child), Signal::TERM).unwrap();
    let mut rest = String::new();
    running.out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "nothing after the ready line");
    assert_eq!(running.errors(), "", "and nothing to complain of");
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
}

fn unmount(path: &Path) {
    let mut umount = match is_root() {
        true => Command::new("umount"),
        false => Command::new("fusermount3"),
    };
    if !is_root() {
        umount.arg("-u");
    }
    assert!(umount.arg(path).status().unwrap().success());
}

#[test]
fn unmounting_from_outside_ends_it() {
    require_fuse!();
    let place = Place::new();
    let mut running = Running::start(place.with(&[]));
    unmount(&place.at("mnt"));
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_mount_whose_server_was_killed_does_not_stop_the_next_start() {
    require_fuse!();
    let place = Place::new();
    let running = Running::start(place.with(&["--preset", "full-access"]));
    fs::write(place.at("mnt/kept"), "kept").unwrap();
    running.end(Signal::KILL);
    assert_eq!(errno(fs::metadata(place.at("mnt/f"))), libc::ENOTCONN, "a stale mount");
    let running = Running::start(place.with(&["--preset", "full-access"]));
    assert_eq!(fs::read(place.at("mnt/kept")).unwrap(), b"kept");
    assert_eq!(place.mounts(), 1, "the stale one is gone");
    assert!(running.end(Signal::TERM).success());
    assert_eq!(place.mounts(), 0);
}

#[test]
fn a_foreign_mount_is_left_alone() {
    require_fuse!();
    require_root!();
    let place = Place::new();
    let tmpfs = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(place.at("mnt")).status();
    assert!(tmpfs.unwrap().success());
    fs::write(place.at("mnt/theirs"), "x").unwrap();
    let sentence = place.refused(place.with(&[]));
    let kept = fs::read(place.at("mnt/theirs"));
    unmount(&place.at("mnt"));
    assert!(sentence.contains("busy"), "{sentence}");
    assert_eq!(kept.unwrap(), b"x");
}

#[test]
fn a_temporary_layer_is_private_and_removed_at_the_end() {
    require_fuse!();
    for by_signal in [true, false] {
        let place = Place::new();
        let usual = ["--base", "{}/base", "--preset", "full-access", "{}/mnt"];
        let mut running = Running::start(place.command(&usual));
        fs::write(place.at("mnt/f"), "changed").unwrap();
        let made = names_in(&place.at("tmp"));
        assert_eq!(made.len(), 1, "{made:?}");
        let mode = fs::metadata(place.at("tmp").join(&made[0])).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        match by_signal {
            true => assert_eq!(running.end(Signal::TERM).code(), Some(0)),
            false => {
                unmount(&place.at("mnt"));
                assert_eq!(running.child.wait().unwrap().code(), Some(0));
            }
        }
        assert_eq!(names_in(&place.at("tmp")), Vec::<String>::new());
        assert_eq!(fs::read(place.at("base/f")).unwrap(), b"content");
    }
}

#[test]
fn a_server_without_readers_of_its_output_goes_on() {
    require_fuse!();
    let place = Place::new();
    let mut command = place.with(&[]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("it is mounted", || place.at("mnt/f").exists());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
