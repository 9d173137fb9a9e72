//! From a description to a sandbox that runs, and to nothing left of it.
//!
//! The order matters. Namespaces come before threads. Everything that can be refused is refused
//! before something runs. At the end, what runs goes first, then what it ran on.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ringfence_fs::MountError;
use ringfence_fs::events;
use ringfence_fs::mount::mount;
use ringfence_link::VERSION;
use ringfence_link::socket::SocketPath;
use ringfence_link::warden::{Failure, Info};
use ringfence_policy::{Policy, Rule};
use ringfence_runtime::cgroup::SandboxGroup;
use ringfence_runtime::{Network, RuntimeError, Started};
use ringfence_sys::files::Locked;
use ringfence_sys::probe::{FuseDevice, fuse_device};
use ringfence_sys::removal::remove_tree;

use crate::config::Config;
use crate::environment::invalid;
use crate::ground::{Allotted, Places, limits_of, mount_options, runtime_of, start_of, with_image};
use crate::inside::Inside;
use crate::journal::event::{Limits, PolicyChanged, PolicyInForce, SandboxEnded, SandboxStarted};
use crate::journal::{Event, Journal, JournalError, Options};
use crate::ledger::Ledger;
use crate::origins::Origins;
use crate::sandbox::{Sandbox, internal};

/// How long a sandbox lives before it counts as one that stays.
const SETTLED: Duration = Duration::from_secs(1);

/// Unread access events; beyond that they are counted as lost.
const EVENTS: u64 = 64 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{0}")]
    Policy(#[from] ringfence_policy::CompileError),
    #[error(transparent)]
    Mount(#[from] MountError),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("FUSE cannot be used: {}", device.problem())]
    Fuse { device: FuseDevice },
    #[error("another warden owns this sandbox")]
    Owned,
    #[error("cannot {step}: {source}")]
    Io { step: &'static str, source: io::Error },
}

impl StartError {
    pub(crate) fn io(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { step, source }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Runtime(error) => error.hint().map(str::to_owned),
            Self::Fuse { device } => device.advice().map(str::to_owned),
            _ => None,
        }
    }
}

/// A sandbox that runs. Dropping it without [`Warden::run`] ends it.
pub struct Warden {
    sandbox: Arc<Sandbox>,
    outermost: Started,
    stop: Receiver<String>,
    _user: Allotted,
    _lock: Locked,
}

impl std::fmt::Debug for Warden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Warden").field("id", &self.sandbox.config.id).finish_non_exhaustive()
    }
}

impl Warden {
    /// Starts the sandbox. Must be called by the main thread before there are others, which must
    /// then call [`Warden::run`]: what is started ends with the thread that started it.
    pub fn start(mut config: Config) -> Result<Self, StartError> {
        let policy = Arc::new(Policy::compile(config.rules.clone())?);
        let lock = own(&config.dir)?;
        check_fuse()?;
        ringfence_sys::namespaces::enter_private_mounts()
            .map_err(StartError::io("enter namespaces of its own"))?;
        rustix::process::umask(rustix::fs::Mode::empty());
        config.limits = limits_of(&config);
        let runtime = runtime_of(&config);
        let user = Allotted::for_sandbox(&config)?;
        let ids = user.ids;
        let limits = config.limits.beside(runtime.own_processes());
        let group = SandboxGroup::create(&config.id, &limits, ids)?;
        let places = Places::make(&config.dir, ids).map_err(StartError::io("make directories"))?;
        let origins = Arc::new(Origins::default());
        let (sink, events) = events::channel(EVENTS);
        let resolver = origins.clone();
        let sink = sink.with_origins(Arc::new(move |pid| resolver.command_of(pid)));
        let (stopper, stop) = channel();
        let lost = stopper.clone();
        let mounted =
            mount(&mount_options(&config, &places, ids), policy, sink.clone(), move || {
                let _ = lost.send("the workspace was unmounted".into());
            })?;
        let outermost = runtime.start(&start_of(&config, &places, ids)?, &group)?;
        let inside = greet(&outermost)?;
        check_network(config.network, inside.confinement().landlock)
            .inspect_err(|_| outermost.end())?;
        config.env = with_image(&outermost.env, &config.env);
        let journal = Arc::new(open_journal(&config)?);
        let ledger = Arc::new(Ledger::default());
        let (reader, record) = (ledger.clone(), journal.clone());
        std::thread::Builder::new()
            .name("events".into())
            .spawn(move || reader.follow(&events, &record))
            .map_err(StartError::io("start a thread"))?;
        let info = describe(&config, runtime.name(), ids, &inside, &group, outermost.init_pid);
        let sandbox = Arc::new(Sandbox {
            info,
            inside,
            group,
            origins,
            ledger,
            sink,
            journal,
            mounted: Mutex::new(mounted),
            user: ids,
            sessions: Default::default(),
            processes: Default::default(),
            terminals: Default::default(),
            reactor: Default::default(),
            running: Mutex::default(),
            next: AtomicU64::new(1),
            calls: AtomicU64::new(0),
            stop: stopper,
            config,
        });
        sandbox.record_start();
        let warden = Self { sandbox, outermost, stop, _user: user, _lock: lock };
        warden.listen()?;
        Ok(warden)
    }

    fn listen(&self) -> Result<(), StartError> {
        let path = self.sandbox.config.socket();
        let _ = std::fs::remove_file(&path);
        let listener = SocketPath::of(&path).and_then(UnixListener::bind);
        let listener = listener.map_err(StartError::io("listen"))?;
        // Its directory keeps others out; this is for the day when it does not.
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600))
            .map_err(StartError::io("listen"))?;
        let sandbox = self.sandbox.clone();
        let accept = move || crate::serve::accept(&sandbox, &listener);
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.into()).spawn(run).map(drop)
        };
        spawn("accept", Box::new(accept)).map_err(StartError::io("start a thread"))?;
        let (stop, end) = (self.sandbox.stop.clone(), self.outermost.child.pidfd.try_clone());
        let end = end.map_err(StartError::io("watch the sandbox"))?;
        let watch = move || watch_the_inside(&end, &stop);
        spawn("watch", Box::new(watch)).map_err(StartError::io("start a thread"))?;
        if self.sandbox.config.ends_with_caller {
            let stop = self.sandbox.stop.clone();
            let watch = move || watch_the_caller(&stop);
            spawn("caller", Box::new(watch)).map_err(StartError::io("start a thread"))?;
        }
        Ok(())
    }

    /// Serves until asked to stop or until the inside ends, then takes everything down. Returns
    /// why it ended.
    pub fn run(self) -> String {
        let reason = self.stop.recv_timeout(SETTLED).or_else(|_| {
            // Much of what is mapped now was for the start.
            ringfence_sys::memory::give_back_code();
            self.stop.recv()
        });
        let reason = reason.unwrap_or_else(|_| "nobody is left to ask".into());
        self.end(&reason);
        reason
    }

    /// Asks the warden to end as if a caller had.
    pub fn stopper(&self) -> Sender<String> {
        self.sandbox.stop.clone()
    }

    fn end(&self, reason: &str) {
        let sandbox = &self.sandbox;
        sandbox.sessions.close_all("the sandbox stopped");
        sandbox.inside.hang_up();
        let ended = crate::pump::readable(&self.outermost.child, Duration::from_secs(1));
        if !ended {
            let _ = sandbox.group.kill_all();
            self.outermost.kill();
            crate::pump::readable(&self.outermost.child, Duration::from_secs(5));
        }
        // Should bwrap have been killed, and init not have noticed yet.
        self.outermost.kill();
        let _ = rustix::process::waitpid(
            Some(self.outermost.child.pid),
            rustix::process::WaitOptions::NOHANG,
        );
        self.outermost.clear_away();
        sandbox.reactor.settle(Duration::from_secs(2));
        sandbox.sessions.wait_closed(Duration::from_secs(2));
        sandbox.answer_calls(Duration::from_millis(500));
        let removed = sandbox.group.remove();
        let unmounted = sandbox.mounted.lock().end();
        let clean = removed.is_ok() && unmounted.is_ok();
        sandbox.record(Event::SandboxEnded(SandboxEnded { reason: reason.into(), clean }));
        let _ = sandbox.journal.close();
        let _ = std::fs::remove_file(sandbox.config.socket());
        match sandbox.config.keeps_files {
            true => remove_stage(&sandbox.config.dir),
            false => remove_scratch(&sandbox.config.dir),
        }
    }
}

/// The parts of a sandbox's directory that go with it. (The journal stays; the layer is the
/// owner's.)
pub fn remove_scratch(dir: &Path) {
    for name in ["home", "tmp"] {
        let _ = remove_tree(&dir.join(name));
    }
    remove_stage(dir);
}

/// What is of use only while a warden runs.
fn remove_stage(dir: &Path) {
    let _ = std::fs::remove_dir_all(dir.join("stage"));
    let _ = std::fs::remove_dir(dir.join("workspace"));
    let _ = std::fs::remove_file(dir.join("warden.sock"));
}

/// Whether a warden owns this directory now.
pub fn is_owned(dir: &Path) -> bool {
    File::open(dir.join("lock")).is_ok_and(|file| Locked::is_held(&file))
}

/// The lock is held before it can be found, so that nobody takes a sandbox that begins for one that
/// was left. Somebody may just be looking: that is waited for.
fn own(dir: &Path) -> Result<Locked, StartError> {
    let (path, new) = (dir.join("lock"), dir.join("lock.new"));
    let made = || match File::options().write(true).open(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let mut options = File::options();
            let file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            let lock = Locked::take(file)?;
            std::fs::rename(&new, &path).map(|()| lock)
        }
        file => Locked::take(file?),
    };
    for _ in 0..100 {
        if let Some(lock) = made().map_err(StartError::io("lock the sandbox"))? {
            return Ok(lock);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(StartError::Owned)
}

fn check_fuse() -> Result<(), StartError> {
    match fuse_device() {
        FuseDevice::Usable => Ok(()),
        device => Err(StartError::Fuse { device }),
    }
}

/// Takes init's first message; what bwrap complained about is the better reason if there is none.
fn greet(outermost: &Started) -> Result<Arc<Inside>, StartError> {
    let socket = outermost.socket.try_clone().map_err(StartError::io("reach the inside"))?;
    let inside = outermost.answers().then(|| Inside::greet(socket));
    // However it went: what is bound there would keep the workspace busy.
    outermost.settled();
    match inside {
        Some(Ok(inside)) => Ok(inside),
        _ => {
            outermost.end();
            Err(outermost.failure().into())
        }
    }
}

/// Abstract sockets belong to a network namespace: with that of the host, only Landlock keeps those
/// of its services (desktops, daemons) out of reach.
fn check_network(network: Network, landlock: u32) -> Result<(), RuntimeError> {
    const SCOPES: u32 = 6;
    if network != Network::Host || landlock >= SCOPES {
        return Ok(());
    }
    Err(RuntimeError::Unsupported {
        message: format!(
            "the network of the host cannot be given: this kernel has Landlock ABI {landlock}, and \
             without ABI {SCOPES} abstract sockets of the host's services could be reached"
        ),
        hint: "use Linux 6.12 or newer with Landlock enabled, or do without the network".into(),
    })
}

fn open_journal(config: &Config) -> Result<Journal, JournalError> {
    match Journal::create(&config.dir, &config.id, Options::default()) {
        Err(JournalError::Exists { .. }) => {
            Journal::reopen(&config.dir, &config.id, Options::default())
        }
        other => other,
    }
}

fn describe(
    config: &Config,
    runtime: &str,
    ids: Option<(u32, u32)>,
    inside: &Inside,
    group: &SandboxGroup,
    init_pid: i32,
) -> Info {
    let confinement = inside.confinement();
    let tracked = group.attach().cgroup.is_some();
    Info {
        id: config.id.clone(),
        version: VERSION,
        runtime: runtime.into(),
        uid: ids.map_or_else(|| rustix::process::geteuid().as_raw(), |(uid, _)| uid),
        network: network_name(config.network).into(),
        seccomp: confinement.seccomp,
        landlock: confinement.landlock,
        memory: config.limits.memory,
        cpu_quota: config.limits.cpu_quota,
        cpu_shares: config.limits.cpu_shares,
        pids: config.limits.pids,
        tracking: if tracked { "cgroup" } else { "best effort" }.into(),
        warden_pid: std::process::id() as i32,
        init_pid,
    }
}

fn network_name(network: Network) -> &'static str {
    match network {
        Network::None => "none",
        Network::Host => "host",
        Network::Bridge => "bridge",
    }
}

/// The end of the outermost process is the end of everything inside.
fn watch_the_inside(outermost: &std::os::fd::OwnedFd, stop: &Sender<String>) {
    while !crate::pump::readable(outermost, Duration::from_secs(3600)) {}
    let _ = stop.send("what runs inside has ended".into());
}

fn watch_the_caller(stop: &Sender<String>) {
    let mut rest = Vec::new();
    let _ = io::stdin().read_to_end(&mut rest);
    let _ = stop.send("whoever started it has gone".into());
}

impl Sandbox {
    fn record_start(&self) {
        let info = &self.info;
        let mut confinement = vec![format!("tracking {}", info.tracking)];
        confinement.extend(info.seccomp.then(|| "seccomp".into()));
        confinement.extend((info.landlock > 0).then(|| format!("landlock {}", info.landlock)));
        self.record(Event::SandboxStarted(SandboxStarted {
            runtime: info.runtime.clone(),
            uid: info.uid,
            limits: Limits {
                memory_bytes: info.memory,
                cpu_quota_us: info.cpu_quota,
                cpu_shares: info.cpu_shares,
                pids: info.pids,
                wall_time_us: None,
            },
            network: info.network.clone(),
            policy: PolicyInForce::of(&self.config.rules),
            confinement,
        }));
    }

    /// Puts other rules in force, for new opens at once.
    pub(crate) fn set_policy(&self, rules: &str) -> Result<(), Failure> {
        let rules: Vec<Rule> = serde_json::from_str(rules).map_err(|e| invalid(e.to_string()))?;
        let policy = PolicyInForce::of(&rules);
        let compiled = Policy::compile(rules).map_err(|e| invalid(e.to_string()))?;
        self.mounted.lock().set_policy(Arc::new(compiled)).map_err(internal)?;
        self.record(Event::PolicyChanged(PolicyChanged { policy, by: None }));
        Ok(())
    }

    /// Waits until whoever asked has been told how it ended.
    fn answer_calls(&self, longest: Duration) {
        let deadline = Instant::now() + longest;
        while self.calls.load(Ordering::Acquire) > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Asks the main thread to end everything, and waits until nothing runs inside.
    pub(crate) fn stop_and_wait(&self, reason: &str) {
        let _ = self.stop.send(reason.into());
        while !self.inside.is_gone() {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renamed into place when it is held already: one that was made there could be found first.
    #[test]
    fn a_lock_is_never_found_that_nobody_holds() {
        use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
        let dir = tempfile::tempdir().unwrap();
        let watch = init(CreateFlags::NONBLOCK).unwrap();
        add_watch(&watch, dir.path(), WatchFlags::CREATE | WatchFlags::MOVED_TO).unwrap();
        let lock = own(dir.path()).unwrap();
        let (mut buffer, mut appeared) = ([std::mem::MaybeUninit::uninit(); 4096], None);
        let mut events = Reader::new(&watch, &mut buffer);
        while let Ok(event) = events.next() {
            if event.file_name() == Some(c"lock") {
                appeared.get_or_insert(event.events());
            }
        }
        assert_eq!(appeared, Some(ReadFlags::MOVED_TO));
        assert!(is_owned(dir.path()));
        assert!(matches!(own(dir.path()), Err(StartError::Owned)));
        drop(lock);
        assert!(!is_owned(dir.path()));
        own(dir.path()).unwrap();
    }

    #[test]
    fn the_network_of_the_host_is_given_only_where_abstract_sockets_are_closed() {
        for landlock in [0, 5, 6, 7] {
            assert!(check_network(Network::None, landlock).is_ok());
            assert_eq!(check_network(Network::Host, landlock).is_ok(), landlock >= 6);
        }
        let error = check_network(Network::Host, 4).unwrap_err();
        assert!(error.to_string().contains("Landlock ABI 4") && error.hint().is_some(), "{error}");
    }
}
