//! The table "operation × level" of the specification: each row is run on a thing of each level, and
//! the answers are compared error number by error number.

use std::cell::Cell;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use libc::{EACCES, EEXIST, ENODATA, ENOENT, ENOTEMPTY, EOPNOTSUPP, EPERM};
use rustix::fs::{
    Access, AtFlags, CWD, FileType, Gid, Mode, RenameFlags, Timespec, Timestamps, Uid, XattrFlags,
};

use crate::support::{Mounted, Workspace, errno, names_in, require_fuse, require_root};

const LEVELS: [&str; 4] = ["none", "view", "read", "write"];
const OK: i32 = 0;

/// A writable directory `/in` with plenty of things at each level, so that the answer to an
/// operation depends on the level of its own name and on nothing else.
struct Grid {
    ws: Mounted,
    used: Cell<usize>,
}

/// How many operations one grid has things for.
const COPIES: usize = 12;

impl Grid {
    fn each(test: impl Fn(&Self)) {
        for ws in Workspace::both_ways() {
            let ws = ws.with_base(fill).rule("write:**/*");
            let ws = LEVELS.iter().fold(ws, |ws, l| ws.rule(&format!("{l}:/in/{l}*/**@10")));
            test(&Self { ws: ws.mount(), used: Cell::new(0) });
        }
    }

    /// Runs one operation on a thing of each level; 0 stands for success.
    fn row<T: Debug>(
        &self,
        thing: &str,
        operation: &str,
        expected: [i32; 4],
        run: impl Fn(&Path) -> io::Result<T>,
    ) {
        let copy = self.used.replace(self.used.get() + 1);
        assert!(copy < COPIES, "the grid is used up");
        let answers = LEVELS.map(|level| {
            let result = run(&self.ws.path(format!("in/{level}.{copy}.{thing}")));
            result.map_or_else(|e| e.raw_os_error().unwrap(), |_| OK)
        });
        assert_eq!(answers, expected, "{operation} of a {thing} at {LEVELS:?}");
    }

    fn fresh(&self) -> PathBuf {
        self.ws.path(format!("in/write.fresh.{}", self.used.get()))
    }
}

fn fill(base: &Path) {
    fs::create_dir(base.join("in")).unwrap();
    for level in LEVELS {
        for copy in 0..COPIES {
            let at = |thing: &str| base.join(format!("in/{level}.{copy}.{thing}"));
            fs::write(at("file"), "content").unwrap();
            rustix::fs::setxattr(at("file"), "user.mark", b"1", XattrFlags::empty()).unwrap();
            fs::write(at("script"), "#!/bin/sh\nexit 0\n").unwrap();
            fs::set_permissions(at("script"), fs::Permissions::from_mode(0o755)).unwrap();
            fs::create_dir(at("empty")).unwrap();
            fs::create_dir(at("dir")).unwrap();
            fs::write(at("dir").join("child"), "x").unwrap();
            symlink("nowhere/at/all", at("link")).unwrap();
        }
    }
}

fn access(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(path, Access::EXISTS)?)
}

fn open_write(path: &Path) -> io::Result<File> {
    File::options().write(true).open(path)
}

/// `truncate(2)` by path; `File::set_len` would open it first.
fn truncate(path: &Path) -> io::Result<()> {
    let mut perl = Command::new("perl");
    let perl = perl.args(["-e", "truncate($ARGV[0], 3) or exit($!+0)"]).arg(path);
    match perl.status()?.code() {
        Some(0) => Ok(()),
        code => Err(io::Error::from_raw_os_error(code.unwrap())),
    }
}

fn set_times(path: &Path) -> io::Result<()> {
    let at = Timespec { tv_sec: 1_000_000, tv_nsec: 0 };
    let times = Timestamps { last_access: at, last_modification: at };
    Ok(rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn chmod(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
}

fn set_attribute(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::lsetxattr(path, "user.new", b"v", XattrFlags::empty())?)
}

fn get_attribute(path: &Path) -> io::Result<usize> {
    Ok(rustix::fs::lgetxattr(path, "user.mark", &mut [0u8; 16][..])?)
}

fn remove_attribute(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::lremovexattr(path, "user.mark")?)
}

fn create_new(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).open(path)
}

fn mknod(path: &Path, kind: FileType) -> io::Result<()> {
    Ok(rustix::fs::mknodat(CWD, path, kind, Mode::RWXU, 0)?)
}

fn mkfifo(path: &Path) -> io::Result<()> {
    mknod(path, FileType::Fifo)
}

fn mksocket(path: &Path) -> io::Result<()> {
    mknod(path, FileType::Socket)
}

fn chown(path: &Path, uid: u32, gid: u32) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    Ok(rustix::fs::chownat(CWD, path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?)
}

// ---- the rows of the table ----

#[test]
fn lookup_stat_access_and_listing_show_everything_but_hidden_names() {
    require_fuse!();
    Grid::each(|grid| {
        let shown = [ENOENT, OK, OK, OK];
        grid.row("file", "stat", shown, |p| fs::symlink_metadata(p));
        grid.row("dir", "stat", shown, |p| fs::symlink_metadata(p));
        grid.row("link", "stat", shown, |p| fs::symlink_metadata(p));
        grid.row("file", "access", shown, access);
        grid.row("dir", "O_PATH open", shown, |p| {
            File::options().read(true).custom_flags(libc::O_PATH).open(p)
        });
        let listed = grid.ws.names("in");
        for level in LEVELS {
            let count = listed.iter().filter(|name| name.starts_with(level)).count();
            assert_eq!(count, if level == "none" { 0 } else { COPIES * 5 }, "{level}");
        }
    });
}

#[test]
fn a_visible_file_shows_its_type_size_and_times() {
    require_fuse!();
    Grid::each(|grid| {
        for level in ["view", "read", "write"] {
            let name = format!("in/{level}.0.file");
            let seen = fs::metadata(grid.ws.path(&name)).unwrap();
            let real = fs::metadata(grid.ws.base().join(&name)).unwrap();
            assert!(seen.is_file());
            assert_eq!((seen.len(), seen.mtime()), (real.len(), real.mtime()));
            assert_eq!(seen.mtime_nsec(), real.mtime_nsec());
        }
    });
}

#[test]
fn directories_are_listed_from_view_on() {
    require_fuse!();
    Grid::each(|grid| {
        grid.row("dir", "list", [ENOENT, OK, OK, OK], |p| {
            assert_eq!(fs::read_dir(p)?.count(), 1);
            Ok(())
        });
    });
}

#[test]
fn content_is_opened_executed_and_mapped_from_read_on() {
    require_fuse!();
    Grid::each(|grid| {
        let readable = [ENOENT, EACCES, OK, OK];
        grid.row("file", "read", readable, |p| {
            assert_eq!(fs::read(p)?, b"content");
            Ok(())
        });
        grid.row("script", "exec", readable, |p| {
            assert!(Command::new(p).status()?.success());
            Ok(())
        });
        grid.row("file", "O_NOATIME open", readable, |p| {
            File::options().read(true).custom_flags(libc::O_NOATIME).open(p)
        });
        let program = "
import mmap, os
for level in ('read', 'write'):
    fd = os.open(f'in/{level}.0.file', os.O_RDONLY)
    assert mmap.mmap(fd, 7, mmap.MAP_SHARED, mmap.PROT_READ)[:] == b'content'
    assert mmap.mmap(fd, 7, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)[:] == b'content'
    try:
        mmap.mmap(fd, 7, mmap.MAP_SHARED, mmap.PROT_WRITE)
        assert False, level
    except PermissionError:
        pass
";
        grid.ws.python(program);
    });
}

#[test]
fn content_and_attributes_change_at_write_only() {
    require_fuse!();
    Grid::each(|grid| {
        let writable = [ENOENT, EACCES, EACCES, OK];
        grid.row("file", "open for writing", writable, open_write);
        grid.row("file", "open for both", writable, |p| {
            File::options().read(true).write(true).open(p)
        });
        grid.row("file", "open to append", writable, |p| File::options().append(true).open(p));
        grid.row("file", "O_TRUNC", writable, |p| {
            File::options().write(true).truncate(true).open(p)
        });
        grid.row("file", "O_RDONLY|O_TRUNC", writable, |p| {
            File::options().read(true).custom_flags(libc::O_TRUNC).open(p)
        });
        grid.row("file", "truncate", writable, truncate);
        grid.row("file", "chmod", writable, chmod);
        grid.row("dir", "chmod", writable, chmod);
        grid.row("file", "utimes", writable, set_times);
        grid.row("dir", "utimes", writable, set_times);
        grid.row("link", "utimes", writable, set_times);
    });
    Grid::each(|grid| {
        let writable = [ENOENT, EACCES, EACCES, OK];
        grid.row("file", "setxattr", writable, set_attribute);
        grid.row("dir", "setxattr", writable, set_attribute);
        grid.row("file", "removexattr", writable, remove_attribute);
        grid.row("file", "O_CREAT on an existing file", [EACCES, EACCES, EACCES, OK], |p| {
            File::options().write(true).create(true).truncate(false).open(p)
        });
    });
}

#[test]
fn a_refused_change_changes_nothing() {
    require_fuse!();
    Grid::each(|grid| {
        for level in ["view", "read"] {
            let path = grid.ws.path(format!("in/{level}.0.file"));
            let before = fs::metadata(&path).unwrap();
            let tries: [fn(&Path) -> io::Result<()>; 5] =
                [truncate, chmod, set_times, set_attribute, |p| fs::write(p, "changed")];
            tries.iter().for_each(|attempt| drop(attempt(&path).unwrap_err()));
            let after = fs::metadata(&path).unwrap();
            let facts = |m: &fs::Metadata| (m.len(), m.mode(), m.mtime(), m.ino(), m.ctime_nsec());
            assert_eq!(facts(&before), facts(&after));
        }
        let mut find = Command::new("find");
        let found = find.arg(grid.ws.layer.join("tree")).args(["-type", "f"]).output().unwrap();
        assert!(found.stdout.is_empty(), "a refused change was copied up: {found:?}");
    });
}

#[test]
fn links_are_read_from_view_on_and_attributes_from_read_on() {
    require_fuse!();
    Grid::each(|grid| {
        grid.row("link", "readlink", [ENOENT, OK, OK, OK], |p| {
            assert_eq!(fs::read_link(p)?, Path::new("nowhere/at/all"));
            Ok(())
        });
        grid.row("file", "getxattr", [ENOENT, EACCES, OK, OK], get_attribute);
        grid.row("file", "listxattr", [ENOENT, OK, OK, OK], |p| {
            let mut names = [0u8; 64];
            let len = rustix::fs::listxattr(p, &mut names[..])?;
            let viewed = p.to_string_lossy().contains("/view.");
            assert_eq!(&names[..len], if viewed { &b""[..] } else { b"user.mark\0" });
            Ok(())
        });
    });
}

#[test]
fn no_new_name_is_made_below_write() {
    require_fuse!();
    Grid::each(|grid| {
        let made = [EACCES, EACCES, EACCES, OK];
        grid.row("new", "create", made, create_new);
        grid.row("new", "O_CREAT", made, |p| File::create(p));
        grid.row("new", "mkdir", made, |p| fs::create_dir(p));
        grid.row("new", "mkfifo", made, mkfifo);
        grid.row("new", "mknod of a socket", made, mksocket);
        grid.row("new", "mknod of a file", made, |p| mknod(p, FileType::RegularFile));
        grid.row("new", "symlink", made, |p| symlink("target", p));
        let source = grid.fresh();
        fs::write(&source, "source").unwrap();
        grid.row("new", "link to it", made, |p| fs::hard_link(&source, p));
        grid.row("new", "rename to it", made, |p| fs::rename(&source, p));
        let source = grid.fresh();
        fs::create_dir(&source).unwrap();
        grid.row("new", "rename a directory to it", made, |p| fs::rename(&source, p));
    });
}

/// For a visible name the kernel itself knows that it exists and answers before it asks; for a
/// hidden one the answer is that of a name that is free.
#[test]
fn making_a_name_that_exists_answers_the_same_for_hidden_ones_as_if_it_did_not() {
    require_fuse!();
    Grid::each(|grid| {
        let there = [EACCES, EEXIST, EEXIST, EEXIST];
        grid.row("file", "create", there, create_new);
        grid.row("file", "mkdir", there, |p| fs::create_dir(p));
        grid.row("dir", "mkdir", there, |p| fs::create_dir(p));
        grid.row("file", "mkfifo", there, mkfifo);
        grid.row("file", "mknod of a socket", there, mksocket);
        grid.row("file", "symlink", there, |p| symlink("target", p));
        let source = grid.fresh();
        fs::write(&source, "source").unwrap();
        grid.row("file", "link to it", there, |p| fs::hard_link(&source, p));
        grid.row("file", "rename to it, keeping what is there", there, |p| {
            let flags = RenameFlags::NOREPLACE;
            Ok(rustix::fs::renameat_with(CWD, &source, CWD, p, flags)?)
        });
        grid.row("file", "rename to it", [EACCES, EACCES, EACCES, OK], |p| fs::rename(&source, p));
        let source = grid.fresh();
        fs::create_dir(&source).unwrap();
        let over_dir = [EACCES, EACCES, EACCES, ENOTEMPTY];
        grid.row("dir", "rename a directory to it", over_dir, |p| fs::rename(&source, p));
    });
}

#[test]
fn names_are_removed_and_moved_away_at_write_only() {
    require_fuse!();
    Grid::each(|grid| {
        let removed = [ENOENT, EACCES, EACCES, OK];
        let target = grid.ws.path("in/write.target");
        grid.row("file", "unlink", removed, |p| fs::remove_file(p));
        grid.row("link", "unlink", removed, |p| fs::remove_file(p));
        grid.row("empty", "rmdir", removed, |p| fs::remove_dir(p));
        grid.row("file", "rename from it", removed, |p| fs::rename(p, &target));
        grid.row("link", "rename from it", removed, |p| fs::rename(p, &target));
        let target = grid.ws.path("in/write.target.dir");
        grid.row("dir", "rename from it", removed, |p| fs::rename(p, &target));
        let target = grid.ws.path("in/write.target.link");
        grid.row("file", "link from it", removed, |p| fs::hard_link(p, &target));
    });
}

#[test]
fn the_owner_can_only_be_set_to_what_it_is() {
    require_fuse!();
    Grid::each(|grid| {
        let own = [ENOENT, EPERM, EPERM, OK];
        let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
        grid.row("file", "chown", own, |p| chown(p, uid.as_raw(), gid.as_raw()));
        grid.row("dir", "chown", own, |p| chown(p, uid.as_raw(), gid.as_raw()));
        let foreign = [ENOENT, EPERM, EPERM, EPERM];
        grid.row("file", "chown to others", foreign, |p| chown(p, 4242, gid.as_raw()));
        grid.row("file", "chgrp to others", foreign, |p| chown(p, uid.as_raw(), 4242));
    });
}

#[test]
fn with_an_owner_named_files_are_his_and_can_be_given_to_nobody_else() {
    require_fuse!();
    require_root!();
    let ws = Workspace::new().file("f", "x").preset("full-access").arg("--owner").arg("4242:4243");
    let ws = ws.mount();
    let meta = fs::metadata(ws.path("f")).unwrap();
    assert_eq!((meta.uid(), meta.gid()), (4242, 4243));
    chown(&ws.path("f"), 4242, 4243).unwrap();
    assert_eq!(errno(chown(&ws.path("f"), 0, 0)), EPERM);
}

// ---- the bullets below the table ----

fn tree_with_hidden_and_fixed_content(ws: Workspace) -> Mounted {
    ws.file("plain/a/f", "f")
        .file("hides/a/.secret", "s")
        .file("fixed/a/f", "f")
        .file("fixed/a/README", "r")
        .dir("only/.secret")
        .dir("void")
        .rule("write:**/*")
        .rule("none:**/.secret*@10")
        .rule("read:**/README@10")
        .mount()
}

#[test]
fn rmdir_needs_a_really_empty_directory() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = tree_with_hidden_and_fixed_content(ws);
        assert_eq!(ws.names("hides/a"), Vec::<String>::new());
        assert_eq!(errno(fs::remove_dir(ws.path("hides/a"))), ENOTEMPTY);
        assert_eq!(errno(fs::remove_dir(ws.path("only"))), ENOTEMPTY);
        assert_eq!(errno(fs::remove_dir(ws.path("fixed/a"))), ENOTEMPTY);
        fs::remove_dir(ws.path("void")).unwrap();
        ws.fails("rm -rf hides fixed only");
        assert!(ws.path("hides/a").is_dir() && ws.path("only").is_dir());
        assert_eq!(fs::read(ws.path("fixed/a/README")).unwrap(), b"r");
        assert_eq!(fs::read(ws.base().join("hides/a/.secret")).unwrap(), b"s");
    }
}

#[test]
fn a_directory_is_not_replaced_while_something_hidden_is_in_it() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = tree_with_hidden_and_fixed_content(ws);
        assert_eq!(errno(fs::rename(ws.path("void"), ws.path("hides/a"))), ENOTEMPTY);
        assert!(ws.path("void").is_dir() && ws.path("hides/a").is_dir());
    }
}

#[test]
fn a_directory_moves_only_if_everything_in_it_may_be_written() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = tree_with_hidden_and_fixed_content(ws);
        for kept in ["hides", "hides/a", "fixed", "fixed/a", "only"] {
            let error = errno(fs::rename(ws.path(kept), ws.path("moved")));
            assert_eq!(error, EACCES, "{kept}");
            assert!(ws.path(kept).is_dir() && !ws.path("moved").exists(), "{kept}");
        }
        fs::rename(ws.path("plain"), ws.path("moved")).unwrap();
        assert_eq!(fs::read(ws.path("moved/a/f")).unwrap(), b"f");
        assert!(!ws.path("plain").exists());
    }
}

#[test]
fn moving_a_directory_copies_no_content() {
    require_fuse!();
    let big = vec![7u8; 8 << 20];
    let ws = Workspace::new().file("d/big", &big).preset("full-access").mount();
    fs::rename(ws.path("d"), ws.path("e")).unwrap();
    assert_eq!(fs::read(ws.path("e/big")).unwrap(), big);
    let find = "find \"$0\" -type f -size +100k";
    let found = Command::new("sh").args(["-c", find]).arg(&ws.layer).output().unwrap();
    assert!(found.stdout.is_empty(), "{found:?}");
}

#[test]
fn hard_links_share_one_inode_and_contents() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = ws.file("f", "from the base").preset("full-access").mount();
        fs::write(ws.path("new"), "made inside").unwrap();
        for name in ["f", "new"] {
            let (one, two) = (ws.path(name), ws.path(format!("{name}.link")));
            fs::hard_link(&one, &two).unwrap();
            fs::write(&two, "written through the second name").unwrap();
            assert_eq!(fs::read(&one).unwrap(), b"written through the second name");
            let (a, b) = (fs::metadata(&one).unwrap(), fs::metadata(&two).unwrap());
            assert_eq!((a.ino(), a.nlink(), b.nlink()), (b.ino(), 2, 2));
            fs::remove_file(&one).unwrap();
            assert_eq!(fs::read(&two).unwrap(), b"written through the second name");
            assert_eq!(fs::metadata(&two).unwrap().nlink(), 1);
        }
    }
}

#[test]
fn devices_cannot_be_made() {
    require_fuse!();
    require_root!();
    let ws = Workspace::new().preset("full-access").mount();
    for kind in [FileType::CharacterDevice, FileType::BlockDevice] {
        let device = rustix::fs::makedev(1, 3);
        let made = rustix::fs::mknodat(CWD, ws.path("device"), kind, Mode::RWXU, device);
        assert_eq!(made.unwrap_err().raw_os_error(), EPERM);
    }
    assert!(!ws.path("device").exists());
}

#[test]
fn a_device_in_the_base_cannot_be_opened_or_copied() {
    require_fuse!();
    require_root!();
    for ws in Workspace::both_ways() {
        let ws = ws.with_base(|base| {
            let (mode, null) = (Mode::from(0o666), rustix::fs::makedev(1, 3));
            let kind = FileType::CharacterDevice;
            rustix::fs::mknodat(CWD, base.join("null"), kind, mode, null).unwrap();
        });
        let ws = ws.preset("full-access").mount();
        fs::read(ws.path("null")).unwrap_err();
        fs::write(ws.path("null"), "x").unwrap_err();
        chmod(&ws.path("null")).unwrap_err();
        fs::rename(ws.path("null"), ws.path("other")).unwrap_err();
    }
}

#[test]
fn set_user_id_and_set_group_id_never_exist() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = ws.file("base", "#!/bin/sh\n").with_base(|base| {
            fs::set_permissions(base.join("base"), fs::Permissions::from_mode(0o6755)).unwrap();
        });
        let ws = ws.preset("full-access").mount();
        let bits = |name: &str| fs::metadata(ws.path(name)).unwrap().mode() & 0o7777;
        assert_eq!(bits("base"), 0o755);
        fs::write(ws.path("f"), "x").unwrap();
        let _ = fs::set_permissions(ws.path("f"), fs::Permissions::from_mode(0o6755));
        assert_eq!(bits("f") & 0o6000, 0);
        let made = File::options().write(true).create_new(true).mode(0o6755).open(ws.path("g"));
        drop(made);
        assert_eq!(bits("g") & 0o6000, 0);
        let _ = rustix::fs::mkdir(ws.path("d"), Mode::from(0o6755));
        assert_eq!(bits("d") & 0o6000, 0);
        fs::write(ws.path("base"), "changed").unwrap();
        assert_eq!(bits("base") & 0o6000, 0);
        let kept = fs::metadata(ws.layer.join("tree/base")).unwrap().mode();
        assert_eq!(kept & 0o6000, 0, "the layer must not hold it either");
    }
}

#[test]
fn only_user_attributes_exist() {
    require_fuse!();
    require_root!();
    for ws in Workspace::both_ways() {
        let ws = ws.file("f", "x").with_base(|base| {
            let (path, flags) = (base.join("f"), XattrFlags::empty());
            rustix::fs::setxattr(&path, "trusted.t", b"1", flags).unwrap();
            rustix::fs::setxattr(&path, "user.u", b"1", flags).unwrap();
        });
        let ws = ws.preset("full-access").mount();
        for name in ["security.mine", "security.capability", "trusted.t", "trusted.overlay.opaque"]
        {
            // A well-formed set of file capabilities: the kernel looks at the value first.
            let value = b"\0\0\0\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
            let set = rustix::fs::setxattr(ws.path("f"), name, value, XattrFlags::empty());
            let error = set.unwrap_err().raw_os_error();
            assert!([EPERM, EOPNOTSUPP].contains(&error), "{name}: {error}");
            let get = rustix::fs::getxattr(ws.path("f"), name, &mut [0u8; 8][..]);
            let error = get.unwrap_err().raw_os_error();
            assert!([ENODATA, EOPNOTSUPP].contains(&error), "{name}: {error}");
            rustix::fs::removexattr(ws.path("f"), name).unwrap_err();
        }
        let mut names = [0u8; 256];
        let len = rustix::fs::listxattr(ws.path("f"), &mut names[..]).unwrap();
        assert_eq!(&names[..len], b"user.u\0");
    }
}

#[test]
fn link_counts_and_sizes_of_directories_say_nothing_about_hidden_entries() {
    require_fuse!();
    let facts = |hidden: usize| {
        let ws = Workspace::new().dir("d/seen").with_base(|base| {
            for n in 0..hidden {
                fs::create_dir(base.join(format!("d/.secret-directory-with-a-long-name-{n}")))
                    .unwrap();
            }
        });
        let ws = ws.rule("write:**/*").rule("none:**/.secret*/**@10").mount();
        let meta = fs::metadata(ws.path("d")).unwrap();
        (meta.nlink(), meta.len(), meta.blocks(), ws.names("d"))
    };
    assert_eq!(facts(0), facts(400));
}

#[test]
fn statfs_is_the_space_of_the_live_layer() {
    require_fuse!();
    let ws = Workspace::new().file("f", "x").mount();
    let seen = rustix::fs::statvfs(ws.path("f")).unwrap();
    let real = rustix::fs::statvfs(&ws.layer).unwrap();
    assert_eq!((seen.f_blocks, seen.f_files), (real.f_blocks, real.f_files));
    assert!(seen.f_bavail > 0 && seen.f_namemax == 255);
    let free = |s: &rustix::fs::StatVfs| s.f_bfree * s.f_frsize;
    assert!(free(&seen).abs_diff(free(&real)) < 4 << 30);
}

// ---- hidden directories on the way to visible things ----

#[test]
fn a_hidden_directory_with_a_visible_descendant_shows_only_the_way_to_it() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = ws
            .file("top/mid/seen", "s")
            .file("top/mid/other", "o")
            .file("top/other", "o")
            .file("top/closed/f", "f")
            .file("away/f", "f")
            .rule("read:/top/mid/seen")
            .mount();
        assert_eq!(ws.names(""), ["top"]);
        assert_eq!(ws.names("top"), ["mid"]);
        assert_eq!(ws.names("top/mid"), ["seen"]);
        assert_eq!(fs::read(ws.path("top/mid/seen")).unwrap(), b"s");
        for hidden in ["away", "away/f", "top/other", "top/closed", "top/closed/f", "top/mid/other"]
        {
            assert_eq!(errno(fs::symlink_metadata(ws.path(hidden))), ENOENT, "{hidden}");
            assert_eq!(errno(fs::create_dir(ws.path(hidden)).map_err(not_below_absent)), EACCES);
        }
        assert_eq!(errno(create_new(&ws.path("top/new"))), EACCES);
        assert_eq!(errno(chmod(&ws.path("top"))), EACCES);
        assert_eq!(errno(fs::rename(ws.path("top"), ws.path("new"))), EACCES);
        assert_eq!(errno(fs::remove_dir(ws.path("top/mid"))), EACCES);
    }
}

/// Below a directory that does not exist nothing can be made: that answer comes first.
fn not_below_absent(e: io::Error) -> io::Error {
    match e.raw_os_error() {
        Some(ENOENT) => io::Error::from_raw_os_error(EACCES),
        _ => e,
    }
}

#[test]
fn a_way_to_something_visible_closes_and_opens_with_it() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = ws.file("top/mid/x.out", "1").dir("empty/mid").rule("write:**/*.out").mount();
        assert_eq!(ws.names(""), ["top"]);
        fs::write(ws.path("top/mid/y.out"), "2").unwrap();
        fs::remove_file(ws.path("top/mid/x.out")).unwrap();
        assert_eq!(ws.names("top/mid"), ["y.out"]);
        fs::remove_file(ws.path("top/mid/y.out")).unwrap();
        assert_eq!(ws.names(""), Vec::<String>::new());
        assert_eq!(errno(fs::symlink_metadata(ws.path("top"))), ENOENT);
    }
}

#[test]
fn the_root_is_always_there() {
    require_fuse!();
    for rule in ["none:**/*", "none:/"] {
        let ws = Workspace::new().file("f", "x").rule(rule).mount();
        assert!(fs::metadata(ws.root()).unwrap().is_dir(), "{rule}");
        assert_eq!(ws.names(""), Vec::<String>::new(), "{rule}");
        assert_eq!(errno(fs::write(ws.path("g"), "x")), EACCES, "{rule}");
    }
}

// ---- the conformance list of the system we learn from ----

fn their_tree(ws: Workspace) -> Workspace {
    ws.file("docs/readme.md", "# README\n")
        .file("docs/secret.txt", "secret")
        .file("src/main.py", "print(1)\n")
        .file("src/utils.py", "pass\n")
        .file("config.yaml", "a: 1\n")
}

fn docs_written_src_read(ws: Workspace) -> Mounted {
    their_tree(ws)
        .rule("write:/docs/**")
        .rule("read:/src/**")
        .rule("view:/config.yaml")
        .rule("none:/docs/secret.txt@100")
        .mount()
}

#[test]
fn listings_hold_what_rules_show() {
    require_fuse!();
    let ws = docs_written_src_read(Workspace::new());
    assert_eq!(ws.names(""), ["config.yaml", "docs", "src"]);
    assert_eq!(ws.names("docs"), ["readme.md"]);
    assert_eq!(ws.names("src"), ["main.py", "utils.py"]);
}

#[test]
fn a_file_rule_alone_makes_the_file_reachable() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = their_tree(ws).rule("read:/docs/readme.md").rule("view:/config.yaml").mount();
        assert_eq!(fs::read(ws.path("docs/readme.md")).unwrap(), b"# README\n");
        assert_eq!(errno(open_write(&ws.path("docs/readme.md"))), EACCES);
        assert_eq!(errno(fs::read(ws.path("config.yaml"))), EACCES);
        assert!(fs::metadata(ws.path("config.yaml")).unwrap().is_file());
        assert_eq!(ws.names(""), ["config.yaml", "docs"]);
    }
}

#[test]
fn writing_creating_removing_and_renaming_follow_the_directory_rule() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = docs_written_src_read(ws);
        fs::write(ws.path("docs/readme.md"), "new").unwrap();
        assert_eq!(fs::read(ws.path("docs/readme.md")).unwrap(), b"new");
        assert_eq!(errno(fs::write(ws.path("src/main.py"), "new")), EACCES);
        fs::write(ws.path("docs/newfile.txt"), "n").unwrap();
        assert_eq!(errno(fs::write(ws.path("src/newfile.py"), "n")), EACCES);
        fs::create_dir(ws.path("docs/subdir")).unwrap();
        assert_eq!(errno(fs::create_dir(ws.path("src/subdir"))), EACCES);
        fs::rename(ws.path("docs/readme.md"), ws.path("docs/README.md")).unwrap();
        assert!(ws.path("docs/README.md").is_file());
        assert_eq!(errno(fs::rename(ws.path("src/main.py"), ws.path("src/x.py"))), EACCES);
        fs::remove_file(ws.path("docs/README.md")).unwrap();
        assert_eq!(errno(fs::metadata(ws.path("docs/README.md"))), ENOENT);
        assert_eq!(errno(fs::remove_file(ws.path("src/main.py"))), EACCES);
        assert_eq!(errno(fs::metadata(ws.path("docs/secret.txt"))), ENOENT);
        assert_eq!(fs::read(ws.base().join("docs/readme.md")).unwrap(), b"# README\n");
    }
}

#[test]
fn truncating_cuts_the_file() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = docs_written_src_read(ws);
        open_write(&ws.path("docs/readme.md")).unwrap().set_len(5).unwrap();
        assert_eq!(fs::metadata(ws.path("docs/readme.md")).unwrap().len(), 5);
        truncate(&ws.path("docs/readme.md")).unwrap();
        assert_eq!(fs::read(ws.path("docs/readme.md")).unwrap(), b"# R");
        assert_eq!(errno(truncate(&ws.path("src/main.py"))), EACCES);
    }
}

/// Theirs followed it on the host. Here it is data, and whoever reads through it arrives wherever
/// the target is in the reader's own namespace.
#[test]
fn a_link_of_the_base_with_an_absolute_target_is_stored_and_read_as_it_is() {
    require_fuse!();
    let target = Path::new("/nonexistent-in-any-sandbox/readme.md");
    let ws = their_tree(Workspace::new())
        .with_base(|base| symlink(target, base.join("docs/link.md")).unwrap())
        .rule("read:/docs/**")
        .mount();
    let link = ws.path("docs/link.md");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_link(&link).unwrap(), target);
    assert_eq!(errno(fs::read(&link)), ENOENT);
}

#[test]
fn a_link_to_a_hidden_file_leads_nowhere() {
    require_fuse!();
    let ws = their_tree(Workspace::new())
        .with_base(|base| symlink("secret.txt", base.join("docs/link")).unwrap())
        .rule("write:/docs/**")
        .rule("none:/docs/secret.txt@100")
        .mount();
    symlink("secret.txt", ws.path("docs/mine")).unwrap();
    for link in ["docs/link", "docs/mine"] {
        assert_eq!(errno(fs::read(ws.path(link))), ENOENT);
        assert_eq!(errno(fs::write(ws.path(link), "x")), EACCES);
    }
    assert_eq!(fs::read(ws.base().join("docs/secret.txt")).unwrap(), b"secret");
}

#[test]
fn chmod_works_on_files_and_directories_that_may_be_written() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = docs_written_src_read(ws);
        for (name, mode) in [("docs/readme.md", 0o640), ("docs", 0o750)] {
            fs::set_permissions(ws.path(name), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(fs::metadata(ws.path(name)).unwrap().mode() & 0o7777, mode);
        }
        assert_eq!(errno(chmod(&ws.path("src"))), EACCES);
    }
}

#[test]
fn a_megabyte_of_binary_is_read_unchanged() {
    require_fuse!();
    let content: Vec<u8> =
        (0..1u32 << 18).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    for ws in Workspace::both_ways() {
        let ws = ws.file("blob", &content).rule("read:/blob").mount();
        assert_eq!(fs::metadata(ws.path("blob")).unwrap().len(), 1 << 20);
        assert_eq!(fs::read(ws.path("blob")).unwrap(), content);
    }
}

#[test]
fn five_readers_and_five_writers_share_a_file_without_errors() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = docs_written_src_read(ws);
        let path = &ws.path("docs/readme.md");
        std::thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(move || (0..50).for_each(|_| drop(fs::read(path).unwrap())));
                scope.spawn(move || (0..50).for_each(|_| fs::write(path, "# README\n").unwrap()));
            }
        });
        assert_eq!(fs::read(path).unwrap(), b"# README\n");
    }
}

#[test]
fn seeking_reads_from_there() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = docs_written_src_read(ws);
        let mut file = File::open(ws.path("docs/readme.md")).unwrap();
        file.seek(SeekFrom::Start(2)).unwrap();
        let mut word = [0u8; 6];
        file.read_exact(&mut word).unwrap();
        assert_eq!(&word, b"README");
    }
}

#[test]
fn every_kind_of_entry_is_listed_with_its_type() {
    require_fuse!();
    let ws = Workspace::new().preset("full-access").mount();
    fs::write(ws.path("file"), "").unwrap();
    fs::create_dir(ws.path("dir")).unwrap();
    symlink("x", ws.path("link")).unwrap();
    mkfifo(&ws.path("fifo")).unwrap();
    mksocket(&ws.path("socket")).unwrap();
    assert_eq!(names_in(&ws.root()), ["dir", "fifo", "file", "link", "socket"]);
    for entry in fs::read_dir(ws.root()).unwrap() {
        let (kind, name) =
            (entry.as_ref().unwrap().file_type().unwrap(), entry.unwrap().file_name());
        let right = match name.to_str().unwrap() {
            "file" => kind.is_file(),
            "dir" => kind.is_dir(),
            "link" => kind.is_symlink(),
            "fifo" => kind.is_fifo(),
            _ => kind.is_socket(),
        };
        assert!(right, "{name:?}: {kind:?}");
    }
}

#[test]
fn what_may_not_be_written_is_refused_before_a_byte_is_written() {
    require_fuse!();
    for ws in Workspace::both_ways() {
        let ws = docs_written_src_read(ws);
        let mut reader = File::open(ws.path("src/main.py")).unwrap();
        assert_eq!(errno(reader.write(b"x")), libc::EBADF);
        assert_eq!(errno(reader.set_len(0)), libc::EINVAL);
    }
}
