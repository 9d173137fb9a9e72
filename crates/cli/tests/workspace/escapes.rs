//! Ways out of the policy that were tried on other systems, each as a promise that it fails here.
//!
//! The probes in [`PROBES`] are run twice: with rules, where none may get through, and with
//! `full-access`, where all must. So a probe that has lost its teeth is noticed, and so is a guard
//! that was taken out.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirEntryExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use libc::{EACCES, EEXIST, ENAMETOOLONG, ENOENT};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, XattrFlags};

use crate::support::{
    Mounted, Workspace, errno, eventually, names_in, os, require_fuse, require_root,
};

// ---- probes with teeth ----

/// Something tried from inside; says whether it got through.
type Probe = (&'static str, fn(&Mounted) -> bool);

fn probed(ws: Workspace) -> Workspace {
    ws.file(".env", "KEY=secret")
        .file("config/.env", "KEY=secret")
        .file("config/app.toml", "a = 1")
        .file("readme", "read me")
        .file("seen", "#!/bin/sh\n")
        .file("free/f", "f")
        .with_base(|base| {
            fs::set_permissions(base.join("seen"), fs::Permissions::from_mode(0o755)).unwrap();
            symlink("../.env", base.join("free/to-env")).unwrap();
            symlink("../seen", base.join("free/to-seen")).unwrap();
        })
}

fn guarded(ws: Workspace) -> Workspace {
    ws.rule("write:**/*").rule("none:**/.env*@100").rule("read:/readme@10").rule("view:/seen@10")
}

fn runs(ws: &Mounted, script: &str) -> bool {
    ws.sh(script).status.success()
}

/// Opens again, by its number, what an `O_PATH` or other descriptor stands for.
fn reopen(file: &File, write: bool) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    File::options().read(true).write(write).open(path)
}

fn by_path(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)
}

fn rename_with(ws: &Mounted, from: &str, to: &str, flags: RenameFlags) -> io::Result<()> {
    Ok(rustix::fs::renameat_with(CWD, ws.path(from), CWD, ws.path(to), flags)?)
}

const PROBES: &[Probe] = &[
    ("read a hidden file", |ws| runs(ws, "cat .env")),
    ("see a hidden name in a listing", |ws| ws.names("").contains(&".env".into())),
    ("find a hidden name", |ws| !ws.ok("find . -name '.env*'").is_empty()),
    ("match a hidden name", |ws| ws.ok("echo .e*") != ".e*\n"),
    ("count entries", |ws| fs::read_dir(ws.path("config")).unwrap().count() == 2),
    ("find the inode of a hidden file", |ws| {
        let hidden = fs::metadata(ws.base().join(".env")).unwrap().ino();
        let real = |ino: u64| ino & ((1 << 48) - 1);
        fs::read_dir(ws.root()).unwrap().any(|e| real(e.unwrap().ino()) == hidden)
    }),
    ("test -e", |ws| runs(ws, "test -e .env")),
    ("spell it with a dot", |ws| runs(ws, "cat ./.env")),
    ("spell it with dots", |ws| runs(ws, "cat config/../.env")),
    ("spell it with slashes", |ws| runs(ws, "cat config///.env")),
    ("spell it from a directory in it", |ws| runs(ws, "cd free && cat ../.env")),
    ("spell it through a link to a directory", |ws| runs(ws, "ln -s .. free/up; cat free/up/.env")),
    ("spell it through /proc/self/cwd", |ws| runs(ws, "cat /proc/self/cwd/.env")),
    ("read through a link of the base", |ws| runs(ws, "cat free/to-env")),
    ("read through a link of one's own", |ws| runs(ws, "ln -s ../.env free/mine; cat free/mine")),
    ("write through a link", |ws| runs(ws, "echo x > free/to-env")),
    ("read a viewed file", |ws| runs(ws, "cat seen")),
    ("read a viewed file through a link", |ws| runs(ws, "cat free/to-seen")),
    ("execute a viewed file", |ws| runs(ws, "./seen")),
    ("copy a viewed file", |ws| runs(ws, "cp seen free/copy")),
    ("move a viewed file to where it is readable", |ws| runs(ws, "mv seen free/copy")),
    ("move a directory with a hidden file", |ws| runs(ws, "mv config c2")),
    ("move the parent of such a directory", |ws| {
        runs(ws, "mkdir up") && fs::rename(ws.path("config"), ws.path("up/config")).is_ok()
    }),
    ("exchange such a directory with another", |ws| {
        rename_with(ws, "config", "free", RenameFlags::EXCHANGE).is_ok()
    }),
    ("exchange another with such a directory", |ws| {
        rename_with(ws, "free", "config", RenameFlags::EXCHANGE).is_ok()
    }),
    ("remove a directory with a hidden file", |ws| runs(ws, "rm -rf config && test ! -e config")),
    ("make a hidden name", |ws| runs(ws, "touch .env.new")),
    ("make a hidden directory", |ws| runs(ws, "mkdir .env.d")),
    ("overwrite a hidden file", |ws| runs(ws, "echo x > .env")),
    ("link to a hidden name", |ws| runs(ws, "ln free/f .env.link")),
    ("symlink to a hidden name", |ws| runs(ws, "ln -s free/f .env.link")),
    ("move to a hidden name", |ws| runs(ws, "mv free/f .env.moved")),
    ("move a hidden file", |ws| runs(ws, "mv .env free/env")),
    ("remove a hidden file", |ws| runs(ws, "rm .env")),
    ("hard link from a hidden file", |ws| runs(ws, "ln .env free/env")),
    ("hard link from a viewed file", |ws| runs(ws, "ln seen free/seen")),
    ("hard link from a read-only file", |ws| runs(ws, "ln readme free/readme")),
    ("hard link from a descriptor of a read-only file", |ws| {
        let file = File::open(ws.path("readme")).unwrap();
        let from = format!("/proc/self/fd/{}", file.as_raw_fd());
        let follow = AtFlags::SYMLINK_FOLLOW;
        rustix::fs::linkat(CWD, from, CWD, ws.path("free/readme"), follow).is_ok()
    }),
    ("open a read-only descriptor again for writing", |ws| {
        reopen(&File::open(ws.path("readme")).unwrap(), true).is_ok()
    }),
    ("open a path descriptor of a read-only file for writing", |ws| {
        reopen(&by_path(&ws.path("readme")).unwrap(), true).is_ok()
    }),
    ("open a path descriptor of a viewed file", |ws| {
        reopen(&by_path(&ws.path("seen")).unwrap(), false).is_ok()
    }),
    ("get a path descriptor of a hidden file", |ws| by_path(&ws.path(".env")).is_ok()),
    ("open a hidden name below a path descriptor", |ws| {
        let dir = by_path(&ws.path("config")).unwrap();
        rustix::fs::openat(dir, c".env", OFlags::RDONLY, Mode::empty()).is_ok()
    }),
    ("chmod a descriptor of a read-only file", |ws| {
        let file = File::open(ws.path("readme")).unwrap();
        file.set_permissions(fs::Permissions::from_mode(0o666)).is_ok()
    }),
    ("chmod a path descriptor of a read-only file", |ws| {
        let file = by_path(&ws.path("readme")).unwrap();
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        fs::set_permissions(path, fs::Permissions::from_mode(0o666)).is_ok()
    }),
    ("set an attribute on a descriptor of a read-only file", |ws| {
        let file = File::open(ws.path("readme")).unwrap();
        rustix::fs::fsetxattr(file, c"user.x", b"1", XattrFlags::empty()).is_ok()
    }),
    ("set times on a descriptor of a read-only file", |ws| {
        File::open(ws.path("readme")).unwrap().set_modified(std::time::UNIX_EPOCH).is_ok()
    }),
    ("overwrite a read-only file", |ws| runs(ws, "echo x > readme")),
    ("remove a read-only file", |ws| runs(ws, "rm -f readme && test ! -e readme")),
    ("move a file over a read-only one", |ws| runs(ws, "mv -f free/f readme")),
    ("exchange a file with a read-only one", |ws| {
        rename_with(ws, "free/f", "readme", RenameFlags::EXCHANGE).is_ok()
    }),
    ("exchange a file with a hidden one", |ws| {
        rename_with(ws, "free/f", ".env", RenameFlags::EXCHANGE).is_ok()
    }),
    ("rename a read-only file", |ws| runs(ws, "mv readme free/readme")),
    ("replace a read-only file by sed", |ws| runs(ws, "sed -i s/read/write/ readme")),
];

#[test]
fn no_probe_gets_through_the_guard() {
    require_fuse!();
    for passthrough in [true, false] {
        let through = probes_that_get_through(passthrough, guarded);
        assert_eq!(through, Vec::<&str>::new(), "passthrough: {passthrough}");
    }
}

#[test]
fn every_probe_gets_through_without_the_guard() {
    require_fuse!();
    let through = probes_that_get_through(true, |ws| ws.preset("full-access"));
    let all: Vec<_> = PROBES.iter().map(|(name, _)| *name).collect();
    assert_eq!(through, all);
}

fn probes_that_get_through(
    passthrough: bool,
    policy: fn(Workspace) -> Workspace,
) -> Vec<&'static str> {
    let mut through = vec![];
    for (name, probe) in PROBES {
        let ws = if passthrough { Workspace::new() } else { Workspace::new().no_passthrough() };
        let ws = policy(probed(ws)).mount();
        if probe(&ws) {
            through.push(*name);
        }
        assert_eq!(fs::read(ws.base().join(".env")).unwrap(), b"KEY=secret", "{name}");
        assert_eq!(fs::read(ws.base().join("readme")).unwrap(), b"read me", "{name}");
    }
    through
}

// ---- out to the host ----

/// A directory of the host beside the workspace, which nothing inside may reach or change.
fn outside(ws: &Mounted) -> PathBuf {
    let outside = ws.scratch().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "of the host").unwrap();
    outside
}

fn assert_untouched(outside: &Path) {
    assert_eq!(names_in(outside), ["secret"]);
    assert_eq!(fs::read(outside.join("secret")).unwrap(), b"of the host");
}

#[test]
fn a_link_swapped_in_for_the_current_directory_leads_nobody_to_the_host() {
    require_fuse!();
    for from_base in [true, false] {
        for ws in Workspace::both_ways() {
            let ws = if from_base { ws.file("z/own", "x") } else { ws };
            let ws = ws.preset("full-access").mount();
            let outside = outside(&ws);
            let script = format!(
                "mkdir -p z && cd z && mv ../z ../gone && ln -s {} ../z && ls -a . && cat secret; \
                 echo planted > planted; mkdir made; mv planted moved",
                outside.display()
            );
            let output = ws.sh(&script);
            let seen = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(!seen.contains("secret") && !seen.contains("of the host"), "{seen}");
            assert_untouched(&outside);
            let expected: &[&str] =
                if from_base { &["made", "moved", "own"] } else { &["made", "moved"] };
            assert_eq!(ws.names("gone"), expected);
        }
    }
}

#[test]
fn a_file_written_where_a_link_was_does_not_follow_it() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = ws.preset("full-access").mount();
        let outside = outside(&ws);
        let target = outside.join("secret");
        ws.ok(&format!("ln -s {} link && rm link && echo mine > link", target.display()));
        let ws = ws.remount(None);
        assert_eq!(fs::read(ws.path("link")).unwrap(), b"mine\n");
        assert!(fs::symlink_metadata(ws.path("link")).unwrap().is_file());
        assert_untouched(&outside);
    }
}

#[test]
fn moving_or_touching_a_link_never_reads_or_changes_its_target() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = ws.with_base(|base| {
            let target = base.parent().unwrap().join("outside/secret");
            symlink(&target, base.join("link")).unwrap();
            symlink(&target, base.join("touched")).unwrap();
            symlink(base.parent().unwrap().join("outside"), base.join("dir")).unwrap();
        });
        let ws = ws.preset("full-access").mount();
        let outside = outside(&ws);
        ws.ok(
            "mv link copy && touch -h -d @1000 touched && chown -h $(id -u) touched && mv dir d2",
        );
        ws.ok("ln copy linked && mv linked linked2");
        for link in ["copy", "touched", "linked2", "d2"] {
            assert!(fs::symlink_metadata(ws.path(link)).unwrap().is_symlink(), "{link}");
            let kept = fs::symlink_metadata(ws.layer.join("tree").join(link)).unwrap();
            assert!(kept.is_symlink(), "the layer holds a link, not the content: {link}");
        }
        assert_eq!(fs::symlink_metadata(ws.path("touched")).unwrap().mtime(), 1000);
        assert_untouched(&outside);
    }
}

#[test]
fn a_link_made_in_a_directory_stays_there() {
    require_fuse!();
    let ws = Workspace::new().file("a.txt", "original").preset("agent-safe").mount();
    ws.ok("mkdir -p output/deep && ln -s elsewhere output/a.txt && ln -s x output/deep/a.txt");
    assert_eq!(fs::read(ws.path("a.txt")).unwrap(), b"original");
    assert!(fs::symlink_metadata(ws.path("a.txt")).unwrap().is_file());
    assert_eq!(fs::read_link(ws.path("output/a.txt")).unwrap(), Path::new("elsewhere"));
    assert_eq!(fs::read_link(ws.path("output/deep/a.txt")).unwrap(), Path::new("x"));
}

#[test]
fn a_directory_of_the_base_swapped_for_a_link_by_the_host_is_not_followed() {
    require_fuse!();
    let ws = Workspace::new().file("d/f", "inside").preset("full-access").mount();
    let outside = outside(&ws);
    assert_eq!(ws.names("d"), ["f"]);
    fs::rename(ws.base().join("d"), ws.base().join("old")).unwrap();
    symlink(&outside, ws.base().join("d")).unwrap();
    eventually("the link is shown as a link", || {
        fs::symlink_metadata(ws.path("d")).is_ok_and(|m| m.is_symlink())
    });
    // The two names are noticed one after the other.
    eventually("the new name works", || fs::write(ws.path("old/f"), "changed").is_ok());
    assert_eq!(ws.names("old"), ["f"]);
    assert_untouched(&outside);
}

/// The numbers of nodes can be guessed; a handle made from a guess must open nothing, also for
/// root.
#[test]
fn open_by_handle_opens_nothing_that_a_name_would_not() {
    require_fuse!();
    require_root!();
    let ws = guarded(probed(Workspace::new())).mount();
    let hidden = fs::metadata(ws.base().join(".env")).unwrap().ino();
    fs::metadata(ws.path("seen")).unwrap();
    let program = format!(
        r#"
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, HIDDEN = -100, {hidden}
def handle_of(path):
    buf = ctypes.create_string_buffer(8 + 128)
    struct.pack_into('Ii', buf, 0, 128, 0)
    mount = ctypes.c_int()
    if libc.name_to_handle_at(AT_FDCWD, path, buf, ctypes.byref(mount), 0) < 0:
        return None
    size, kind = struct.unpack_from('Ii', buf, 0)
    return kind, buf.raw[8:8 + size]
def opens(kind, body, flags):
    buf = ctypes.create_string_buffer(struct.pack('Ii', len(body), kind) + body)
    fd = libc.open_by_handle_at(root, buf, flags)
    if fd < 0:
        return ctypes.get_errno()
    os.close(fd)
    return 0
root = os.open('.', os.O_RDONLY)
seen = handle_of(b'seen')
if seen is not None:
    assert opens(*seen, os.O_RDONLY) != 0, 'a viewed file was opened'
kind = seen[0] if seen else 0x81
for classes in range(8):
    for device in range(8):
        number = classes << 59 | device << 48 | HIDDEN
        for kind in (0x81, kind):
            body = struct.pack('=QI', number, 0)
            halves = struct.pack('=III', number >> 32, number & 0xffffffff, 0)
            for guess in (body, halves):
                for flags in (os.O_RDONLY, os.O_PATH):
                    assert opens(kind, guess, flags) != 0, (classes, device)
"#
    );
    ws.python(&program);
}

// ---- names ----

#[test]
fn another_case_is_another_name() {
    require_fuse!();
    let ws = probed(Workspace::new()).preset("development").mount();
    for name in [".ENV", ".Env", "CONFIG/app.toml"] {
        assert_eq!(errno(fs::metadata(ws.path(name))), ENOENT);
    }
    fs::write(ws.path(".ENV"), "mine").unwrap();
    assert_eq!(fs::read(ws.path(".ENV")).unwrap(), b"mine");
    assert_eq!(errno(fs::metadata(ws.path(".env"))), ENOENT);
}

#[test]
fn a_trailing_slash_changes_no_answer() {
    require_fuse!();
    let ws = Workspace::new().file(".env", "f").file(".env.d/x", "x").preset("development").mount();
    for name in [".env/", ".env.d/", ".env.d/.", ".env.d/..", ".env.absent/", ".env.d/x/"] {
        assert_eq!(errno(fs::symlink_metadata(ws.path("").join(name))), ENOENT, "{name}");
    }
    for name in [".env.d/", ".env.absent/"] {
        assert_eq!(errno(fs::create_dir(ws.path("").join(name))), EACCES, "{name}");
    }
}

#[test]
fn any_bytes_are_a_name_and_rules_hold_for_them() {
    require_fuse!();
    let long = [b'n'; 255];
    let odd: [&[u8]; 7] = [b"line\nbreak", b"\xff\xfe not utf-8", b" ", b"-rf", b"*", b"\\", &long];
    for ws in Workspace::both_ways() {
        let ws = odd.iter().fold(ws, |ws, name| {
            let hidden = [&name[..name.len().min(248)], b".secret"].concat();
            ws.file(os(name), name).file(os(&hidden), "hidden")
        });
        let ws = ws.rule("write:**/*").rule("none:**/*.secret@10").mount();
        assert_eq!(fs::read_dir(ws.root()).unwrap().count(), odd.len());
        for name in odd {
            let hidden = [&name[..name.len().min(248)], b".secret"].concat();
            assert_eq!(errno(fs::metadata(ws.path(os(&hidden)))), ENOENT);
            assert_eq!(errno(File::create(ws.path(os(&hidden)))), EACCES);
            assert_eq!(fs::read(ws.path(os(name))).unwrap(), name);
            fs::write(ws.path(os(name)), "changed").unwrap();
            let mut turned = name.to_vec();
            turned.reverse();
            fs::rename(ws.path(os(name)), ws.path(os(b"aside"))).unwrap();
            fs::rename(ws.path(os(b"aside")), ws.path(os(&turned))).unwrap();
        }
        let ws = ws.remount(None);
        for name in odd {
            let mut turned = name.to_vec();
            turned.reverse();
            assert_eq!(fs::read(ws.path(os(&turned))).unwrap(), b"changed");
        }
        assert_eq!(errno(File::create(ws.path(os(&[b'n'; 256])))), ENAMETOOLONG);
    }
}

/// Walks down `depth` directories, making them if `make`, and returns the last.
fn descend(from: &Path, depth: usize, make: bool) -> OwnedFd {
    let name = "d".repeat(200);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut dir = rustix::fs::open(from, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        if make {
            rustix::fs::mkdirat(&dir, &name, Mode::RWXU).unwrap();
        }
        dir = rustix::fs::openat(&dir, &name, flags, Mode::empty()).unwrap();
    }
    dir
}

fn write_at(dir: &OwnedFd, name: &str, content: &[u8]) -> rustix::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let file = rustix::fs::openat(dir, name, flags, Mode::from(0o644))?;
    rustix::io::write(file, content).map(drop)
}

fn read_at(dir: &OwnedFd, name: &str) -> rustix::io::Result<Vec<u8>> {
    let file = rustix::fs::openat(dir, name, OFlags::RDONLY, Mode::empty())?;
    let mut content = vec![0u8; 64];
    let len = rustix::io::read(file, &mut content)?;
    content.truncate(len);
    Ok(content)
}

#[test]
fn rules_hold_below_paths_longer_than_any_path_may_be() {
    require_fuse!();
    const DEPTH: usize = 30;
    for ws in Workspace::both_ways() {
        let ws = ws.with_base(|base| {
            let deep = descend(base, DEPTH, true);
            for name in [".env", "readme", "f"] {
                write_at(&deep, name, b"of the base").unwrap();
            }
        });
        let ws = ws.preset("development").rule("read:**/readme@10").mount();
        let deep = descend(&ws.root(), DEPTH, false);
        assert_eq!(read_at(&deep, ".env").unwrap_err().raw_os_error(), ENOENT);
        assert_eq!(write_at(&deep, ".env", b"x").unwrap_err().raw_os_error(), EACCES);
        assert_eq!(write_at(&deep, ".env.new", b"x").unwrap_err().raw_os_error(), EACCES);
        assert_eq!(read_at(&deep, "readme").unwrap(), b"of the base");
        assert_eq!(write_at(&deep, "readme", b"x").unwrap_err().raw_os_error(), EACCES);
        write_at(&deep, "f", b"changed").unwrap();
        write_at(&deep, "new", b"new").unwrap();
        rustix::fs::renameat(&deep, "new", &deep, "newer").unwrap();
        let top = "d".repeat(200);
        assert_eq!(errno(fs::rename(ws.path(&top), ws.path("short"))), EACCES);
        let ws = ws.remount(None);
        let deep = descend(&ws.root(), DEPTH, false);
        assert_eq!(read_at(&deep, "f").unwrap(), b"changed");
        assert_eq!(read_at(&deep, "newer").unwrap(), b"new");
        assert_eq!(read_at(&deep, ".env").unwrap_err().raw_os_error(), ENOENT);
    }
}

/// Makes directories in each other until that is refused; says how many.
fn dig(from: &Path, most: usize) -> (usize, Option<rustix::io::Errno>) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut dir = rustix::fs::open(from, flags, Mode::empty()).unwrap();
    for depth in 0..most {
        if let Err(refused) = rustix::fs::mkdirat(&dir, "d", Mode::RWXU) {
            return (depth, Some(refused));
        }
        dir = rustix::fs::openat(&dir, "d", flags, Mode::empty()).unwrap();
    }
    (most, None)
}

/// Whoever follows a tree has only so much stack and memory.
#[test]
fn a_tree_without_end_cannot_be_made() {
    require_fuse!();
    let ws = Workspace::new().rule("write:**/*").mount();
    let (depth, refused) = dig(&ws.root(), 50_000);
    assert_eq!(refused, Some(rustix::io::Errno::NAMETOOLONG));
    // Nor put together from two.
    fs::create_dir(ws.path("other")).unwrap();
    assert_eq!(dig(&ws.path("other"), depth / 2), (depth / 2, None));
    let inside = ws.path(format!("other/{}", "d/".repeat(depth / 4)));
    let half = ws.path("d/".repeat(depth / 2 - 10));
    fs::rename(&half, inside.join("moved")).unwrap();
    assert_eq!(errno(fs::rename(ws.path("other"), half)), ENAMETOOLONG);
    fs::write(ws.path("f"), "goes on").unwrap();
    let ws = ws.remount(None);
    assert_eq!(fs::read(ws.path("f")).unwrap(), b"goes on");
}

#[test]
fn a_directory_near_the_longest_path_moves_or_says_that_it_cannot() {
    require_fuse!();
    const DEPTH: usize = 30;
    let ws = Workspace::new().with_base(|base| {
        write_at(&descend(base, DEPTH, true), "f", b"of the base").unwrap();
    });
    let ws = ws.preset("full-access").mount();
    let above = descend(&ws.root(), DEPTH - 1, false);
    let name = "d".repeat(200);
    match rustix::fs::renameat(&above, &name, &above, "moved") {
        Ok(()) => {}
        Err(e) => {
            assert_eq!(e.raw_os_error(), libc::EXDEV, "what `mv` copies after");
            let kept = rustix::fs::openat(&above, &name, OFlags::RDONLY, Mode::empty()).unwrap();
            assert_eq!(read_at(&kept, "f").unwrap(), b"of the base");
            return;
        }
    }
    let moved = rustix::fs::openat(&above, "moved", OFlags::RDONLY, Mode::empty()).unwrap();
    assert_eq!(read_at(&moved, "f").unwrap(), b"of the base");
}

// ---- what a layer means must not be said from inside ----

#[test]
fn names_that_mean_deletion_elsewhere_are_ordinary() {
    require_fuse!();
    let ws = Workspace::new()
        .file("v.txt", "v")
        .file("d/.env", "hidden")
        .file("d/.wh.real", "real")
        .file("d/real", "also")
        .preset("development")
        .mount();
    ws.ok("touch .wh.v.txt d/.wh..env d/.wh..wh..opq && mkdir .wh.dir");
    let ws = ws.remount(None);
    assert_eq!(fs::read(ws.path("v.txt")).unwrap(), b"v");
    assert_eq!(ws.names("d"), [".wh..env", ".wh..wh..opq", ".wh.real", "real"]);
    assert_eq!(ws.names(""), [".wh.dir", ".wh.v.txt", "d", "v.txt"]);
    assert_eq!(fs::read(ws.base().join("d/.env")).unwrap(), b"hidden");
}

#[test]
fn an_empty_file_with_no_permissions_is_not_a_deletion() {
    require_fuse!();
    let ws = Workspace::new().file("f", "x").file("base-empty", "").with_base(|base| {
        fs::set_permissions(base.join("base-empty"), fs::Permissions::from_mode(0o0)).unwrap();
    });
    let ws = ws.preset("full-access").mount();
    ws.ok(": > f && chmod 0 f && : > g && chmod 0 g && touch base-empty");
    let ws = ws.remount(None);
    assert_eq!(ws.names(""), ["base-empty", "f", "g"]);
}

#[test]
fn a_directory_removed_and_made_again_is_empty() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = ws.file("d/a", "a").file("d/sub/b", "b").preset("full-access").mount();
        ws.ok("rm -r d && mkdir d && touch d/new && mkdir d/sub");
        assert_eq!(ws.names("d"), ["new", "sub"]);
        let ws = ws.remount(None);
        assert_eq!(ws.names("d"), ["new", "sub"]);
        assert_eq!(ws.names("d/sub"), Vec::<String>::new());
        assert_eq!(errno(fs::read(ws.path("d/a"))), ENOENT);
    }
}

const MARKS: [&str; 4] = [
    "user.ringfence.whiteout",
    "user.ringfence.lower",
    "user.ringfence.origin",
    "user.ringfence.anything",
];

#[test]
fn the_layers_own_attributes_cannot_be_set_seen_or_removed() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = ws.file("f", "x").file("d/g", "y").preset("full-access").mount();
        // Copied up, so that the layer really has marks on them.
        ws.ok("echo more >> f && touch d/h && mv d e");
        for path in [ws.path("f"), ws.path("e"), ws.root()] {
            for mark in MARKS {
                let set = rustix::fs::setxattr(&path, mark, b"/", XattrFlags::empty());
                set.expect_err(mark);
                rustix::fs::getxattr(&path, mark, &mut [0u8; 256][..]).expect_err(mark);
                rustix::fs::removexattr(&path, mark).expect_err(mark);
            }
            let mut names = vec![0u8; 4096];
            let len = rustix::fs::listxattr(&path, &mut names[..]).unwrap();
            assert_eq!(String::from_utf8_lossy(&names[..len]), "");
        }
        let ws = ws.remount(None);
        assert_eq!(ws.names(""), ["e", "f"]);
        assert_eq!(ws.names("e"), ["g", "h"]);
    }
}

#[test]
fn such_attributes_in_the_base_mean_nothing() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let mark = |path: PathBuf, mark: &str, value: &[u8]| {
            rustix::fs::setxattr(path, mark, value, XattrFlags::empty()).unwrap();
        };
        let ws = ws.file("gone", "").file("secrets/k", "k").file("d/f", "f").file("c", "c");
        let ws = ws.with_base(|base| {
            mark(base.join("gone"), MARKS[0], b"1");
            mark(base.join("d"), MARKS[1], b"/secrets");
            mark(base.join("c"), MARKS[2], b"nonsense");
            fs::set_permissions(base.join("gone"), fs::Permissions::from_mode(0o0)).unwrap();
        });
        let ws = ws.rule("write:**/*").rule("none:/secrets/**@10").mount();
        assert_eq!(ws.names(""), ["c", "d", "gone"]);
        assert_eq!(ws.names("d"), ["f"]);
        // Copied up they still mean nothing.
        ws.ok("touch gone d/new c && echo more >> c");
        let ws = ws.remount(None);
        assert_eq!(ws.names(""), ["c", "d", "gone"]);
        assert_eq!(ws.names("d"), ["f", "new"]);
        ws.ok("mv d e && mv gone e/gone");
        let ws = ws.remount(None);
        assert_eq!(ws.names("e"), ["f", "gone", "new"]);
        assert_eq!(fs::read(ws.path("c")).unwrap(), b"cmore\n");
    }
}

// ---- levels of what is moved, linked or added later ----

#[test]
fn below_a_moved_directory_the_lower_of_both_levels_holds() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = ws
            .file("a/f", "f")
            .file("a/fixed-there", "f")
            .file("a/sub/g", "g")
            .rule("write:**/*")
            .rule("read:/a/late*@10")
            .rule("none:/a/sub/hidden*@10")
            .rule("read:/b/fixed*@10")
            .mount();
        fs::rename(ws.path("a"), ws.path("b")).unwrap();
        fs::write(ws.base().join("a/late"), "added by the host").unwrap();
        fs::write(ws.base().join("a/sub/hidden"), "added by the host").unwrap();
        let check = |ws: &Mounted, dir: &str| {
            eventually("what the host adds shows up", || ws.path(dir).join("late").exists());
            assert_eq!(errno(fs::write(ws.path(dir).join("late"), "x")), EACCES);
            assert_eq!(errno(fs::metadata(ws.path(dir).join("sub/hidden"))), ENOENT);
            assert_eq!(errno(File::create(ws.path(dir).join("sub/hidden2"))), EACCES);
            assert_eq!(ws.names(&format!("{dir}/sub")), ["g"]);
            assert_eq!(errno(fs::remove_file(ws.path(dir).join("late"))), EACCES);
        };
        check(&ws, "b");
        assert_eq!(errno(fs::write(ws.path("b/fixed-there"), "x")), EACCES);
        assert_eq!(errno(fs::rename(ws.path("b"), ws.path("c"))), EACCES, "it holds `late` now");
        let ws = ws.remount(None);
        check(&ws, "b");
        assert_eq!(errno(fs::write(ws.path("b/fixed-there"), "x")), EACCES);
        fs::write(ws.path("b/f"), "still mine").unwrap();
    }
}

#[test]
fn a_directory_moved_back_has_its_levels_back() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = ws.file("a/f", "f").rule("write:**/*").rule("view:/b/f@10").mount();
        fs::rename(ws.path("a"), ws.path("b")).unwrap();
        assert_eq!(errno(fs::read(ws.path("b/f"))), EACCES);
        // Viewed it cannot move on, so the way back is through the host's eyes only.
        assert_eq!(errno(fs::rename(ws.path("b"), ws.path("a"))), EACCES);
        let ws = ws.remount(Some(vec!["--preset".into(), "full-access".into()]));
        fs::rename(ws.path("b"), ws.path("a")).unwrap();
        assert_eq!(fs::read(ws.path("a/f")).unwrap(), b"f");
        fs::write(ws.path("a/f"), "new").unwrap();
    }
}

#[test]
fn a_moved_directory_does_not_uncover_what_rules_hide_at_its_old_place() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = ws.file("a/f", "f").preset("full-access").mount();
        fs::rename(ws.path("a"), ws.path("b")).unwrap();
        fs::write(ws.path("b/made"), "after the move").unwrap();
        let rules = ["--rule", "write:**/*", "--rule", "none:/a/**@10"];
        let ws = ws.remount(Some(rules.map(String::from).to_vec()));
        assert_eq!(errno(fs::read(ws.path("b/f"))), ENOENT, "it came from a hidden place");
        assert_eq!(errno(fs::symlink_metadata(ws.path("b"))), ENOENT);
        assert_eq!(ws.names(""), Vec::<String>::new());
    }
}

#[test]
fn exchange_swaps_two_names_of_any_kind() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = ws.file("f", "f").file("d/x", "x").file("e/y", "y").preset("full-access").mount();
        rename_with(&ws, "d", "e", RenameFlags::EXCHANGE).unwrap();
        assert_eq!((ws.names("d"), ws.names("e")), (vec!["y".into()], vec!["x".into()]));
        rename_with(&ws, "f", "d", RenameFlags::EXCHANGE).unwrap();
        assert_eq!(fs::read(ws.path("d")).unwrap(), b"f");
        assert_eq!(ws.names("f"), ["y"]);
        fs::write(ws.path("live"), "live").unwrap();
        rename_with(&ws, "live", "e/x", RenameFlags::EXCHANGE).unwrap();
        let ws = ws.remount(None);
        assert_eq!(fs::read(ws.path("e/x")).unwrap(), b"live");
        assert_eq!(fs::read(ws.path("live")).unwrap(), b"x");
        assert_eq!(fs::read(ws.path("d")).unwrap(), b"f");
        assert_eq!(ws.names("f"), ["y"]);
        assert_eq!(errno(rename_with(&ws, "live", "absent", RenameFlags::EXCHANGE)), ENOENT);
    }
}

#[test]
fn noreplace_keeps_what_is_there() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = ws.file("f", "f").file("g", "g").file("d/x", "x").preset("full-access").mount();
        let flags = RenameFlags::NOREPLACE;
        assert_eq!(errno(rename_with(&ws, "f", "g", flags)), EEXIST);
        assert_eq!(errno(rename_with(&ws, "f", "d", flags)), EEXIST);
        rename_with(&ws, "f", "h", flags).unwrap();
        rename_with(&ws, "h", "f", flags).unwrap();
        rename_with(&ws, "d", "e", flags).unwrap();
        assert_eq!(ws.names(""), ["e", "f", "g"]);
        assert_eq!(fs::read(ws.path("f")).unwrap(), b"f");
    }
}

#[test]
fn writing_through_one_name_does_not_change_what_a_read_only_name_shows() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = ws.file("fixed", "original").with_base(|base| {
            fs::hard_link(base.join("fixed"), base.join("free")).unwrap();
            fs::hard_link(base.join("fixed"), base.join("free2")).unwrap();
            fs::hard_link(base.join("fixed"), base.join("hidden")).unwrap();
            fs::hard_link(base.join("fixed"), base.join("viewed")).unwrap();
        });
        let ws = ws
            .rule("write:**/*")
            .rule("read:/fixed@10")
            .rule("none:/hidden@10")
            .rule("view:/viewed@10")
            .mount();
        let check = |ws: &Mounted, written: &str| {
            assert_eq!(fs::read(ws.path("fixed")).unwrap(), b"original");
            assert_eq!(fs::read_to_string(ws.path("free")).unwrap(), written);
            assert_eq!(fs::read_to_string(ws.path("free2")).unwrap(), written, "still one file");
            assert_eq!(errno(fs::write(ws.path("fixed"), "x")), EACCES);
            assert_eq!(errno(fs::read(ws.path("viewed"))), EACCES);
            assert_eq!(errno(fs::read(ws.path("hidden"))), ENOENT);
        };
        check(&ws, "original");
        let reader = File::open(ws.path("fixed")).unwrap();
        fs::write(ws.path("free"), "changed!").unwrap();
        check(&ws, "changed!");
        assert_eq!(io::read_to_string(&reader).unwrap(), "original");
        let ws = ws.remount(None);
        check(&ws, "changed!");
        assert_eq!(fs::read(ws.base().join("fixed")).unwrap(), b"original");
    }
}

#[test]
fn the_link_count_of_a_base_file_does_not_give_hidden_names_away() {
    require_fuse!();
    let ws = Workspace::new().file("seen", "x").file("alone", "x").with_base(|base| {
        fs::hard_link(base.join("seen"), base.join(".env")).unwrap();
    });
    let ws = ws.preset("development").mount();
    let links = |name: &str| fs::metadata(ws.path(name)).unwrap().nlink();
    assert_eq!(links("seen"), links("alone"));
    ws.ok("echo more >> seen; echo more >> alone");
    assert_eq!(links("seen"), links("alone"), "nor after it was copied up");
}

/// Names that the sandbox linked itself, under rules that came later and tell them apart.
#[test]
fn the_level_of_a_name_does_not_depend_on_which_other_names_were_looked_at() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = ws.preset("full-access").mount();
        ws.ok("echo x > fixed && ln fixed free");
        let rules = ["--rule", "write:**/*", "--rule", "read:/fixed@10"];
        let rules = Some(rules.map(String::from).to_vec());
        let ws = ws.remount(rules.clone());
        let alone = File::options().append(true).open(ws.path("free")).is_ok();
        let ws = ws.remount(rules);
        fs::read(ws.path("fixed")).unwrap();
        let after_a_look = File::options().append(true).open(ws.path("free")).is_ok();
        assert_eq!(alone, after_a_look);
    }
}

#[test]
fn a_file_in_its_own_hidden_place_cannot_be_reached_from_a_directory_moved_there() {
    require_fuse!();
    let ws = Workspace::new().file("secrets/k", "k").file("d/f", "f").preset("development").mount();
    assert_eq!(errno(fs::rename(ws.path("d"), ws.path("secrets"))), EACCES);
    // An exchange needs something at both names, and here there is nothing.
    assert_eq!(errno(rename_with(&ws, "d", "secrets", RenameFlags::EXCHANGE)), ENOENT);
    assert_eq!(errno(rename_with(&ws, "d", ".env", RenameFlags::EXCHANGE)), ENOENT);
    assert_eq!(errno(fs::rename(ws.path("d"), ws.path("secrets/k"))), ENOENT);
}
