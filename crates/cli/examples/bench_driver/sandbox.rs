//! A sandbox through its warden, from start to end, as the CLI does it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use ringfence_link::client::{Client, Event};
use ringfence_link::warden::{Exec, OpenSession, Reply, Request, SessionExec};
use ringfence_policy::preset;
use ringfence_runtime::{Limits, Network};
use ringfence_warden::Config;

use crate::order::Trouble;

/// The command that is over before it has begun.
pub(crate) const TRUE: &str = "/bin/true";

/// Starts sandboxes.
#[derive(Debug)]
pub(crate) struct Maker {
    ringfence: PathBuf,
    scratch: PathBuf,
    next: AtomicU64,
}

/// A sandbox that runs. It ends when this is dropped, because its warden's standard input does.
#[derive(Debug)]
pub(crate) struct Sandbox {
    pub(crate) client: Client,
    warden: Child,
    place: PathBuf,
}

impl Maker {
    pub(crate) fn new(ringfence: PathBuf, scratch: PathBuf) -> Self {
        Self { ringfence, scratch, next: AtomicU64::new(0) }
    }

    /// A directory that nobody had before, and its number.
    pub(crate) fn place(&self) -> Result<(PathBuf, u64), Trouble> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let place = self.scratch.join(number.to_string());
        fs::create_dir_all(&place)?;
        Ok((place, number))
    }

    /// Returns when the warden says that it is ready.
    pub(crate) fn start(&self, base: &Path) -> Result<Sandbox, Trouble> {
        let (place, number) = self.place()?;
        let config = self.config(base, &place, number)?;
        fs::create_dir(&config.dir)?;
        let file = place.join("config.json");
        fs::write(&file, serde_json::to_vec(&config)?)?;
        let log = place.join("warden.log");
        let mut warden = Command::new(&self.ringfence)
            .arg("warden")
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log)?)
            .spawn()?;
        let mut greeting = String::new();
        if let Some(said) = warden.stdout.take() {
            BufReader::new(said).read_line(&mut greeting)?;
        }
        if !greeting.contains("Ready") {
            let _ = warden.kill();
            warden.wait()?;
            let reason = greeting + &fs::read_to_string(&log)?;
            return Err(Trouble::new(format!("the warden did not start: {}", reason.trim())));
        }
        Ok(Sandbox { client: Client::new(&config.socket()), warden, place })
    }

    /// The policy that is the default, and limits as somebody who runs many would set them.
    fn config(&self, base: &Path, place: &Path, number: u64) -> Result<Config, Trouble> {
        Ok(Config {
            id: format!("bench{}-{number}", std::process::id()),
            dir: place.join("sandbox"),
            base: base.into(),
            layer: place.join("layer"),
            rules: preset("agent-safe").ok_or_else(|| Trouble::new("there is no agent-safe"))?,
            mask: vec![],
            default_mask: vec![],
            ignore_files: vec![],
            limits: Limits { memory: Some(1 << 30), pids: Some(256), ..Limits::default() },
            network: Network::None,
            env: vec![],
            read_only: vec![],
            ends_with_caller: true,
            keeps_files: false,
            image: std::env::var("RINGFENCE_BENCH_IMAGE").ok(),
            image_user: false,
            bwrap: None,
            users: self.scratch.join("users"),
        })
    }
}

impl Sandbox {
    pub(crate) fn warden_pid(&self) -> u32 {
        self.warden.id()
    }

    /// Runs a program to its end; says how much it printed.
    pub(crate) fn exec(&self, argv: &[String]) -> Result<u64, Trouble> {
        let argv = argv.iter().map(|word| word.clone().into_bytes()).collect();
        let command = ringfence_link::warden::Command::Argv(argv);
        self.run(Request::Exec(Exec::new(command)))
    }

    pub(crate) fn open_session(&self) -> Result<String, Trouble> {
        match self.client.ask(Request::OpenSession(OpenSession::default()))? {
            Reply::Session(session) => Ok(session.id),
            other => Err(Trouble::new(format!("no session but {other:?}"))),
        }
    }

    pub(crate) fn close_session(&self, which: String) -> Result<(), Trouble> {
        self.client.ask(Request::CloseSession { which })?;
        Ok(())
    }

    /// Runs a text in a session; says how much it printed.
    pub(crate) fn in_session(&self, which: &str, text: &str) -> Result<u64, Trouble> {
        let exec = SessionExec::new(text);
        self.run(Request::SessionExec { which: which.into(), exec })
    }

    fn run(&self, request: Request) -> Result<u64, Trouble> {
        let mut printed = 0;
        let outcome = self.client.run(request, |event| {
            if let Event::Output(bytes) = event {
                printed += bytes.len() as u64;
            }
        })?;
        match outcome.exit_code {
            0 => Ok(printed),
            code => Err(Trouble::new(format!("the command ended with {code}"))),
        }
    }

    /// Returns when the warden has ended, and with it everything of the sandbox that runs.
    pub(crate) fn stop(&mut self) -> Result<(), Trouble> {
        // It may be gone before it has answered.
        let _ = self.client.ask(Request::Stop);
        match self.warden.wait()?.success() {
            true => Ok(()),
            false => Err(Trouble::new("the warden did not end in order")),
        }
    }

    /// The layer and the journal, which outlive a sandbox.
    pub(crate) fn remove(self) -> Result<(), Trouble> {
        Ok(fs::remove_dir_all(&self.place)?)
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        drop(self.warden.stdin.take());
        let _ = self.warden.wait();
    }
}
