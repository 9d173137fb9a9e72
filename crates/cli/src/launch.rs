//! Starting a warden for one command of this program, and making sure that nothing of it is left.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ringfence_link::client::Client;
use ringfence_link::warden::Request;
use ringfence_runtime::cgroup::Cgroups;
use ringfence_runtime::users::{DEFAULT_RANGE, Users};
use ringfence_warden::Config;
use ringfence_warden::life::{is_owned, remove_scratch};

use crate::failure::Failure;
use crate::warden::Greeting;

/// Is there while a warden is expected to run: what is found with it and without an owner was left
/// behind by a crash.
const RUNNING: &str = "running";

/// How many records of ended sandboxes without changes are kept.
const RECORDS: usize = 100;

/// A sandbox that runs for this process.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) client: Client,
    pub(crate) config: Config,
    warden: Child,
}

/// A new sandbox's id.
pub(crate) fn new_id() -> Result<String, Failure> {
    let mut bytes = [0u8; 8];
    let mut source = fs::File::open("/dev/urandom").map_err(Failure::broken)?;
    std::io::Read::read_exact(&mut source, &mut bytes).map_err(Failure::broken)?;
    Ok(bytes.iter().fold("sb_".to_string(), |id, byte| id + &format!("{byte:02x}")))
}

impl Launched {
    pub(crate) fn start(config: Config) -> Result<Self, Failure> {
        clean_up_after_others(&config);
        make_private_dir(&config.dir)?;
        let result = Self::start_in_dir(&config);
        if result.is_err() {
            clean_up(&config.dir, &config.id, &config.users);
            let _ = fs::remove_dir_all(&config.dir);
        }
        result
    }

    fn start_in_dir(config: &Config) -> Result<Self, Failure> {
        let (file, log) = (config.dir.join("config.json"), config.dir.join("warden.log"));
        let text = serde_json::to_vec_pretty(config).map_err(Failure::broken)?;
        fs::write(&file, text).map_err(Failure::broken)?;
        fs::write(config.dir.join(RUNNING), "").map_err(Failure::broken)?;
        let program = std::env::current_exe().map_err(Failure::broken)?;
        let mut warden = Command::new(program)
            .arg("warden")
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log).map_err(Failure::broken)?)
            .spawn()
            .map_err(Failure::broken)?;
        match greeting(&mut warden) {
            Some(Greeting::Ready { socket }) => {
                Ok(Self { client: Client::new(&socket), config: config.clone(), warden })
            }
            Some(Greeting::Failed { message, hint }) => {
                let _ = warden.wait();
                let failure = Failure::bad_input(message);
                Err(hint.into_iter().fold(failure, Failure::hint))
            }
            None => {
                let _ = warden.kill();
                let _ = warden.wait();
                let log = fs::read_to_string(&log).unwrap_or_default();
                let reason = log.lines().last().unwrap_or("it said nothing").to_owned();
                Err(Failure::broken(format!("the sandbox did not start: {reason}")))
            }
        }
    }

    /// Ends the sandbox and waits until nothing of it runs. The layer stays.
    pub(crate) fn end(mut self) -> Config {
        self.shut_down();
        self.config.clone()
    }

    fn shut_down(&mut self) {
        let _ = self.client.ask(Request::Stop);
        // The end of its standard input ends it too, should it not have heard.
        drop(self.warden.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(10);
        while matches!(self.warden.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = self.warden.kill();
                let _ = self.warden.wait();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        clean_up(&self.config.dir, &self.config.id, &self.config.users);
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        if self.config.dir.join(RUNNING).exists() {
            self.shut_down();
        }
    }
}

fn greeting(warden: &mut Child) -> Option<Greeting> {
    let mut line = String::new();
    BufReader::new(warden.stdout.take()?).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

fn make_private_dir(path: &Path) -> Result<(), Failure> {
    let failed =
        |path: &Path, e| Failure::bad_input(format!("cannot make {}: {e}", path.display()));
    let parent = path.parent().unwrap_or(path);
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o700);
    builder.recursive(true).create(parent).map_err(|e| {
        failed(parent, e).hint("name a directory with --state DIR or RINGFENCE_STATE")
    })?;
    builder.recursive(false).create(path).map_err(|e| failed(path, e))
}

/// Removes what a warden would have removed at an orderly end. Doing it again is fine.
fn clean_up(dir: &Path, id: &str, users: &Path) {
    if let Ok(cgroups) = Cgroups::of_this_host() {
        let _ = cgroups.remove_leftovers(id);
    }
    Users::new(DEFAULT_RANGE, users).sweep();
    remove_scratch(dir);
    for name in [RUNNING, "config.json", "lock"] {
        let _ = fs::remove_file(dir.join(name));
    }
    let log = dir.join("warden.log");
    if fs::metadata(&log).is_ok_and(|log| log.len() == 0) {
        let _ = fs::remove_file(log);
    }
}

/// What crashed wardens left, and records of long ago. Never in the way of the command itself.
fn clean_up_after_others(config: &Config) {
    let Some(all) = config.dir.parent() else { return };
    let Ok(entries) = fs::read_dir(all) else { return };
    let mut records = Vec::new();
    for dir in entries.flatten().map(|entry| entry.path()) {
        let id = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if dir.join(RUNNING).exists() && is_abandoned(&dir) {
            clean_up(&dir, &id, &config.users);
        }
        if !dir.join("layer").exists() && !dir.join(RUNNING).exists() {
            records.push((fs::metadata(&dir).and_then(|data| data.modified()).ok(), dir));
        }
    }
    records.sort();
    let too_many = records.len().saturating_sub(RECORDS);
    for (_, dir) in records.into_iter().take(too_many) {
        let _ = fs::remove_dir_all(dir);
    }
}

/// A warden takes its lock a moment after the directory was made; that moment is not a crash.
fn is_abandoned(dir: &Path) -> bool {
    let age = fs::metadata(dir.join(RUNNING)).and_then(|data| data.modified());
    let age = age.ok().and_then(|time| time.elapsed().ok()).unwrap_or_default();
    match fs::metadata(dir.join("lock")) {
        Ok(_) => !is_owned(dir),
        Err(e) if e.kind() == ErrorKind::NotFound => age > Duration::from_secs(60),
        Err(_) => false,
    }
}
