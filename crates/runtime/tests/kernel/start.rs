//! A real sandbox, asked from inside and looked at from outside.

use std::fs;
use std::io::{BufRead, BufReader, IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::Path;

use ringfence_runtime::bwrap::Bwrap;
use ringfence_runtime::{Limits, Network, Runtime, RuntimeError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::support::{Site, privately, require_bwrap, require_groups, wait, write};

#[test]
fn inside_is_an_ordinary_user_without_privileges() {
    require_bwrap!();
    let site = Site::new("user");
    let start =
        site.start("id -u; id -g; id -G; grep -E '^(Cap|NoNewPrivs|Uid)' /proc/self/status");
    let text = site.output(&start);
    let zero = "0000000000000000";
    let caps = ["Inh", "Prm", "Eff", "Bnd", "Amb"].map(|set| format!("Cap{set}:\t{zero}\n"));
    let expected = format!(
        "1000\n1000\n1000\nUid:\t1000\t1000\t1000\t1000\n{}NoNewPrivs:\t1\n",
        caps.concat()
    );
    assert_eq!(text, expected);
}

#[test]
fn outside_it_is_a_user_of_its_own() {
    require_bwrap!();
    let site = Site::new("outside");
    let start = site.start("read go <&3");
    privately(|| {
        let group = site.group(&Limits::default());
        let started = Bwrap::default().start(&start, &group).unwrap();
        let status = |pid| fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let uid = site.user.uid();
        let line = format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n");
        assert!((200_000..200_100).contains(&uid));
        assert!(status(started.child.pid.as_raw_pid()).contains(&line));
        assert!(status(started.init_pid).contains(&line));
        assert!(status(started.init_pid).contains("NSpid:\t") && started.init_pid > 1);
        assert!(group.pids().contains(&started.init_pid));
        drop(started.socket);
        assert_eq!(wait(&started.child).exit_status(), Some(1));
    });
}

#[test]
fn the_host_is_not_there() {
    require_bwrap!();
    let site = Site::new("host");
    let start = site.start("env; echo; ls -A /; ls -A /run /run/ringfence /var; ls /proc | grep '^[0-9]'; cat /proc/sys/kernel/hostname");
    let text = site.output(&start);
    let (env, rest) = text.split_once("\n\n").unwrap();
    // The shell adds its own.
    assert!(env.lines().all(|line| line.starts_with("PWD=/") || line.starts_with("_=")), "{env}");
    for absent in ["root", "sys", "boot", "opt", "srv", "mnt", "work"] {
        assert!(!rest.lines().any(|line| line == absent), "{absent} in {rest}");
    }
    assert!(
        rest.contains("/run:\nringfence\n\n/run/ringfence:\ninit\n\n/var:\nrun\ntmp\n"),
        "{rest}"
    );
    let pids: Vec<u32> = rest.lines().filter_map(|line| line.parse().ok()).collect();
    assert!(pids.contains(&1) && pids.iter().all(|pid| *pid < 50), "{pids:?}");
    assert!(rest.trim_end().ends_with(&format!("test-{}-host", std::process::id())));
}

#[test]
fn etc_is_curated() {
    require_bwrap!();
    let site = Site::new("etc");
    let start = site.start(
        "ls -A /etc; ls -A /etc/ssl; wc -c </etc/resolv.conf; id -un; echo x >/etc/hosts; true",
    );
    let text = site.output(&start).replace("/run/ringfence/init", "init");
    for secret in ["shadow", "gshadow", "ssh", "private", "sudoers", "machine-id", "pam.d", "fstab"]
    {
        assert!(!text.lines().any(|line| line == secret), "{secret} in {text}");
    }
    for needed in
        ["passwd", "group", "hosts", "hostname", "nsswitch.conf", "resolv.conf", "0", "user"]
    {
        assert!(text.lines().any(|line| line == needed), "{needed} not in {text}");
    }
    assert!(text.trim_end().ends_with("Read-only file system"), "{text}");
}

#[test]
fn a_private_file_of_root_is_unreadable_even_where_it_is_shown() {
    require_bwrap!();
    let site = Site::new("secret");
    fs::create_dir(site.path("tools")).unwrap();
    site.write("tools/secret", "secret\n", 0o600);
    site.write("tools/open", "open\n", 0o644);
    let tools = site.path("tools");
    let at = tools.display();
    let mut start = site.start(&format!("cat {at}/open {at}/secret; echo x >{at}/new; true"));
    start.read_only.push(tools.clone());
    let text = site.output(&start);
    assert!(text.starts_with("open\n"), "{text}");
    assert!(text.contains("Permission denied") && text.contains("Read-only"), "{text}");
    assert!(!text.contains("secret\n") || text.contains("secret: Permission denied"), "{text}");
    assert!(!tools.join("new").exists());
}

#[test]
fn only_the_directories_of_the_sandbox_can_be_written() {
    require_bwrap!();
    let site = Site::new("write");
    let start = site.start(
        "for dir in /workspace /home/user /tmp /var/tmp /run /dev/shm / /dev /usr /etc /run/ringfence /home; do
           if (echo x >$dir/file) 2>/dev/null; then echo yes $dir; else echo no $dir; fi
         done; cat /tmp/file; rm -f /run/ringfence/init; test -e /run/ringfence/init && echo still",
    );
    let text = site.output(&start);
    let expected = "yes /workspace\nyes /home/user\nyes /tmp\nyes /var/tmp\nyes /run\nyes /dev/shm\n\
                    no /\nno /dev\nno /usr\nno /etc\nno /run/ringfence\nno /home\nx\n";
    assert!(text.starts_with(expected) && text.ends_with("still\n"), "{text}");
    assert!(site.path("workspace/file").exists() && site.path("home/file").exists());
}

#[test]
fn namespaces_cannot_be_nested_and_nothing_can_be_mounted() {
    require_bwrap!();
    let site = Site::new("nested");
    let start = site.start("unshare -Ur true; unshare -n true; mount -t tmpfs x /tmp; true");
    let text = site.output(&start);
    assert_eq!(text.matches("unshare: unshare failed").count(), 2, "{text}");
    assert!(text.contains("mount: /tmp: "), "{text}");
}

#[test]
fn without_network_there_is_only_a_loopback_and_with_it_the_hosts() {
    require_bwrap!();
    let site = Site::new("net");
    let mut start = site.start(
        "readlink /proc/self/ns/net; tail -n +3 /proc/net/dev | wc -l; cat /etc/resolv.conf",
    );
    let host = fs::read_link("/proc/self/ns/net").unwrap().display().to_string();
    let text = site.output(&start);
    assert!(!text.contains(&host) && text.ends_with("]\n1\n"), "{text}");
    start.network = Network::Host;
    let text = site.output(&start);
    let resolver = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    assert!(text.starts_with(&host) && text.ends_with(&resolver), "{text}");
}

#[test]
fn init_has_four_descriptors_and_no_more() {
    require_bwrap!();
    let site = Site::new("fds");
    let text = site.output(&site.start("ls /proc/1/fd"));
    // 10 is the script itself, opened by the shell.
    let ours: Vec<&str> = text.lines().filter(|number| number.len() == 1).collect();
    assert_eq!(ours, ["0", "1", "2", "3"], "{text}");
}

#[test]
fn a_group_of_a_command_can_be_entered_from_inside() {
    require_bwrap!();
    require_groups!();
    let site = Site::new("enter");
    let mut start = site.start("");
    // The target directory of the build may be closed to others, the stage is not.
    start.init = std::env::current_exe().unwrap();
    privately(|| {
        let group = site.group(&Limits::default());
        let command = group.command("c1").unwrap().unwrap();
        let started = Bwrap::default().start(&start, &group).unwrap();
        let mut socket = UnixStream::from(started.socket.as_fd().try_clone_to_owned().unwrap());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let dir = [command.dir()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&dir)));
        sendmsg(&socket, &[IoSlice::new(b"g")], &mut control, SendFlags::empty()).unwrap();
        let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
        let first = lines.next().expect("a line").unwrap();
        assert_eq!(first, "started", "{}", started.complaint());
        assert_eq!(command.pids().len(), 1);
        assert!(!command.pids().contains(&started.init_pid));
        command.kill().unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "ended by signal Some(9)");
        let _ = socket.flush();
        wait(&started.child);
        assert!(command.is_empty());
    });
}

#[test]
fn it_ends_with_the_thread_that_started_it() {
    require_bwrap!();
    let site = Site::new("thread");
    let start = site.start("echo hello; sleep 1000");
    let group = site.group(&Limits::default());
    let started = privately(|| {
        let started = Bwrap::default().start(&start, &group).unwrap();
        // Before that init is not tied to bwrap yet; then it is the end of the socket that ends it.
        let mut hello = [0; 6];
        rustix::io::read(&started.socket, &mut hello).unwrap();
        assert_eq!(&hello, b"hello\n", "{}", started.complaint());
        started
    });
    let mut ended = [PollFd::new(&started.child.pidfd, PollFlags::IN)];
    poll(&mut ended, None).unwrap();
    assert_eq!(wait(&started.child).terminating_signal(), Some(9));
    crate::support::eventually("all gone", || group.pids().is_empty());
}

#[test]
fn a_missing_or_old_bubblewrap_is_an_error_that_says_so() {
    require_bwrap!();
    let site = Site::new("missing");
    let start = site.start("true");
    let missing = site.failure(&Bwrap::at("/nonexistent/bwrap"), &start);
    assert!(matches!(missing, RuntimeError::Missing { program: "bubblewrap", .. }), "{missing}");
    let old = write(
        &site.dir.path().join("old"),
        "#!/bin/sh\necho 'bwrap: Unknown option --disable-userns' >&2\nexit 1\n",
        0o755,
    );
    let old = site.failure(&Bwrap::at(old), &start);
    assert!(old.to_string().contains("too old") && old.hint().is_some(), "{old}");
}

#[test]
fn an_init_that_cannot_run_is_explained_by_what_was_said() {
    require_bwrap!();
    let site = Site::new("bad");
    let mut start = site.start("");
    start.init = site.write("not-executable", "x", 0o644);
    privately(|| {
        let group = site.group(&Limits::default());
        let started = Bwrap::default().start(&start, &group).unwrap();
        assert_eq!(crate::support::read_to_end(&started), "");
        assert_eq!(wait(&started.child).exit_status(), Some(1));
        assert!(started.failure().to_string().contains("Permission denied"));
    });
}

#[test]
fn paths_that_cannot_be_shown_are_named_and_nothing_stays_mounted() {
    require_bwrap!();
    let site = Site::new("paths");
    let mut start = site.start("true");
    start.read_only = vec!["/nonexistent/tool".into()];
    let error = site.failure(&Bwrap::default(), &start);
    assert!(error.to_string().contains("/nonexistent/tool"), "{error}");
    start.read_only = Vec::new();
    start.workspace = "/nonexistent/workspace".into();
    privately(|| {
        let group = site.group(&Limits::default());
        let error = Bwrap::default().start(&start, &group).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/workspace"), "{error}");
        let mounts = fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
        assert!(!mounts.contains(&start.stage.display().to_string()));
    });
}

#[test]
fn read_only_paths_may_be_files_links_and_parts_of_etc() {
    require_bwrap!();
    let site = Site::new("shown");
    let file = site.write("tool", "#!/bin/sh\necho tool works\n", 0o755);
    let link = site.path("link");
    symlink(&file, &link).unwrap();
    let extra = Path::new("/etc/services");
    let mut start = site.start(&format!(
        "{}; {}; test -s {} && echo etc",
        file.display(),
        link.display(),
        extra.display()
    ));
    start.read_only = vec![file, link];
    if extra.exists() {
        start.read_only.push(extra.to_owned());
    }
    let text = site.output(&start);
    assert!(text.starts_with("tool works\ntool works\n"), "{text}");
    assert_eq!(text.contains("etc\n"), extra.exists(), "{text}");
}

#[test]
fn limits_hold_inside() {
    require_bwrap!();
    crate::support::require_limit!(Memory);
    crate::support::require_limit!(Pids);
    let site = Site::new("limited");
    let start =
        site.start("tail /dev/zero; echo $?; for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done");
    privately(|| {
        let limits = Limits { memory: Some(64 << 20), pids: Some(5), ..Limits::default() };
        let group = site.group(&limits);
        let started = Bwrap::default().start(&start, &group).unwrap();
        let text = crate::support::read_to_end(&started);
        wait(&started.child);
        assert!(text.contains("137\n"), "{text}");
        assert_eq!(group.oom_kills(), 1);
        assert!(group.pids_refused() > 0);
    });
}

#[test]
fn the_stage_can_be_taken_down_once_init_runs() {
    require_bwrap!();
    let site = Site::new("settled");
    let start = site.start("echo hello; read go <&3; echo $go >/workspace/file; cat /etc/hostname");
    privately(|| {
        let group = site.group(&Limits::default());
        let started = Bwrap::default().start(&start, &group).unwrap();
        let mut hello = [0; 6];
        rustix::io::read(&started.socket, &mut hello).unwrap();
        started.settled();
        let mounts = fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
        assert!(!mounts.contains(&start.stage.display().to_string()));
        rustix::io::write(&started.socket, b"go\n").unwrap();
        assert!(crate::support::read_to_end(&started).ends_with("-settled\n"));
        wait(&started.child);
    });
    assert_eq!(fs::read_to_string(site.path("workspace/file")).unwrap(), "go\n");
    assert_eq!(fs::read_dir(&start.stage).unwrap().count(), 0);
}
