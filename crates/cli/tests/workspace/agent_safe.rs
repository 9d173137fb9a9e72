//! The preset that the command line uses by default, on a tree with secrets in all the places where
//! the system we learn from leaked them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use libc::{EACCES, ENOENT};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{CWD, FileType, Mode, RenameFlags};

use crate::support::{Mounted, Workspace, errno, eventually, require_fuse};

const HIDDEN: [&str; 8] = [
    ".env",
    "a/.env.local",
    "secrets/k",
    "a/b/secrets/d/k",
    "x.key",
    ".git/config",
    "credentials.json",
    ".env.d/x",
];

/// Hidden directories themselves.
const HIDDEN_DIRS: [&str; 4] = ["secrets", "a/b/secrets", ".git", ".env.d"];

fn tree(ws: Workspace) -> Workspace {
    ws.file("main.py", "print(1)\n")
        .file("a/mod.py", "pass\n")
        .file("a/b/deep.py", "pass\n")
        .dir("output")
        .file("output/old", "old\n")
}

fn with_secrets(ws: Workspace) -> Workspace {
    HIDDEN.iter().fold(tree(ws), |ws, path| ws.file(path, "secret\n"))
}

fn each(test: impl Fn(&Mounted)) {
    for ws in Workspace::both_ways() {
        test(&with_secrets(ws).preset("agent-safe").mount());
    }
}

#[test]
fn it_is_what_holds_if_nothing_is_said() {
    require_fuse!();
    let ws = with_secrets(Workspace::new()).mount();
    assert_eq!(ws.names(""), ["a", "main.py", "output"]);
}

#[test]
fn no_secret_exists_by_name() {
    require_fuse!();
    each(|ws| {
        for path in HIDDEN.iter().chain(&HIDDEN_DIRS) {
            assert_eq!(errno(fs::symlink_metadata(ws.path(path))), ENOENT, "stat {path}");
            assert_eq!(errno(File::open(ws.path(path))), ENOENT, "open {path}");
            assert_eq!(errno(fs::read_dir(ws.path(path))), ENOENT, "list {path}");
            assert_eq!(errno(fs::read_link(ws.path(path))), ENOENT, "readlink {path}");
            let access = rustix::fs::access(ws.path(path), rustix::fs::Access::EXISTS);
            assert_eq!(access.unwrap_err().raw_os_error(), ENOENT, "access {path}");
        }
    });
}

#[test]
fn no_secret_is_listed_found_or_matched() {
    require_fuse!();
    each(|ws| {
        assert_eq!(ws.names(""), ["a", "main.py", "output"]);
        assert_eq!(ws.names("a"), ["b", "mod.py"]);
        assert_eq!(ws.names("a/b"), ["deep.py"]);
        let found: BTreeSet<_> = ws.ok("find . -mindepth 1").lines().map(String::from).collect();
        let expected = ["./a", "./a/b", "./a/b/deep.py", "./a/mod.py", "./main.py", "./output"];
        let expected: BTreeSet<_> =
            expected.iter().chain(&["./output/old"]).map(|s| s.to_string()).collect();
        assert_eq!(found, expected);
        assert_eq!(
            ws.ok("echo .??* *.key a/.e* */secrets* cred*"),
            ".??* *.key a/.e* */secrets* cred*\n"
        );
        assert_eq!(ws.ok("grep -r secret . || true"), "");
        assert_eq!(
            ws.ok("tar cf - . | tar tf - | grep -cE 'env|secret|key|git|cred' || true"),
            "0\n"
        );
        assert_eq!(ws.ok("du -a . | wc -l"), "8\n");
    });
}

/// Every way to ask about a name by trying to make or move something; the error is the answer.
fn probe(ws: &Mounted, name: &str) -> Vec<(&'static str, i32)> {
    let (path, file, dir) = (ws.path(name), ws.path("output/probe"), ws.path("output/probe.d"));
    fs::write(&file, "x").unwrap();
    fs::create_dir_all(&dir).unwrap();
    let number =
        |result: std::io::Result<()>| result.map_or_else(|e| e.raw_os_error().unwrap(), |()| 0);
    let rename =
        |from: &Path, to: &Path, flags| Ok(rustix::fs::renameat_with(CWD, from, CWD, to, flags)?);
    let mknod = |kind| Ok(rustix::fs::mknodat(CWD, &path, kind, Mode::RWXU, 0)?);
    let answers = vec![
        ("stat", number(fs::symlink_metadata(&path).map(drop))),
        ("open", number(File::open(&path).map(drop))),
        ("open for writing", number(File::options().write(true).open(&path).map(drop))),
        ("create", number(File::create(&path).map(drop))),
        ("create new", number(File::create_new(&path).map(drop))),
        ("mkdir", number(fs::create_dir(&path))),
        ("mkfifo", number(mknod(FileType::Fifo))),
        ("mksocket", number(mknod(FileType::Socket))),
        ("symlink", number(symlink("x", &path))),
        ("link to", number(fs::hard_link(&file, &path))),
        ("link from", number(fs::hard_link(&path, ws.path("output/got")))),
        ("rename to", number(rename(&file, &path, RenameFlags::empty()))),
        ("rename a directory to", number(rename(&dir, &path, RenameFlags::empty()))),
        ("rename to, keeping", number(rename(&file, &path, RenameFlags::NOREPLACE))),
        ("exchange", number(rename(&file, &path, RenameFlags::EXCHANGE))),
        ("rename from", number(rename(&path, &ws.path("output/got"), RenameFlags::empty()))),
        ("unlink", number(fs::remove_file(&path))),
        ("rmdir", number(fs::remove_dir(&path))),
        ("below it", number(fs::symlink_metadata(path.join("x")).map(drop))),
        ("create below it", number(File::create(path.join("x")).map(drop))),
    ];
    assert_eq!(fs::read(&file).unwrap(), b"x", "{name}");
    answers
}

#[test]
fn probing_a_hidden_name_answers_the_same_whether_or_not_it_exists() {
    require_fuse!();
    for (there, absent) in Workspace::both_ways().into_iter().zip(Workspace::both_ways()) {
        let there = with_secrets(there).preset("agent-safe").mount();
        let absent = tree(absent).preset("agent-safe").mount();
        for name in HIDDEN.iter().chain(&HIDDEN_DIRS) {
            assert_eq!(probe(&there, name), probe(&absent, name), "{name}");
        }
        let answers = probe(&there, ".env");
        let making = ["create", "create new", "mkdir", "mkfifo", "mksocket", "symlink", "link to"];
        for (how, answer) in answers {
            let expected =
                making.contains(&how) || how.starts_with("rename") && how.contains(" to");
            let expected = if expected { EACCES } else { ENOENT };
            assert_eq!(answer, expected, "{how}");
        }
        let changed = fs::read(there.base().join(".env")).unwrap();
        assert_eq!(changed, b"secret\n");
    }
}

#[test]
fn a_second_probe_answers_as_the_first() {
    require_fuse!();
    each(|ws| {
        let first = probe(ws, "x.key");
        ws.names("");
        assert_eq!(first, probe(ws, "x.key"));
    });
}

#[test]
fn the_visible_tree_looks_the_same_with_and_without_secrets() {
    require_fuse!();
    let seen = |ws: Workspace| {
        let ws = ws.with_base(set_all_times).preset("agent-safe").mount();
        // Access times and inode numbers differ between any two trees.
        let shown =
            "find . -mindepth 1 -printf '%p %y %m %n %s %b %T@\\n' | sort; ls -lR --time-style=+";
        ws.ok(shown)
    };
    assert_eq!(seen(with_secrets(Workspace::new())), seen(tree(Workspace::new())));
}

fn set_all_times(base: &Path) {
    let script = "find \"$0\" -exec touch -h -d @1000000000 {} +";
    let set = std::process::Command::new("sh").args(["-c", script]).arg(base).status().unwrap();
    assert!(set.success());
}

#[test]
fn secrets_cannot_be_moved_or_removed_with_their_directory() {
    require_fuse!();
    each(|ws| {
        ws.fails("rm -rf a");
        ws.fails("mv a output/a");
        ws.fails("ln -s / a/b/secrets");
        assert!(ws.base().join("a/b/secrets/d/k").is_file());
        assert_eq!(fs::read(ws.path("a/b/deep.py")).unwrap(), b"pass\n");
    });
}

#[test]
fn output_can_be_made_and_written() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = ws.file("main.py", "x").preset("agent-safe").mount();
        ws.ok("mkdir -p output && echo x > output/y");
        assert_eq!(fs::read(ws.path("output/y")).unwrap(), b"x\n");
        ws.ok("mkdir -p output/deep/er tmp/t && echo z > tmp/t/z");
        assert!(!ws.base().join("output").exists());
        ws.fails("echo x > new; test -e new");
        ws.fails("mkdir other");
        ws.fails("echo x > output/.env");
        ws.fails("mkdir output/secrets");
        ws.fails("touch output/x.pem");
    }
}

// ---- what can be noticed of the host's changes ----

/// Watches a directory of the workspace the way a program inside does.
fn watch(dir: &Path) -> OwnedFd {
    let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
    inotify::add_watch(&fd, dir, WatchFlags::ALL_EVENTS).unwrap();
    fd
}

/// Names that events have told of so far; an event about the directory itself has none.
fn told(fd: &OwnedFd) -> Vec<String> {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(fd, &mut buffer);
    let mut names = vec![];
    while let Ok(event) = reader.next() {
        let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
        names.push(name.unwrap_or_default());
    }
    names
}

fn changes_secrets(base: &Path) {
    fs::write(base.join(".env"), "changed").unwrap();
    fs::write(base.join(".env.new"), "made").unwrap();
    fs::create_dir(base.join("secrets/more")).unwrap();
    fs::create_dir_all(base.join("a/secrets")).unwrap();
    fs::rename(base.join("x.key"), base.join("y.key")).unwrap();
    fs::remove_file(base.join("credentials.json")).unwrap();
}

/// What a watch on `output` tells while a hidden and a visible name are tried there, and how many
/// of the secrets can be watched themselves.
fn watched(ws: &Mounted) -> (Vec<String>, usize) {
    let watching = watch(&ws.path("output"));
    let _ = File::create(ws.path("output/.env"));
    let _ = fs::create_dir(ws.path("output/secrets"));
    File::create(ws.path("output/visible")).unwrap();
    let told: BTreeSet<_> = told(&watching).into_iter().collect();
    let fd = inotify::init(CreateFlags::CLOEXEC).unwrap();
    let can_watch =
        |path: &&&str| inotify::add_watch(&fd, ws.path(path), WatchFlags::ALL_EVENTS).is_ok();
    let count = HIDDEN.iter().chain(&HIDDEN_DIRS).filter(can_watch).count();
    (told.into_iter().collect(), count)
}

#[test]
fn no_secret_can_be_watched_and_no_watch_tells_of_one() {
    require_fuse!();
    each(|ws| assert_eq!(watched(ws), (vec!["visible".into()], 0)));
    let open = with_secrets(Workspace::new()).preset("full-access").mount();
    let (told, count) = watched(&open);
    assert_eq!(told, [".env", "secrets", "visible"], "without the guard a watch tells");
    assert_eq!(count, HIDDEN.len() + HIDDEN_DIRS.len());
}

/// The kernel reports nothing that happens below a FUSE mount, hidden or not: this fails only if we
/// begin to pass such changes on without asking the guard.
#[test]
fn a_watched_directory_tells_nothing_of_what_the_host_does_to_secrets() {
    require_fuse!();
    each(|ws| {
        ws.ok("find . >/dev/null");
        let watching = watch(&ws.root());
        changes_secrets(&ws.base());
        // A visible change behind them: once it is seen, the hidden ones have been dealt with.
        fs::write(ws.base().join("visible"), "x").unwrap();
        let shown = ["a", "main.py", "output", "visible"];
        eventually("the visible change shows up", || ws.names("") == shown);
        let told = told(&watching);
        let secret =
            |name: &String| name.contains("env") || name.contains("key") || name.contains("cred");
        assert!(!told.iter().any(secret), "{told:?}");
    });
}

#[test]
fn a_directorys_times_size_and_links_do_not_move_when_the_host_changes_secrets_in_it() {
    require_fuse!();
    each(|ws| {
        let facts = |path: &str| {
            let meta = fs::metadata(ws.path(path)).unwrap();
            let modified = (meta.mtime(), meta.mtime_nsec());
            (meta.size(), meta.nlink(), meta.blocks(), modified, (meta.ctime(), meta.ctime_nsec()))
        };
        ws.ok("find . -ls >/dev/null");
        let before = ["", "a"].map(facts);
        changes_secrets(&ws.base());
        fs::write(ws.base().join("a/b/visible"), "x").unwrap();
        eventually("the visible change shows up", || ws.path("a/b/visible").exists());
        // Whatever was cached is asked for again.
        if crate::support::is_root() {
            fs::write("/proc/sys/vm/drop_caches", "2").unwrap();
        }
        assert_eq!(["", "a"].map(facts), before);
    });
}

#[test]
fn a_secret_that_the_host_makes_later_is_never_there() {
    require_fuse!();
    each(|ws| {
        assert_eq!(errno(fs::metadata(ws.path("late.pem"))), ENOENT);
        fs::write(ws.base().join("late.pem"), "x").unwrap();
        fs::create_dir(ws.base().join("a/.git")).unwrap();
        fs::write(ws.base().join("late.txt"), "x").unwrap();
        eventually("the visible change shows up", || ws.path("late.txt").exists());
        assert_eq!(errno(fs::metadata(ws.path("late.pem"))), ENOENT);
        assert_eq!(ws.names(""), ["a", "late.txt", "main.py", "output"]);
        assert_eq!(ws.names("a"), ["b", "mod.py"]);
    });
}
