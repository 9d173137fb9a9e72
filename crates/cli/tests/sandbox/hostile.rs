//! Commands that take all they can get: each is held, told from others by its reason, and leaves
//! the host, other sandboxes and the next command unharmed.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ringfence_link::warden::{Control, Exec, Request};
use ringfence_warden::Config;
use ringfence_warden::journal::{Ending, verify};

use crate::leftovers::Leftovers;
use crate::support::{
    Maker, PATIENCE, Run, Sandbox, collect, eventually, first_output, memory_of, processes_with,
    require_sandbox,
};

fn with_limits(limit: impl FnOnce(&mut Config)) -> Sandbox {
    own_users(Maker::new()).change(limit).start()
}

/// With a place for users of its own, so that what is left of one is seen.
fn own_users(maker: Maker) -> Maker {
    maker.change(|config| config.users = config.dir.join("users"))
}

fn plain() -> Sandbox {
    with_limits(|_| {})
}

fn timed(text: &str, millis: u64) -> Exec {
    Exec { timeout_ms: Some(millis), ..Exec::shell(text) }
}

/// Answers, ends in order, and leaves a whole record and nothing else.
fn is_unharmed(mut sandbox: Sandbox) {
    let start = Instant::now();
    assert_eq!(sandbox.ok("echo $((20 + 22))"), "42\n");
    assert!(start.elapsed() < PATIENCE, "answered after {:?}", start.elapsed());
    let Config { id, dir, users, .. } = sandbox.config.clone();
    let left = Leftovers::of(&id, &dir, &users);
    assert!(!left.found().is_empty(), "a sandbox that runs is found nowhere");
    assert!(sandbox.end().success());
    left.assert_none();
    assert_eq!(verify(&dir, &id).unwrap().ending, Ending::InOrder);
}

fn python(text: &str) -> String {
    format!("exec python3 -c \"{text}\"")
}

#[test]
fn a_fork_bomb_meets_its_limit_and_hurts_no_other() {
    require_sandbox!();
    let (sandbox, other) = (with_limits(|c| c.limits.pids = Some(50)), plain());
    let bomb = "bomb() { bomb | bomb & }; bomb; for i in $(seq 200); do sleep 30 & done; wait";
    let run = std::thread::scope(|scope| {
        // It ends by itself where it meets the limit; until then it has all the time.
        let call = scope.spawn(|| sandbox.exec(timed(bomb, 30_000)).unwrap());
        let start = Instant::now();
        while !call.is_finished() {
            assert_eq!(other.ok("echo fine"), "fine\n");
            assert!(start.elapsed() < PATIENCE);
        }
        call.join().unwrap()
    });
    assert!(run.outcome.pids_refused, "{:?}", run.outcome);
    is_unharmed(sandbox);
    is_unharmed(other);
}

/// Also where none was asked for, and where there are no cgroups: a host has few numbers to give.
#[test]
fn processes_are_limited_by_default() {
    require_sandbox!();
    let sandbox = plain();
    assert_eq!(sandbox.ok("bash -c 'ulimit -Hu'"), "8192\n");
    // Only those of the sandbox count, or a lower limit would be reached at once.
    let bomb = "import os, resource, time
resource.setrlimit(resource.RLIMIT_NPROC, (20, 20))
count = 0
try:
    while os.fork(): count += 1
    time.sleep(1000)
except BlockingIOError: print(count)";
    let run = sandbox.exec(timed(&python(bomb), 60_000)).unwrap();
    let count: u32 = run.out().trim().parse().unwrap();
    assert!((10..20).contains(&count), "{run:?}");
    is_unharmed(sandbox);
}

#[test]
fn a_command_that_finds_no_room_for_a_process_is_told_so() {
    require_sandbox!();
    let sandbox = with_limits(|c| c.limits.pids = Some(4));
    let holder =
        Exec { stdin: true, ..Exec::shell("sleep 60 & sleep 60 & sleep 60 & echo in; read x") };
    let call = sandbox.begin(holder);
    let run = sandbox.sh("echo never");
    assert_eq!((run.code(), run.out().as_str()), (126, ""), "{run:?}");
    assert!(run.outcome.pids_refused && run.outcome.reason.is_some(), "{run:?}");
    drop(call);
    eventually("room again", || sandbox.sh("true").code() == 0);
    is_unharmed(sandbox);
}

#[test]
fn what_takes_too_much_memory_is_ended_with_that_reason() {
    require_sandbox!();
    let sandbox = with_limits(|c| c.limits.memory = Some(64 << 20));
    let run = sandbox.sh(&python("x = bytearray(512 << 20)"));
    assert!(run.outcome.oom_killed, "{run:?}");
    assert_eq!(run.code(), 137);
    assert_eq!(run.outcome.reason.as_deref(), Some("the memory limit was reached"));
    // In a child: the shell that waits for it lives on.
    let run = sandbox.sh("python3 -c 'x = bytearray(512 << 20)'; echo $?");
    assert_eq!(run.out(), "137\n", "{run:?}");
    is_unharmed(sandbox);
}

/// Memory that is a file is nobody's to be killed for; the sandbox has to go on regardless.
#[test]
fn filesystems_in_memory_filled_to_the_brim_do_not_end_the_sandbox() {
    require_sandbox!();
    let sandbox = with_limits(|c| c.limits.memory = Some(64 << 20));
    let init = sandbox.info().init_pid;
    for place in ["/dev/shm", "/run", "/var", "/tmp"] {
        let run = sandbox.exec(timed(
            &format!("dd if=/dev/zero of={place}/full bs=64k count=4800 2>/dev/null; echo $?"),
            60_000,
        ));
        let run = run.unwrap();
        assert!(!run.outcome.timed_out, "{place}: {run:?}");
        assert_eq!(sandbox.info().init_pid, init);
    }
    assert_eq!(sandbox.ok("rm -f /dev/shm/full /run/full /var/full /tmp/full; echo ok"), "ok\n");
    is_unharmed(sandbox);
}

/// A filesystem of a few MiB for as long as this lives.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn at(path: &Path) -> Self {
        std::fs::create_dir_all(path).unwrap();
        let options = ["-t", "tmpfs", "-o", "size=16m,mode=755", "none"];
        let mounted = Command::new("mount").args(options).arg(path).status().unwrap();
        assert!(mounted.success());
        Self(path.into())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

#[test]
fn a_full_disk_under_the_layer_is_an_error_of_the_command() {
    require_sandbox!();
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    std::fs::set_permissions(scratch.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let disk = SmallDisk::at(&scratch.path().join("disk"));
    let layer = disk.0.join("layer");
    let maker = own_users(Maker::new()).file("base-file", "from the base");
    let sandbox = maker.change(|config| config.layer = layer.clone()).start();
    let run = sandbox.sh("dd if=/dev/zero of=full bs=64k count=1024");
    assert_ne!(run.code(), 0);
    assert!(run.err().contains("No space left on device"), "{run:?}");
    let run = sandbox.sh("echo more >> base-file");
    assert!(run.err().contains("No space left") || run.code() == 0, "{run:?}");
    assert!(sandbox.ok("cat base-file").starts_with("from the base"));
    sandbox.ok("rm full");
    // The kernel forgets a deleted file a moment later, and only then its space is free.
    eventually("room again", || sandbox.sh("echo room > new").code() == 0);
    assert_eq!(sandbox.ok("cat new"), "room\n");
    is_unharmed(sandbox);
}

#[test]
fn many_open_files_are_an_error_of_the_command() {
    require_sandbox!();
    let sandbox = plain();
    sandbox.ok("echo x > file");
    let open = "import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(7)[1],) * 2)
held = []
try:
    while len(held) < 100000: held.append(os.open(sys.argv[1], os.O_RDONLY))
    print('no limit')
except OSError as e: print(e.strerror)
sys.stdout.flush(); sys.stdin.read()";
    let open = |path: &str| Exec {
        stdin: true,
        ..Exec::shell(format!("exec python3 -c \"{open}\" {path}"))
    };
    // One alone, then two on the workspace together: more than a hundred thousand.
    let run = sandbox.exec_with_input(open("/usr/bin/env"), b"").unwrap();
    assert_eq!(run.out(), "Too many open files\n", "{run:?}");
    let calls: Vec<_> =
        ["file", "file"].map(|path| sandbox.client.call(Request::Exec(open(path))).unwrap()).into();
    for call in &calls {
        let said = first_output(call);
        assert_eq!(String::from_utf8_lossy(&said), "Too many open files\n");
    }
    assert_eq!(sandbox.ok("cat file; echo y > other; cat other"), "x\ny\n");
    drop(calls);
    is_unharmed(sandbox);
}

#[test]
fn a_flood_to_a_reader_that_stopped_is_held_back_and_still_timed() {
    require_sandbox!();
    let sandbox = plain();
    let before = memory_of(sandbox.warden.id());
    let calls: Vec<_> = (0..4)
        .map(|_| sandbox.client.call(Request::Exec(timed("exec yes", 1000))).unwrap())
        .collect();
    let start = Instant::now();
    // Nobody reads, and others are not held up.
    while start.elapsed() < Duration::from_millis(1500) {
        assert_eq!(sandbox.ok("echo fine"), "fine\n");
    }
    let grown = memory_of(sandbox.warden.id()).saturating_sub(before);
    assert!(grown < 64 << 20, "grew by {grown} bytes");
    for call in calls {
        let run = collect(&call).unwrap();
        assert!(run.outcome.timed_out, "{:?}", run.outcome);
        assert_eq!(run.outcome.exit_code, 124);
        assert_eq!(run.outcome.stdout_bytes, run.stdout.len() as u64);
        assert!(start.elapsed() < PATIENCE);
    }
    is_unharmed(sandbox);
}

#[test]
fn a_flood_that_is_read_arrives_whole() {
    require_sandbox!();
    let sandbox = plain();
    let run = sandbox.sh("yes | head -c 20000000");
    assert_eq!((run.stdout.len(), run.outcome.stdout_bytes), (20_000_000, 20_000_000));
    let tiny = "import os\nfor i in range(100000): os.write(1, b'x')";
    let run = sandbox.sh(&python(tiny));
    assert_eq!((run.code(), run.stdout.len()), (0, 100_000));
    is_unharmed(sandbox);
}

#[test]
fn who_does_not_listen_is_ended_for_certain() {
    require_sandbox!();
    let sandbox = plain();
    let start = Instant::now();
    let deaf = "trap '' TERM INT HUP; echo began; while :; do sleep 0.05; done";
    let run = sandbox.exec(timed(deaf, 1500)).unwrap();
    assert!(run.outcome.timed_out, "{:?}", run.outcome);
    assert_eq!((run.code(), run.out().as_str()), (124, "began\n"));
    assert!(start.elapsed() < PATIENCE);
    is_unharmed(sandbox);
}

/// A double-forked process in a session of its own, deaf to everything that can be ignored, that can
/// be told from others by its name on the host.
fn daemon(name: &str) -> String {
    format!(
        "python3 -c \"import os, signal, time
for s in set(range(1, 32)) - set([signal.SIGCHLD]):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(3): os.close(fd)
        time.sleep(1000)
    os._exit(0)
os.wait()\" {name}"
    )
}

#[test]
fn daemons_do_not_outlive_their_command() {
    require_sandbox!();
    let sandbox = plain();
    let other = plain();
    let name = |n: u32| format!("daemon-{}-{n}", std::process::id());
    let gone = |name: &str| eventually(name, || processes_with(name).is_empty());
    let run = sandbox.sh(&format!("{}; echo done", daemon(&name(1))));
    assert_eq!((run.code(), run.out().as_str()), (0, "done\n"), "{run:?}");
    gone(&name(1));
    // Time enough for it to be up.
    let run = sandbox.exec(timed(&format!("{}; echo up; exec sleep 1000", daemon(&name(2))), 5000));
    let run = run.unwrap();
    assert!(run.outcome.timed_out && run.out() == "up\n", "{run:?}");
    gone(&name(2));
    // Never anything else: what another command runs at the same time goes on.
    let text = format!("{}; echo up; read x", daemon(&name(3)));
    let exec = Exec { stdin: true, ..Exec::shell(text) };
    let call = sandbox.begin(exec);
    let run = sandbox.exec(timed(&daemon(&name(4)), 60_000)).unwrap();
    assert_eq!(run.code(), 0);
    gone(&name(4));
    assert!(!processes_with(&name(3)).is_empty());
    drop(call);
    gone(&name(3));
    is_unharmed(sandbox);
    is_unharmed(other);
}

#[test]
fn a_command_that_kills_all_it_can_kills_itself() {
    require_sandbox!();
    let (sandbox, other) = (plain(), plain());
    let exec = Exec { stdin: true, ..Exec::shell("echo up; read x; echo $x") };
    let bystander = other.begin(exec);
    for _ in 0..3 {
        let run = sandbox.sh("kill -9 -1; sleep 10 & kill -9 $! ; kill -9 $$");
        assert_eq!(run.code(), 137, "{run:?}");
        assert!(!run.outcome.oom_killed && run.outcome.signal == Some(9), "{run:?}");
    }
    bystander.input(b"fine\n").unwrap();
    assert_eq!(collect(&bystander).unwrap().out(), "fine\n");
    is_unharmed(sandbox);
    is_unharmed(other);
}

#[test]
fn orphans_are_collected_by_the_thousand() {
    require_sandbox!();
    let sandbox = with_limits(|c| c.limits.pids = Some(500));
    let orphans = "import os
for i in range(3000):
    if os.fork() == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.wait()";
    let run = sandbox.sh(&python(orphans));
    assert_eq!((run.code(), run.err().as_str()), (0, ""), "{run:?}");
    let zombies = "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l";
    eventually("no zombies", || sandbox.ok(zombies).trim() == "0");
    is_unharmed(sandbox);
}

#[test]
fn a_deep_tree_ends_with_its_root() {
    require_sandbox!();
    let sandbox = plain();
    let name = format!("deep-{}", std::process::id());
    let deep = format!(
        "python3 -c \"import os, time
for i in range(300):
    if os.fork() != 0: os.wait(); os._exit(0)
print('down', flush=True); time.sleep(1000)\" {name}"
    );
    let call = sandbox.begin(Exec::shell(deep));
    assert!(processes_with(&name).len() >= 300);
    call.control(Control::Cancel).unwrap();
    assert!(collect(&call).unwrap().outcome.cancelled);
    eventually("the tree is gone", || processes_with(&name).is_empty());
    is_unharmed(sandbox);
}

#[test]
fn closed_streams_and_writers_in_the_background_do_not_confuse_the_end() {
    require_sandbox!();
    let sandbox = plain();
    let run = sandbox.sh("exec >&- 2>&-; sleep 0.2; exit 7");
    assert_eq!((run.code(), run.stdout.len() + run.stderr.len()), (7, 0));
    let start = Instant::now();
    let run = sandbox.sh("(while :; do echo noise; done) & echo said; exit 3");
    assert_eq!(run.code(), 3);
    assert!(run.out().contains("said"), "{run:?}");
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    is_unharmed(sandbox);
}

#[test]
fn two_hundred_commands_by_twenty_at_once_are_all_right() {
    require_sandbox!();
    let sandbox = plain();
    let check = |n: u32| {
        let Run { stdout, outcome, .. } =
            sandbox.sh(&format!("echo {n} > file-{n}; cat file-{n}; exit {}", n % 100));
        assert_eq!(String::from_utf8_lossy(&stdout), format!("{n}\n"));
        assert_eq!(outcome.exit_code, (n % 100) as i32);
    };
    std::thread::scope(|scope| {
        for thread in 0..20 {
            scope.spawn(move || (0..10).for_each(|n| check(thread * 10 + n)));
        }
    });
    assert_eq!(sandbox.ok("ls | wc -l").trim(), "200");
    is_unharmed(sandbox);
}
