//! The workspace feels like a disk filesystem to the programs in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{
    DirEntryExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink,
};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use libc::{EEXIST, EINVAL, ENOENT, EOPNOTSUPP, ETXTBSY};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FlockOperation, Mode, OFlags, RenameFlags, Timespec, Timestamps,
    XattrFlags,
};

use crate::support::{Mounted, Workspace, errno, is_root, names_in, require_fuse, require_root};

fn each(prepare: impl Fn(Workspace) -> Workspace, test: impl Fn(Mounted)) {
    for ws in Workspace::both_ways() {
        test(prepare(ws).preset("full-access").mount());
    }
}

fn both(path: &Path) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

/// Every inode and name that is not in use is forgotten by the kernel.
fn drop_caches() {
    fs::write("/proc/sys/vm/drop_caches", "2").unwrap();
}

// ---- durability, locks, sharing ----

#[test]
fn fsync_and_fdatasync_succeed_on_files_and_directories() {
    require_fuse!();
    each(
        |ws| ws.file("base", "x").dir("d"),
        |ws| {
            for name in ["base", "new"] {
                let mut file =
                    File::options().append(true).create(true).open(ws.path(name)).unwrap();
                file.write_all(b"more").unwrap();
                file.sync_all().unwrap();
                file.sync_data().unwrap();
            }
            File::open(ws.path("base")).unwrap().sync_all().unwrap();
            for dir in ["", "d"] {
                File::open(ws.path(dir)).unwrap().sync_all().unwrap();
            }
            ws.ok("dd if=/dev/zero of=f bs=64k count=4 conv=fsync 2>&1 && sync -f f && sync d");
        },
    );
}

#[test]
fn flock_excludes_other_processes_also_across_a_copy_up() {
    require_fuse!();
    each(
        |ws| ws.file("base", "x"),
        |ws| {
            fs::write(ws.path("live"), "x").unwrap();
            for name in ["base", "live"] {
                let held = File::open(ws.path(name)).unwrap();
                rustix::fs::flock(&held, FlockOperation::LockExclusive).unwrap();
                ws.fails(&format!("flock -n {name} true"));
                fs::write(ws.path(name), "written meanwhile").unwrap();
                ws.fails(&format!("flock -n {name} true"));
                rustix::fs::flock(&held, FlockOperation::Unlock).unwrap();
                ws.ok(&format!("flock -n {name} true"));
            }
        },
    );
}

#[test]
fn posix_locks_exclude_other_processes_range_by_range() {
    require_fuse!();
    each(
        |ws| ws.file("base", "0123456789"),
        |ws| {
            fs::write(ws.path("live"), "0123456789").unwrap();
            ws.python(
                "
import fcntl, os
for name in ('base', 'live'):
    held = os.open(name, os.O_RDWR)
    fcntl.lockf(held, fcntl.LOCK_EX, 5, 0)
    child = os.fork()
    if child == 0:
        other = os.open(name, os.O_RDWR)
        fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 5)
        try:
            fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 5, 0)
        except BlockingIOError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0, name
    child = os.fork()
    if child == 0:
        other = os.open(name, os.O_RDWR)
        fcntl.lockf(other, fcntl.LOCK_EX, 5, 0)
        os._exit(0 if os.pread(other, 10, 0) == b'changed789' else 1)
    os.pwrite(held, b'changed', 0)
    fcntl.lockf(held, fcntl.LOCK_UN, 5, 0)
    assert os.waitpid(child, 0)[1] == 0, name
",
            );
        },
    );
}

#[test]
fn eight_processes_append_to_one_file_and_no_line_is_lost() {
    require_fuse!();
    each(
        |ws| ws.file("base", "first\n"),
        |ws| {
            let script = "
for file in base new; do
    for p in 1 2 3 4 5 6 7 8; do
        (i=0; while [ $i -lt 200 ]; do echo \"$p-$i\" >> $file; i=$((i+1)); done) &
    done
done
wait";
            ws.ok(script);
            for (name, lines) in [("base", 1601), ("new", 1600)] {
                let content = fs::read_to_string(ws.path(name)).unwrap();
                let distinct: BTreeSet<_> = content.lines().collect();
                assert_eq!((content.lines().count(), distinct.len()), (lines, lines), "{name}");
            }
        },
    );
}

#[test]
fn eight_descriptors_kept_open_append_without_loss() {
    require_fuse!();
    each(
        |ws| ws,
        |ws| {
            let path = &ws.path("log");
            std::thread::scope(|scope| {
                for writer in 0..8 {
                    scope.spawn(move || {
                        let mut log = File::options().append(true).create(true).open(path).unwrap();
                        (0..200).for_each(|n| {
                            log.write_all(format!("{writer}-{n}\n").as_bytes()).unwrap()
                        });
                    });
                }
            });
            let content = fs::read_to_string(path).unwrap();
            assert_eq!(content.lines().collect::<BTreeSet<_>>().len(), 1600);
        },
    );
}

#[test]
fn a_shared_mapping_is_coherent_between_processes_and_with_read_and_write() {
    require_fuse!();
    each(
        |ws| ws.file("base", [b'.'; 8192]),
        |ws| {
            fs::write(ws.path("live"), [b'.'; 8192]).unwrap();
            ws.python(
                "
import mmap, os
for name in ('base', 'live'):
    fd = os.open(name, os.O_RDWR)
    mine = mmap.mmap(fd, 8192, mmap.MAP_SHARED)
    to_child, from_child = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        other = os.open(name, os.O_RDWR)
        theirs = mmap.mmap(other, 8192, mmap.MAP_SHARED)
        os.read(to_child[0], 1)
        assert theirs[0:6] == b'parent', theirs[0:6]
        assert os.pread(other, 6, 0) == b'parent'
        theirs[5000:5005] = b'child'
        os.pwrite(other, b'written', 6000)
        os.write(from_child[1], b'x')
        os._exit(0)
    mine[0:6] = b'parent'
    os.write(to_child[1], b'x')
    os.read(from_child[0], 1)
    assert os.waitpid(child, 0)[1] == 0, name
    assert mine[5000:5005] == b'child', name
    assert mine[6000:6007] == b'written', name
    assert os.pread(fd, 5, 5000) == b'child', name
    mine.flush()
    mine.close()
    os.close(fd)
    with open(name, 'rb') as f:
        content = f.read()
    assert content[0:6] == b'parent' and content[5000:5005] == b'child', name
",
            );
            let ws = ws.remount(None);
            assert_eq!(&fs::read(ws.path("base")).unwrap()[..6], b"parent");
        },
    );
}

#[test]
fn a_mapping_of_a_base_file_shows_what_another_writes_later() {
    require_fuse!();
    each(
        |ws| ws.file("base", [b'.'; 4096]),
        |ws| {
            ws.python(
                "
import mmap, os
fd = os.open('base', os.O_RDONLY)
mapped = mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ)
assert mapped[0:4] == b'....'
if os.fork() == 0:
    other = os.open('base', os.O_RDWR)
    os.pwrite(other, b'new!', 0)
    os._exit(0)
os.wait()
assert os.pread(fd, 4, 0) == b'new!', os.pread(fd, 4, 0)
assert mapped[0:4] == b'new!', mapped[0:4]
",
            );
        },
    );
}

#[test]
fn sizes_and_times_are_right_for_everybody_right_after_a_write() {
    require_fuse!();
    each(
        |ws| ws.file("base", "12345"),
        |ws| {
            fs::write(ws.path("live"), "12345").unwrap();
            for name in ["base", "live"] {
                let path = ws.path(name);
                let old = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
                let mut writer = File::options().append(true).open(&path).unwrap();
                writer.set_modified(old).unwrap();
                assert_eq!(fs::metadata(&path).unwrap().mtime(), 1000);
                writer.write_all(b"678").unwrap();
                assert_eq!(ws.ok(&format!("stat -c %s {name}")), "8\n");
                assert_eq!(fs::metadata(&path).unwrap().len(), 8);
                assert!(fs::metadata(&path).unwrap().mtime() > 1000, "{name}");
                let mut reader = File::open(&path).unwrap();
                reader.seek(SeekFrom::End(-1)).unwrap();
                assert_eq!(io::read_to_string(reader).unwrap(), "8");
            }
        },
    );
}

// ---- names that go while files are open ----

#[test]
fn a_deleted_file_stays_usable_through_its_descriptor() {
    require_fuse!();
    each(
        |ws| ws.file("base", "content"),
        |ws| {
            fs::write(ws.path("live"), "content").unwrap();
            for name in ["base", "live"] {
                let mut file = both(&ws.path(name));
                fs::remove_file(ws.path(name)).unwrap();
                assert_eq!(errno(fs::metadata(ws.path(name))), ENOENT);
                assert_eq!(file.metadata().unwrap().nlink(), 0, "{name}");
                let mut content = String::new();
                file.read_to_string(&mut content).unwrap();
                assert_eq!(content, "content");
                file.write_all(b" and more").unwrap();
                assert_eq!(file.metadata().unwrap().len(), 16);
                let again = both(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())));
                assert_eq!(io::read_to_string(&again).unwrap(), "content and more");
                again.set_len(3).unwrap();
                assert_eq!(file.metadata().unwrap().len(), 3);
                file.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
                file.sync_all().unwrap();
                fs::write(ws.path(name), "another file").unwrap();
                assert_ne!(
                    file.metadata().unwrap().ino(),
                    fs::metadata(ws.path(name)).unwrap().ino()
                );
                let mut start = [0; 3];
                file.read_exact_at(&mut start, 0).unwrap();
                assert_eq!(&start, b"con");
            }
        },
    );
}

#[test]
fn a_base_file_deleted_or_replaced_while_it_is_read_is_read_to_its_end() {
    require_fuse!();
    let content = vec![b'c'; 300_000];
    each(
        |ws| ws.file("deleted", &content).file("replaced", &content).file("new", "new"),
        |ws| {
            for name in ["deleted", "replaced"] {
                let mut file = File::open(ws.path(name)).unwrap();
                let mut start = vec![0; 1000];
                file.read_exact(&mut start).unwrap();
                match name {
                    "deleted" => fs::remove_file(ws.path(name)).unwrap(),
                    _ => fs::rename(ws.path("new"), ws.path(name)).unwrap(),
                }
                let again = format!("/proc/self/fd/{}", file.as_raw_fd());
                assert_eq!(fs::read(again).unwrap().len(), content.len());
                assert_eq!(file.metadata().unwrap().nlink(), 0, "{name}");
                let mut rest = vec![];
                file.read_to_end(&mut rest).unwrap();
                assert_eq!(start.len() + rest.len(), content.len());
            }
            assert_eq!(fs::read(ws.path("replaced")).unwrap(), b"new");
        },
    );
}

#[test]
fn a_removed_current_directory_is_empty_and_takes_no_files() {
    require_fuse!();
    each(
        |ws| ws.dir("base/d"),
        |ws| {
            let script = "cd base/d && rmdir ../d && ls -a | wc -l && ! touch f 2>/dev/null";
            ws.ok(script);
            ws.ok("mkdir n && cd n && rmdir ../n && ! mkdir x 2>/dev/null && ! cat f 2>/dev/null");
        },
    );
}

// ---- copy-up ----

#[test]
fn a_reader_sees_what_others_write_after_it_opened_a_base_file() {
    require_fuse!();
    each(
        |ws| ws.file("f", "original content"),
        |ws| {
            let reader = File::open(ws.path("f")).unwrap();
            let mut seen = [0; 8];
            reader.read_exact_at(&mut seen, 0).unwrap();
            assert_eq!(&seen, b"original");
            let writer = both(&ws.path("f"));
            writer.write_all_at(b"WRITTEN!", 0).unwrap();
            reader.read_exact_at(&mut seen, 0).unwrap();
            assert_eq!(&seen, b"WRITTEN!");
            writer.set_len(3).unwrap();
            assert_eq!(reader.metadata().unwrap().len(), 3);
            assert_eq!(reader.read_at(&mut seen, 0).unwrap(), 3);
            let facts = (reader.metadata().unwrap().ino(), writer.metadata().unwrap().ino());
            assert_eq!(facts.0, facts.1, "it is one file");
        },
    );
}

/// The documented exception: a large base file is read by the kernel directly, and who had it open
/// before the first write keeps the old bytes, as on overlayfs.
#[test]
fn a_large_base_file_is_written_without_failing_anybody() {
    require_fuse!();
    const SIZE: usize = 17 << 20;
    each(
        |ws| ws.file("large", vec![b'o'; SIZE]),
        |ws| {
            let reader = File::open(ws.path("large")).unwrap();
            let mut byte = [0; 1];
            reader.read_exact_at(&mut byte, 5000).unwrap();
            let writer = both(&ws.path("large"));
            writer.write_all_at(b"n", 5000).unwrap();
            writer.read_exact_at(&mut byte, 5000).unwrap();
            assert_eq!(&byte, b"n", "the writer reads what it wrote");
            reader.read_exact_at(&mut byte, 5000).unwrap();
            assert!(byte == *b"o" || byte == *b"n");
            reader.read_exact_at(&mut byte, SIZE as u64 - 1).unwrap();
            assert_eq!(&byte, b"o");
            assert_eq!(reader.metadata().unwrap().len(), SIZE as u64);
            let again = File::open(ws.path("large")).unwrap();
            again.read_exact_at(&mut byte, 5000).unwrap();
            assert_eq!(&byte, b"n", "whoever opens it now reads the new bytes");
            drop((reader, writer));
            ws.ok("chmod 600 large && truncate -s 100 large && mv large moved && rm moved");
        },
    );
}

#[test]
fn a_large_base_file_in_use_is_changed_in_every_other_way_without_failing() {
    require_fuse!();
    let changes = [
        "chmod 600 large",
        "touch -d @1000 large",
        "truncate -s 5 large",
        "mv large other",
        "ln large other",
        "rm large",
        "setfattr -n user.x -v 1 large",
        "echo more >> large",
    ];
    each(
        |ws| {
            let name = |n: usize| format!("{n}/large");
            (0..changes.len()).fold(ws, |ws, n| ws.file(name(n), vec![b'o'; 16 << 20]))
        },
        |ws| {
            for (n, change) in changes.iter().enumerate() {
                let reader = File::open(ws.path(format!("{n}/large"))).unwrap();
                let mut byte = [0; 1];
                reader.read_exact_at(&mut byte, 0).unwrap();
                ws.ok(&format!("cd {n} && {change}"));
                reader.read_exact_at(&mut byte, 1000).unwrap_or_else(|e| {
                    assert!(change.contains("truncate"), "{change}: {e}");
                });
                reader.metadata().unwrap();
            }
        },
    );
}

#[test]
fn copy_up_keeps_content_mode_times_and_attributes() {
    require_fuse!();
    let content: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
    let changes = [
        "chmod 750 f",
        "setfattr -n user.new -v 1 f",
        "mv f g && mv g f",
        "ln f g",
        "touch -a f",
        "printf x >> f",
    ];
    for change in changes {
        each(
            |ws| {
                ws.file("f", &content).with_base(|base| {
                    let path = base.join("f");
                    rustix::fs::setxattr(&path, "user.kept", b"value", XattrFlags::empty())
                        .unwrap();
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
                    let at = Timespec { tv_sec: 1_234_567_890, tv_nsec: 123_456_789 };
                    let times = Timestamps { last_access: at, last_modification: at };
                    rustix::fs::utimensat(CWD, path, &times, AtFlags::empty()).unwrap();
                })
            },
            |ws| {
                let before = fs::metadata(ws.path("f")).unwrap();
                ws.ok(change);
                let after = fs::metadata(ws.path("f")).unwrap();
                let appended = change.contains(">>");
                if !appended {
                    let times = (after.mtime(), after.mtime_nsec());
                    assert_eq!(times, (1_234_567_890, 123_456_789), "{change}");
                    assert_eq!(fs::read(ws.path("f")).unwrap(), content, "{change}");
                }
                if !change.contains("chmod") {
                    assert_eq!(after.mode() & 0o7777, 0o640, "{change}");
                }
                assert_eq!(before.ino(), after.ino(), "{change}");
                let mut value = [0; 16];
                let len = rustix::fs::getxattr(ws.path("f"), "user.kept", &mut value[..]).unwrap();
                assert_eq!(&value[..len], b"value", "{change}");
                assert_eq!(&fs::read(ws.path("f")).unwrap()[..content.len()], content, "{change}");
                assert_eq!(fs::read(ws.base().join("f")).unwrap(), content);
            },
        );
    }
}

#[test]
fn directories_copied_up_keep_mode_times_and_attributes() {
    require_fuse!();
    each(
        |ws| {
            ws.file("d/sub/f", "x").with_base(|base| {
                let path = base.join("d/sub");
                rustix::fs::setxattr(&path, "user.kept", b"value", XattrFlags::empty()).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o1750)).unwrap();
                File::open(base.join("d")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
            })
        },
        |ws| {
            fs::write(ws.path("d/sub/f"), "changed").unwrap();
            assert_eq!(fs::metadata(ws.path("d/sub")).unwrap().mode() & 0o7777, 0o1750);
            assert_eq!(fs::metadata(ws.path("d")).unwrap().mtime(), 0);
            let mut value = [0; 16];
            let len = rustix::fs::getxattr(ws.path("d/sub"), "user.kept", &mut value[..]).unwrap();
            assert_eq!(&value[..len], b"value");
        },
    );
}

#[test]
fn the_root_shows_the_mode_and_times_of_the_base() {
    require_fuse!();
    let ws = Workspace::new().file("f", "x").with_base(|base| {
        fs::set_permissions(base, fs::Permissions::from_mode(0o711)).unwrap();
        File::open(base).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    });
    let ws = ws.preset("full-access").mount();
    let root = fs::metadata(ws.root()).unwrap();
    assert_eq!((root.mode() & 0o7777, root.mtime()), (0o711, 0));
}

// ---- holes and ranges ----

#[test]
fn sparse_files_stay_sparse_also_when_copied_up() {
    require_fuse!();
    const SIZE: u64 = 64 << 20;
    let sparse = |path: &Path| {
        let file = File::create(path).unwrap();
        file.set_len(SIZE).unwrap();
        file.write_all_at(b"data", 32 << 20).unwrap();
    };
    each(
        |ws| ws.with_base(|base| sparse(&base.join("base"))),
        |ws| {
            sparse(&ws.path("live"));
            ws.ok("printf x >> base && printf x >> live");
            for name in ["base", "live"] {
                let meta = fs::metadata(ws.path(name)).unwrap();
                assert_eq!(meta.len(), SIZE + 1);
                assert!(meta.blocks() * 512 < 1 << 20, "{name}: {} blocks", meta.blocks());
                let file = File::open(ws.path(name)).unwrap();
                let data = rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(0)).unwrap();
                assert_eq!(data, 32 << 20, "{name}");
                let hole = rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(data)).unwrap();
                assert!(hole > data && hole < SIZE, "{name}");
                let mut content = [0; 4];
                file.read_exact_at(&mut content, data).unwrap();
                assert_eq!(&content, b"data");
            }
        },
    );
}

#[test]
fn fallocate_extends_and_punches_holes() {
    require_fuse!();
    each(
        |ws| ws.file("base", [b'x'; 100_000]),
        |ws| {
            fs::write(ws.path("live"), [b'x'; 100_000]).unwrap();
            for name in ["base", "live"] {
                let file = both(&ws.path(name));
                rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 200_000).unwrap();
                assert_eq!(file.metadata().unwrap().len(), 200_000);
                assert_eq!(fs::metadata(ws.path(name)).unwrap().len(), 200_000);
                let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                rustix::fs::fallocate(&file, punch, 4096, 4096).unwrap();
                let mut byte = [1; 1];
                file.read_exact_at(&mut byte, 5000).unwrap();
                assert_eq!(byte, [0], "{name}");
                file.read_exact_at(&mut byte, 99_999).unwrap();
                assert_eq!(byte, [b'x'], "{name}");
            }
        },
    );
}

#[test]
fn copy_file_range_copies_or_fails_so_that_callers_fall_back() {
    require_fuse!();
    let content: Vec<u8> = (0..50_000u32).flat_map(u32::to_le_bytes).collect();
    each(
        |ws| ws.file("from", &content),
        |ws| {
            let (from, to) =
                (File::open(ws.path("from")).unwrap(), File::create(ws.path("to")).unwrap());
            match rustix::fs::copy_file_range(&from, None, &to, None, content.len()) {
                Ok(copied) => assert_eq!(fs::read(ws.path("to")).unwrap(), &content[..copied]),
                Err(e) => {
                    let expected = [libc::EXDEV, EOPNOTSUPP, libc::ENOSYS, EINVAL];
                    assert!(expected.contains(&e.raw_os_error()), "{e}");
                }
            }
            fs::copy(ws.path("from"), ws.path("copied")).unwrap();
            assert_eq!(fs::read(ws.path("copied")).unwrap(), content);
            ws.ok("cp from c1 && cp --reflink=auto --sparse=always from c2 && cp -a c2 c3 && cmp c1 c3");
            fs::copy(ws.path("from"), ws.scratch().join("outside")).unwrap();
            assert_eq!(fs::read(ws.scratch().join("outside")).unwrap(), content);
            fs::copy(ws.scratch().join("outside"), ws.path("inside")).unwrap();
            assert_eq!(fs::read(ws.path("inside")).unwrap(), content);
        },
    );
}

#[test]
fn truncating_and_extending_fills_with_zeroes() {
    require_fuse!();
    each(
        |ws| ws.file("base", "0123456789"),
        |ws| {
            let file = both(&ws.path("base"));
            file.set_len(4).unwrap();
            file.set_len(6).unwrap();
            assert_eq!(fs::read(ws.path("base")).unwrap(), b"0123\0\0");
            file.write_all_at(b"x", 8).unwrap();
            assert_eq!(fs::read(ws.path("base")).unwrap(), b"0123\0\0\0\0x");
        },
    );
}

// ---- inode numbers ----

fn numbers(ws: &Mounted) -> BTreeMap<String, String> {
    let found = ws.ok("find . -printf '%p %i\\n'");
    let split = found.lines().map(|line| line.split_once(' ').unwrap());
    split.map(|(path, ino)| (path.into(), ino.into())).collect()
}

#[test]
fn inode_numbers_survive_forgetting_copy_up_and_rename() {
    require_fuse!();
    require_root!();
    each(
        |ws| ws.file("a/f", "f").file("a/b/g", "g").file("h", "h").dir("e"),
        |ws| {
            ws.ok(
                "mkdir -p live/dir && echo x > live/file && ln -s x live/link && mkfifo live/fifo",
            );
            let mut expected = numbers(&ws);
            let distinct: BTreeSet<_> = expected.values().collect();
            assert_eq!(
                distinct.len(),
                expected.len(),
                "no two things have one number: {expected:?}"
            );
            drop_caches();
            assert_eq!(numbers(&ws), expected, "after being forgotten");
            ws.ok("echo more >> a/f; chmod 700 a/b; touch h e live; echo more >> live/file");
            assert_eq!(numbers(&ws), expected, "after being copied up");
            drop_caches();
            assert_eq!(numbers(&ws), expected, "after being copied up and forgotten");
            ws.ok("mv h i && mv live/file live/file2 && mv e e2");
            for (old, new) in [("h", "i"), ("live/file", "live/file2"), ("e", "e2")] {
                let number = expected.remove(&format!("./{old}")).unwrap();
                expected.insert(format!("./{new}"), number);
            }
            assert_eq!(numbers(&ws), expected, "after a rename");
            drop_caches();
            assert_eq!(numbers(&ws), expected, "after a rename and being forgotten");
            ws.ok("mv a a2");
            let expected: BTreeSet<_> = expected.values().cloned().collect();
            let now: BTreeSet<_> = numbers(&ws).values().cloned().collect();
            assert_eq!(now, expected, "below a moved directory");
            drop_caches();
            let now: BTreeSet<_> = numbers(&ws).values().cloned().collect();
            assert_eq!(now, expected, "below a moved directory, forgotten");
        },
    );
}

#[test]
fn an_open_file_keeps_its_number_while_caches_are_dropped() {
    require_fuse!();
    require_root!();
    each(
        |ws| ws.file("f", "f").file("d/g", "g"),
        |ws| {
            let open = File::open(ws.path("f")).unwrap();
            let dir = File::open(ws.path("d")).unwrap();
            drop_caches();
            assert_eq!(open.metadata().unwrap().ino(), fs::metadata(ws.path("f")).unwrap().ino());
            assert_eq!(dir.metadata().unwrap().ino(), fs::metadata(ws.path("d")).unwrap().ino());
            assert_eq!(io::read_to_string(open).unwrap(), "f");
            assert_eq!(ws.ok("cd d && pwd -P && cat g"), format!("{}\ng", ws.path("d").display()));
        },
    );
}

#[test]
fn a_listing_has_the_numbers_that_stat_has() {
    require_fuse!();
    each(
        |ws| {
            (0..50).fold(ws, |ws, n| ws.file(format!("d/{n}"), "x").file(format!("d/s{n}/f"), "x"))
        },
        |ws| {
            fs::write(ws.path("d/live"), "x").unwrap();
            fs::write(ws.path("d/7"), "copied up").unwrap();
            for _ in 0..2 {
                for entry in fs::read_dir(ws.path("d")).unwrap() {
                    let entry = entry.unwrap();
                    assert_eq!(entry.ino(), entry.metadata().unwrap().ino(), "{:?}", entry.path());
                }
                if is_root() {
                    drop_caches();
                }
            }
            // Without a look at the entries beforehand, the way `ls -i` and `find -inum` ask.
            let listed = ws.ok("ls -1iU d | awk '{print $1}' | sort");
            let stat = ws.ok("stat -c %i d/* | sort");
            assert_eq!(listed, stat);
        },
    );
}

// ---- directories ----

#[test]
fn everything_is_deleted_by_a_program_that_deletes_while_it_lists() {
    require_fuse!();
    const COUNT: usize = 5000;
    each(
        |ws| {
            ws.dir("mixed").with_base(|base| {
                let name = |n: usize| base.join(format!("mixed/file-{n}"));
                (0..COUNT / 2).for_each(|n| fs::write(name(n), "").unwrap());
            })
        },
        |ws| {
            ws.ok("mkdir live && cd live && seq 5000 | xargs touch");
            ws.ok("cd mixed && seq 2500 | xargs touch");
            for dir in ["live", "mixed"] {
                let mut deleted = 0;
                for entry in fs::read_dir(ws.path(dir)).unwrap() {
                    fs::remove_file(entry.unwrap().path()).unwrap();
                    deleted += 1;
                }
                assert_eq!(deleted, COUNT, "{dir}");
                assert_eq!(ws.names(dir), Vec::<String>::new());
                fs::remove_dir(ws.path(dir)).unwrap();
            }
        },
    );
}

#[test]
fn a_directory_of_ten_thousand_entries_is_listed_whole() {
    require_fuse!();
    each(
        |ws| {
            ws.dir("d").with_base(|base| {
                (0..10_000)
                    .for_each(|n| drop(File::create(base.join(format!("d/a-file-{n}"))).unwrap()));
            })
        },
        |ws| {
            assert_eq!(ws.names("d").len(), 10_000);
            assert_eq!(ws.ok("ls -f d | sort -u | wc -l"), "10002\n");
            assert_eq!(ws.ok("find d -type f -size 0 | wc -l"), "10000\n");
            ws.ok("cd d && seq 1 1000 | sed s/^/a-file-/ | xargs rm && touch new");
            assert_eq!(ws.names("d").len(), 9001);
        },
    );
}

#[test]
fn a_listing_neither_repeats_nor_loses_what_was_there_all_along() {
    require_fuse!();
    const KEPT: usize = 2000;
    each(
        |ws| {
            ws.dir("d").with_base(|base| {
                (0..KEPT)
                    .for_each(|n| drop(File::create(base.join(format!("d/kept-{n}"))).unwrap()));
            })
        },
        |ws| {
            let (dir, done) = (&ws.path("d"), &std::sync::atomic::AtomicBool::new(false));
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    for n in 0..1500 {
                        let path = dir.join(format!("passing-{n}"));
                        File::create(&path).unwrap();
                        if n % 2 == 0 {
                            fs::remove_file(&path).unwrap();
                        }
                    }
                    done.store(true, std::sync::atomic::Ordering::Release);
                });
                while !done.load(std::sync::atomic::Ordering::Acquire) {
                    let names = names_in(dir);
                    let distinct: BTreeSet<_> = names.iter().collect();
                    assert_eq!(names.len(), distinct.len(), "a name was repeated");
                    let kept = names.iter().filter(|name| name.starts_with("kept")).count();
                    assert_eq!(kept, KEPT, "a name was lost");
                }
            });
            assert_eq!(names_in(dir).len(), KEPT + 750);
        },
    );
}

#[test]
fn a_position_in_a_directory_can_be_returned_to() {
    require_fuse!();
    each(
        |ws| (0..300).fold(ws, |ws, n| ws.file(format!("d/f{n}"), "")),
        |ws| {
            let program = r#"
opendir(my $d, "d") or die;
readdir $d for 1..100;
my $at = telldir $d;
my @rest = readdir $d;
seekdir $d, $at;
unlink "d/$rest[0]" or die;
my @again = readdir $d;
shift @rest if @again < @rest;
die scalar(@rest) . " " . scalar(@again) unless "@rest" eq "@again";
rewinddir $d;
my @all = grep { !/^\.\.?$/ } readdir $d;
die scalar @all unless @all == 299;
"#;
            let perl = Command::new("perl").args(["-e", program]).current_dir(ws.root()).output();
            let perl = perl.unwrap();
            assert!(perl.status.success(), "{perl:?}");
        },
    );
}

#[test]
fn a_directory_changes_its_time_with_its_entries() {
    require_fuse!();
    each(
        |ws| ws.file("d/f", "x").dir("e"),
        |ws| {
            let changes =
                ["touch d/new", "rm d/f", "mkdir d/sub", "mv d/new d/newer", "mv d/newer e/"];
            for change in changes {
                ws.ok("touch -d @1000 d");
                ws.ok(change);
                assert!(fs::metadata(ws.path("d")).unwrap().mtime() > 1000, "{change}");
            }
        },
    );
}

#[test]
fn rename_follows_the_rules_of_posix() {
    require_fuse!();
    each(
        |ws| ws.file("f", "f").file("g", "g").file("d/x", "x").dir("empty").dir("d/sub"),
        |ws| {
            let rename = |from: &str, to: &str| fs::rename(ws.path(from), ws.path(to));
            assert_eq!(errno(rename("f", "d")), libc::EISDIR);
            assert_eq!(errno(rename("d", "f")), libc::ENOTDIR);
            assert_eq!(errno(rename("empty", "d")), libc::ENOTEMPTY);
            assert_eq!(errno(rename("d", "d/sub/in")), EINVAL);
            assert_eq!(errno(rename("absent", "f")), ENOENT);
            rename("f", "f").unwrap();
            rename("f", "g").unwrap();
            assert_eq!(fs::read(ws.path("g")).unwrap(), b"f");
            rename("d", "empty").unwrap();
            assert_eq!(ws.names("empty"), ["sub", "x"]);
            let whiteout = RenameFlags::WHITEOUT;
            let refused = rustix::fs::renameat_with(CWD, ws.path("g"), CWD, ws.path("h"), whiteout);
            assert!([EINVAL, libc::EPERM].contains(&refused.unwrap_err().raw_os_error()));
        },
    );
}

#[test]
fn an_unnamed_temporary_file_works_or_is_refused_as_programs_expect() {
    require_fuse!();
    each(
        |ws| ws.dir("d"),
        |ws| {
            let flags = OFlags::RDWR | OFlags::TMPFILE;
            match rustix::fs::open(ws.path("d"), flags, Mode::from(0o600)) {
                Err(e) => assert_eq!(e.raw_os_error(), EOPNOTSUPP),
                Ok(fd) => {
                    let file = File::from(fd);
                    file.write_all_at(b"x", 0).unwrap();
                    assert_eq!(ws.names("d"), Vec::<String>::new());
                    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
                    let follow = AtFlags::SYMLINK_FOLLOW;
                    rustix::fs::linkat(CWD, path, CWD, ws.path("d/named"), follow).unwrap();
                    assert_eq!(fs::read(ws.path("d/named")).unwrap(), b"x");
                }
            }
        },
    );
}

#[test]
fn exclusive_creation_succeeds_once() {
    require_fuse!();
    each(
        |ws| ws.file("base", "x"),
        |ws| {
            assert_eq!(errno(File::create_new(ws.path("base"))), EEXIST);
            fs::remove_file(ws.path("base")).unwrap();
            for name in ["base", "new"] {
                let path = &ws.path(name);
                let won = std::thread::scope(|scope| {
                    let tries: Vec<_> = (0..8)
                        .map(|_| scope.spawn(move || File::create_new(path).is_ok()))
                        .collect();
                    tries.into_iter().map(|t| t.join().unwrap()).filter(|won| *won).count()
                });
                assert_eq!(won, 1, "{name}");
            }
        },
    );
}

// ---- times and modes ----

#[test]
fn times_that_were_set_stay_to_the_nanosecond() {
    require_fuse!();
    each(
        |ws| {
            ws.file("base", "x")
                .dir("dir")
                .with_base(|base| symlink("x", base.join("link")).unwrap())
        },
        |ws| {
            fs::write(ws.path("live"), "x").unwrap();
            symlink("x", ws.path("livelink")).unwrap();
            let names = ["base", "dir", "live", "link", "livelink"];
            let set = |name: &str, seconds: i64| {
                let times = Timestamps {
                    last_access: Timespec { tv_sec: seconds + 1, tv_nsec: 111 },
                    last_modification: Timespec { tv_sec: seconds, tv_nsec: 999_999_999 },
                };
                rustix::fs::utimensat(CWD, ws.path(name), &times, AtFlags::SYMLINK_NOFOLLOW)
                    .unwrap();
            };
            let times = |ws: &Mounted, name: &str| {
                let meta = fs::symlink_metadata(ws.path(name)).unwrap();
                (meta.mtime(), meta.mtime_nsec(), meta.atime(), meta.atime_nsec())
            };
            for seconds in [1, 1_700_000_000, 4_000_000_000, -100] {
                for name in names {
                    set(name, seconds);
                    let expected = (seconds, 999_999_999, seconds + 1, 111);
                    assert_eq!(times(&ws, name), expected, "{name}");
                }
            }
            names.iter().for_each(|name| set(name, 12345));
            fs::read(ws.path("base")).unwrap();
            let ws = ws.remount(None);
            for name in names {
                assert_eq!(times(&ws, name).0, 12345, "{name} after a remount");
            }
        },
    );
}

#[test]
fn modes_are_those_that_were_asked_for() {
    require_fuse!();
    each(
        |ws| ws,
        |ws| {
            ws.ok("umask 027 && touch f && mkdir d && mkfifo p && umask 0 && touch f0 && mkdir d0");
            assert_eq!(ws.ok("stat -c %a f d p f0 d0"), "640\n750\n640\n666\n777\n");
            ws.ok("chmod 1777 d && chmod u=,g=,o= f && chmod +x f0");
            assert_eq!(ws.ok("stat -c %a d f f0"), "1777\n0\n777\n");
            let ws = ws.remount(None);
            assert_eq!(ws.ok("stat -c %a d f f0"), "1777\n0\n777\n");
            let secret =
                File::options().write(true).create_new(true).mode(0o400).open(ws.path("key"));
            secret.unwrap().write_all(b"written through the descriptor that made it").unwrap();
            assert_eq!(fs::metadata(ws.path("key")).unwrap().mode() & 0o7777, 0o400);
        },
    );
}

// ---- things that are not files ----

#[test]
fn a_fifo_carries_bytes_between_processes() {
    require_fuse!();
    each(
        |ws| {
            ws.with_base(|base| {
                let kind = rustix::fs::FileType::Fifo;
                rustix::fs::mknodat(CWD, base.join("base"), kind, Mode::from(0o644), 0).unwrap();
            })
        },
        |ws| {
            assert_eq!(ws.ok("mkfifo p && (echo through > p &) && cat p"), "through\n");
            assert_eq!(ws.ok("(echo through > base &) && cat base"), "through\n");
        },
    );
}

#[test]
fn a_socket_can_be_bound_and_connected_to() {
    require_fuse!();
    each(
        |ws| ws.dir("d"),
        |ws| {
            let path = ws.path("d/s");
            let listener = UnixListener::bind(&path).unwrap();
            let mut client = UnixStream::connect(&path).unwrap();
            client.write_all(b"hello").unwrap();
            drop(client);
            let (mut server, _) = listener.accept().unwrap();
            let mut heard = String::new();
            server.read_to_string(&mut heard).unwrap();
            assert_eq!(heard, "hello");
            assert_eq!(errno(UnixListener::bind(&path)), libc::EADDRINUSE);
            fs::remove_file(&path).unwrap();
            UnixListener::bind(&path).unwrap();
        },
    );
}

#[test]
fn programs_and_scripts_run() {
    require_fuse!();
    each(
        |ws| {
            ws.file("base.sh", "#!/bin/sh\necho from $0\n").with_base(|base| {
                fs::set_permissions(base.join("base.sh"), fs::Permissions::from_mode(0o755))
                    .unwrap();
                fs::copy("/bin/true", base.join("true")).unwrap();
            })
        },
        |ws| {
            assert_eq!(ws.ok("./base.sh"), "from ./base.sh\n");
            ws.ok("./true && cp true mine && ./mine && printf '#!/bin/sh\\nexit 7\\n' > s && chmod +x s");
            assert_eq!(ws.sh("./s").status.code(), Some(7));
            ws.ok("sed -i s/7/8/ s");
            assert_eq!(ws.sh("./s").status.code(), Some(8));
            let denied = ws.sh("chmod -x s; ./s");
            assert_eq!(denied.status.code(), Some(126));
        },
    );
}

#[test]
fn a_running_program_cannot_be_written_to() {
    require_fuse!();
    each(
        |ws| ws.with_base(|base| assert!(fs::copy("/bin/cat", base.join("base")).is_ok())),
        |ws| {
            fs::copy("/bin/cat", ws.path("live")).unwrap();
            for name in ["base", "live"] {
                let mut cat = Command::new(ws.path(name));
                let mut child = cat.stdin(std::process::Stdio::piped()).spawn().unwrap();
                let open = File::options().write(true).open(ws.path(name));
                drop(child.stdin.take());
                assert!(child.wait().unwrap().success());
                assert_eq!(errno(open), ETXTBSY, "{name}");
                let writer = both(&ws.path(name));
                assert_eq!(errno(Command::new(ws.path(name)).spawn()), ETXTBSY, "{name}");
                drop(writer);
                assert!(
                    Command::new(ws.path(name))
                        .stdin(std::process::Stdio::null())
                        .status()
                        .unwrap()
                        .success()
                );
            }
        },
    );
}

// ---- a base that its owner goes on working in ----

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
