//! What a program inside could do to get out: everything is tried, and nothing may lead anywhere.
//!
//! The attempts are made by `probe.py`, from inside and, to see that it can tell the difference,
//! on the host as root.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use ringfence_link::warden::Exec;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Maker, Sandbox, is_alive, require_sandbox, sandbox};

const PYTHON: &str = "/usr/bin/python3";
const PROBE: &str = include_str!("probe.py");
const DECOY: &str = "ringfence-decoy";
const SECRET: &str = "RINGFENCE_PLANTED_SECRET";

/// With the network of the host these are what was asked for.
const OF_THE_NETWORK: [&str; 3] =
    ["namespace net", "loopback of the host", "IPv6 loopback of the host"];

/// What is refused to root on some machines too, with nothing around it: they have these only after
/// asking, or have given up the right (development machines are without CAP_SYS_RESOURCE).
const NOT_EVEN_ROOT: [&str; 10] = [
    "/dev/vda",
    "/proc/self/uid_map",
    "/proc/sys/user/max_user_namespaces",
    "capabilities CapAmb",
    "capabilities CapInh",
    "oom score below zero",
    "raise the limit of core dumps",
    "raise the limit of open files",
    "paste on a console",
    "supplementary groups",
];

/// What a kernel says that was built without something.
const NOT_HERE: [&str; 5] = ["ENOENT", "ENOSYS", "EAFNOSUPPORT", "ENXIO", "ENODEV"];

/// The most that may be missing on a machine that is to prove something.
const MISSING: usize = 40;

/// Things on the host that are looked for from inside.
pub(crate) struct Host {
    scratch: TempDir,
    decoy: Child,
    marker: String,
    other: Sandbox,
    tcp4: TcpListener,
    tcp6: Option<TcpListener>,
    _sockets: (UnixListener, UnixListener, UnixListener, UnixDatagram),
}

impl Host {
    pub(crate) fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::set_permissions(scratch.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let path = |name: &str| scratch.path().join(name);
        for dir in ["base", "ro", "state/sandboxes", "work"] {
            std::fs::create_dir_all(path(dir)).unwrap();
        }
        std::fs::write(path("ro/probe.py"), PROBE).unwrap();
        std::fs::write(path("ro/root-only"), "secret").unwrap();
        std::fs::set_permissions(path("ro/root-only"), PermissionsExt::from_mode(0o600)).unwrap();
        for copy in ["ro/setuid-id", "base/setuid-id"] {
            std::fs::copy("/usr/bin/id", path(copy)).unwrap();
            std::fs::set_permissions(path(copy), PermissionsExt::from_mode(0o4755)).unwrap();
        }
        let marker = format!("{DECOY}-{}", scratch.path().display());
        let decoy = Command::new("/bin/sh")
            .args(["-c", "read forever", &marker])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let abstract_name = |kind: &str| SocketAddr::from_abstract_name(format!("{marker}{kind}"));
        let sockets = (
            UnixListener::bind(path("socket")).unwrap(),
            UnixListener::bind(path("base/socket")).unwrap(),
            UnixListener::bind_addr(&abstract_name("").unwrap()).unwrap(),
            UnixDatagram::bind_addr(&abstract_name("-datagram").unwrap()).unwrap(),
        );
        let other = Maker::new().file("file", "of another").start();
        other.ok("echo secret > /tmp/of-another; echo secret > ~/of-another");
        Self {
            decoy,
            other,
            tcp4: TcpListener::bind("127.0.0.1:0").unwrap(),
            tcp6: TcpListener::bind("[::1]:0").ok(),
            _sockets: sockets,
            marker,
            scratch,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// What is on the host and must not be found inside.
    fn paths(&self) -> BTreeMap<&'static str, PathBuf> {
        let other = &self.other.config;
        let program = PathBuf::from(env!("CARGO_BIN_EXE_ringfence"));
        BTreeMap::from([
            ("base", self.path("base")),
            ("sandboxes", self.path("state/sandboxes")),
            ("program", program),
            ("another's base", other.base.clone()),
            ("another's layer", other.layer.clone()),
            ("another's socket", other.socket()),
            ("another's journal", other.dir.join("journal.jsonl")),
            ("another's workspace", other.dir.join("workspace")),
            ("another's /tmp", other.dir.join("tmp/of-another")),
            ("another's home", other.dir.join("home/of-another")),
        ])
    }

    fn target(&self, inside: bool) -> Value {
        let namespaces = ["user", "mnt", "pid", "ipc", "uts", "cgroup", "net"];
        let id = |name: &str| std::fs::read_link(format!("/proc/self/ns/{name}")).unwrap();
        let namespaces: BTreeMap<_, _> = namespaces.iter().map(|name| (*name, id(name))).collect();
        let tcp6 = self.tcp6.as_ref().map_or(1, |socket| socket.local_addr().unwrap().port());
        json!({
            "init": if inside { 1 } else { self.decoy.id() },
            "init_fd": if inside { 3 } else { 0 },
            "host_pid": self.decoy.id(),
            "marker": self.marker,
            "variable": SECRET,
            "namespaces": namespaces,
            "host_paths": self.paths(),
            "read_only": [self.path("ro")],
            "root_file": self.path("ro/root-only"),
            "setuid": self.path("ro/setuid-id"),
            "socket": self.path("socket"),
            "abstract": self.marker,
            "abstract_datagram": format!("{}-datagram", self.marker),
            "tcp4": self.tcp4.local_addr().unwrap().port(),
            "tcp6": tcp6,
            "scratch": if inside { "/tmp".into() } else { self.path("work") },
        })
    }

    /// The target as an argument. The probe looks for a process with the marker, and must not find
    /// itself: it has the lower number where numbers have begun again.
    fn told(&self, inside: bool) -> String {
        self.target(inside).to_string().replace(DECOY, &DECOY.replacen('r', "\\u0072", 1))
    }

    /// The probe, started by `ringfence run` with a secret in its environment.
    fn probe_inside(&self, options: &[&str]) -> Answers {
        self.probe_by(Command::new(env!("CARGO_BIN_EXE_ringfence")), options)
    }

    /// The same by a command that ends in the program of this name.
    pub(crate) fn probe_by(&self, mut command: Command, options: &[&str]) -> Answers {
        command.args(["run", "--preset", "full-access", "--discard"]).args(options);
        command.arg("--state").arg(self.path("state")).arg("--ro-path").arg(self.path("ro"));
        command.arg(self.path("base")).arg("--").arg(PYTHON).arg(self.path("ro/probe.py"));
        command.arg(self.told(true)).env(SECRET, "secret");
        Answers::of(command.stdin(Stdio::null()).output().unwrap())
    }

    /// The probe as root, with nothing around it.
    fn probe_outside(&self) -> Answers {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec 9</dev/null; exec \"$@\"", "sh", PYTHON]);
        command.arg(self.path("ro/probe.py")).arg(self.told(false));
        command.current_dir(self.path("base")).env(SECRET, "secret");
        Answers::of(command.stdin(Stdio::null()).output().unwrap())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.decoy.kill();
        let _ = self.decoy.wait();
    }
}

/// What came of each attempt.
pub(crate) struct Answers {
    attempts: BTreeMap<String, (Option<bool>, String)>,
    facts: Value,
}

impl Answers {
    fn of(output: Output) -> Self {
        let Ok(answers) = serde_json::from_slice::<Value>(&output.stdout) else {
            panic!("the probe did not answer: {output:?}");
        };
        let attempts = serde_json::from_value(answers["attempts"].clone()).unwrap();
        Self { attempts, facts: answers["facts"].clone() }
    }

    /// The attempts that got through, or not, as lines to be read by a person.
    pub(crate) fn that(&self, got_through: bool) -> Vec<String> {
        let those = self.attempts.iter().filter(|(_, (through, _))| *through == Some(got_through));
        those.map(|(name, (_, detail))| format!("{name}: {detail}")).collect()
    }

    /// Attempts that failed for a reason of their own prove nothing.
    pub(crate) fn broken(&self) -> Vec<String> {
        let those = self.attempts.iter().filter(|(_, (through, _))| through.is_none());
        those.map(|(name, (_, detail))| format!("{name}: {detail}")).collect()
    }
}

fn name_of(line: &str) -> &str {
    line.split(": ").next().unwrap_or(line)
}

#[test]
fn nothing_inside_gets_through() {
    require_sandbox!();
    let host = Host::new();
    let answers = host.probe_inside(&[]);
    assert_eq!(answers.broken(), [""; 0]);
    assert_eq!(answers.that(true), [""; 0], "got through");
    assert!(answers.attempts.len() > 200, "{}", answers.attempts.len());
    let facts = &answers.facts;
    assert_eq!((&facts["uid"], &facts["gid"]), (&json!(1000), &json!(1000)));
    let known = ["HOME", "LANG", "LC_CTYPE", "PATH", "TERM", "TMPDIR", "USER"];
    let variables: Vec<String> = serde_json::from_value(facts["environment"].clone()).unwrap();
    assert!(variables.iter().all(|name| known.contains(&&name[..])), "{variables:?}");
}

#[test]
fn with_the_network_of_the_host_nothing_but_the_network_is_reached() {
    require_sandbox!();
    let host = Host::new();
    let answers = host.probe_inside(&["--net", "host"]);
    let through = answers.that(true);
    let unasked: Vec<_> =
        through.iter().filter(|line| !OF_THE_NETWORK.contains(&name_of(line))).collect();
    assert!(unasked.is_empty(), "got through: {unasked:#?}");
    assert!(through.iter().any(|line| name_of(line) == "loopback of the host"), "{through:?}");
}

/// The attempts mean something only if they succeed where nothing is in their way.
#[test]
fn the_same_attempts_get_through_where_nothing_confines_them() {
    require_sandbox!();
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let host = Host::new();
    let answers = host.probe_outside();
    assert_eq!(answers.broken(), [""; 0]);
    let held = answers.that(false);
    let explained = |line: &&String| NOT_EVEN_ROOT.iter().any(|name| line.starts_with(name));
    let missing = |line: &&String| NOT_HERE.iter().any(|code| line.ends_with(code));
    let unexpected: Vec<_> =
        held.iter().filter(|line| !explained(line) && !missing(line)).collect();
    assert!(unexpected.is_empty(), "refused without a sandbox: {unexpected:#?}");
    assert!(held.iter().filter(missing).count() <= MISSING, "hardly anything is here: {held:#?}");
}

/// A kernel without these would refuse them too, with another code: it is the filter that does.
#[test]
fn the_filter_refuses_before_the_kernel_looks() {
    require_sandbox!();
    let answers = Host::new().probe_inside(&[]);
    let filtered = |name: &String| {
        name.starts_with("socket ") || name.contains(" a module") || name.starts_with("unshare ")
    };
    let those: Vec<_> = answers.attempts.iter().filter(|(name, _)| filtered(name)).collect();
    assert!(those.len() > 40, "{those:?}");
    for (name, (_, code)) in those {
        assert_eq!(code, "EPERM", "{name}");
    }
    let (_, ending) = &answers.attempts["i386 calls"];
    assert_eq!(ending, &format!("ended with {}", libc::SIGSYS));
}

#[test]
fn init_cannot_be_ended_or_stopped_from_inside() {
    require_sandbox!();
    let sandbox = Sandbox::new();
    let init = sandbox.info().init_pid;
    let signals = "import os, resource
for signal in range(1, 65):
    try: os.kill(1, signal)
    except OSError: pass
for limit in range(16):
    try: resource.prlimit(1, limit, (0, 0))
    except (OSError, ValueError): pass
    else: print('limited', limit)
os.system('kill -9 1; kill -STOP 1')";
    let run = sandbox.sh(&format!("python3 -c \"{signals}\""));
    assert_eq!(run.out(), "");
    assert_eq!(sandbox.ok("echo still there"), "still there\n");
    assert!(is_alive(init));
}

#[test]
fn two_sandboxes_know_nothing_of_each_other() {
    require_sandbox!();
    let [one, other] = [Sandbox::new(), Sandbox::new()];
    if rustix::process::geteuid().is_root() {
        assert_ne!(one.info().uid, other.info().uid);
        assert!([&one, &other].iter().all(|sandbox| sandbox.info().uid >= 200_000));
    }
    for place in ["/tmp", "/dev/shm", "/run", "/var", "$HOME", "/workspace"] {
        let text = format!("echo secret > {place}/of-one || true; ls {place}");
        one.ok(&text);
        assert!(!other.ok(&format!("ls {place}")).contains("of-one"), "{place}");
    }
    let processes: u32 = other.ok("ls /proc | grep -c '^[0-9]'").trim().parse().unwrap();
    assert!(processes <= 4, "init, sh, ls, grep: {processes}");
    let listening = "import socket,sys
s = socket.socket(socket.AF_UNIX); s.bind('\\0ringfence-of-one'); s.listen()
t = socket.socket(); t.bind(('127.0.0.1', 47811)); t.listen()
print('ready', flush=True); sys.stdin.read()";
    let exec = Exec { stdin: true, ..Exec::shell(format!("python3 -c \"{listening}\"")) };
    let _listening = one.begin(exec);
    let connect = "import socket
for family, address in [(socket.AF_UNIX, '\\0ringfence-of-one'), (socket.AF_INET, ('127.0.0.1', 47811))]:
    try: socket.socket(family).connect(address); print('connected')
    except OSError as e: print(e.strerror)";
    let connect = format!("python3 -c \"{connect}\"");
    assert_eq!(other.ok(&connect), "Connection refused\nConnection refused\n");
    assert_eq!(one.ok(&connect), "connected\nconnected\n");
}

/// Programs inherit two filters from init and have one more; init is as unprivileged as they are.
#[test]
fn init_is_confined_like_what_it_starts() {
    let sandbox = sandbox!();
    let status = std::fs::read_to_string(format!("/proc/{}/status", sandbox.info().init_pid));
    let inside = sandbox.ok("cat /proc/self/status");
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.unwrap().rsplit('\t').next().unwrap().trim().to_owned()
    };
    for (text, filters) in [(status.unwrap(), "2"), (inside, "3")] {
        assert_eq!(field(&text, "Seccomp:"), "2");
        assert_eq!(field(&text, "Seccomp_filters:"), filters);
        assert_eq!(field(&text, "NoNewPrivs:"), "1");
        assert_eq!(field(&text, "CapEff:"), "0000000000000000");
    }
}
