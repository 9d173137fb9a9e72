//! A sandbox with its warden, started for a test, and what it is asked.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ringfence_link::client::{Client, ClientError, Ongoing};
use ringfence_link::warden::{
    Control, Exec, Info, OpenSession, Outcome, Reply, Request, SessionExec, SessionInfo,
};
use ringfence_policy::{Rule, preset};
use ringfence_runtime::{Limits, Network};
use ringfence_warden::Config;
use tempfile::TempDir;

use super::{PATIENCE, collect, first_output};

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

/// The image of the sandboxes, if these tests are to be run in containers.
pub(crate) fn image() -> Option<String> {
    std::env::var("RINGFENCE_TEST_IMAGE").ok().filter(|image| !image.is_empty())
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
            default_mask: vec![],
            ignore_files: vec![],
            limits: Limits::default(),
            network: Network::None,
            env: vec![],
            read_only: vec![],
            ends_with_caller: true,
            keeps_files: false,
            image: image(),
            image_user: false,
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

    /// Begins a command, and returns when it has printed something.
    pub(crate) fn begin(&self, exec: Exec) -> Ongoing {
        let call = self.client.call(Request::Exec(exec)).unwrap();
        first_output(&call);
        call
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
                    let _ = sender.control(Control::EndOfInput);
                });
            }
            collect(&call)
        })
    }

    /// Lets go on who waits at a [`gate`](super::gate).
    pub(crate) fn open_gate(&self, name: &str) {
        self.ok(&format!("touch /tmp/{name}"));
    }

    /// Ends the sandbox in order, and waits for the warden to end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        // The answer may be lost: the warden ends as it is sent.
        let _ = self.client.ask(Request::Stop);
        self.warden.wait().unwrap()
    }

    pub(crate) fn stop(mut self) {
        self.end();
    }

    /// Ends the sandbox in order, and returns what is on record.
    pub(crate) fn stop_and_read_journal(mut self) -> String {
        self.end();
        std::fs::read_to_string(self.config.dir.join("journal.jsonl")).unwrap()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // It ends when its standard input does.
        drop(self.warden.stdin.take());
        let deadline = Instant::now() + PATIENCE;
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
