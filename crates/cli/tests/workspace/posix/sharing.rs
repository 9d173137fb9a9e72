//! Durability, locks, shared files, and files whose names are gone.

use super::*;

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
