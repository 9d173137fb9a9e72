//! Files on their way to the live layer: nothing is lost, holes included.

use super::*;

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
