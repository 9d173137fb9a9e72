//! Times, modes, fifos, sockets and programs.

use super::*;

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
