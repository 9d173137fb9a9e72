//! What the journal promises, as a whole.

mod append;
mod crash;
mod tamper;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringfence_fs::events::{AccessEvent, Operation};
use ringfence_policy::{Level, Rule, WorkspacePath};

use super::event::{CommandEnded, CommandLine, CommandStarted, How, SandboxEnded};
use super::*;

const ID: &str = "sb_one";

/// A journal in a directory of its own, written out only when asked.
struct Kept {
    dir: tempfile::TempDir,
    journal: Journal,
}

fn slow(size_cap: u64) -> Options {
    Options { size_cap, flush_after: Duration::from_secs(3600) }
}

impl Kept {
    fn new() -> Self {
        Self::with(slow(1 << 30))
    }

    fn with(options: Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::create(dir.path(), ID, options).unwrap();
        Self { dir, journal }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn append(&self, event: Event) {
        self.journal.append(event).unwrap();
    }

    fn entries(&self) -> Vec<Entry> {
        self.journal.flush().unwrap();
        entries(self.path())
    }
}

fn entries(dir: &Path) -> Vec<Entry> {
    read(dir).unwrap().map(Result::unwrap).collect()
}

fn access(path: &str, granted: bool) -> Event {
    let event = AccessEvent {
        pid: 7,
        origin: 0,
        operation: Operation::Read,
        path: WorkspacePath::parse(path).unwrap(),
        needed: Level::Read,
        level: if granted { Level::Read } else { Level::None },
        granted,
        rule: Some(Rule::glob(Level::None, "**/.env*").at(100)),
    };
    Event::access(&event, Caller { command: Some("cmd_1".into()), ..Caller::default() })
}

fn started(command: &str) -> Event {
    Event::CommandStarted(CommandStarted {
        command: command.into(),
        how: How::Exec,
        session: None,
        line: CommandLine::Shell(Text::new("make test")),
        cwd: Text::new("/workspace"),
        env: List::new(["CI"]),
        trace: None,
    })
}

fn ended(command: &str) -> Event {
    let exit_code = Some(0);
    Event::CommandEnded(CommandEnded { command: command.into(), exit_code, ..Default::default() })
}

/// A small journal of everything, closed in order.
fn finished(id: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::create(dir.path(), id, slow(1 << 30)).unwrap();
    for number in 0..3 {
        journal.append(started(&format!("cmd_{number}"))).unwrap();
        journal.append(access(&format!("/src/{number}.py"), true)).unwrap();
        journal.append(access("/.env", false)).unwrap();
        journal.append(ended(&format!("cmd_{number}"))).unwrap();
    }
    let reason = "stopped".to_owned();
    journal.append(Event::SandboxEnded(SandboxEnded { reason, clean: true })).unwrap();
    journal.close().unwrap();
    dir
}

fn file(dir: &Path) -> PathBuf {
    dir.join(JOURNAL_FILE)
}

fn lines(dir: &Path) -> Vec<String> {
    fs::read_to_string(file(dir)).unwrap().lines().map(str::to_owned).collect()
}

fn put_lines(dir: &Path, lines: &[String]) {
    fs::write(file(dir), lines.concat_lines()).unwrap();
}

trait ConcatLines {
    fn concat_lines(&self) -> String;
}

impl ConcatLines for [String] {
    fn concat_lines(&self) -> String {
        self.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// The first thing that is wrong with the journal in `dir`.
fn broken(dir: &Path) -> Broken {
    match verify(dir, ID) {
        Err(VerifyError::Broken(broken)) => broken,
        other => panic!("not broken: {other:?}"),
    }
}
