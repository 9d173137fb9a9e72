//! Inode numbers and directories that change while they are read.

use super::*;

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
