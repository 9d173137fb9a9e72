//! `ringfence audit`: reading the record of a sandbox, and checking it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, SystemTime};

use crate::support::binary;
use ringfence_warden::journal::event::{
    Access, CommandEnded, CommandLine, CommandStarted, Decision, How, RuleName, SandboxEnded,
};
use ringfence_warden::journal::{Event, JOURNAL_FILE, Journal, List, Options, Text};
use serde_json::Value;

/// A state directory with sandboxes in it.
struct State(tempfile::TempDir);

impl State {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn sandbox(&self, id: &str) -> PathBuf {
        let dir = self.0.path().join("sandboxes").join(id);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn journal(&self, id: &str) -> Journal {
        self.journal_flushed(id, Duration::from_millis(1))
    }

    fn journal_flushed(&self, id: &str, flush_after: Duration) -> Journal {
        let options = Options { flush_after, ..Options::default() };
        Journal::create(&self.sandbox(id), id, options).unwrap()
    }

    /// A sandbox that ran one command and ended.
    fn finished(&self, id: &str) -> PathBuf {
        // What is folded must not depend on the clock.
        let journal = self.journal_flushed(id, Duration::from_secs(3600));
        journal.append(started("cmd_1", "cat .env\n")).unwrap();
        journal.append(access(b"/src/main.py", Decision::Granted)).unwrap();
        (0..3).for_each(|_| journal.append(access(b"/.env", Decision::Denied)).unwrap());
        journal.append(ended("cmd_1")).unwrap();
        let reason = "stopped".to_owned();
        journal.append(Event::SandboxEnded(SandboxEnded { reason, clean: true })).unwrap();
        journal.close().unwrap();
        self.sandbox(id)
    }

    fn audit(&self, args: &[&str]) -> Output {
        binary().arg("audit").args(args).arg("--state").arg(self.0.path()).output().unwrap()
    }

    fn ok(&self, args: &[&str]) -> String {
        let output = self.audit(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn fails(&self, args: &[&str], code: i32) -> String {
        let output = self.audit(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }
}

fn started(command: &str, text: &str) -> Event {
    Event::CommandStarted(CommandStarted {
        command: command.into(),
        how: How::Exec,
        session: None,
        line: CommandLine::Shell(Text::new(text)),
        cwd: Text::new("/workspace"),
        env: List::default(),
        trace: None,
    })
}

fn ended(command: &str) -> Event {
    Event::CommandEnded(CommandEnded {
        command: command.into(),
        exit_code: Some(1),
        duration_us: 52_000,
        timed_out: true,
        ..CommandEnded::default()
    })
}

fn access(path: &[u8], decision: Decision) -> Event {
    let rule = RuleName { text: "none:**/.env*@100".into(), source: "preset agent-safe".into() };
    Event::Access(Access {
        operation: "read".into(),
        path: Text::new(path),
        decision,
        needed: "read".parse().unwrap(),
        level: "none".parse().unwrap(),
        rule: (decision == Decision::Denied).then_some(rule),
        pid: 12,
        program: None,
        command: Some("cmd_1".into()),
        session: None,
        count: 1,
        last: None,
    })
}

/// Lines without their time.
fn without_time(text: &str) -> Vec<String> {
    text.lines().map(|line| line[17..].split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn stored(dir: &Path) -> String {
    fs::read_to_string(dir.join(JOURNAL_FILE)).unwrap()
}

#[test]
fn every_entry_is_one_line_for_people() {
    let state = State::new();
    state.finished("sb_one");
    let expected = [
        "journal sb_one created",
        "cmd_1 exec \"cat .env\\n\" started",
        "cmd_1 read /src/main.py granted",
        "cmd_1 read /.env (3 times) denied none:**/.env*@100",
        "cmd_1 command 0.052 s, 0 bytes out exit 1 timed out",
        "sandbox stopped ended",
    ];
    assert_eq!(without_time(&state.ok(&["sb_one"])), expected);
}

#[test]
fn columns_are_aligned_and_begin_with_the_time_of_day() {
    let state = State::new();
    state.finished("sb_one");
    let text = state.ok(&["sb_one"]);
    let column = |line: &str, word: &str| line.find(word).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(column(lines[2], "granted"), column(lines[3], "denied"));
    assert_eq!(column(lines[1], "exec"), column(lines[5], "sandbox"));
    assert!(lines.iter().all(|line| line.as_bytes()[2] == b':' && line.as_bytes()[8] == b'.'));
}

#[test]
fn denied_shows_only_what_was_refused() {
    let state = State::new();
    state.finished("sb_one");
    let lines = without_time(&state.ok(&["sb_one", "--denied"]));
    assert_eq!(lines, ["cmd_1 read /.env (3 times) denied none:**/.env*@100"]);
    let text = state.ok(&["sb_one", "--denied", "--json"]);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&value["path"], &value["count"]), (&"/.env".into(), &3.into()));
}

#[test]
fn json_is_what_is_stored() {
    let state = State::new();
    let dir = state.finished("sb_one");
    assert_eq!(state.ok(&["sb_one", "--json"]), stored(&dir));
}

#[test]
fn names_cannot_write_to_the_readers_terminal() {
    let state = State::new();
    let journal = state.journal("sb_one");
    journal.append(started("cmd_\x1b[2J", "echo \x1b[2J\r")).unwrap();
    journal.append(access(b"/\x1b[2J\xff\nx", Decision::Denied)).unwrap();
    journal.close().unwrap();
    let text = state.ok(&["sb_one"]);
    assert!(!text.contains(['\x1b', '\r']), "{text:?}");
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.contains(r#""/\033[2J\377\nx""#), "{text}");
}

#[test]
fn a_sandbox_is_meant_by_a_unique_beginning_of_its_id() {
    let state = State::new();
    ["sb_one", "sb_two", "sb_two_more"].iter().for_each(|id| drop(state.finished(id)));
    assert!(state.ok(&["sb_o"]).contains("sb_one"));
    assert!(state.ok(&["sb_two"]).contains("sb_two "));
    let error = state.fails(&["sb_tw"], 2);
    assert!(error.contains("2 sandboxes begin with") && error.contains("sb_two_more"), "{error}");
}

#[test]
fn last_is_the_newest_sandbox() {
    let state = State::new();
    let first = state.finished("sb_z");
    let born = |dir: &Path| fs::metadata(dir).unwrap().created().unwrap();
    let deadline = SystemTime::now() + Duration::from_secs(10);
    // The clock of the filesystem ticks slowly.
    while born(&state.sandbox("sb_a")) <= born(&first) {
        fs::remove_dir(state.sandbox("sb_a")).unwrap();
        assert!(SystemTime::now() < deadline, "the clock stands still");
    }
    state.finished("sb_a");
    assert!(state.ok(&["last"]).contains("sb_a"));
    assert!(state.ok(&["verify", "last"]).starts_with("sb_a: intact"));
}

#[test]
fn an_unknown_sandbox_is_exit_code_2() {
    let state = State::new();
    for args in [&["sb_x"][..], &["last"], &["verify", "sb_x"], &["verify", "last"], &[""]] {
        let error = state.fails(args, 2);
        assert!(error.contains("there is no sandbox"), "{args:?}: {error}");
    }
    state.finished("sb_one");
    for id in ["../sandboxes/sb_one", "sb_one/", "/", "..", "sb_x"] {
        let error = state.fails(&["verify", id], 2);
        assert!(error.contains("there is no sandbox"), "{id}: {error}");
    }
}

#[test]
fn the_state_directory_can_be_named_by_a_variable() {
    let state = State::new();
    state.finished("sb_one");
    let mut command = binary();
    command.args(["audit", "verify", "sb_one"]).env("RINGFENCE_STATE", state.0.path());
    assert!(command.status().unwrap().success());
}

#[test]
fn verify_says_in_one_sentence_that_a_record_is_intact() {
    let state = State::new();
    state.finished("sb_one");
    let text = state.ok(&["verify", "sb_one"]);
    assert_eq!(text, "sb_one: intact, 6 entries, closed in order\n");
    let journal = state.journal("sb_two");
    let text = state.ok(&["verify", "sb_two"]);
    assert_eq!(text, "sb_two: intact, 1 entry so far, being written\n");
    drop(journal);
    let text = state.ok(&["verify", "sb_two"]);
    assert_eq!(text, "sb_two: intact, ends at entry 1, not closed in order\n");
}

#[test]
fn verify_names_the_first_bad_entry_and_is_exit_code_1() {
    let state = State::new();
    let dir = state.finished("sb_one");
    let good = stored(&dir);
    fs::write(dir.join(JOURNAL_FILE), good.replace("denied", "granted")).unwrap();
    let text = state.fails(&["verify", "sb_one"], 1);
    assert!(text.starts_with("sb_one: broken at entry 4: its hash does not fit"), "{text}");
    let value: Value =
        serde_json::from_str(&state.fails(&["verify", "sb_one", "--json"], 1)).unwrap();
    assert_eq!((&value["intact"], &value["entry"]), (&false.into(), &4.into()));

    let cut: String = good.lines().take(3).map(|line| format!("{line}\n")).collect();
    fs::write(dir.join(JOURNAL_FILE), cut).unwrap();
    let text = state.fails(&["verify", "sb_one"], 1);
    assert_eq!(
        text,
        "sb_one: broken at entry 4: the journal is truncated: its head names entry 6\n"
    );
    fs::remove_dir_all(&dir).unwrap();
    state.sandbox("sb_one");
    assert!(state.fails(&["verify", "sb_one"], 1).contains("journal.head is missing"));
}

#[test]
fn a_head_kept_elsewhere_tells_a_record_made_anew() {
    let state = State::new();
    let dir = state.finished("sb_one");
    let value: Value = serde_json::from_str(&state.ok(&["verify", "sb_one", "--json"])).unwrap();
    let head = value["head"].as_str().unwrap();
    state.ok(&["verify", "sb_one", "--head", head]);
    fs::remove_dir_all(&dir).unwrap();
    state.finished("sb_one");
    state.ok(&["verify", "sb_one"]);
    let text = state.fails(&["verify", "sb_one", "--head", head], 1);
    assert!(text.contains("rewritten"), "{text}");
    let text = state.fails(&["verify", "sb_one", "--head", "6:abc"], 2);
    assert!(text.contains("SEQ:HASH"), "{text}");
}

#[test]
fn an_entry_that_cannot_be_read_ends_with_code_3_after_those_before_it() {
    let state = State::new();
    let dir = state.finished("sb_one");
    let bad = stored(&dir).replace("{\"seq\":3", "{seq:3");
    fs::write(dir.join(JOURNAL_FILE), bad).unwrap();
    let text = state.fails(&["sb_one"], 3);
    assert!(text.contains("cat .env") && text.contains("line 3 of the journal"), "{text}");
    assert!(text.contains("ringfence audit verify sb_one"), "{text}");
}

#[test]
fn a_sandbox_without_journal_is_told() {
    let state = State::new();
    state.sandbox("sb_one");
    assert!(state.fails(&["sb_one"], 2).contains("sandbox sb_one has no journal"));
}

#[test]
fn follow_shows_entries_as_they_come_and_ends_with_the_sandbox() {
    let state = State::new();
    let journal = state.journal("sb_one");
    let mut command = binary();
    command.args(["audit", "sb_one", "--follow", "--state"]).arg(state.0.path());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().map(|line| line.unwrap());
    assert!(next().unwrap().contains("created"));
    for number in 0..3 {
        journal.append(started(&format!("cmd_{number}"), "true")).unwrap();
        assert!(next().unwrap().contains(&format!("cmd_{number}")));
    }
    journal.close().unwrap();
    drop(journal);
    assert_eq!(next(), None);
    assert!(child.wait().unwrap().success());
}
