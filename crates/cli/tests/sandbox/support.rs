//! A sandbox for a test, and questions to ask it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ringfence_link::client::{Client, ClientError, Event, Ongoing};
use ringfence_link::warden::{
    Code, Exec, Info, OpenSession, Outcome, Reply, Request, SessionExec, SessionInfo,
};
use ringfence_policy::{Rule, preset};
use ringfence_runtime::{Limits, Network};
use ringfence_warden::Config;
use tempfile::TempDir;

/// Skips a test where the kernel or the host lacks something; fails where that must not happen.
macro_rules! require_sandbox {
    () => {
        if let Some(missing) = crate::support::missing() {
            assert!(
                std::env::var_os("RINGFENCE_REQUIRE_KERNEL").is_none(),
                "required and missing: {missing}"
            );
            eprintln!("skipped: {missing}");
            return;
        }
    };
}
pub(crate) use require_sandbox;

/// What a sandbox needs and this host does not have.
pub(crate) fn missing() -> Option<String> {
    if let Some(advice) = ringfence_sys::probe::fuse_device().advice() {
        return Some(format!("FUSE ({advice})"));
    }
    let found = Command::new("bwrap").arg("--version").stdout(Stdio::null()).status();
    (!found.is_ok_and(|status| status.success())).then(|| "bubblewrap".into())
}

/// How a sandbox is to be made.
pub(crate) struct Maker {
    scratch: TempDir,
    config: Config,
}

/// A sandbox that runs, with its warden; it ends when this is dropped.
pub(crate) struct Sandbox {
    pub(crate) client: Client,
    pub(crate) config: Config,
    pub(crate) warden: Child,
    _scratch: TempDir,
}

/// Everything a command said and how it ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) outcome: Outcome,
}

impl Run {
    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    pub(crate) fn code(&self) -> i32 {
        self.outcome.exit_code
    }
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Maker {
    pub(crate) fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = format!("t{}-{number}", std::process::id());
        let path = |name: &str| {
            let path = scratch.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let config = Config {
            id,
            dir: path("sandbox"),
            base: path("base"),
            layer: scratch.path().join("layer"),
            rules: preset("full-access").unwrap(),
            mask: vec![],
            ignore_files: vec![],
            limits: Limits::default(),
            network: Network::None,
            env: vec![],
            read_only: vec![],
            ends_with_caller: true,
            keeps_files: false,
            bwrap: None,
            users: ringfence_runtime::users::HOST_LOCKS.into(),
        };
        Self { scratch, config }
    }

    pub(crate) fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.config.base.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn rule(mut self, rule: &str) -> Self {
        self.config.rules.push(Rule::parse_cli(rule).unwrap());
        self
    }

    pub(crate) fn change(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Starts the warden and waits until it is ready.
    pub(crate) fn start(self) -> Sandbox {
        self.try_start().unwrap_or_else(|message| panic!("the warden did not start: {message}"))
    }

    pub(crate) fn try_start(self) -> Result<Sandbox, String> {
        let Self { scratch, config } = self;
        let file = scratch.path().join("config.json");
        std::fs::write(&file, serde_json::to_vec(&config).unwrap()).unwrap();
        let log = std::fs::File::create(scratch.path().join("warden.log")).unwrap();
        let mut warden = Command::new(env!("CARGO_BIN_EXE_ringfence"))
            .arg("warden")
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(warden.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if !line.contains("Ready") {
            warden.wait().unwrap();
            let log = std::fs::read_to_string(scratch.path().join("warden.log")).unwrap();
            return Err(format!("{line}{log}"));
        }
        let client = Client::new(&config.socket());
        Ok(Sandbox { client, config, warden, _scratch: scratch })
    }
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Maker::new().start()
    }

    pub(crate) fn info(&self) -> Info {
        match self.client.ask(Request::Info).unwrap() {
            Reply::Info(info) => *info,
            other => panic!("{other:?}"),
        }
    }

    /// How many threads of the warden have a name.
    pub(crate) fn threads(&self, name: &str) -> usize {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.warden.id())).unwrap();
        let named = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
        tasks.flatten().flat_map(named).filter(|comm| comm.trim() == name).count()
    }

    /// Runs a shell text and collects everything.
    pub(crate) fn sh(&self, text: &str) -> Run {
        self.exec(Exec::shell(text)).unwrap()
    }

    /// Runs a shell text that must succeed, and returns what it printed.
    pub(crate) fn ok(&self, text: &str) -> String {
        let run = self.sh(text);
        assert_eq!(run.code(), 0, "{text:?}: {run:?}");
        run.out()
    }

    pub(crate) fn exec(&self, exec: Exec) -> Result<Run, ClientError> {
        self.collect(Request::Exec(exec), &[])
    }

    pub(crate) fn exec_with_input(&self, mut exec: Exec, input: &[u8]) -> Result<Run, ClientError> {
        exec.stdin = true;
        self.collect(Request::Exec(exec), input)
    }

    pub(crate) fn open(&self, options: OpenSession) -> Result<SessionInfo, ClientError> {
        match self.client.ask(Request::OpenSession(options))? {
            Reply::Session(info) => Ok(info),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn in_session(&self, which: &str, exec: SessionExec) -> Result<Run, ClientError> {
        self.in_session_with_input(which, exec, &[])
    }

    pub(crate) fn in_session_with_input(
        &self,
        which: &str,
        exec: SessionExec,
        input: &[u8],
    ) -> Result<Run, ClientError> {
        self.collect(Request::SessionExec { which: which.into(), exec }, input)
    }

    /// Makes a call that ends with an outcome, sends the input, and collects what is said.
    pub(crate) fn collect(&self, request: Request, input: &[u8]) -> Result<Run, ClientError> {
        let takes_input = match &request {
            Request::Exec(exec) => exec.stdin,
            Request::SessionExec { exec, .. } => exec.stdin,
            _ => false,
        };
        let call = self.client.call(request)?;
        let sender = call.try_clone().unwrap();
        std::thread::scope(|scope| {
            if takes_input {
                scope.spawn(move || {
                    let _ = sender.input(input);
                    let _ = sender.control(ringfence_link::warden::Control::EndOfInput);
                });
            }
            collect(&call)
        })
    }

    /// Ends the sandbox in order, and waits for the warden to end.
    pub(crate) fn stop(mut self) -> PathBuf {
        let _ = self.client.ask(Request::Stop);
        self.warden.wait().unwrap();
        self.config.dir.clone()
    }
}

impl Sandbox {
    /// Ends the sandbox in order, and returns what is on record.
    pub(crate) fn stop_and_read_journal(mut self) -> String {
        let _ = self.client.ask(Request::Stop);
        self.warden.wait().unwrap();
        std::fs::read_to_string(self.config.dir.join("journal.jsonl")).unwrap()
    }
}

/// Follows a call to its outcome.
pub(crate) fn collect(call: &Ongoing) -> Result<Run, ClientError> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let reply = call.finish(|event| match event {
        Event::Output(bytes) => stdout.extend(bytes),
        Event::Error(bytes) => stderr.extend(bytes),
        Event::Reply(..) => {}
    })?;
    match reply {
        Reply::Done(outcome) => Ok(Run { stdout, stderr, outcome: *outcome }),
        other => panic!("{other:?}"),
    }
}

/// The code of an error that the warden reported.
pub(crate) fn code_of<T: std::fmt::Debug>(result: Result<T, ClientError>) -> Code {
    match result {
        Err(ClientError::Refused(failure)) => failure.code,
        other => panic!("{other:?}"),
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // It ends when its standard input does.
        drop(self.warden.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline {
            if !matches!(self.warden.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.warden.kill();
        let _ = self.warden.wait();
    }
}

/// Waits for something that happens elsewhere.
pub(crate) fn eventually(what: &str, mut happens: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !happens() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process of the host is there and not a zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// Host processes whose command line holds a text.
pub(crate) fn processes_with(text: &str) -> Vec<i32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let holds = |pid: &i32| {
        let line = std::fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline"));
        String::from_utf8_lossy(&line.unwrap_or_default()).contains(text)
    };
    pids.filter(holds).collect()
}
